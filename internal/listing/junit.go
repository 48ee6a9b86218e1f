package listing

import (
	"encoding/xml"
	"io"
	"strconv"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

// The elements of a JUnit report that all of its readers know. The order of
// the fields is that of its schema.
type (
	junitSuites struct {
		XMLName  xml.Name `xml:"testsuites"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Suite    junitSuite
	}
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Failure *junitFailure `xml:"failure"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes a JUnit report: a test case for each problem, which passes
// where it is only a warning, and one that passes where there is none, because
// readers take a report without tests for a mistake. Names hold no line
// numbers, so that a reader that compares two runs knows a problem again that
// has moved.
func WriteJUnit(w io.Writer, r *Result) error {
	suite := junitSuite{Name: "gitopsd validate"}
	if len(r.Problems) == 0 {
		suite.Cases = []junitCase{{Name: "valid", Class: view.Clean(r.Dir), Output: r.Verdict()}}
	}
	seen := map[string]int{}
	for _, p := range r.Problems {
		c := junitCase{Name: p.Rule, Class: view.Clean(r.Root + p.File)}
		if p.Pointer != "" {
			c.Name += " " + view.Clean(p.Pointer)
		}
		id := c.Class + "\n" + c.Name
		if seen[id]++; seen[id] > 1 {
			c.Name += " (" + strconv.Itoa(seen[id]) + ")"
		}
		if p.Severity == schema.SeverityError || r.Strict {
			c.Failure = &junitFailure{Type: string(p.Severity), Message: view.Clean(p.Message), Text: Line(p)}
			suite.Failures++
		} else {
			c.Output = Line(p)
		}
		suite.Cases = append(suite.Cases, c)
	}
	suite.Tests = len(suite.Cases)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(junitSuites{Name: suite.Name, Tests: suite.Tests, Failures: suite.Failures, Suite: suite}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
