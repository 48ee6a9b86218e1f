package edit

import (
	"bytes"
	"fmt"
	"strings"
)

// contextLines is how many unchanged lines a diff shows around a change, as
// git and diff do.
const contextLines = 3

// largestDiff bounds the work for one diff, in pairs of lines; where there are
// more the whole middle is shown as changed. An edit changes a few lines.
const largestDiff = 1 << 22

// Diff is the change of a file as a unified diff that git apply and patch take;
// "" where nothing changed. before is nil for a new file.
func Diff(path string, before, after []byte) string {
	if before != nil && bytes.Equal(before, after) {
		return ""
	}
	end := "\n"
	if strings.Contains(path, " ") {
		end = "\t\n" // as git does: patch takes a name to its first space otherwise
	}
	from := "a/" + path + end
	if before == nil {
		from = "/dev/null\n"
	}
	d := diff{old: splitLines(before), now: splitLines(after)}
	d.compare()
	return "--- " + from + "+++ b/" + path + end + d.hunks()
}

func splitLines(data []byte) []string {
	lines := strings.SplitAfter(string(data), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// diff compares two files by their lines.
type diff struct {
	old, now []string
	ops      []op
}

// op is one line of a diff: ' ', '-' or '+'.
type op struct {
	sign byte
	text string
}

func (d *diff) compare() {
	same := 0
	for same < len(d.old) && same < len(d.now) && d.old[same] == d.now[same] {
		same++
	}
	tail := 0
	for tail < len(d.old)-same && tail < len(d.now)-same && d.old[len(d.old)-1-tail] == d.now[len(d.now)-1-tail] {
		tail++
	}
	d.add(' ', d.old[:same])
	d.middle(d.old[same:len(d.old)-tail], d.now[same:len(d.now)-tail])
	d.add(' ', d.old[len(d.old)-tail:])
}

func (d *diff) add(sign byte, lines []string) {
	for _, line := range lines {
		d.ops = append(d.ops, op{sign, line})
	}
}

// middle compares by the longest common subsequence.
func (d *diff) middle(old, now []string) {
	if len(old)*len(now) > largestDiff {
		d.add('-', old)
		d.add('+', now)
		return
	}
	common := make([][]int, len(old)+1)
	for i := range common {
		common[i] = make([]int, len(now)+1)
	}
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(now) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); old[i] == now[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	i, j := 0, 0
	for i < len(old) || j < len(now) {
		switch {
		case i < len(old) && j < len(now) && old[i] == now[j]:
			d.add(' ', old[i:i+1])
			i, j = i+1, j+1
		case j == len(now) || i < len(old) && common[i+1][j] >= common[i][j+1]:
			d.add('-', old[i:i+1])
			i++
		default:
			d.add('+', now[j:j+1])
			j++
		}
	}
}

func (d *diff) hunks() string {
	var b strings.Builder
	oldLine, newLine := 1, 1
	for i := 0; i < len(d.ops); {
		if d.ops[i].sign == ' ' && !d.changes(i+1, i+1+contextLines) {
			i, oldLine, newLine = i+1, oldLine+1, newLine+1
			continue
		}
		end := i
		for end < len(d.ops) && d.changes(end-contextLines, end+1+contextLines) {
			end++
		}
		var body strings.Builder
		olds, news := 0, 0
		for _, o := range d.ops[i:end] {
			body.WriteByte(o.sign)
			body.WriteString(o.text)
			if !strings.HasSuffix(o.text, "\n") {
				body.WriteString("\n\\ No newline at end of file\n")
			}
			if o.sign != '+' {
				olds++
			}
			if o.sign != '-' {
				news++
			}
		}
		fmt.Fprintf(&b, "@@ -%s +%s @@\n%s", span(oldLine, olds), span(newLine, news), body.String())
		i, oldLine, newLine = end, oldLine+olds, newLine+news
	}
	return b.String()
}

// changes says whether a line from `from` to before `to` has changed.
func (d *diff) changes(from, to int) bool {
	for _, o := range d.ops[min(max(from, 0), len(d.ops)):min(to, len(d.ops))] {
		if o.sign != ' ' {
			return true
		}
	}
	return false
}

// span is a range of lines as a hunk names it: that of nothing is the line
// before it.
func span(line, count int) string {
	switch count {
	case 0:
		return fmt.Sprintf("%d,0", line-1)
	case 1:
		return fmt.Sprint(line)
	}
	return fmt.Sprintf("%d,%d", line, count)
}
