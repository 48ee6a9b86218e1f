package preview

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
)

// Bounds of what is looked into, in bytes: a larger content is told by its
// size, because nobody reads its difference and it would only cost time.
const (
	largestRead = 8 << 20
	largestText = 256 << 10
	mostLines   = 20000
	// longestLine bounds a line that is shown, in characters; longestMasked
	// what of it is looked through for secrets, so that the end of what is shown
	// never cuts one in two.
	longestLine   = 300
	longestMasked = 16 * longestLine
)

// isText says whether people read a content, as git tells it.
func isText(data []byte) bool {
	return bytes.IndexByte(data, 0) < 0 && utf8.Valid(data)
}

// contentChange compares two contents; lines is how many are shown. written are
// the lines of an older one that may be, nil = all.
func contentChange(file string, from, to source, m mask, written *literal, lines int) *Content {
	c := &Content{From: from.size, To: to.size, Lines: []Line{}}
	for _, s := range []source{from, to} {
		switch {
		case s.err != nil:
			c.Hidden = "it could not be read"
		case s.size >= 0 && !s.read:
			c.Hidden = "it is large"
		case !isText(s.data):
			c.Binary = true
		}
	}
	if why := m.hides(file, from.data, to.data); why != "" && !c.Binary {
		c.Hidden = why
	}
	switch {
	case c.Hidden != "" || c.Binary:
		return c
	case len(from.data) > largestText || len(to.data) > largestText,
		bytes.Count(from.data, []byte("\n"))+bytes.Count(to.data, []byte("\n")) > mostLines:
		c.Hidden = "it is large"
		return c
	}
	all := unified(from.data, to.data)
	for _, l := range all {
		switch {
		case strings.HasPrefix(l, "+"):
			c.Inserted++
		case strings.HasPrefix(l, "-"):
			c.Deleted++
		}
	}
	shown := all[:min(len(all), lines)]
	for _, l := range shown {
		text := l[1:]
		if l[0] == '-' {
			text = written.removed(text)
		}
		c.Lines = append(c.Lines, clip(l[:1]+m.text(text), longestLine))
	}
	c.More = len(all) - len(shown)
	for _, l := range all[len(shown):] {
		if isChange(l) {
			c.rest = append(c.rest, l...)
		}
	}
	if len(c.rest) > 0 {
		sum := sha256.Sum256(c.rest)
		c.rest = sum[:]
	}
	return c
}

// unified is the difference of two texts without the head.
func unified(from, to []byte) []string {
	const head = 3 // diff, ---, +++
	text := diff.Diff("a", from, "b", to)
	list := strings.SplitAfter(string(text), "\n")
	if len(list) <= head {
		return nil
	}
	var lines []string
	for _, l := range list[head:] {
		if l = strings.TrimSuffix(l, "\n"); l != "" {
			lines = append(lines, strings.TrimSuffix(l, "\r"))
		}
	}
	return lines
}

// clip makes one line of at most n characters.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// changedLines is what a content change consists of, without what surrounds
// it: by this, changes of different devices are equal.
func (c *Content) changedLines() string {
	if c == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString(c.Hidden)
	for _, l := range c.Lines {
		if isChange(l) {
			b.WriteString("\n" + l)
		}
	}
	b.Write(c.rest)
	return b.String()
}

// isChange says whether a line of a difference is one that comes or goes.
func isChange(l string) bool { return l != "" && (l[0] == '+' || l[0] == '-') }
