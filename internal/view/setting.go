package view

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Setting finds a field of a document's spec: how it is written there, on one
// line, and on which line. Where it is absent but the document can be read,
// the text says so and the line is 0; where nothing can be said, it is "".
func Setting(document []byte, field string) (text string, line int) {
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil || len(root.Content) == 0 {
		return "", 0
	}
	_, spec := entry(root.Content[0], "spec")
	key, value := entry(spec, field)
	if key == nil {
		return field + " is not set", 0
	}
	// Only scalars and short collections are worth a place on a line.
	value.Style &^= yaml.DoubleQuotedStyle
	out, err := yaml.Marshal(flow(value))
	if err != nil {
		return field, key.Line
	}
	return field + ": " + strings.TrimSpace(string(out)), key.Line
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

// entry finds a key of a mapping.
func entry(node *yaml.Node, key string) (k, v *yaml.Node) {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i], node.Content[i+1]
		}
	}
	return nil, nil
}
