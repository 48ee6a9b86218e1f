package edit

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// change puts new text into the place of the bytes from `from` to `to`.
type change struct {
	from, to int
	text     string
}

func (t *text) with(c change) []byte {
	out := make([]byte, 0, len(t.data)+len(c.text))
	out = append(out, t.data[:c.from]...)
	out = append(out, c.text...)
	return append(out, t.data[c.to:]...)
}

// Set gives the document with a value at a path: a string, bool, int,
// time.Time or []string. Mappings on the way that are not there are made. A
// value that is there is replaced where it stands, with its quotes; where it
// is the same, the document is given back as it is. A *RefusedError is for a
// document that only a person can edit.
func (f Form) Set(doc []byte, path []string, value any) ([]byte, error) {
	t, want, err := readFor(doc, value)
	if err != nil {
		return nil, err
	}
	before := compared(t.root)
	if have, ok := at(before, path); ok && reflect.DeepEqual(have, want) {
		return doc, nil
	}
	c, err := f.set(t, path, want)
	if err != nil {
		return nil, err
	}
	return checked(t.with(c), put(before, path, want))
}

// Append gives the document with a text at the end of the list at a path,
// which is made where it is not there. A text that the list has is not added.
func (f Form) Append(doc []byte, path []string, text string) ([]byte, error) {
	t, want, err := readFor(doc, text)
	if err != nil {
		return nil, err
	}
	before := compared(t.root)
	have, ok := at(before, path)
	list, isList := have.([]any)
	switch {
	case !ok:
		return f.Set(doc, path, []string{text})
	case !isList:
		return nil, fmt.Errorf("%s is no list", strings.Join(path, "."))
	case slices.Contains(list, want):
		return doc, nil
	}
	n := t.root
	for _, key := range path {
		n = n.Content[find(n, key)+1]
	}
	c, err := t.appendTo(n, want)
	if err != nil {
		return nil, err
	}
	return checked(t.with(c), put(before, path, append(slices.Clone(list), want)))
}

// readFor reads a document for a value that it is to hold. JSON has no times:
// there they are texts.
func readFor(doc []byte, value any) (t *text, want any, err error) {
	if want, err = valueOf(value); err != nil {
		return nil, nil, err
	}
	if t, err = read(doc); err != nil {
		return nil, nil, err
	}
	if s, one := want.(scalar); one && s.tag == tagTime && t.quotes() != 0 {
		want = scalar{"!!str", s.text}
	}
	return t, want, nil
}

func (t *text) appendTo(n *yaml.Node, item any) (change, error) {
	if len(n.Content) == 0 {
		from := t.offset(n) + 1
		return change{from, from, write(item, t.quotes(), true)}, nil
	}
	last := n.Content[len(n.Content)-1]
	end, err := t.end(last, n.Column-1)
	if err != nil {
		return change{}, err
	}
	if inFlow(n) {
		return change{end, end, ", " + write(item, last.Style, true)}, nil
	}
	start, _, _ := t.line(n.Line - 1)
	indent := string(t.data[start:t.offset(n)])
	if strings.Trim(indent, " ") != "" {
		return change{}, refuse(n, "the list does not begin its line")
	}
	return t.below(t.lastLine(end, n.Column), []string{indent + "- " + write(item, last.Style, false)})
}

// set finds the place of a change that is to be made.
func (f Form) set(t *text, path []string, want any) (change, error) {
	n := t.root
	for depth, key := range path {
		i := find(n, key)
		if i < 0 {
			return f.insert(t, n, path, depth, want)
		}
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case depth == len(path)-1:
			return t.replace(n, i, want)
		case v.Kind == yaml.MappingNode:
			n = v
		case unwritten(v):
			return t.replace(n, i, nested(path[depth+1:], want))
		default:
			return change{}, refuse(k, "%s is no mapping", strings.Join(path[:depth+1], "."))
		}
	}
	return change{}, fmt.Errorf("a document as a whole cannot be set")
}

// nested is a value with the mappings around it.
func nested(path []string, want any) any {
	for _, key := range slices.Backward(path) {
		want = map[string]any{key: want}
	}
	return want
}

