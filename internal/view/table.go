package view

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Look is how text should be laid out: Width 0 wraps nothing.
type Look struct {
	Width int
	Color bool
	// Again is what a command that the text suggests has to be given as well,
	// to look at the same fleet: "--repo fleet.git".
	Again string
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

// again is a suggested command with the flags that it needs.
func (l Look) again(command string) string {
	if l.Again == "" {
		return command
	}
	return command + " " + l.Again
}

// Table is rows of cells below a head, in columns as wide as they need to
// be. Where the width is short, cells are wrapped in their columns: those of
// the last one first, since it is the text. Where that is not enough, columns
// are left out.
type Table struct {
	Head []string
	// Spare are the heads of the columns that may be left out, the one that is
	// missed least first.
	Spare []string
	rows  [][]cell
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

// drop takes a column away again.
func (t *Table) drop(head string) {
	at := slices.Index(t.Head, head)
	t.Head = slices.Delete(t.Head, at, at+1)
	for i := range t.rows {
		t.rows[i] = slices.Delete(t.rows[i], at, at+1)
	}
}

// Paint colours one cell of the row that was added last.
func (t *Table) Paint(column int, color string) {
	t.rows[len(t.rows)-1][column].color = color
}

// Empty says whether there is no row.
func (t *Table) Empty() bool { return len(t.rows) == 0 }

// Write writes the table.
func (t *Table) Write(w io.Writer, look Look) error {
	rows, widths, least := t.layout(look)
	shrink(widths, least, look.Width)
	var b strings.Builder
	for _, row := range rows {
		writeRow(&b, row, widths, look)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// fits says whether the words of the table fit without being broken.
func (t *Table) fits(look Look) bool {
	_, _, least := t.layout(look)
	return look.Width == 0 || total(least) <= look.Width
}

// layout gives the rows with their head, without the columns for which there
// is no room.
func (t *Table) layout(look Look) (rows [][]cell, widths, least []int) {
	rows = t.rows
	if len(t.Head) > 0 {
		head := make([]cell, len(t.Head))
		for i, h := range t.Head {
			head[i] = cell{h, colorHead}
		}
		rows = slices.Concat([][]cell{head}, rows)
	}
	widths, least = measure(rows)
	for _, head := range t.Spare {
		at := slices.IndexFunc(rows[0], func(c cell) bool { return c.text == head })
		if look.Width == 0 || total(least) <= look.Width || at < 0 {
			continue
		}
		for i := range rows {
			rows[i] = slices.Delete(slices.Clone(rows[i]), at, at+1)
		}
		widths, least = measure(rows)
	}
	return rows, widths, least
}

// measure gives for each column how wide it would like to be, and how wide it
// has to be for its words.
func measure(rows [][]cell) (widths, least []int) {
	for _, row := range rows {
		for i, c := range row {
			if i >= len(widths) {
				widths, least = append(widths, 0), append(least, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
			for word := range strings.FieldsSeq(c.text) {
				least[i] = max(least[i], min(utf8.RuneCountInString(word), readable))
			}
		}
	}
	return widths, least
}

// total is the width of columns with the gaps between them.
func total(widths []int) int {
	sum := gap * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

const (
	gap      = 2  // between two columns, in spaces
	readable = 24 // characters of a column in which a text can still be read
)

// shrink makes columns fit: the last one down to what can still be read,
// then the widest ones, but none so far that a word of ordinary length breaks. A
// terminal too narrow even for that wraps itself.
func shrink(widths, least []int, width int) {
	if width == 0 || len(widths) == 0 {
		return
	}
	over := total(widths) - width
	last := len(widths) - 1
	if less := min(over, widths[last]-readable); less > 0 {
		widths[last] -= less
		over -= less
	}
	for ; over > 0; over-- {
		widest := -1
		for i, w := range widths {
			if w > least[i] && (widest < 0 || w >= widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

func writeRow(b *strings.Builder, row []cell, widths []int, look Look) {
	wrapped := make([][]string, len(row))
	height := 1
	for i, c := range row {
		wrapped[i] = Wrap(c.text, widths[i])
		height = max(height, len(wrapped[i]))
	}
	for line := range height {
		last := len(row) - 1
		for last > 0 && textAt(wrapped[last], line) == "" {
			last--
		}
		for i := range last + 1 {
			text := textAt(wrapped[i], line)
			b.WriteString(look.paint(row[i].color, text))
			if i < last {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+gap))
			}
		}
		b.WriteByte('\n')
	}
}

func textAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}
