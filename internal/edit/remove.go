package edit

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Remove gives the document without what is at a path; where nothing is, as it
// is. Comments go if they belong to it: those within, beside, directly above
// in its column, and below if they are deeper. A mapping that is left with
// nothing goes too, unless the kind needs it or a person wrote more into it
// than the key: then it stays, as {}.
func (f Form) Remove(doc []byte, path []string) ([]byte, error) {
	t, err := read(doc)
	if err != nil {
		return nil, err
	}
	before := compared(t.root)
	if _, ok := at(before, path); !ok || len(path) == 0 {
		return doc, nil
	}
	parent, key := t.around(path)
	i := slices.Index(parent.Content, key)
	if inFlow(parent) {
		c, err := t.removeFlow(parent, i)
		if err != nil {
			return nil, err
		}
		return checked(t.with(c), without(before, path))
	}
	return f.removeBlock(t, before, path)
}

// removeBlock removes a key that has lines of its own.
func (f Form) removeBlock(t *text, before any, path []string) ([]byte, error) {
	parent, key := t.around(path)
	if !t.ownLine(key) {
		return nil, refuse(key, "the key %q does not begin its line", key.Value)
	}
	end, err := t.entryEnd(parent, slices.Index(parent.Content, key), 0)
	if err != nil {
		return nil, err
	}
	first, last := key.Line-1, t.lastLine(end, key.Column)
	for first > 0 && t.comment(first-1) == key.Column {
		first--
	}
	if len(parent.Content) > 2 {
		return checked(t.with(t.lineRange(first, last)), without(before, path))
	}
	if len(path) == 1 {
		return nil, refuse(key, "nothing would be left of the document")
	}
	return f.removeLast(t, before, path, first, last)
}

// removeLast removes the only key of a mapping, in the lines first to last.
func (f Form) removeLast(t *text, before any, path []string, first, last int) ([]byte, error) {
	above := path[:len(path)-1]
	holder, name := t.around(above)
	colon, err := t.colon(name)
	if err != nil {
		return nil, err
	}
	end, err := t.entryEnd(holder, slices.Index(holder.Content, name), 0)
	if err != nil {
		return nil, err
	}
	_, lineEnd, _ := t.line(t.lineOf(colon))
	alone := strings.TrimSpace(string(t.data[colon:lineEnd])) == ""
	for i := t.lineOf(colon) + 1; i <= t.lastLine(end, name.Column); i++ {
		alone = alone && (i >= first && i <= last || t.blank(i))
	}
	if alone && !f.needs(above) {
		return f.removeBlock(t, before, above)
	}
	lines := t.lineRange(first, last)
	out := append(append(slices.Clone(t.data[:colon]), " {}"...), t.data[colon:lines.from]...)
	return checked(append(out, t.data[lines.to:]...), without(before, path))
}

// lineRange removes lines. Where the last of them ends the document without a
// line break, so does what is left.
func (t *text) lineRange(first, last int) change {
	from, _, _ := t.line(first)
	_, end, to := t.line(last)
	if end == to && first > 0 {
		_, from, _ = t.line(first - 1)
	}
	return change{from: from, to: to}
}

// removeFlow removes a key between braces.
func (t *text) removeFlow(n *yaml.Node, i int) (change, error) {
	start := t.offset(n.Content[i])
	end, err := t.entryEnd(n, i, 0)
	if err != nil {
		return change{}, err
	}
	if i > 0 {
		before, err := t.entryEnd(n, i-2, 0)
		if err != nil {
			return change{}, err
		}
		if oneLine(t.data[before:start]) {
			return change{from: before, to: end}, nil
		}
	}
	if i+2 < len(n.Content) {
		if next := t.offset(n.Content[i+2]); oneLine(t.data[end:next]) {
			return change{from: start, to: next}, nil
		}
	}
	comma := end
	for comma < len(t.data) && (t.data[comma] == ' ' || t.data[comma] == '\t') {
		comma++
	}
	if comma < len(t.data) && t.data[comma] == ',' {
		end = comma + 1
	}
	if start > 0 && t.data[start-1] == ' ' && end < len(t.data) && t.data[end] == ' ' {
		end++
	}
	return change{from: start, to: end}, nil
}

// oneLine says whether what stands between two entries is only their comma.
func oneLine(between []byte) bool {
	return strings.Trim(string(between), " \t,") == ""
}
