package schema

import (
	"slices"
	"strings"
)

// each stands in [contentPlaces] for every key of a mapping.
const each = "*"

// contentPlaces are where in a spec something has content as a file has:
// content, contentBase64 or source, rendered where it is a template, and a
// payload in an assignment. What lies within another place comes after it.
var contentPlaces = [][]string{
	{"files", each},
	{"applications", each, "quadlet", each},
	{"applications", each, "compose"},
	{"applications", each, "compose", "envFile"},
	{"units", each},
	{"units", each, "dropIns", each},
	{"agent"},
}

// eachContent visits all that has content in a spec, in the order of their
// places and names. The tree is read as it is, and may be of any shape. The
// keys are there for the visit only.
func eachContent(spec map[string]any, visit func(keys []string, entry map[string]any)) {
	const deepest = 4 // keys of a place
	keys := make([]string, 0, deepest)
	for _, place := range contentPlaces {
		walkContent(spec, place, keys, visit)
	}
}

func walkContent(tree map[string]any, place, at []string, visit func([]string, map[string]any)) {
	if place[0] != each {
		stepContent(tree, place[0], place, at, visit)
		return
	}
	for _, name := range sortedKeys(tree) {
		stepContent(tree, name, place, at, visit)
	}
}

func stepContent(tree map[string]any, name string, place, at []string, visit func([]string, map[string]any)) {
	child, ok := tree[name].(map[string]any)
	switch {
	case !ok:
	case len(place) == 1:
		visit(append(at, name), child)
	default:
		walkContent(child, place[1:], append(at, name), visit)
	}
}

// withContents gives a spec in which change has had its way with all that has
// content; what it gives back unchanged is shared. It stops at an error.
func withContents(spec map[string]any, change func(keys []string, entry map[string]any) (map[string]any, error)) (map[string]any, error) {
	return withContentsIn(spec, nil, change)
}

// withContentsIn is withContents with maps that are lent.
func withContentsIn(spec map[string]any, lent *scratch, change func(keys []string, entry map[string]any) (map[string]any, error)) (map[string]any, error) {
	out := spec
	var copied map[string]string // the keys of what was, joined
	var failed error
	eachContent(spec, func(keys []string, entry map[string]any) {
		if failed != nil {
			return
		}
		changed, err := change(keys, entry)
		if failed = err; err != nil || identity(changed) == identity(entry) {
			return
		}
		if copied == nil {
			copied, out = lent.text(), lent.clone(out)
		}
		tree := out
		for i, key := range keys[:len(keys)-1] {
			child, _ := tree[key].(map[string]any)
			above := strings.Join(keys[:i+1], "\x00")
			if _, done := copied[above]; !done {
				copied[above], child = "", lent.clone(child)
				tree[key] = child
			}
			tree = child
		}
		tree[keys[len(keys)-1]] = changed
	})
	return out, failed
}

// contentAt gives the keys of what has content where keys lead to one of its
// fields, and that field.
func contentAt(keys []string) (entry []string, field string, ok bool) {
	if len(keys) == 0 {
		return nil, "", false
	}
	entry, field = keys[:len(keys)-1], keys[len(keys)-1]
	for _, place := range contentPlaces {
		if slices.EqualFunc(place, entry, func(want, key string) bool { return want == each || want == key }) {
			return entry, field, true
		}
	}
	return nil, "", false
}

// PayloadNames lists the payloads that a spec as assigned names, each once,
// sorted. The spec may be one that this program does not understand.
func PayloadNames(spec map[string]any) []string {
	var names []string
	eachContent(spec, func(_ []string, entry map[string]any) {
		if name, ok := entry["payload"].(string); ok {
			names = append(names, name)
		}
	})
	slices.Sort(names)
	return slices.Compact(names)
}
