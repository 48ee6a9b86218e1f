package apps

import (
	"strings"
	"testing"
)

const (
	makesFront = "services: {s0: {image: \"reg/web:1\", networks: [front]}}\nnetworks: {front: {}}\n"
	namesFront = "services: {s0: {image: \"reg/web:1\", networks: [front]}}\nnetworks: {front: {external: true, name: zeta_front}}\n"
)

// Whoever makes a network starts before those that only name it, in whatever
// order they are called, and on the way back too.
func TestSharedNetwork(t *testing.T) {
	w := stocked(t)
	shared := composeSpec(map[string]string{"alpha": namesFront, "zeta": makesFront})
	w.must(shared)
	changed := composeSpec(map[string]string{"alpha": namesFront + "# b\n", "zeta": makesFront + "# b\n"})
	if err := w.agent().update(both(changed, bad)); err == nil {
		t.Fatal("the bad release succeeded")
	}
	if err := w.agent().rollBack(shared); err != nil {
		t.Fatal(err)
	}
	if err := w.runs(shared); err != nil {
		t.Fatal(err)
	}
	w.must(changed)
	w.must(none)
}

// A network goes with the last application that names it, and not before.
func TestSharedNetworkStaysWhileItIsNamed(t *testing.T) {
	shared := composeSpec(map[string]string{"alpha": namesFront, "zeta": makesFront})
	for _, next := range []string{namesFront, namesFront + "# b\n"} {
		w := stocked(t)
		w.must(shared)
		w.must(composeSpec(map[string]string{"alpha": next}))
		w.must(composeSpec(map[string]string{"alpha": next + "# c\n"}))
		w.must(shared)
		w.must(composeSpec(map[string]string{"alpha": next}))
		w.must(none)
	}
}

// One that somebody else uses when its application goes is tried again.
func TestNetworkInUseGoesLater(t *testing.T) {
	w := stocked(t)
	w.must(composeSpec(map[string]string{"zeta": makesFront}))
	w.projects["other"] = map[string]*fakeContainer{"s0": {text: namesFront}}
	if err := w.agent().update(none); err != nil || !w.networks["zeta_front"] {
		t.Fatalf("%v; the networks are %v", err, w.networks)
	}
	delete(w.projects, "other")
	w.must(none)
}

// Each has a name, what it needs and what it makes.
func TestOrderOfStarts(t *testing.T) {
	for text, order := range map[string]string{
		"":                    "",
		"a:> b:>":             "a b",
		"a:y>x b:z>y c:>z d:": "c d | b | a",
		"a:y>x b:x>y c:x>":    "a b c",
		"a:x>x":               "a",
		"a:x>y b:y>x c:>":     "c | a b",
	} {
		var all []*want
		for field := range strings.FieldsSeq(text) {
			name, shares, _ := strings.Cut(field, ":")
			needed, made, _ := strings.Cut(shares, ">")
			all = append(all, &want{name: name, needed: strings.Fields(needed), made: strings.Fields(made)})
		}
		var waves []string
		for _, wave := range wavesOf(all) {
			var called []string
			for _, w := range wave {
				called = append(called, w.name)
			}
			waves = append(waves, strings.Join(called, " "))
		}
		if got := strings.Join(waves, " | "); got != order {
			t.Errorf("%q starts as %q, want %q", text, got, order)
		}
	}
}
