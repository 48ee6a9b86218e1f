package comment

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// Mark is the first line of a comment, which is not shown. Anybody can write
// one: who wrote the comment has to be looked at as well.
type Mark struct {
	Name string // see [Options]
	Head string // the commit that it speaks of; "" = none
	Base string // the commit that it was compared with; "" = none
}

var (
	marked    = regexp.MustCompile(`^<!-- gitopsd:plan name=(\S*) head=([0-9a-f]*) base=([0-9a-f]*) -->(?:\r?\n|$)`)
	plainName = regexp.MustCompile(`^[A-Za-z0-9._/-]*$`)
	plainHash = regexp.MustCompile(`^[0-9a-f]*$`)
	// staleText is a whole banner, also after a browser sent it back.
	staleText = regexp.MustCompile(`^<!-- gitopsd:stale -->\r?\n(?:>[^\n]*\n)*(?:\r?\n)?`)
)

// Bounds of what stands in a mark as it is, in bytes. Written into the
// expressions they would cost every process a hundred kilobytes.
const (
	longestMarkName = 100
	longestMarkHash = 64
)

// String is the line; what might end it early is not in it.
func (m Mark) String() string {
	hash := func(s string) string {
		if len(s) <= longestMarkHash && plainHash.MatchString(s) {
			return s
		}
		return ""
	}
	return "<!-- gitopsd:plan name=" + MarkName(m.Name) + " head=" + hash(m.Head) + " base=" + hash(m.Base) + " -->"
}

// MarkName is a name as it stands in a mark: itself where it is plain, else
// its digest.
func MarkName(name string) string {
	if len(name) <= longestMarkName && plainName.MatchString(name) {
		return name
	}
	const enough = 8 // bytes of a digest, which tells the fleets of one repository apart
	sum := sha256.Sum256([]byte(name))
	return "sha256:" + hex.EncodeToString(sum[:enough])
}

// Find reads the mark of a comment; its name is that of [MarkName].
func Find(body string) (Mark, bool) {
	m := marked.FindStringSubmatch(body)
	if m == nil {
		return Mark{}, false
	}
	return Mark{Name: m[1], Head: m[2], Base: m[3]}, true
}

const (
	staleLine     = "<!-- gitopsd:stale -->"
	staleRoom     = 600 // bytes that Stale may add; every comment leaves them free
	longestReason = 120 // runes of a reason
)

// Stale puts a banner into a comment that is no longer true, below its mark,
// in place of one that is there already. The reason is a few words, such as
// "main has moved to 1a2b3c4"; "" takes the banner away. A comment that fits its
// limit still does.
func Stale(body, reason string) string {
	mark, rest := "", body
	if at := marked.FindStringIndex(body); at != nil {
		mark, rest = strings.TrimRight(body[:at[1]], "\r\n")+"\n", body[at[1]:]
	}
	rest = staleText.ReplaceAllString(rest, "")
	if reason == "" {
		return mark + rest
	}
	banner := func(why string) string {
		return staleLine + "\n> **Stale:** " + why + ". The next run writes this anew.\n\n"
	}
	text := banner(prose(clip(reason, longestReason)))
	if len(text) > staleRoom {
		text = banner("something has moved since") // words of many odd signs
	}
	return mark + text + rest
}
