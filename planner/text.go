package planner

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxWord bounds what others wrote (names, versions, reasons of holds) where
// it is quoted in a reason: that is one line in git.
const maxWord = 120

// maxCause bounds why something is so: the message of a failure begins with
// what was tried, and what came of that is behind it.
const maxCause = 300

// word makes one short line of what others wrote.
func word(s string) string { return short(s, maxWord) }

// short makes one line of what others wrote, of so many bytes at most.
func short(s string, most int) string {
	if isPlain(s, most) {
		return s
	}
	s = strings.ToValidUTF8(s, "?")
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	s = strings.TrimSpace(s)
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strings.TrimSpace(s[:cut]) + "…"
}

func isPlain(s string, most int) bool {
	if len(s) > most || strings.HasPrefix(s, " ") || strings.HasSuffix(s, " ") {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// because appends what others gave as their reason, if they did.
func because(what, why string) string {
	if why = short(why, maxCause); why != "" {
		return what + ": " + why
	}
	return what
}

// at writes an instant; the minute is enough for a person.
func at(t time.Time) string { return t.UTC().Format("2006-01-02T15:04Z") }

// span writes a length of time without zero parts at its end.
func span(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// devices counts devices.
func devices(n int) string {
	if n == 1 {
		return "1 device"
	}
	return strconv.Itoa(n) + " devices"
}

// few joins at most five of the words and counts the rest.
func few(words []string) string {
	const most = 5
	shown := make([]string, 0, most)
	for _, w := range words[:min(len(words), most)] {
		shown = append(shown, word(w))
	}
	s := strings.Join(shown, ", ")
	if more := len(words) - most; more > 0 {
		s += " and " + strconv.Itoa(more) + " more"
	}
	return s
}
