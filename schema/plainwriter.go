package schema

import (
	"bytes"

	"go.yaml.in/yaml/v3"
)

// longPlainKey is the size of a key, in bytes, up to which one is written as
// "key: value"; yaml/v3 has another form for those that are longer than 128.
const longPlainKey = 100

// writePlain writes the tree of a document byte for byte as the node writer of
// yaml/v3 does, at a fraction of its cost. It knows block collections, empty
// ones, and scalars of one line in ASCII, which is what nearly all documents of
// the status side are made of; where there is anything else it gives false, and
// the document is left to yaml/v3.
func writePlain(root *yaml.Node) ([]byte, bool) {
	if root.Kind != yaml.MappingNode || len(root.Content) == 0 {
		return nil, false
	}
	w := &plainWriter{}
	if !w.mapping(root, 0) {
		return nil, false
	}
	return w.out.Bytes(), true
}

type plainWriter struct{ out bytes.Buffer }

const plainIndent = 2

// mapping writes the pairs of a mapping; the line has been begun for the first
// of them.
func (w *plainWriter) mapping(n *yaml.Node, indent int) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if i > 0 {
			w.indent(indent)
		}
		if key.Kind != yaml.ScalarNode || len(key.Value) > longPlainKey || !w.scalar(key) {
			return false
		}
		w.out.WriteByte(':')
		if !isBlockNode(value) {
			w.out.WriteByte(' ')
			if !w.inline(value) {
				return false
			}
			continue
		}
		w.out.WriteByte('\n')
		w.indent(indent + plainIndent)
		if !w.block(value, indent+plainIndent) {
			return false
		}
	}
	return true
}

func (w *plainWriter) sequence(n *yaml.Node, indent int) bool {
	for i, item := range n.Content {
		if i > 0 {
			w.indent(indent)
		}
		w.out.WriteString("- ")
		ok := false
		if isBlockNode(item) {
			ok = w.block(item, indent+plainIndent)
		} else {
			ok = w.inline(item)
		}
		if !ok {
			return false
		}
	}
	return true
}

func (w *plainWriter) block(n *yaml.Node, indent int) bool {
	if n.Kind == yaml.MappingNode {
		return w.mapping(n, indent)
	}
	return w.sequence(n, indent)
}

// inline writes what ends in the line.
func (w *plainWriter) inline(n *yaml.Node) bool {
	switch n.Kind {
	case yaml.MappingNode:
		w.out.WriteString("{}")
	case yaml.SequenceNode:
		w.out.WriteString("[]")
	default:
		if !w.scalar(n) {
			return false
		}
	}
	w.out.WriteByte('\n')
	return true
}

func (w *plainWriter) scalar(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode {
		return false
	}
	switch n.Style {
	case 0:
		w.out.WriteString(n.Value)
		return true
	case yaml.DoubleQuotedStyle:
	default:
		return false
	}
	w.out.WriteByte('"')
	for i := range len(n.Value) {
		switch c := n.Value[i]; {
		case c < ' ' || c > '~':
			return false
		case c == '"' || c == '\\':
			w.out.WriteByte('\\')
			w.out.WriteByte(c)
		default:
			w.out.WriteByte(c)
		}
	}
	w.out.WriteByte('"')
	return true
}

func (w *plainWriter) indent(n int) {
	for range n {
		w.out.WriteByte(' ')
	}
}

func isBlockNode(n *yaml.Node) bool {
	return (n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode) && len(n.Content) > 0
}
