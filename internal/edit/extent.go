package edit

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"
)

// end is the byte behind a node. indent is the column, from 0, of the
// innermost block collection around it.
func (t *text) end(n *yaml.Node, indent int) (int, error) {
	at := t.offset(n)
	switch {
	case n.Kind == yaml.ScalarNode:
		return t.scalarEnd(n, at, indent)
	case len(n.Content) > 0 && !inFlow(n):
		return t.end(n.Content[len(n.Content)-1], n.Column-1)
	}
	bracketed := at < len(t.data) && (t.data[at] == '{' || t.data[at] == '[')
	last := at + 1
	if len(n.Content) > 0 {
		var err error
		if last, err = t.end(n.Content[len(n.Content)-1], indent); err != nil || !bracketed {
			return last, err // a: b as an element of a list in brackets is a mapping of its own
		}
	}
	last = t.skip(last, ",:?")
	if last >= len(t.data) || t.data[last] != '}' && t.data[last] != ']' {
		return 0, refuse(n, "the end of what begins here was not found")
	}
	return last + 1, nil
}

// skip goes over spaces, line breaks, comments and the signs in also.
func (t *text) skip(at int, also string) int {
	for at < len(t.data) {
		c := t.data[at]
		n := breakAt(t.data, at)
		switch {
		case n > 0:
			at += n
		case c == ' ' || c == '\t' || strings.IndexByte(also, c) >= 0:
			at++
		case c == '#':
			_, at, _ = t.line(t.lineOf(at))
		default:
			return at
		}
	}
	return at
}

func (t *text) scalarEnd(n *yaml.Node, at, indent int) (int, error) {
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		for i := at + 1; i < len(t.data); i++ {
			switch t.data[i] {
			case '\\':
				i++
			case '"':
				return i + 1, nil
			}
		}
	case n.Style&yaml.SingleQuotedStyle != 0:
		for i := at + 1; i < len(t.data); i++ {
			if t.data[i] != '\'' {
				continue
			}
			if i+1 < len(t.data) && t.data[i+1] == '\'' {
				i++
				continue
			}
			return i + 1, nil
		}
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return t.blockEnd(at, indent), nil
	case unwritten(n):
		return at, nil // the parser puts it behind the colon
	default:
		// A plain text has no escapes: its words stand in the document as they
		// are, with only space between them.
		for _, word := range strings.FieldsFunc(n.Value, isGap) {
			for at < len(t.data) && (t.data[at] == ' ' || t.data[at] == '\t' || breakAt(t.data, at) > 0) {
				at += max(breakAt(t.data, at), 1)
			}
			if !bytes.HasPrefix(t.data[at:], []byte(word)) {
				return 0, refuse(n, "the end of the value here was not found")
			}
			at += len(word)
		}
		return at, nil
	}
	return 0, refuse(n, "the end of the value here was not found")
}

// isGap is what stands between the words of a plain text.
func isGap(r rune) bool { return strings.ContainsRune(" \t\n\r\u0085\u2028\u2029", r) }

// blockEnd is the end of the last line of a text that begins with | or >.
func (t *text) blockEnd(at, indent int) int {
	header := t.lineOf(at)
	_, end, _ := t.line(header)
	keep, width := false, 0
	for _, c := range t.data[at+1 : end] {
		if c == ' ' || c == '\t' || c == '#' {
			break
		}
		switch {
		case c == '+':
			keep = true
		case c >= '1' && c <= '9':
			width = indent + int(c-'0')
		}
	}
	for i := header + 1; i < t.lines(); i++ {
		line := t.content(i)
		spaces := len(line) - len(strings.TrimLeft(line, " "))
		empty := spaces == len(line)
		if width == 0 && !empty {
			width = spaces
			if spaces <= indent {
				return end // it has no line
			}
		}
		switch {
		case !empty && spaces < width:
			return end
		case !empty, width > 0 && spaces > width, keep:
			_, end, _ = t.line(i)
		}
	}
	return end
}

// colon is the byte behind the colon of a key.
func (t *text) colon(k *yaml.Node) (int, error) {
	at, err := t.end(k, 0)
	if err != nil {
		return 0, err
	}
	for at < len(t.data) && (t.data[at] == ' ' || t.data[at] == '\t') {
		at++
	}
	if at >= len(t.data) || t.data[at] != ':' {
		return 0, refuse(k, "the key %q is not written as %s:", k.Value, k.Value)
	}
	return at + 1, nil
}

// entryEnd is the byte behind a key and its value in a mapping.
func (t *text) entryEnd(n *yaml.Node, i, indent int) (int, error) {
	if !inFlow(n) {
		indent = n.Column - 1
	}
	return t.end(n.Content[i+1], indent)
}

// ownLine says whether a key of a block mapping begins its line.
func (t *text) ownLine(k *yaml.Node) bool {
	start, _, _ := t.line(k.Line - 1)
	return strings.Trim(string(t.data[start:t.offset(k)]), " ") == ""
}

// lastLine is the last line, from 0, of what ends at a byte and belongs to a
// column: comments that are deeper than it still are about what is above.
func (t *text) lastLine(end, column int) int {
	last := t.lineOf(end)
	for i := last + 1; i < t.lines(); i++ {
		switch {
		case t.comment(i) > column:
			last = i
		case !t.blank(i):
			return last
		}
	}
	return last
}
