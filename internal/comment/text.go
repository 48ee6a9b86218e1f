package comment

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/internal/view"
)

// Bounds of text from the repository, in runes.
const (
	longestName  = 80  // of a device, a file, a version
	longestProse = 400 // of a sentence
	longestLine  = 160 // of a difference: what fits a comment without scrolling far
)

// clip makes a text one clean line of at most so many runes. It is cut before
// it is cleaned as well, so that a file of one endless line costs nothing.
func clip(s string, most int) string {
	head, short := firstRunes(s, most)
	text, shorter := firstRunes(strings.TrimSpace(view.Clean(head)), most)
	if short || shorter {
		text += "…"
	}
	return text
}

// clipLine is clip for a line of a difference, which keeps the spaces that it
// begins with.
func clipLine(s string) string {
	head, short := firstRunes(s, longestLine)
	text, shorter := firstRunes(strings.TrimRight(view.Clean(head), " "), longestLine)
	if short || shorter {
		text += "…"
	}
	return text
}

func firstRunes(s string, most int) (head string, short bool) {
	for i := range s {
		if most == 0 {
			return s[:i], true
		}
		most--
	}
	return s, false
}

// code writes a text as a code span, in which nothing is linked and nobody
// mentioned.
func code(s string) string {
	s = clip(s, longestProse)
	if s == "" {
		return "(nothing)"
	}
	if strings.Contains(s, "|") {
		return tag(s) // a table takes it for the end of a cell, escaped or not
	}
	fence := strings.Repeat("`", longestRun(s, '`')+1)
	if fence != "`" {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}

// tag writes a text as an element of HTML, each of its characters that may
// mean something as a number.
func tag(s string) string {
	var b strings.Builder
	b.WriteString("<code>")
	for _, r := range s {
		if r < utf8.RuneSelf && !isLetter(r) && !isDigit(r) && r != ' ' {
			fmt.Fprintf(&b, "&#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	b.WriteString("</code>")
	return b.String()
}

// longestRun is how often a byte stands in a row at most.
func longestRun(s string, of byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != of {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// prose writes a sentence that may hold text from the repository: words of
// letters, and numbers, as they are, and everything else as code, which suits
// the names, versions and times in it. So there is no list of what a forge
// makes a link of to be kept up to date.
func prose(s string) string {
	words := strings.Fields(clip(s, longestProse))
	for i, w := range words {
		core := strings.TrimLeft(w, `("`)
		lead := w[:len(w)-len(core)]
		core = strings.TrimRight(core, `,;:.?)"`)
		trail := w[len(lead)+len(core):]
		switch {
		case core == "":
			words[i] = code(w)
		case isWord(core), isNumber(core) && (i > 0 || trail == ""), i > 0 && isSign(core): // else it may begin a list
		case strings.HasSuffix(lead, `"`) && strings.HasPrefix(trail, `"`):
			words[i] = lead[:len(lead)-1] + code(core) + trail[1:]
		default:
			words[i] = lead + code(core) + trail
		}
	}
	return strings.Join(words, " ")
}

// isWord says whether a text is made of letters, an apostrophe perhaps, and
// holds nothing that may be taken for the hash of a commit.
func isWord(s string) bool {
	const shortest = 7 // digits of a hash that is made a link
	run := 0
	for i, r := range s {
		if !unicode.IsLetter(r) && (r != '\'' || i == 0) {
			return false
		}
		run++
		if !strings.ContainsRune("abcdefABCDEF", r) {
			run = 0
		}
		if run == shortest {
			return false
		}
	}
	return true
}

// isNumber says whether a text is a short number, perhaps with a unit.
func isNumber(s string) bool {
	const longest = 6 // digits: a hash that is made a link has more
	s = strings.TrimRight(s, "%hmsdB")
	return s != "" && len(s) <= longest && strings.TrimLeft(s, "0123456789") == ""
}

func isSign(s string) bool {
	return strings.Contains("→·…−–+=×/", s)
}

func isLetter(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// names are the first few as code; the others are counted.
func names(ids []string) string {
	const shown = 3
	list := make([]string, 0, shown)
	for _, id := range ids[:min(len(ids), shown)] {
		list = append(list, code(clip(id, longestName)))
	}
	text := strings.Join(list, ", ")
	if more := len(ids) - len(list); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// versions are a version and the one that takes its place.
func versions(from, to string) string {
	if from == to {
		return versionOr(to)
	}
	return versionOr(from) + " → " + versionOr(to)
}

func versionOr(v string) string {
	if v == "" {
		return "nothing"
	}
	return code(clip(v, longestName))
}
