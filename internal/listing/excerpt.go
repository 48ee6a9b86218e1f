package listing

import (
	"strconv"
	"strings"
	"unicode"
)

// leastExcerpt is how many columns of a line are worth showing.
const leastExcerpt = 20

// excerpt is the part of a line around a column, in at most width columns of
// a terminal, and where in it a caret has to stand; -1 = nowhere. Columns are
// counted in characters from 1, 0 means the whole line.
func excerpt(line string, column, width int) (text string, caret int) {
	const ellipsis = "…" // one column
	runes := []rune(line)
	at := min(max(column-1, 0), len(runes))
	room := width - 2 // an ellipsis at each end
	from, before := at, 0
	for from > 0 {
		// A place that is far to the right keeps a third of the room for what follows it.
		w := cells(runes[from-1])
		if before+w > room*2/3 {
			break
		}
		before += w
		from--
	}
	var b strings.Builder
	if from > 0 {
		b.WriteString(ellipsis)
		before++
	}
	used := 0
	for i, r := range runes[from:] {
		if used += cells(r); used > room {
			if i+from <= at {
				return "", -1 // not even the character that is meant fits
			}
			b.WriteString(ellipsis)
			break
		}
		b.WriteString(shown(r))
	}
	if column == 0 {
		before = -1
	}
	return b.String(), before
}

// shown is a rune as a terminal may get it: whatever could steer it is
// written as an escape.
func shown(r rune) string {
	switch {
	case r == '\t':
		return " "
	case unicode.IsPrint(r):
		return string(r)
	}
	quoted := strconv.QuoteRuneToASCII(r)
	return quoted[1 : len(quoted)-1]
}

// wide are the scripts and symbols that terminals draw in two columns.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x2e80, Hi: 0x303e, Stride: 1}, {Lo: 0x3041, Hi: 0xa4cf, Stride: 1},
		{Lo: 0xac00, Hi: 0xd7a3, Stride: 1}, {Lo: 0xf900, Hi: 0xfaff, Stride: 1}, {Lo: 0xfe30, Hi: 0xfe6f, Stride: 1},
		{Lo: 0xff00, Hi: 0xff60, Stride: 1}, {Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1}, {Lo: 0x1f900, Hi: 0x1f9ff, Stride: 1}, {Lo: 0x20000, Hi: 0x3fffd, Stride: 1}},
}

// cells is how many columns a terminal uses for a rune as shown.
func cells(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return len([]rune(shown(r)))
}
