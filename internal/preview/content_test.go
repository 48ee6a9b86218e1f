package preview

import (
	"errors"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// What differs only beyond the lines that are shown is not the same change.
func TestChangesDifferBeyondWhatIsShown(t *testing.T) {
	from := source{size: 1, read: true}
	long := func(last string) *Content {
		data := []byte(strings.Repeat("line\n", 50) + last)
		return contentChange("/etc/x", from, source{size: int64(len(data)), data: data, read: true}, mask{}, nil, shownLines)
	}
	a, b, c := long("one\n"), long("two\n"), long("one\n")
	if a.key() == b.key() || a.key() != c.key() {
		t.Errorf("keys: %q %q %q", a.key(), b.key(), c.key())
	}
	if len(a.Lines) != shownLines || a.More == 0 {
		t.Errorf("%d lines shown, %d more", len(a.Lines), a.More)
	}
}

func TestContentThatIsNotShown(t *testing.T) {
	text := func(s string) source { return source{size: int64(len(s)), data: []byte(s), read: true} }
	large := text(strings.Repeat("x", largestText+1))
	unread := source{size: largestRead + 1}
	for name, c := range map[string]struct {
		from, to source
		file     string
		hidden   string
		binary   bool
	}{
		"a NUL":          {text("a"), text("a\x00b"), "/x", "", true},
		"no UTF-8":       {text("a"), text("\xff\xfe"), "/x", "", true},
		"large":          {text("a"), large, "/x", "it is large", false},
		"not even read":  {text("a"), unread, "/x", "it is large", false},
		"many lines":     {text(""), text(strings.Repeat("\n", mostLines+1)), "/x", "it is large", false},
		"cannot be read": {text("a"), source{size: 3, err: errors.New("gone")}, "/x", "it could not be read", false},
		"a key":          {text("a"), text("-----BEGIN RSA PRIVATE KEY-----\nx\n"), "/x", "it holds a key", false},
		"a secret file":  {text("a"), text("b"), "/etc/token", "its name is that of a secret", false},
	} {
		got := contentChange(c.file, c.from, c.to, mask{}, nil, 5)
		if got.Hidden != c.hidden || got.Binary != c.binary || len(got.Lines) > 0 {
			t.Errorf("%s: hidden %q, binary %v, lines %q", name, got.Hidden, got.Binary, got.Lines)
		}
	}
	if got := contentChange("/x", text("a\r\nb\r\n"), text("a\r\nc"), mask{}, nil, 9); strings.Join(got.Lines, "|") != "@@ -1,2 +1,2 @@| a|-b|+c|\\ No newline at end of file" {
		t.Errorf("line ends: %q", got.Lines)
	}
	if got := contentChange("/x", text(""), text(strings.Repeat("y", 5000)+"\n"), mask{}, nil, 9); len([]rune(got.Lines[1])) != longestLine {
		t.Errorf("a long line has %d characters", len([]rune(got.Lines[1])))
	}
}

// Devices mostly share their payloads: what one comparison costs is bounded by
// what differs, and not by how many devices get it.
func TestContentsAreLookedIntoOnce(t *testing.T) {
	reads := 0
	side := func(digest, text string, size int64) Side {
		return Side{
			Spec:     map[string]any{"files": map[string]any{"/etc/x": map[string]any{"payload": digest}}},
			Payloads: map[string]schema.Payload{digest: {Size: size}},
			Read:     func(string) ([]byte, error) { reads++; return []byte(text), nil },
		}
	}
	known := newContents()
	look := func(from, to Side, m mask) *Content {
		changes := (&comparison{from: from, to: to, mask: m, contents: known, lines: shownLines}).changes()
		if len(changes) != 1 {
			t.Fatalf("the changes are %+v", changes)
		}
		return changes[0].Content
	}
	from, to := side("sha256:a", "one hunter2\n", 12), side("sha256:b", "two hunter2\n", 12)
	first, again := look(from, to, mask{}), look(from, to, mask{})
	if first != again || reads != 2 || first.Inserted != 1 {
		t.Errorf("looked into twice: %d reads, %+v and %+v", reads, first, again)
	}
	if other := look(from, to, maskOf([]string{"hunter2"})); strings.Contains(strings.Join(other.Lines, ""), "hunter2") || other.Inserted != 1 {
		t.Errorf("a device with another secret is shown %q", other.Lines)
	}
	known.left = largestRead
	reads = 0
	if c := look(side("sha256:c", "c", largestRead), side("sha256:d", "d", largestRead), mask{}); c.Hidden == "" || reads != 0 || c.To != largestRead {
		t.Errorf("more is looked into than may be: %d reads, %+v", reads, c)
	}
}

// What is encrypted on one side is shown on neither: the other one may be what it
// was before somebody encrypted it.
func TestSecretsAreNotShown(t *testing.T) {
	side := func(field, text string) Side {
		return Side{Spec: map[string]any{"files": map[string]any{"/etc/x": map[string]any{field: text}}}}
	}
	plain, one, other := side("content", "hunter2\n"), side("secret", "-----BEGIN hunter2\n"), side("secret", "-----BEGIN hunter3\n")
	for _, sides := range [][2]Side{{plain, one}, {one, other}, {one, plain}} {
		changes := (&comparison{from: sides[0], to: sides[1], contents: newContents(), lines: shownLines}).changes()
		if len(changes) != 1 || len(changes[0].Fields) > 0 || changes[0].Content == nil || changes[0].Content.Hidden != "it is encrypted" || len(changes[0].Content.Lines) > 0 {
			t.Errorf("%v: %+v", sides, changes)
		}
	}
	if changes := (&comparison{from: one, to: one, contents: newContents()}).changes(); len(changes) > 0 {
		t.Errorf("the same: %+v", changes)
	}
}
