package view

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Clean makes a text from a repository or a device fit for one line of a
// terminal: line breaks and tabs become spaces, and what could steer the
// terminal or turn the direction of the text is written as an escape.
func Clean(s string) string {
	return clean(s, false)
}

// CleanLines is [Clean] for a text of several lines, which keeps its line
// breaks and tabs.
func CleanLines(s string) string {
	return clean(s, true)
}

// CleanJSON writes what is not harmless in a JSON document as escapes, which mean
// the same: an encoder does that with the characters below a space only.
func CleanJSON(doc []byte) []byte {
	dirty := func(r rune) bool { return r != '\n' && !harmless(r) }
	if bytes.IndexFunc(doc, dirty) < 0 {
		return doc
	}
	var out []byte
	for _, r := range string(doc) {
		if !dirty(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return out
}

func clean(s string, lines bool) string {
	dirty := func(r rune) bool {
		return r == utf8.RuneError || r == '\n' || r == '\t' || !harmless(r)
	}
	if strings.IndexFunc(s, dirty) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\n' || r == '\t':
			if lines {
				b.WriteRune(r)
			} else {
				b.WriteByte(' ')
			}
		case r == '\r':
			// Programs end lines with it; alone it would overwrite a line.
			if !lines && !strings.HasPrefix(s[i+1:], "\n") {
				b.WriteByte(' ')
			}
		case harmless(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// harmless says whether a terminal only draws this rune. unicode.IsPrint
// leaves out control and format characters, so escape sequences of both sets
// and bidirectional overrides are none.
func harmless(r rune) bool { return unicode.IsPrint(r) }
