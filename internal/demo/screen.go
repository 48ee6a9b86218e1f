package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// row is one device in the table.
type row struct {
	device, version, state, why string
}

// Widths of the table's columns, in characters; the last one takes the rest.
const (
	deviceWidth  = 14
	versionWidth = 8
	stateWidth   = 11
	elapsedWidth = 6
	defaultWidth = 80
	fileWidth    = 160 // where there is no terminal: enough for every reason
	minWidth     = 40
)

// screen shows the story: narration that stays, and below it, on a terminal,
// a table that is redrawn in place. Elsewhere each change of a device is a
// line of its own.
type screen struct {
	out            io.Writer
	redraw, colour bool
	width          int
	began          time.Time
	title          string
	rows           []row
	drawn          int // lines of the table on the terminal now
}

func newScreen(cfg Config, began time.Time) *screen {
	s := &screen{out: cfg.Out, redraw: cfg.Terminal, colour: cfg.Color, width: cfg.Width, began: began}
	if s.width == 0 {
		s.width = defaultWidth
		if !s.redraw {
			s.width = fileWidth
		}
	}
	s.width = max(s.width, minWidth)
	// A table taller than the terminal cannot be redrawn: the cursor does not
	// go above the first line.
	const tableHeight = 17 // twelve devices, title, heading, and some narration
	if cfg.Height > 0 && cfg.Height < tableHeight {
		s.redraw = false
	}
	if s.redraw {
		fmt.Fprint(s.out, hideCursor)
	}
	return s
}

// Terminal sequences (ECMA-48).
const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	clearDown  = "\x1b[J"
	bold       = "\x1b[1m"
	dim        = "\x1b[2m"
	red        = "\x1b[31m"
	green      = "\x1b[32m"
	yellow     = "\x1b[33m"
	reset      = "\x1b[0m"
)

// close gives the terminal back.
func (s *screen) close() {
	if s.redraw {
		fmt.Fprint(s.out, showCursor)
	}
}

// say adds a paragraph to the narration.
func (s *screen) say(format string, args ...any) {
	s.erase()
	stamp := fmt.Sprintf("%*.1fs  ", elapsedWidth-1, time.Since(s.began).Seconds())
	for i, line := range wrap(fmt.Sprintf(format, args...), s.width-len(stamp)) {
		if i > 0 {
			stamp = strings.Repeat(" ", len(stamp))
		}
		fmt.Fprintln(s.out, s.paint(bold, stamp+line))
	}
	s.draw()
}

// item adds one point of a list.
func (s *screen) item(format string, args ...any) {
	s.erase()
	for i, line := range wrap(fmt.Sprintf(format, args...), s.width-4) {
		indent := "  "
		if i > 0 {
			indent = "    "
		}
		fmt.Fprintln(s.out, indent+line)
	}
	s.draw()
}

// print adds lines as they are.
func (s *screen) print(lines ...string) {
	s.erase()
	for _, line := range lines {
		fmt.Fprintln(s.out, line)
	}
	s.draw()
}

// show makes the table be these rows, in the same order as before.
func (s *screen) show(title string, rows []row) {
	before := map[string]row{}
	for _, r := range s.rows {
		before[r.device] = r
	}
	s.title, s.rows = title, rows
	if s.redraw {
		s.erase()
		s.draw()
		return
	}
	for _, r := range rows {
		if r != before[r.device] {
			stamp := fmt.Sprintf("%*.1fs  ", elapsedWidth-1, time.Since(s.began).Seconds())
			fmt.Fprintln(s.out, clip(stamp+s.line(r), s.width))
		}
	}
}

// finish leaves the table where it is and writes below it from now on.
func (s *screen) finish() {
	s.drawn, s.rows = 0, nil
}

// erase takes the table off the terminal.
func (s *screen) erase() {
	if s.redraw && s.drawn > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\r%s", s.drawn, clearDown)
		s.drawn = 0
	}
}

func (s *screen) draw() {
	if !s.redraw || len(s.rows) == 0 {
		return
	}
	var b strings.Builder
	fmt.Fprintln(&b)
	fmt.Fprintln(&b, clip(s.title, s.width-1))
	fmt.Fprintln(&b, s.paint(dim, clip(s.line(row{device: "DEVICE", version: "RUNS", state: "STATE", why: "WHY"}), s.width-1)))
	for _, r := range s.rows {
		fmt.Fprintln(&b, s.paint(stateColour(r.state), clip(s.line(r), s.width-1)))
	}
	s.drawn = strings.Count(b.String(), "\n")
	fmt.Fprint(s.out, b.String()) // one write, so that nothing flickers
}

func (s *screen) line(r row) string {
	return strings.TrimRight(fmt.Sprintf("%-*s %-*s %-*s %s", deviceWidth, r.device, versionWidth, r.version, stateWidth, r.state, r.why), " ")
}

func (s *screen) paint(sequence, text string) string {
	if !s.colour || sequence == "" {
		return text
	}
	return sequence + text + reset
}

// stateColour is green for done, yellow for moving, red for what needs a
// person, nothing for waiting.
func stateColour(state string) string {
	switch state {
	case "Current":
		return green
	case "Upgrading":
		return yellow
	case "Failed", "Refused", "Halted":
		return red
	}
	return ""
}

// clip shortens a line to so many characters.
func clip(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:width-1]) + "…"
}

// wrap breaks text at spaces into lines of at most so many characters; a
// longer word gets a line of its own.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}
