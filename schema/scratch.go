package schema

import "maps"

// scratch lends maps to the work on some documents that are let go together.
// Most of what reading and rendering allocate are small maps; made anew for
// each of ten thousand devices they are what the collector runs for. It is for
// one goroutine at a time; nil makes maps that nobody takes back.
type scratch struct {
	trees lent[any]
	texts lent[string]
}

func (s *scratch) tree() map[string]any {
	if s == nil {
		return map[string]any{}
	}
	return s.trees.lend()
}

// clone is a copy of a map.
func (s *scratch) clone(m map[string]any) map[string]any {
	out := s.tree()
	maps.Copy(out, m)
	return out
}

func (s *scratch) text() map[string]string {
	if s == nil {
		return map[string]string{}
	}
	return s.texts.lend()
}

// reset takes back all that was lent.
func (s *scratch) reset() {
	s.trees.reset()
	s.texts.reset()
}

// lent are maps of one type, the first ones of which are in use.
type lent[V any] struct {
	maps []map[string]V
	used int
}

// What is kept of what was lent, so that one odd document does not stay in
// memory as a pile of empty maps: how many maps, and with how many entries.
const (
	maxLentMaps    = 256
	maxLentEntries = 16
)

func (l *lent[V]) lend() map[string]V {
	if l.used == len(l.maps) {
		l.maps = append(l.maps, map[string]V{})
	}
	l.used++
	return l.maps[l.used-1]
}

func (l *lent[V]) reset() {
	if len(l.maps) > maxLentMaps {
		l.maps = append([]map[string]V(nil), l.maps[:maxLentMaps]...)
	}
	for i, m := range l.maps[:min(l.used, len(l.maps))] {
		if len(m) > maxLentEntries {
			l.maps[i] = map[string]V{}
		}
		clear(m)
	}
	l.used = 0
}