// replace writes another value behind a key.
func (t *text) replace(n *yaml.Node, i int, want any) (change, error) {
	k, v := n.Content[i], n.Content[i+1]
	colon, err := t.colon(k)
	if err != nil {
		return change{}, err
	}
	end, err := t.entryEnd(n, i, 0)
	if err != nil {
		return change{}, err
	}
	flow := inFlow(n)
	if _, one := want.(scalar); one && v.Kind == yaml.ScalarNode && !unwritten(v) {
		return change{t.offset(v), end, write(want, v.Style, flow)}, nil
	}
	return change{colon, max(end, colon), " " + write(want, t.quotes(), flow)}, nil
}

// insert adds the part of a path that is not there to the mapping n, which is
// at path[:depth].
func (f Form) insert(t *text, n *yaml.Node, path []string, depth int, want any) (change, error) {
	key, rest := path[depth], path[depth+1:]
	before := f.before(n, path[:depth], key)
	if inFlow(n) {
		return t.insertFlow(n, before, write(scalar{"!!str", key}, t.quotes(), true)+": "+write(nested(rest, want), t.quotes(), true))
	}
	first := n.Content[0]
	if !t.ownLine(first) {
		return change{}, refuse(first, "the key %q does not begin its line", first.Value)
	}
	indent := strings.Repeat(" ", first.Column-1)
	step := strings.Repeat(" ", t.step())
	var lines []string
	for i, name := range path[depth:] {
		line := indent + strings.Repeat(step, i) + write(scalar{"!!str", name}, 0, false) + ":"
		if i == len(rest) {
			line += " " + write(want, 0, false)
		}
		lines = append(lines, line)
	}
	if before >= 0 {
		end, err := t.entryEnd(n, before, 0)
		if err != nil {
			return change{}, err
		}
		return t.below(t.lastLine(end, first.Column), lines)
	}
	_, holder := t.around(path[:depth])
	end, err := t.colon(holder)
	if err != nil {
		return change{}, err
	}
	return t.below(t.lastLine(end, first.Column), lines)
}

// before is the entry of a mapping that a new key comes after: the nearest one
// that is documented before it, or else the last. -1 = it comes first.
func (f Form) before(n *yaml.Node, path []string, key string) int {
	rank, best, nearest := f.rank(path, key), -1, -1
	for i := 0; i < len(n.Content); i += 2 {
		if r := f.rank(path, n.Content[i].Value); r < rank && r > nearest {
			best, nearest = i, r
		}
	}
	if best < 0 && (rank < 0 || len(path) == 0) {
		return len(n.Content) - 2
	}
	return best
}

func (t *text) insertFlow(n *yaml.Node, before int, entry string) (change, error) {
	if before >= 0 {
		end, err := t.entryEnd(n, before, 0)
		return change{end, end, ", " + entry}, err
	}
	from := t.offset(n) + 1
	if len(n.Content) > 0 {
		from = t.offset(n.Content[0])
		entry += ", "
	}
	return change{from, from, entry}, nil
}

// below adds lines below a line, with line ends as they are around it.
func (t *text) below(line int, lines []string) (change, error) {
	_, end, next := t.line(line)
	br := string(t.data[end:next])
	if br == "" { // it is the last one
		br = "\n"
		if line > 0 {
			_, from, to := t.line(line - 1)
			br = string(t.data[from:to])
		}
	}
	if br != "\n" && br != "\r\n" && br != "\r" {
		// Whoever reads newer YAML would take what is added for a part of the
		// comment that stands there.
		return change{}, &RefusedError{Line: line + 1, Why: "this line ends with a sign that not every reader takes for a line end"}
	}
	if end < next {
		return change{next, next, strings.Join(lines, br) + br}, nil
	}
	return change{end, end, br + strings.Join(lines, br)}, nil
}

// around gives the mapping and the key that hold what is at a path; both are
// nil for the document itself.
func (t *text) around(path []string) (parent, key *yaml.Node) {
	n := t.root
	for _, name := range path {
		i := find(n, name)
		parent, key, n = n, n.Content[i], n.Content[i+1]
	}
	return parent, key
}

// defaultStep is the indentation where a document shows none, as the
// documentation has it.
const defaultStep = 2

// step is by how many columns the document indents.
func (t *text) step() int {
	for i := 1; i < len(t.root.Content); i += 2 {
		if v := t.root.Content[i]; v.Kind == yaml.MappingNode && !inFlow(v) && v.Column > t.root.Column {
			return v.Column - t.root.Column
		}
	}
	return defaultStep
}
