package listing_test

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// In text that is not code GitHub makes links of addresses while it reads the
// markdown, and mentions and references of what it has read.
var (
	addresses = regexp.MustCompile(`(?i)://|www\.`)
	mentions  = regexp.MustCompile(`(?i)@[a-z0-9]|#[0-9]`)
)

// A reader of GitHub's markdown finds one heading and one table in a summary, no
// tags but ours, and no links but those to the rules.
func TestSummaryAsMarkdown(t *testing.T) {
	r := wild()
	body := []byte(all(t, r)["summary"])
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM))
	rows, headings, code := 0, 0, false
	_ = ast.Walk(markdown.Parser().Parse(text.NewReader(body)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Document, *extast.Table, *extast.TableHeader:
		case *ast.Heading:
			headings++
		case *extast.TableRow:
			rows++
		case *extast.TableCell:
			code = false
		case *ast.RawHTML:
			tag := string(n.Segments.Value(body))
			if tag != "<code>" && tag != "</code>" && tag != "<br>" {
				t.Errorf("a tag: %s", tag)
			}
			code = tag == "<code>"
		case *ast.Link:
			if !strings.HasPrefix(string(n.Destination), "https://github.com/gitopsd/gitopsd/blob/main/docs/reference/rules.md#") {
				t.Errorf("a link to %s", n.Destination)
			}
		case *ast.Text:
			words := string(n.Segment.Value(body))
			if !code && (addresses.MatchString(words) || mentions.MatchString(html.UnescapeString(words))) {
				t.Errorf("not code: %q", words)
			}
		default:
			t.Errorf("there is a %s", n.Kind())
		}
		return ast.WalkContinue, nil
	})
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "| ") && strings.Count(line, "|") != 5 {
			t.Errorf("not four cells: %s", line) // a parser leaves out those that are too many
		}
	}
	if headings != 1 || rows != len(r.Problems) {
		t.Errorf("%d headings and %d rows, want 1 and %d", headings, rows, len(r.Problems))
	}
}
