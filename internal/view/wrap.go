package view

import (
	"strings"
	"unicode/utf8"
)

// longestText is how many lines a text may fill. A device may send 8 KiB,
// and the rest of the screen is needed too; the JSON has all of it.
const longestText = 12

// Wrap breaks a text at spaces into lines of at most width characters; what
// has no space, a path or a digest, is broken where the line ends. Width 0
// wraps nothing. A text that would fill the screen ends with "…".
func Wrap(text string, width int) []string {
	if width <= 0 || utf8.RuneCountInString(text) <= width {
		return []string{text}
	}
	var lines []string
	rest := []rune(text)
	for len(rest) > width {
		if len(lines) == longestText-1 {
			return append(lines, strings.TrimRight(string(rest[:width-1]), " ")+"…")
		}
		at := width
		for at > 0 && rest[at] != ' ' {
			at--
		}
		if at == 0 {
			at = width
		}
		lines = append(lines, strings.TrimRight(string(rest[:at]), " "))
		rest = []rune(strings.TrimLeft(string(rest[at:]), " "))
	}
	if len(rest) > 0 {
		lines = append(lines, string(rest))
	}
	return lines
}

// hang wraps a text that begins at a column, and indents its further lines
// so that they begin there too.
func (l Look) hang(text string, column int) string {
	// Less room than this is of no use to a reader: let the terminal wrap.
	const least = 12
	if l.Width-column < least {
		return text
	}
	return strings.Join(Wrap(text, l.Width-column), "\n"+strings.Repeat(" ", column))
}

// hangLines is hang for a text of several lines, each of which may begin with
// blanks of its own.
func (l Look) hangLines(text string, column int) string {
	lines := strings.Split(CleanLines(text), "\n")
	for i, line := range lines {
		lines[i] = l.hang(line, column)
	}
	return strings.Join(lines, "\n")
}
