package schema

import "maps"

// The fields of a file that exclude each other, and of the agent's program:
// setting one removes the others.
var contentFields = []string{"content", "contentBase64", "source", "secret", "url"}

// mergeSpec merges a part of a spec over a spec, as a JSON merge patch (RFC
// 7386) with one addition: a file has one content, so a part that sets one of
// the content fields removes the others.
//
// It works on trees and shares what a part does not touch, which a merge on
// JSON text cannot: ten thousand devices of one release hold its spec once,
// and integers stay integers. Neither argument is changed.
func mergeSpec(spec, part map[string]any, lent *scratch) map[string]any {
	merged := mergePatch(spec, part, lent)
	eachContent(part, func(keys []string, set map[string]any) {
		if _, existed := valueAt(spec, keys).(map[string]any); !existed {
			return
		}
		file, _ := valueAt(merged, keys).(map[string]any)
		if set["source"] != nil && set["sha256"] == nil {
			delete(file, "sha256") // of another program
		}
		for _, field := range contentFields {
			if set[field] == nil {
				continue
			}
			for _, other := range contentFields {
				if other != field && set[other] == nil {
					delete(file, other) // mergePatch made this map: both sides had one
				}
			}
		}
	})
	return merged
}

// mergePatch is MergePatch of RFC 7386, section 2, for two objects.
func mergePatch(target, patch map[string]any, lent *scratch) map[string]any {
	out := lent.tree()
	maps.Copy(out, target)
	for key, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(out, key)
		case map[string]any:
			old, _ := out[key].(map[string]any)
			out[key] = mergePatch(old, v, lent)
		default:
			out[key] = v
		}
	}
	return out
}

// compactSpec drops what says nothing: null and, from the inside out, empty
// maps; but a directory is wanted by being named, so an entry of directories
// stays when it has no fields. What has nothing to drop is shared.
func compactSpec(spec map[string]any) map[string]any {
	out, _ := compact(spec, func(key string) bool { return key == "directories" })
	return out
}

func compact(tree map[string]any, keepsEmpty func(key string) bool) (out map[string]any, changed bool) {
	out = tree
	for key, v := range tree {
		drop := v == nil
		if m, isMap := v.(map[string]any); isMap {
			child, childChanged := compact(m, never)
			if keepsEmpty(key) {
				child, childChanged = compactEntries(m)
			}
			if drop = len(child) == 0; !drop && !childChanged {
				continue
			}
			v = child
		} else if !drop {
			continue
		}
		if !changed {
			out, changed = maps.Clone(tree), true
		}
		if drop {
			delete(out, key)
		} else {
			out[key] = v
		}
	}
	return out, changed
}

func never(string) bool { return false }

// compactEntries compacts the entries of a map and keeps those that are empty.
func compactEntries(tree map[string]any) (out map[string]any, changed bool) {
	out = tree
	for key, v := range tree {
		m, isMap := v.(map[string]any)
		if v != nil && !isMap {
			continue
		}
		child, childChanged := compact(m, never)
		if v != nil && !childChanged {
			continue
		}
		if !changed {
			out, changed = maps.Clone(tree), true
		}
		if v == nil {
			delete(out, key)
		} else {
			out[key] = child
		}
	}
	return out, changed
}
