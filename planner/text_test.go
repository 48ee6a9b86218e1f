package planner

import (
	"strings"
	"testing"
	"time"
)

func TestWordIsOneShortLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                  "plain",
		"two\nlines\r\n":         "two lines",
		" \t spaces ":            "spaces",
		"\x1b[31mred":            "?[31mred",
		"a\xffb":                 "a?b",
		"héllo":                  "héllo",
		"a\u2028b":               "a b",
		"":                       "",
		strings.Repeat("x", 500): strings.Repeat("x", maxWord) + "…",
		strings.Repeat("é", 500): strings.Repeat("é", maxWord/2) + "…",
	} {
		if got := word(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// The cause of a failure names what was tried first and what came of it last.
func TestBecauseKeepsTheCause(t *testing.T) {
	pull := `applications edge: Error: unable to copy from source docker…ontainer registry 127.0.0.1:5000: Get "https://127.0.0.1:5000/v2/": dial tcp 127.0.0.1:5000: connect: connection refused`
	if got, want := because("it failed", pull+"\n"), "it failed: "+pull; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := because("it failed", strings.Repeat("x", 5000)); got != "it failed: "+strings.Repeat("x", maxCause)+"…" {
		t.Errorf("a reason is one line in git, not %d bytes", len(got))
	}
}

func TestFew(t *testing.T) {
	for in, want := range map[string]string{
		"":              "",
		"a":             "a",
		"a b c d e":     "a, b, c, d, e",
		"a b c d e f":   "a, b, c, d, e and 1 more",
		"a b c d e f g": "a, b, c, d, e and 2 more",
	} {
		if got := few(strings.Fields(in)); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for in, want := range map[time.Duration]string{
		30 * time.Minute: "30m", time.Hour: "1h", 90 * time.Minute: "1h30m", 90 * time.Second: "1m30s", 10 * time.Minute: "10m", 0: "0s",
	} {
		if got := span(in); got != want {
			t.Errorf("%v: got %s, want %s", in, got, want)
		}
	}
}
