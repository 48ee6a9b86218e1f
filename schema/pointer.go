package schema

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escapePointer writes a key as a token of a JSON pointer (RFC 6901).
func escapePointer(key string) string {
	if !strings.ContainsAny(key, "~/") {
		return key
	}
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// splitPointer gives the keys of a JSON pointer.
func splitPointer(pointer string) []string {
	if pointer == "" {
		return nil
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, t := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens
}

// maxPointer bounds a pointer in bytes. What is cut off are whole keys at the
// end, so that it still points at what holds the place.
const maxPointer = 16 << 10

func joinPointer(keys ...string) string {
	var b strings.Builder
	for _, k := range keys {
		if b.Len()+len(k) > maxPointer {
			break
		}
		b.WriteByte('/')
		b.WriteString(escapePointer(k))
	}
	return b.String()
}

// maxQuoted bounds what a message repeats of hostile content, in bytes.
const maxQuoted = 100

// clip shortens a string for a message, on one line.
func clip(s string) string { return oneLine(shorten(s)) }

func shorten(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	cut := maxQuoted
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// oneLine escapes what would break a line of output, or the terminal. What it
// gave stays the same when it is given that again.
func oneLine(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		c, size := utf8.DecodeRuneInString(s)
		switch {
		case unicode.IsPrint(c) && (c != utf8.RuneError || size > 1):
			b.WriteRune(c)
		default:
			q := strconv.Quote(s[:size])
			b.WriteString(q[1 : len(q)-1])
		}
		s = s[size:]
	}
	return b.String()
}

// quote is the string as YAML and JSON would quote it, shortened.
func quote(s string) string { return strconv.Quote(shorten(s)) }
