package view

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Setting finds a field of a document's spec, as "maxInFlight" or
// "waves[0].soak": how it is written there, on one line, and on which line.
// Where it is absent but the document can be read, the text says so and the
// line is that of what it would stand in, 0 for a field of the spec itself.
// Where nothing can be said, the text is "".
func Setting(document []byte, field string) (text string, line int) {
	path := []string{"spec"}
	for part := range strings.SplitSeq(field, ".") {
		name, index, found := strings.Cut(part, "[")
		path = append(path, name)
		for found {
			var at string
			at, index, _ = strings.Cut(index, "]")
			path = append(path, at)
			_, index, found = strings.Cut(index, "[")
		}
	}
	text, line, top := settingAt(document, path)
	if text == "" {
		return "", 0
	}
	if top {
		return field + " is not set", 0
	}
	return field + text, line
}

// SettingAt finds what stands in a document below these keys and indexes of
// lists: the last key with its value on one line, and on which line; 0 where
// it is absent.
func SettingAt(document []byte, path ...string) (text string, line int) {
	text, line, _ = settingAt(document, path)
	if !strings.HasPrefix(text, ":") {
		return "", 0
	}
	return path[len(path)-1] + text, line
}

// settingAt gives what is said behind the name of a setting. top says that not
// even what it would stand in is there.
func settingAt(document []byte, path []string) (text string, line int, top bool) {
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil || len(root.Content) == 0 {
		return "", 0, false
	}
	node := root.Content[0]
	for i, name := range path {
		key, value := entry(node, name)
		if key == nil {
			const above = 2 // the spec and its field
			return " is not set", line, i < above
		}
		node, line = value, key.Line
	}
	// Only scalars and short collections are worth a place on a line.
	value := flow(node)
	value.Style &^= yaml.DoubleQuotedStyle
	out, err := yaml.Marshal(value)
	if err != nil {
		return " is set", line, false
	}
	return ": " + strings.TrimSpace(string(out)), line, false
}

// flow writes a collection on one line, without its comments.
func flow(n *yaml.Node) *yaml.Node {
	c := *n
	c.HeadComment, c.LineComment, c.FootComment = "", "", ""
	if c.Kind == yaml.MappingNode || c.Kind == yaml.SequenceNode {
		c.Style = yaml.FlowStyle
	}
	c.Content = nil
	for _, child := range n.Content {
		c.Content = append(c.Content, flow(child))
	}
	return &c
}

// entry finds a key of a mapping, or an index of a list, whose key is then
// the entry itself.
func entry(node *yaml.Node, key string) (k, v *yaml.Node) {
	switch {
	case node == nil:
	case node.Kind == yaml.SequenceNode:
		if i, err := strconv.ParseUint(key, 10, 31); err == nil && i < uint64(len(node.Content)) {
			return node.Content[i], node.Content[i]
		}
	case node.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == key {
				return node.Content[i], node.Content[i+1]
			}
		}
	}
	return nil, nil
}
