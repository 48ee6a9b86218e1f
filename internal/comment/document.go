package comment

import (
	"fmt"
	"slices"
	"strings"
)

// importance says which part of a comment gives way last.
type importance int

// The parts, from the one that gives way last.
const (
	keepProblems importance = iota
	keepNote
	keepCommand
	keepWarnings
	keepPolicies
	keepChanges
	keepMembership
	keepWorstCase
	keepMoving
	keepCounts
	keepBlocked
	keepEveryChange
	keepEveryDevice
)

// part is a piece of a comment that is made of rows, and shrinks by whole ones.
type part struct {
	keep  importance
	title string // as the comment names it where it is left out
	open  string
	close string
	rows  int
	row   func(i int) string // with a line break at its end; only rows that are shown are made
	// most is how many rows are shown at most, where there is room; 0 = all.
	most int
	more string // leads the line that counts the other rows

	shown []string
	bytes int // of the rows that are shown
}

// size is that of the part with so many rows of so many bytes in all; no part
// has no rows.
func (p *part) size(rows, bytes int) int {
	if rows == 0 {
		return 0
	}
	return len(p.open) + bytes + len(p.rest(rows)) + len(p.close)
}

// rest counts the rows that are not shown.
func (p *part) rest(shown int) string {
	if shown == p.rows {
		return ""
	}
	return fmt.Sprintf("%sand %d more\n", p.more, p.rows-shown)
}

// grow adds rows as long as the part stays within its room.
func (p *part) grow(room int) {
	for len(p.shown) < p.rows && (p.most == 0 || len(p.shown) < p.most) {
		row := p.row(len(p.shown))
		if p.size(len(p.shown)+1, p.bytes+len(row)) > room {
			return
		}
		p.shown = append(p.shown, row)
		p.bytes += len(row)
	}
}

func (p *part) write(b *strings.Builder) {
	b.WriteString(p.open)
	for _, row := range p.shown {
		b.WriteString(row)
	}
	b.WriteString(p.rest(len(p.shown)))
	b.WriteString(p.close)
}

// document is a comment under way: lines that always stand, and parts.
type document struct {
	limit   int
	command string
	head    strings.Builder
	parts   []*part // in the order that they are read in
}

func (d *document) line(format string, args ...any) {
	fmt.Fprintf(&d.head, format+"\n", args...)
}

func (d *document) add(p part) {
	if p.rows > 0 {
		d.parts = append(d.parts, &p)
	}
}

// list adds a part whose rows are points below a title.
func (d *document) list(keep importance, title string, most, rows int, row func(i int) string) {
	d.add(part{
		keep: keep, title: title, open: "\n#### " + title + "\n\n", most: most, more: "- ",
		rows: rows, row: func(i int) string { return "- " + row(i) + "\n" },
	})
}

// table adds a part whose rows are those of a table.
func (d *document) table(keep importance, title string, head []string, most, rows int, row func(i int) []string) {
	d.add(part{
		keep: keep, title: title, open: "\n#### " + title + "\n\n" + tableHead(head), most: most, more: "\n",
		rows: rows, row: func(i int) string { return tableRow(row(i)) },
	})
}

func tableHead(names []string) string {
	return tableRow(names) + "|" + strings.Repeat(" --- |", len(names)) + "\n"
}

func tableRow(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

// fold is what stands before and after a part that is folded. Its summary is
// HTML, and no place for a word from the repository.
func fold(summary string) (open, closing string) {
	return "\n<details>\n<summary>" + summary + "</summary>\n\n", "\n</details>\n"
}

// leftOut leads the line that names parts for which there was no room.
const leftOut = "\nLeft out for want of room: "

// String writes the document within its limit. Each part first gets an equal
// share of the room, so that a long one does not drive out the others, and then
// what is left, the most important one first.
func (d *document) String() string {
	d.reproduce()
	room := d.limit - d.head.Len() - staleRoom - len(leftOut) - len(".\n")
	for _, p := range d.parts {
		room -= len(p.title) + len(", ")
	}
	order := slices.Clone(d.parts)
	slices.SortStableFunc(order, func(a, b *part) int { return int(a.keep - b.keep) })
	share := room / max(1, len(order))
	for _, p := range order {
		p.grow(share)
		room -= p.size(len(p.shown), p.bytes)
	}
	for _, p := range order {
		before := p.size(len(p.shown), p.bytes)
		p.grow(before + room)
		room -= p.size(len(p.shown), p.bytes) - before
	}
	var b strings.Builder
	b.WriteString(d.head.String())
	var missing []string
	for _, p := range d.parts {
		if len(p.shown) == 0 {
			missing = append(missing, p.title)
			continue
		}
		p.write(&b)
	}
	if len(missing) > 0 {
		b.WriteString(leftOut + strings.Join(missing, ", ") + ".\n")
	}
	return b.String()
}

// reproduce adds the command that shows the same.
func (d *document) reproduce() {
	const longest = 1_000 // runes of a command that somebody would copy
	command := clip(d.command, longest)
	if command == "" {
		return
	}
	d.add(part{
		keep: keepCommand, title: "the command that shows all of it", open: "\nAll of it, on a terminal:\n\n",
		rows: 1, row: func(int) string { return fenced("sh", []string{command}) },
	})
}

// fenced is a block of code that nothing in it can end.
func fenced(language string, lines []string) string {
	longest := 2
	for _, l := range lines {
		longest = max(longest, longestRun(l, '`'))
	}
	fence := strings.Repeat("`", longest+1)
	return fence + language + "\n" + strings.Join(lines, "\n") + "\n" + fence + "\n"
}
