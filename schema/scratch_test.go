package schema

import "testing"

// What was taken back is lent again, empty, and an odd document leaves no pile.
func TestMapsAreLentAgain(t *testing.T) {
	var s scratch
	first := s.tree()
	first["a"] = 1
	other := s.clone(first)
	other["b"] = 2
	if len(first) != 1 || len(other) != 2 {
		t.Fatalf("two maps in use are one: %v, %v", first, other)
	}
	for range 2 * maxLentMaps {
		s.tree()["x"] = 1
		s.text()["y"] = "z"
	}
	for i := range maxLentEntries + 1 {
		first[itoa(i)] = i
	}
	s.reset()
	if len(s.trees.maps) > maxLentMaps || len(s.texts.maps) > maxLentMaps {
		t.Errorf("%d and %d maps are kept", len(s.trees.maps), len(s.texts.maps))
	}
	again := s.tree()
	if len(again) != 0 {
		t.Errorf("a map is lent that holds %v", again)
	}
	if again["of the large one"] = 1; len(first) == len(again) {
		t.Error("a map that had grown is kept")
	}
	for range 2 * maxLentMaps {
		if m := s.tree(); len(m) != 0 {
			t.Fatalf("a map is lent that holds %v", m)
		}
		if m := s.text(); len(m) != 0 {
			t.Fatalf("a map is lent that holds %v", m)
		}
	}
	var nobody *scratch
	if nobody.tree() == nil || nobody.text() == nil || len(nobody.clone(other)) != len(other) {
		t.Error("without one, maps are made anew")
	}
}
