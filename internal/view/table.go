package view

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Look is how text should be laid out: Width 0 cuts nothing.
type Look struct {
	Width int
	Color bool
}

// Colours of a terminal (ECMA-48, SGR).
const (
	colorBad   = "31"
	colorGood  = "32"
	colorBusy  = "33"
	colorFaint = "2"
	colorHead  = "1"
)

func (l Look) paint(color, s string) string {
	if !l.Color || color == "" || s == "" {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// fit cuts a clean text to the width that is left after `used` columns.
func (l Look) fit(s string, used int) string {
	if l.Width == 0 {
		return s
	}
	// Less than this is of no use to a reader: let the terminal wrap.
	const least = 12
	room := l.Width - used
	if room < least || utf8.RuneCountInString(s) <= room {
		return s
	}
	runes := []rune(s)
	return strings.TrimRight(string(runes[:room-1]), " ") + "…"
}

// Table is rows of cells below a head, in columns as wide as they need to
// be. Only the last column is cut when the width is short: it is the text.
type Table struct {
	Head []string
	rows [][]cell
}

type cell struct{ text, color string }

// Row adds a row of plain cells.
func (t *Table) Row(cells ...string) {
	row := make([]cell, len(cells))
	for i, c := range cells {
		row[i] = cell{text: Clean(c)}
	}
	t.rows = append(t.rows, row)
}

// Paint colours one cell of the row that was added last.
func (t *Table) Paint(column int, color string) {
	t.rows[len(t.rows)-1][column].color = color
}

// Empty says whether there is no row.
func (t *Table) Empty() bool { return len(t.rows) == 0 }

// Write writes the table.
func (t *Table) Write(w io.Writer, look Look) error {
	widths := make([]int, len(t.Head))
	for i, h := range t.Head {
		widths[i] = utf8.RuneCountInString(h)
	}
	for _, row := range t.rows {
		for i, c := range row {
			if i >= len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	var b strings.Builder
	if len(t.Head) > 0 {
		head := make([]cell, len(t.Head))
		for i, h := range t.Head {
			head[i] = cell{h, colorHead}
		}
		writeRow(&b, head, widths, look)
	}
	for _, row := range t.rows {
		writeRow(&b, row, widths, look)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeRow(b *strings.Builder, row []cell, widths []int, look Look) {
	const gap = 2
	last := len(row) - 1
	for last > 0 && row[last].text == "" {
		last--
	}
	used := 0
	for i := 0; i <= last; i++ {
		c := row[i]
		if i == last {
			b.WriteString(look.paint(c.color, look.fit(c.text, used)))
			break
		}
		b.WriteString(look.paint(c.color, c.text))
		b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+gap))
		used += widths[i] + gap
	}
	b.WriteByte('\n')
}
