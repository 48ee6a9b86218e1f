package schema

import (
	"strconv"

	"go.yaml.in/yaml/v3"
)

// locate finds the deepest node on the way of the keys: the value, the key
// that it stands under (nil in a list and at the root), and whether it is the
// very place that was asked for.
func (d *document) locate(keys []string) (key, value *yaml.Node, exact bool) {
	value = d.nodes()
	for _, want := range keys {
		var nextKey, next *yaml.Node
		switch value.Kind {
		case yaml.MappingNode:
			if i := d.member(value, want); i >= 0 {
				nextKey, next = value.Content[i], value.Content[i+1]
			}
		case yaml.SequenceNode:
			if i, err := strconv.Atoi(want); err == nil && i >= 0 && i < len(value.Content) {
				next = value.Content[i]
			}
		}
		if next == nil {
			return key, value, false
		}
		key, value = nextKey, next
	}
	return key, value, true
}

// indexedMapping is how many entries a mapping has that is not searched from
// its beginning each time: a document may have thousands of problems, each at
// its own entry of one mapping.
const indexedMapping = 32

// member is where in the content of a mapping a key stands; -1 = nowhere.
func (d *document) member(n *yaml.Node, key string) int {
	if len(n.Content) < 2*indexedMapping {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return i
			}
		}
		return -1
	}
	places, known := d.index[n]
	if !known {
		places = make(map[string]int, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			places[n.Content[i].Value] = i
		}
		if d.index == nil {
			d.index = map[*yaml.Node]map[string]int{}
		}
		d.index[n] = places
	}
	if i, ok := places[key]; ok {
		return i
	}
	return -1
}

func isBlock(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0
}
