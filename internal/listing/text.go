package listing

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

// Line is a problem on one line, as compilers write it, with its hint. It may
// go to the log of a pipeline: the runner of GitHub Actions takes a line that
// begins with two colons for a command, and ##[ anywhere.
func Line(p schema.Problem) string {
	var b strings.Builder
	b.WriteString(place(p) + ": ")
	if p.Severity == schema.SeverityWarning {
		b.WriteString("warning: ")
	}
	b.WriteString(says(p))
	if p.Hint != "" {
		fmt.Fprintf(&b, " (%s)", view.Clean(p.Hint))
	}
	return strings.ReplaceAll(b.String(), "##[", `##\[`)
}

// place is where a problem is, as editors and terminals follow it. It does not
// begin with a colon.
func place(p schema.Problem) string {
	text := view.Clean(p.File)
	if strings.HasPrefix(strings.TrimSpace(text), ":") {
		text = "./" + text
	}
	if p.Line > 0 {
		text += ":" + strconv.Itoa(p.Line)
		if p.Column > 0 {
			text += ":" + strconv.Itoa(p.Column)
		}
	}
	return text
}

func says(p schema.Problem) string {
	if p.Rule == "" {
		return view.Clean(p.Message)
	}
	return fmt.Sprintf("%s [%s]", view.Clean(p.Message), p.Rule)
}

// WriteText writes a line for each problem; for a terminal, the line of the
// source that is meant, too.
func WriteText(w io.Writer, r *Result, look view.Look) error {
	var b strings.Builder
	secret := secretLines(r.Problems)
	for i, p := range r.Problems {
		if look.Width == 0 {
			b.WriteString(Line(p) + "\n")
		} else {
			if i > 0 {
				b.WriteByte('\n')
			}
			source, has := r.Lines.at(p.File, p.Line)
			writeDrawn(&b, p, source, has && !secret[lineOf(p)] && !r.Lines.secret(p.Line), look)
		}
		// 10,000 problems need not be one string.
		if b.Len() > flushEvery {
			if _, err := io.WriteString(w, b.String()); err != nil {
				return err
			}
			b.Reset()
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

const flushEvery = 64 << 10 // bytes of text that are kept before they are written

// Colours of a terminal (ECMA-48, SGR).
const (
	red    = "31"
	yellow = "33"
	faint  = "2"
)

func writeDrawn(b *strings.Builder, p schema.Problem, source string, has bool, look view.Look) {
	word, color := "error", red
	if p.Severity == schema.SeverityWarning {
		word, color = "warning", yellow
	}
	paint := func(color, s string) string {
		if !look.Color {
			return s
		}
		return "\x1b[" + color + "m" + s + "\x1b[0m"
	}
	lead := place(p) + ": " + word + ":"
	for i, line := range view.Wrap(lead+" "+says(p), look.Width) {
		if rest, whole := strings.CutPrefix(line, lead); i == 0 && whole {
			line = place(p) + ": " + paint(color, word+":") + rest
		}
		b.WriteString(line + "\n")
	}
	number := strconv.Itoa(p.Line)
	gutter := strings.Repeat(" ", len(number))
	const bar = " | "
	if room := look.Width - len(number) - len(bar); has && room >= leastExcerpt {
		text, caret := excerpt(source, p.Column, room)
		if strings.TrimSpace(text) != "" {
			b.WriteString(paint(faint, number+bar) + text + "\n")
			if caret >= 0 {
				b.WriteString(paint(faint, gutter+bar) + strings.Repeat(" ", caret) + paint(color, "^") + "\n")
			}
		}
	}
	if p.Hint != "" {
		for _, line := range view.Wrap("hint: "+view.Clean(p.Hint), look.Width) {
			b.WriteString(line + "\n")
		}
	}
}

// lineID is a line of a file.
type lineID struct {
	file string
	line int
}

func lineOf(p schema.Problem) lineID { return lineID{p.File, p.Line} }

// secretRules are what package schema says of a value that should not be in a
// repository. What stands there is not repeated, whatever else is wrong with
// it: what a terminal shows is soon pasted elsewhere.
var secretRules = map[string]bool{"secret-in-vars": true, "bad-secret": true}

func secretLines(problems []schema.Problem) map[lineID]bool {
	lines := map[lineID]bool{}
	for _, p := range problems {
		if secretRules[p.Rule] {
			lines[lineOf(p)] = true
		}
	}
	return lines
}
