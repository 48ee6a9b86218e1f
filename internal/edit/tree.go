package edit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// RefusedError says why a document cannot be edited here. A person still can.
type RefusedError struct {
	Line int // where, from 1; 0 = the document as a whole
	Why  string
}

func (e *RefusedError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("line %d: %s", e.Line, e.Why)
	}
	return e.Why
}

func refuse(n *yaml.Node, format string, args ...any) error {
	return &RefusedError{Line: n.Line, Why: fmt.Sprintf(format, args...)}
}

// maxDocument is the size that is edited, in bytes; no document that validates
// is larger.
const maxDocument = 1 << 20

// text is a document with the tree that was read from it. The parser tells
// where each value begins; where it ends is worked out here.
type text struct {
	data   []byte
	starts []int // of the lines, as the parser counts them
	root   *yaml.Node
}

// read parses a document and refuses what has more than one meaning.
func read(data []byte) (t *text, err error) {
	if len(data) > maxDocument {
		return nil, &RefusedError{Why: fmt.Sprintf("it has %d bytes, more than the %d that are edited", len(data), maxDocument)}
	}
	if !utf8.Valid(data) {
		return nil, &RefusedError{Why: "it is not UTF-8"}
	}
	// The parser is written for cooperative input; a file that makes it panic
	// is one that we cannot edit.
	defer func() {
		if r := recover(); r != nil {
			t, err = nil, &RefusedError{Why: fmt.Sprintf("the YAML parser gave up: %v", r)}
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, &RefusedError{Why: "it is empty"}
	case err != nil:
		return nil, &RefusedError{Why: "it is no YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, &RefusedError{Line: second.Line, Why: "a second document begins here"}
	case !errors.Is(err, io.EOF):
		return nil, &RefusedError{Why: "it is no YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	t = &text{data: data, starts: lineStarts(data), root: doc.Content[0]}
	if t.root.Kind != yaml.MappingNode {
		return nil, refuse(t.root, "it is no mapping")
	}
	return t, plain(t.root)
}

// plain refuses what gives one place of a document a second meaning.
func plain(n *yaml.Node) error {
	switch {
	case n.Kind == yaml.AliasNode:
		return refuse(n, "an alias stands here: *%s", n.Value)
	case n.Anchor != "":
		return refuse(n, "an anchor stands here: &%s", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		return refuse(n, "a tag stands here: %s", n.Tag)
	}
	if n.Kind == yaml.MappingNode {
		seen := make(map[string]bool, len(n.Content)/2)
		for i := 0; i < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode {
				return refuse(k, "the key here is no word")
			}
			if seen[k.Value] {
				return refuse(k, "the key %q is here for the second time", k.Value)
			}
			seen[k.Value] = true
		}
	}
	for _, child := range n.Content {
		if err := plain(child); err != nil {
			return err
		}
	}
	return nil
}

// breakAt is the length of the line break at a place, 0 = none. The parser
// follows YAML 1.1, which has more of them than an editor shows.
func breakAt(data []byte, at int) int {
	switch {
	case at >= len(data):
		return 0
	case data[at] == '\r' && at+1 < len(data) && data[at+1] == '\n':
		return 2
	case data[at] == '\n' || data[at] == '\r':
		return 1
	case bytes.HasPrefix(data[at:], []byte("\u0085")):
		return 2
	case bytes.HasPrefix(data[at:], []byte("\u2028")), bytes.HasPrefix(data[at:], []byte("\u2029")):
		return 3
	}
	return 0
}

var mark = []byte("\ufeff") // the byte order mark, which the parser does not count

func lineStarts(data []byte) []int {
	at := 0
	if bytes.HasPrefix(data, mark) {
		at = len(mark)
	}
	starts := []int{at}
	for at < len(data) {
		if n := breakAt(data, at); n > 0 {
			at += n
			starts = append(starts, at)
			continue
		}
		at++
	}
	return starts
}

// offset is the byte at which a node begins.
func (t *text) offset(n *yaml.Node) int {
	if n.Line < 1 || n.Line > len(t.starts) {
		return len(t.data)
	}
	at := t.starts[n.Line-1]
	for range n.Column - 1 {
		if at >= len(t.data) {
			break
		}
		_, size := utf8.DecodeRune(t.data[at:])
		at += size
	}
	return at
}

// lineOf is the line of a byte, from 0.
func (t *text) lineOf(at int) int {
	i, begins := slices.BinarySearch(t.starts, at)
	if begins {
		return i
	}
	return max(i-1, 0) // a byte order mark is before the first
}

// line gives the bounds of a line: its first byte, its line break, and the
// first byte of the next one.
func (t *text) line(i int) (start, end, next int) {
	start, next = t.starts[i], len(t.data)
	if i+1 < len(t.starts) {
		next = t.starts[i+1]
	}
	end = start
	for end < next && breakAt(t.data, end) == 0 {
		end++
	}
	return start, end, next
}

// content is a line without its break.
func (t *text) content(i int) string {
	start, end, _ := t.line(i)
	return string(t.data[start:end])
}

// lines is how many there are; behind a last line break there is none.
func (t *text) lines() int {
	if n := len(t.starts); t.starts[n-1] < len(t.data) || n == 1 {
		return n
	}
	return len(t.starts) - 1
}

func (t *text) blank(i int) bool { return strings.Trim(t.content(i), " \t") == "" }

// comment is the column of a line that holds only a comment, from 1; 0 = it
// holds something else.
func (t *text) comment(i int) int {
	line := t.content(i)
	if rest := strings.TrimLeft(line, " \t"); strings.HasPrefix(rest, "#") {
		return len(line) - len(rest) + 1
	}
	return 0
}

// find looks for a key of a mapping; -1 = it is not there.
func find(n *yaml.Node, key string) int {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// quotes is the style of what is new in the document: JSON is YAML too, and
// stays JSON.
func (t *text) quotes() yaml.Style {
	if len(t.root.Content) > 0 && inFlow(t.root) {
		return t.root.Content[0].Style & yaml.DoubleQuotedStyle
	}
	return 0
}

func inFlow(n *yaml.Node) bool { return n.Style&yaml.FlowStyle != 0 }

// unwritten says whether a value is the null that stands for nothing at all.
func unwritten(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Style == 0 && n.Value == ""
}
