package listing_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/gitopsd/gitopsd/internal/listing"
	"github.com/gitopsd/gitopsd/schema"
)

// results are what the reports are held against the schemas with.
func results() map[string]*listing.Result {
	strict := wild()
	strict.Strict = true
	return map[string]*listing.Result{"nothing": {Dir: ".", Valid: true}, "hostile": wild(), "strict": strict}
}

func TestSARIFFollowsItsSchema(t *testing.T) {
	text, err := os.ReadFile("testdata/sarif-2.1.0.json")
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat = true
	if err := c.AddResource("sarif.json", bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	sarif, err := c.Compile("sarif.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range results() {
		var doc any
		if err := json.Unmarshal([]byte(all(t, r)["sarif"]), &doc); err != nil {
			t.Fatal(err)
		}
		if err := sarif.Validate(doc); err != nil {
			t.Errorf("%s: %#v", name, err)
		}
	}
	// The schema is really asked.
	if err := sarif.Validate(map[string]any{"version": "2.1.0", "runs": []any{map[string]any{}}}); err == nil {
		t.Error("a run without a tool passes")
	}
}

// sarifRead is what code scanning reads.
type sarifRead struct {
	Runs []struct {
		Tool struct {
			Driver struct {
				Rules []struct{ ID, HelpURI string }
			}
		}
		Invocations []struct {
			Notifications []struct {
				Message struct{ Text string }
			} `json:"toolExecutionNotifications"`
		}
		ColumnKind string
		Results    []struct {
			RuleID    string
			RuleIndex int
			Level     string
			Message   struct{ Text string }
			Locations []struct {
				PhysicalLocation struct {
					ArtifactLocation struct{ URI string }
					Region           struct{ StartLine, StartColumn int }
				}
			}
			PartialFingerprints map[string]string
		}
	}
}

func readSARIF(t *testing.T, r *listing.Result) sarifRead {
	t.Helper()
	var read sarifRead
	if err := json.Unmarshal([]byte(write(t, func(b *bytes.Buffer) error { return listing.WriteSARIF(b, r) })), &read); err != nil {
		t.Fatal(err)
	}
	return read
}

func TestSARIFKeepsToTheLimitsOfCodeScanning(t *testing.T) {
	const limit = 25_000
	r := &listing.Result{Root: "a b/"}
	for i := range limit + 10 {
		p := schema.Problem{File: "devices/#1:x.yaml", Line: i, Pointer: "/spec/x", Rule: "unknown-field", Severity: schema.SeverityWarning, Message: "see [here](https://x)"}
		if i == limit+9 {
			p = schema.Problem{File: "policies/p.yaml", Rule: "yaml-syntax", Severity: schema.SeverityError, Message: "m"}
		}
		r.Problems = append(r.Problems, p)
	}
	run := readSARIF(t, r).Runs[0]
	if len(run.Results) != limit || run.Invocations[0].Notifications[0].Message.Text != "and 10 problems more" || run.ColumnKind != "unicodeCodePoints" {
		t.Errorf("%d results, %+v, %s", len(run.Results), run.Invocations, run.ColumnKind)
	}
	first, second := run.Results[0], run.Results[1]
	if at := first.Locations[0].PhysicalLocation; first.Level != "error" || at.Region.StartLine != 1 || at.ArtifactLocation.URI != "a%20b/policies/p.yaml" {
		t.Errorf("the first result is %+v, want the error, at line 1 where no line is meant", first)
	}
	if second.Locations[0].PhysicalLocation.ArtifactLocation.URI != "a%20b/devices/%231%3Ax.yaml" || second.Message.Text != `see \[here\](https://x)` {
		t.Errorf("the second result is %+v", second)
	}
	if rule := run.Tool.Driver.Rules[second.RuleIndex]; rule.ID != second.RuleID || !strings.HasSuffix(rule.HelpURI, "rules.md#unknown-field") {
		t.Errorf("the rule is %+v", rule)
	}
}

// Code scanning knows a problem again when lines above it come and go, and
// keeps two of one file apart.
func TestFingerprintsStay(t *testing.T) {
	problem := func(line int, pointer, message string) schema.Problem {
		return schema.Problem{File: "f.yaml", Line: line, Pointer: pointer, Rule: "unknown-field", Severity: schema.SeverityError, Message: message}
	}
	of := func(problems ...schema.Problem) []string {
		var list []string
		for _, one := range readSARIF(t, &listing.Result{Problems: problems}).Runs[0].Results {
			list = append(list, one.PartialFingerprints["primaryLocationLineHash"])
		}
		return list
	}
	a, b := of(problem(3, "/a", "m"), problem(4, "/b", "m")), of(problem(9, "/a", "n"), problem(12, "/b", "m"), problem(13, "/b", "m"))
	if a[0] != b[0] || a[1] != b[1] || a[0] == a[1] || b[1] == b[2] {
		t.Errorf("%v and %v", a, b)
	}
}

func TestJUnitFollowsItsSchema(t *testing.T) {
	elements := readXSD(t, "testdata/junit-4.xsd")
	for name, r := range results() {
		text := all(t, r)["junit"]
		if wrong := elements.check(text); wrong != nil {
			t.Errorf("%s: %v\n%s", name, wrong, text)
		}
	}
	for _, wrong := range []string{
		`<testsuites><testsuite name="x"/></testsuites>`, `<testsuites nmae="x"/>`, `<testsuites><testcase name="x"/></testsuites>`,
		`<testcase name="x"><system-out/><failure/></testcase>`, `<testcase name="x"><skipped/><skipped/></testcase>`, `<testsuites>text</testsuites>`,
	} {
		if elements.check(wrong) == nil {
			t.Errorf("passes: %s", wrong)
		}
	}
}

func TestJUnitCounts(t *testing.T) {
	type suites struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Suite    struct {
			Cases []struct {
				Name    string    `xml:"name,attr"`
				Class   string    `xml:"classname,attr"`
				Failure *struct{} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	warning := schema.Problem{File: "a.yaml", Pointer: "/x", Rule: "r", Severity: schema.SeverityWarning, Message: "m"}
	wrong := schema.Problem{File: "a.yaml", Pointer: "/x", Rule: "r", Severity: schema.SeverityError, Message: "m"}
	for _, c := range []struct {
		name            string
		r               listing.Result
		tests, failures int
		first           string
	}{
		{"none", listing.Result{Dir: "."}, 1, 0, ". valid"},
		{"warning", listing.Result{Root: "fleet/", Problems: []schema.Problem{warning}}, 1, 0, "fleet/a.yaml r /x"},
		{"strict", listing.Result{Problems: []schema.Problem{warning}, Strict: true}, 1, 1, "a.yaml r /x"},
		{"both", listing.Result{Problems: []schema.Problem{wrong, warning, wrong}}, 3, 2, "a.yaml r /x"},
	} {
		var got suites
		text := write(t, func(b *bytes.Buffer) error { return listing.WriteJUnit(b, &c.r) })
		if err := xml.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, one := range got.Suite.Cases {
			names[one.Class+" "+one.Name] = true
		}
		if got.Tests != c.tests || got.Failures != c.failures || len(names) != c.tests || !names[c.first] {
			t.Errorf("%s: %d tests, %d failures, names %v; want %d, %d\n%s", c.name, got.Tests, got.Failures, names, c.tests, c.failures, text)
		}
	}
}
