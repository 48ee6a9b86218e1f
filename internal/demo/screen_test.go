package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func twoRows(state string) []row {
	return []row{
		{device: "gw-berlin-01", version: "v1.0.0", state: state, why: "a reason that goes on and on, well beyond what a narrow terminal can show in one line"},
		{device: "gw-berlin-02", version: "v1.0.0", state: "Current", why: "on target"},
	}
}

func TestPlainScreenPrintsOnlyWhatChanged(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(Config{Out: &out, Width: 60}, time.Now())
	s.show("title", twoRows("Queued"))
	s.show("title", twoRows("Queued"))
	s.show("another title", twoRows("Upgrading"))
	s.close()
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(got) != 3 || !strings.Contains(got[0], "Queued") || !strings.Contains(got[1], "gw-berlin-02") || !strings.Contains(got[2], "Upgrading") {
		t.Errorf("got %d lines, want two devices, and one that changed:\n%s", len(got), out.String())
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("terminal sequences without a terminal: %q", out.String())
	}
}

func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	for _, width := range []int{40, 80, 200} {
		for _, terminal := range []bool{false, true} {
			var out bytes.Buffer
			s := newScreen(Config{Out: &out, Width: width, Terminal: terminal}, time.Now())
			s.say("%s", strings.Repeat("words that have to be broken ", 10))
			s.show(strings.Repeat("title ", 50), twoRows("Queued"))
			s.close()
			for line := range strings.Lines(plain(out.String())) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
					t.Errorf("width %d, terminal %v: a line of %d: %q", width, terminal, n, line)
				}
			}
		}
	}
}

// TestRedrawLeavesOneTable follows the cursor: after each step the terminal
// must show the narration once and one table below it.
func TestRedrawLeavesOneTable(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(Config{Out: &out, Width: 80, Terminal: true, Color: true}, time.Now())
	s.say("first")
	s.show("title 1", twoRows("Queued"))
	s.say("second")
	s.show("title 2", twoRows("Current"))
	s.close()
	got := render(t, out.String())
	for _, want := range []string{"first", "second", "title 2", "gw-berlin-01"} {
		if n := strings.Count(got, want); n != 1 {
			t.Errorf("%q is on the terminal %d times:\n%s", want, n, got)
		}
	}
	if strings.Contains(got, "title 1") || strings.Contains(got, "Queued") {
		t.Errorf("the old table is still there:\n%s", got)
	}
	if !strings.HasSuffix(out.String(), showCursor) {
		t.Error("the cursor stays hidden")
	}
}

func TestSmallTerminalGetsPlainLines(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(Config{Out: &out, Width: 80, Height: 10, Terminal: true}, time.Now())
	s.show("title", twoRows("Queued"))
	s.close()
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("a table of 15 lines is redrawn on 10: %q", out.String())
	}
}

func TestOneLine(t *testing.T) {
	if got, want := oneLine("a\x1b[31mb\nc\u009bd"), "a [31mb c d"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// plain takes terminal sequences away.
func plain(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		if text[i] != '\x1b' {
			b.WriteByte(text[i])
			i++
			continue
		}
		for i += 2; i < len(text) && (text[i] < '@' || text[i] > '~'); i++ {
		}
		i++
	}
	return b.String()
}

// render plays the sequences that the screen uses, and gives what stays.
func render(t *testing.T, text string) string {
	t.Helper()
	lines := []string{""}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\n':
			lines = append(lines, "")
		case '\r':
			lines[len(lines)-1] = ""
		case '\x1b':
			start := i + 2
			for i = start; text[i] < '@' || text[i] > '~'; i++ {
			}
			switch text[i] {
			case 'A':
				up := 0
				for _, c := range text[start:i] {
					up = up*10 + int(c-'0')
				}
				if up >= len(lines) {
					t.Fatalf("the cursor goes up %d of %d lines", up, len(lines)-1)
				}
				// Only ever followed by clearing all that is below.
				lines = lines[:len(lines)-up]
			case 'J', 'h', 'l', 'm':
			default:
				t.Fatalf("unknown sequence %q", text[start-2:i+1])
			}
		default:
			lines[len(lines)-1] += string(text[i])
		}
	}
	return strings.Join(lines, "\n")
}
