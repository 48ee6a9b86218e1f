package listing

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

// SummaryLimit is how long the summary of a step may be in all, in bytes; of a
// longer one GitHub shows nothing.
const SummaryLimit = 1 << 20

// Of the rows of a summary.
const (
	summaryRows = 500 // what somebody still scrolls through
	summaryCell = 500 // characters of a text
)

// WriteSummary writes markdown for the summary of a step of GitHub Actions, in
// at most so many bytes. Where not even the first lines fit, it writes nothing.
func WriteSummary(w io.Writer, r *Result, limit int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### gitopsd validate: %s\n", prose(r.Verdict()))
	tail := func(n int) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf("\nand %s more; the log of the step has all of them\n", plural(n, "problem"))
	}
	if len(r.Problems) > 0 {
		b.WriteString("\n| | where | what | rule |\n|--|--|--|--|\n")
	}
	if b.Len()+len(tail(len(r.Problems))) > limit {
		return nil
	}
	left := len(r.Problems)
	for i, p := range errorsFirst(r.Problems) {
		row := summaryRow(r.Root, p)
		if i == summaryRows || b.Len()+len(row)+len(tail(left)) > limit {
			break
		}
		b.WriteString(row)
		left--
	}
	b.WriteString(tail(left))
	_, err := io.WriteString(w, b.String())
	return err
}

func summaryRow(root string, p schema.Problem) string {
	p.File = clip(root+p.File, summaryCell)
	text := prose(clip(view.Clean(p.Message), summaryCell))
	if p.Hint != "" {
		text += "<br>" + prose(clip(view.Clean(p.Hint), summaryCell))
	}
	return fmt.Sprintf("| %s | <code>%s</code> | %s | [%s](%s) |\n", p.Severity, literal(place(p)), text, literal(p.Rule), RuleURL(p.Rule))
}

// literal writes a text of one line so that markdown finds nothing in it:
// whatever might be markup somewhere stands as a numeric entity, which never
// is. A full stop is only escaped behind a w, where it makes an address.
func literal(s string) string {
	const harmless = ` -,()"'?=%+;/`
	var b strings.Builder
	last := ' '
	for _, r := range view.Clean(s) {
		plain := r >= 0x80 || isWord(r) || strings.ContainsRune(harmless, r) || r == '.' && last != 'w' && last != 'W'
		if plain {
			b.WriteRune(r)
		} else {
			b.WriteString("&#" + strconv.Itoa(int(r)) + ";")
		}
		last = r
	}
	return b.String()
}

func isWord(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// prose is literal outside of code, where GitHub also makes mentions and
// references of what it reads after the markdown: an invisible character
// behind the sign keeps it from that.
func prose(s string) string {
	const nothing = "&#8203;" // a space without width
	return strings.NewReplacer("&#64;", "&#64;"+nothing, "&#35;", "&#35;"+nothing).Replace(literal(s))
}
