package schema

import (
	"bytes"
	"fmt"
	"regexp"
	"unicode/utf8"
)

// sharpenSyntax looks at the lines themselves for two slips that the parser
// has no word for: a tab, which nobody sees, and a quote that is closed by the
// opening one of a later line, where the parser then finds what does not fit
// the structure.
func sharpenSyntax(p *Problem, lines [][]byte, structure bool) {
	if p.Line > len(lines) {
		return
	}
	line := lines[p.Line-1]
	indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
	if tab := bytes.IndexByte(indent, '\t'); tab >= 0 {
		p.Message, p.Column, p.Hint = "a tab indents nothing in YAML", 1+tab, "indent with spaces"
		return
	}
	if !structure {
		return
	}
	if opened, column := openedQuote(lines[:p.Line-1], line); opened > 0 {
		p.Message = fmt.Sprintf("the quote that is opened here ends in line %d", p.Line)
		p.Line, p.Column, p.Hint = opened, column, "close the quote in this line, or put nothing behind its end"
	}
}

// quotedValue is a line whose value, of a key or of an item, begins with a
// quote; what is before the quote, the quote, and the rest.
var quotedValue = regexp.MustCompile(`^(\s*(?:- +)*(?:[^\s"'#-][^"'#]*: +|- +))(["'])(.*)$`)

// openedQuote finds the line above in which the quote was opened that the
// first one of a line closes; 0 = there is none.
func openedQuote(above [][]byte, line []byte) (opened, column int) {
	for i := len(above) - 1; i >= 0; i-- {
		m := quotedValue.FindSubmatch(above[i])
		switch {
		case m == nil && bytes.ContainsAny(above[i], `"'`):
			return 0, 0 // whose quotes these are would take a parser
		case m == nil:
			continue
		case bytes.Contains(m[3], m[2]) || !bytes.Contains(line, m[2]):
			return 0, 0
		}
		return i + 1, 1 + utf8.RuneCount(m[1])
	}
	return 0, 0
}
