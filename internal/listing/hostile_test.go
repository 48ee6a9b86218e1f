package listing_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/internal/listing"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

// hostile are texts that a fleet repository may hold in a name or a value.
var hostile = []string{
	"plain", "new\nline", "\r\nreturn", "\x1b[31mred\x1b]0;title\a", "\u009b31m", "bi\u202edi", "nul\x00", "bad\xff\xfeutf8",
	"::error::owned", "  ::add-mask::x", "##[error]owned", "%0A::error::x", "a,b:c=d", "`code` ``` fence", "a | b || c", "<script>alert(1)</script>",
	"<img src=x onerror=y>", "<!-- -->", "@octocat @org/team", "#123 GH-1", "[text](https://evil.example)", "![i](x)", "https://evil.example www.evil.example",
	"**bold** _it_ ~~no~~", "]]>", "&amp; &#64;", "{0} {{x}}", `back\slash \[ \`, strings.Repeat("long ", 3000), "日本語\u0301",
	":leading", "../up", "100%", "tab\there", "'\"", "-- x --", "\ufeffbom",
}

// wild is a result with every hostile text at every place.
func wild() *listing.Result {
	r := &listing.Result{Dir: "fleet\n::error::x", Root: "sub/", Files: 3, Devices: 2, Version: "v1.2.3"}
	for i, h := range hostile {
		p := schema.Problem{File: "devices/" + h + ".yaml", Line: i, Column: i % 3, Pointer: "/spec/" + h, Rule: "unknown-field",
			Severity: schema.SeverityError, Message: h, Hint: h}
		if i%2 == 1 {
			p.Severity, p.File, p.Rule = schema.SeverityWarning, h, "secret-in-vars"
		}
		r.Problems = append(r.Problems, p)
	}
	return r
}

func write(t *testing.T, to func(*bytes.Buffer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := to(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// all are the forms of a result.
func all(t *testing.T, r *listing.Result) map[string]string {
	t.Helper()
	return map[string]string{
		"text":     write(t, func(b *bytes.Buffer) error { return listing.WriteText(b, r, view.Look{}) }),
		"terminal": write(t, func(b *bytes.Buffer) error { return listing.WriteText(b, r, view.Look{Width: 60}) }),
		"github":   write(t, func(b *bytes.Buffer) error { return listing.WriteGitHub(b, r) }),
		"summary":  write(t, func(b *bytes.Buffer) error { return listing.WriteSummary(b, r, listing.SummaryLimit) }),
		"junit":    write(t, func(b *bytes.Buffer) error { return listing.WriteJUnit(b, r) }),
		"sarif":    write(t, func(b *bytes.Buffer) error { return listing.WriteSARIF(b, r) }),
		"json":     write(t, func(b *bytes.Buffer) error { return listing.WriteJSON(b, r) }),
	}
}

// What a fleet says steers no terminal, whatever form it is printed in.
func TestNothingSteersTheTerminal(t *testing.T) {
	for form, text := range all(t, wild()) {
		if !utf8.ValidString(text) {
			t.Errorf("%s: not UTF-8", form)
		}
		for i, r := range text {
			// In JSON a string has its format characters; control characters are escaped.
			if unicode.IsControl(r) && r != '\n' || form != "json" && unicode.Is(unicode.Cf, r) {
				t.Errorf("%s: %q at %q", form, r, text[max(0, i-20):i])
				break
			}
		}
	}
}

// In a log of GitHub Actions only our own annotations are commands.
func TestNothingIsACommandOfTheRunner(t *testing.T) {
	r := wild()
	for form, text := range all(t, r) {
		for line := range strings.Lines(text) {
			if name, is := command(line); is && form != "github" {
				t.Errorf("%s has the command %q: %q", form, name, line)
			}
			if (form == "text" || form == "github" || form == "summary") && strings.Contains(line, "##[") {
				if _, is := command(line); !is {
					t.Errorf("%s has a command of the old form: %q", form, line)
				}
			}
		}
	}
}

// command reads a line as the runner of GitHub Actions does.
func command(line string) (name string, is bool) {
	rest, is := strings.CutPrefix(strings.TrimSpace(line), "::")
	if !is {
		return "", false
	}
	head, _, is := strings.Cut(rest, "::")
	name, _, _ = strings.Cut(head, " ")
	return name, is
}

func TestGitHubKeepsToItsLimits(t *testing.T) {
	r := &listing.Result{}
	for i := range 30 {
		p := schema.Problem{File: fmt.Sprintf("devices/d-%02d.yaml", i), Line: i, Column: 3, Rule: "unknown-field", Severity: schema.SeverityWarning, Message: "m, 100% of: it", Hint: "h"}
		if i >= 15 {
			p.Severity = schema.SeverityError
		}
		r.Problems = append(r.Problems, p)
	}
	text := all(t, r)["github"]
	lines := strings.Split(text, "\n")
	if want := "::error file=devices/d-15.yaml,line=15,col=3,title=gitopsd unknown-field::m, 100%25 of: it%0Ah"; lines[0] != want {
		t.Errorf("got  %s\nwant %s", lines[0], want)
	}
	if lines[10] != "::warning file=devices/d-00.yaml,title=gitopsd unknown-field::m, 100%25 of: it%0Ah" {
		t.Errorf("the first warning is %s", lines[10])
	}
	if strings.Count(text, "::error ") != 10 || strings.Count(text, "::warning ") != 10 {
		t.Errorf("not 10 of each:\n%s", text)
	}
	if lines[20] != "::group::and 5 errors and 5 warnings more" || !strings.HasPrefix(lines[21], "devices/d-25.yaml:25:3: ") || lines[31] != "::endgroup::" {
		t.Errorf("what is above the limit:\n%s", strings.Join(lines[20:], "\n"))
	}
}

// What is read back from an annotation is what went into it, or its cleaned
// form: nothing ends a property early.
func TestAnnotationsReadBack(t *testing.T) {
	unescape := strings.NewReplacer("%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",", "%25", "%").Replace
	for _, h := range hostile {
		p := schema.Problem{File: h, Line: 7, Column: 9, Rule: "unknown-field", Severity: schema.SeverityError, Message: h}
		line := strings.TrimSuffix(write(t, func(b *bytes.Buffer) error {
			return listing.WriteGitHub(b, &listing.Result{Root: "fleet/", Problems: []schema.Problem{p}})
		}), "\n")
		head, text, _ := strings.Cut(strings.TrimPrefix(line, "::error "), "::")
		properties := strings.Split(head, ",")
		if strings.Contains(line, "\n") || len(properties) != 4 {
			t.Errorf("%q: %q", h, line)
			continue
		}
		file := unescape(strings.TrimPrefix(properties[0], "file="))
		if file != view.Clean("fleet/"+h) {
			t.Errorf("%q: the file is %q", h, file)
		}
		if len(h) < 4000 && unescape(text) != view.Clean(h) {
			t.Errorf("%q: the text is %q", h, unescape(text))
		}
		if properties[1] != "line=7" || properties[2] != "col=9" || properties[3] != "title=gitopsd unknown-field" {
			t.Errorf("%q: %q", h, properties)
		}
	}
}

func TestSummaryFits(t *testing.T) {
	r := &listing.Result{}
	for range 2000 {
		r.Problems = append(r.Problems, schema.Problem{File: strings.Repeat("@", 4000), Line: 1, Rule: "unknown-field", Severity: schema.SeverityError,
			Message: strings.Repeat("@", 8000), Hint: strings.Repeat("|", 8000)})
	}
	whole := 0
	for _, limit := range []int{listing.SummaryLimit, 100_000, 20_000, 500, 20, 0} {
		text := write(t, func(b *bytes.Buffer) error { return listing.WriteSummary(b, r, limit) })
		if len(text) > limit {
			t.Errorf("%d bytes with a limit of %d", len(text), limit)
		}
		if text == "" {
			continue
		}
		rows := strings.Count(text, "\n| error |")
		whole++
		if !strings.Contains(text, fmt.Sprintf("\nand %d problems more", 2000-rows)) || !strings.HasPrefix(text, "### gitopsd validate: 2000 errors") {
			t.Errorf("limit %d: %d rows, and it ends with %q", limit, rows, text[max(0, len(text)-100):])
		}
	}
	if whole < 4 {
		t.Errorf("only %d of the limits gave a summary", whole)
	}
}
