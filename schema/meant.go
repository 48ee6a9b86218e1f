package schema

import (
	"fmt"
	"maps"
	"slices"
)

// Bounds of the search for what a selector probably meant. Each word is
// compared with all labels of all devices, and a fleet may hold as many wrong
// selectors as it likes.
const (
	maxGuessed  = 50
	maxCompared = 1000 // different values of a label
)

// meant names the label that a selector which matches nobody probably meant;
// "" where none is near.
func (p *pass) meant(sel *Selector, devices []*Member) string {
	if sel == nil || p.guessed >= maxGuessed {
		return ""
	}
	p.guessed++
	for _, key := range slices.Sorted(maps.Keys(sel.MatchLabels)) {
		if hint := meantLabel(key, []string{sel.MatchLabels[key]}, devices); hint != "" {
			return hint
		}
	}
	for _, r := range sel.MatchExpressions {
		if r.Operator == OpIn || r.Operator == OpExists {
			if hint := meantLabel(r.Key, r.Values, devices); hint != "" {
				return hint
			}
		}
	}
	return ""
}

// meantLabel looks for a label that devices have, and for one of some values
// of it; no values stand for any.
func meantLabel(key string, values []string, devices []*Member) string {
	keys, known := map[string]bool{}, map[string]bool{}
	for _, m := range devices {
		labels := m.Labels()
		for k := range labels {
			if len(keys) < maxCompared {
				keys[k] = true
			}
		}
		if v, ok := labels[key]; ok && len(known) < maxCompared {
			known[v] = true
		}
	}
	if len(known) == 0 {
		if near := Nearest(key, slices.Sorted(maps.Keys(keys))); near != "" {
			return fmt.Sprintf("no device has the label %s; did you mean %s?", quote(key), quote(near))
		}
		return ""
	}
	list := slices.Sorted(maps.Keys(known))
	for _, v := range values[:min(len(values), maxGuessed)] {
		if known[v] {
			continue
		}
		if near := Nearest(v, list); near != "" {
			return fmt.Sprintf("no device has %s: %s; did you mean %s?", key, quote(v), quote(near))
		}
	}
	return ""
}
