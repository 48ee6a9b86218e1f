package schema

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// checkConflicts looks for overlays of one order that set the same place:
// nothing would say which one wins.
func (p *pass) checkConflicts(g *group) {
	for from := 0; from < len(g.overlays); {
		to := from + 1
		for to < len(g.overlays) && overlayOrder(g.overlays[to]) == overlayOrder(g.overlays[from]) {
			to++
		}
		if to-from > 1 {
			p.checkOneOrder(g, g.overlays[from:to])
		}
		from = to
	}
}

// settings are the places that overlays set: by pointer, the first overlay
// that sets it. Above holds the same for all parents of those places.
type settings struct {
	set   map[string]*file
	above map[string]aboveSetting
}

type aboveSetting struct {
	file    *file
	pointer string
}

func (p *pass) checkOneOrder(g *group, overlays []*file) {
	all := settings{set: map[string]*file{}, above: map[string]aboveSetting{}}
	for _, o := range overlays {
		pointers := setPointers(o)
		reported := map[*file]bool{}
		for _, pointer := range pointers {
			other, at := all.clash(pointer)
			if other == nil || other == o || reported[other] {
				continue
			}
			reported[other] = true
			g.conflicts = append(g.conflicts, p.located(o, finding{pointer: inOverlay(pointer), rule: ruleOverlayConflict,
				msg:  fmt.Sprintf("this overlay and %s have order %d and both set %s", other.path, overlayOrder(o), clip(shorter(pointer, at))),
				hint: "give one of them a higher order"}))
		}
		for _, pointer := range pointers {
			all.add(o, pointer)
		}
	}
}

func shorter(a, b string) string {
	if b != "" && len(b) < len(a) {
		return b
	}
	return a
}

// inOverlay is the pointer in the document; places are named as in a spec.
func inOverlay(pointer string) string {
	if strings.HasPrefix(pointer, "/vars/") {
		return "/spec" + pointer
	}
	return "/spec/desired" + pointer
}

// clash finds an overlay that sets this place, one above it or one below it.
func (s *settings) clash(pointer string) (*file, string) {
	if f := s.set[pointer]; f != nil {
		return f, pointer
	}
	if below, ok := s.above[pointer]; ok {
		return below.file, below.pointer
	}
	for i := strings.LastIndexByte(pointer, '/'); i > 0; i = strings.LastIndexByte(pointer[:i], '/') {
		if f := s.set[pointer[:i]]; f != nil {
			return f, pointer[:i]
		}
	}
	return nil, ""
}

func (s *settings) add(f *file, pointer string) {
	if s.set[pointer] == nil {
		s.set[pointer] = f
	}
	for i := strings.LastIndexByte(pointer, '/'); i > 0; i = strings.LastIndexByte(pointer[:i], '/') {
		if _, ok := s.above[pointer[:i]]; ok {
			return
		}
		s.above[pointer[:i]] = aboveSetting{f, pointer}
	}
}

// setPointers lists what an overlay sets: every leaf of desired, a null and an
// empty collection being leaves too, and every variable. The content fields of
// a file exclude each other, so they are one place.
func setPointers(f *file) []string {
	seen := map[string]bool{}
	var walk func(v any, keys []string)
	walk = func(v any, keys []string) {
		if m, ok := v.(map[string]any); ok && len(m) > 0 {
			for k, c := range m {
				walk(c, append(keys, k))
			}
			return
		}
		if len(keys) == 0 {
			return
		}
		if entry, field, ok := contentAt(keys); ok && isContentField(field) {
			keys = append(slices.Clone(entry), "content")
		}
		seen[joinPointer(keys...)] = true
	}
	walk(f.desired, nil)
	for name := range f.content.overlay.Spec.Vars {
		seen[joinPointer("vars", name)] = true
	}
	pointers := make([]string, 0, len(seen))
	for pointer := range seen {
		pointers = append(pointers, pointer)
	}
	sort.Strings(pointers)
	return pointers
}

func isContentField(name string) bool {
	for _, f := range contentFields {
		if name == f {
			return true
		}
	}
	return false
}
