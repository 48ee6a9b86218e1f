package comment_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

var github = goldmark.New(goldmark.WithExtensions(extension.GFM))

// ownBlocks are the blocks of HTML that a comment consists of.
var ownBlocks = regexp.MustCompile(`^(<!-- gitopsd:plan name=[A-Za-z0-9._/:-]* head=[0-9a-f]* base=[0-9a-f]* -->|<!-- gitopsd:stale -->|<details>\n<summary>[A-Za-z0-9, ]+</summary>|</details>)\n?$`)

// ownTitles are the headings below the verdict.
var ownTitles = []string{"Warnings", "Changes", "Policies", "Who", "Worst case", "Next sweep", "Moves next", "Waiting", "Problems"}

// linked finds what GitHub makes a link, a mention, a picture or a formula of
// in words that are not code.
var linked = regexp.MustCompile(`(?i)[@#$<>]|\b[0-9a-f]{7,}\b|://|www\.\S|\bGH-|\bCVE-|\bGHSA-|[a-z0-9]/[a-z0-9]|:[a-z0-9_+-]+:|\bmailto\b`)

// wrong lists what is wrong with a comment as a reader of markdown sees it.
func wrong(body string) []string {
	var found []string
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if !utf8.ValidString(body) {
		say("it is not UTF-8")
	}
	for _, r := range body {
		if r != '\n' && !unicode.IsPrint(r) {
			say("it holds %U", r)
		}
	}
	source := []byte(body)
	opened := 0
	_ = ast.Walk(github.Parser().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link, *ast.Image, *ast.AutoLink:
			say("there is a link: %s", n.Kind())
		case *ast.HTMLBlock:
			block := string(n.Lines().Value(source))
			if n.HasClosure() {
				block += string(n.ClosureLine.Value(source))
			}
			if !ownBlocks.MatchString(block) {
				say("there is HTML: %q", block)
			}
			opened += strings.Count(block, "<details>") - strings.Count(block, "</details>")
			if opened < 0 || opened > 1 {
				say("%d details are open", opened)
			}
		case *ast.RawHTML:
			if tag := string(n.Segments.Value(source)); tag != "<code>" && tag != "</code>" {
				say("there is a tag: %q", tag)
			}
		case *ast.Heading:
			title := string(n.Lines().Value(source))
			if n.Level != 3 && (n.Level != 4 || !slices.Contains(ownTitles, title)) {
				say("there is a heading of level %d: %q", n.Level, title)
			}
		case *ast.Blockquote:
			if !strings.Contains(body, "<!-- gitopsd:stale -->") {
				say("there is a quotation")
			}
		case *ast.ThematicBreak, *ast.CodeBlock, *extast.Strikethrough, *extast.TaskCheckBox:
			say("there is a %s", n.Kind())
		case *ast.List:
			if n.IsOrdered() || n.Parent().Kind() == ast.KindListItem {
				say("there is a list that is none of ours")
			}
		case *ast.Emphasis:
			if n.Level != 2 {
				say("there is an emphasis")
			}
		case *ast.Text:
			if words := string(n.Segment.Value(source)); !isCode(n, source) && linked.MatchString(words) {
				say("%q is not code", words)
			}
		}
		return ast.WalkContinue, nil
	})
	if opened != 0 {
		say("%d details are not closed", opened)
	}
	return append(found, unbalanced(body)...)
}

// isCode says whether words stand in a code span, or between our tags.
func isCode(n ast.Node, source []byte) bool {
	if n.Parent().Kind() == ast.KindCodeSpan {
		return true
	}
	for before := n.PreviousSibling(); before != nil; before = before.PreviousSibling() {
		if tag, ok := before.(*ast.RawHTML); ok {
			return string(tag.Segments.Value(source)) == "<code>"
		}
	}
	return false
}

var fence = regexp.MustCompile("^(`{3,})(?:sh|diff)$")

// unbalanced looks at the lines without a parser, which would put up with a
// fence that nobody closes and with cells that are too many.
func unbalanced(body string) []string {
	var found []string
	open, cells := "", 0
	for _, l := range strings.Split(body, "\n") {
		switch {
		case open != "":
			if l == open {
				open = ""
			}
		case fence.MatchString(l):
			open = fence.FindStringSubmatch(l)[1]
		case l != "" && strings.Trim(l, "`") == "":
			found = append(found, "a block of code ends early")
		case strings.HasPrefix(l, "|"):
			if n := strings.Count(l, "|"); cells == 0 {
				cells = n
			} else if n != cells {
				found = append(found, fmt.Sprintf("a row of %d cells is in a table of %d: %s", n-1, cells-1, l))
			}
			continue
		}
		cells = 0
	}
	if open != "" {
		found = append(found, "a block of code is not closed")
	}
	return found
}
