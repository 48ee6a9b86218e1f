package edit

import (
	"reflect"

	"go.yaml.in/yaml/v3"
)

// compared is a tree as it is compared: mappings, lists and scalars.
func compared(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i < len(n.Content); i += 2 {
			m[n.Content[i].Value] = compared(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, child := range n.Content {
			list[i] = compared(child)
		}
		return list
	}
	return scalar{n.ShortTag(), n.Value}
}

// at is the value at a path of a compared tree.
func at(tree any, path []string) (any, bool) {
	for _, key := range path {
		m, _ := tree.(map[string]any)
		var ok bool
		if tree, ok = m[key]; !ok {
			return nil, false
		}
	}
	return tree, true
}

// put sets a value of a compared tree in place.
func put(tree any, path []string, want any) any {
	m, ok := tree.(map[string]any)
	if len(path) == 0 {
		return want
	}
	if !ok {
		m = map[string]any{}
	}
	m[path[0]] = put(m[path[0]], path[1:], want)
	return m
}

// without removes a value of a compared tree in place.
func without(tree any, path []string) any {
	m, _ := tree.(map[string]any)
	if len(path) == 1 {
		delete(m, path[0])
		return tree
	}
	without(m[path[0]], path[1:])
	return tree
}

// checked gives an edit that holds what it should.
func checked(edited []byte, want any) ([]byte, error) {
	t, err := read(edited)
	if err == nil && !reflect.DeepEqual(compared(t.root), want) {
		// Such as a text below a | that the document ends with, without a line
		// break: a line below it would give it one.
		err = &RefusedError{Why: "a value beside the one that is to change would change with it"}
	}
	if err != nil {
		return nil, err
	}
	return edited, nil
}
