package preview

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gitopsd/gitopsd/schema"
)

func words(before, after map[string]any) []string {
	d := &settings{n: 20}
	d.object("", before, after)
	list := []string{}
	for _, f := range d.fields {
		text := f.Words
		if f.Careful != "" {
			text += " (" + f.Careful + ")"
		}
		list = append(list, text)
	}
	return list
}

type tree = map[string]any

// A field that nobody has thought of yet is told in the words that its name
// is made of.
func TestSettingsThatAreNotKnown(t *testing.T) {
	before := tree{"someLimit": 3.0, "gone": "x", "nested": tree{"innerValue": true, "same": 1.0}, "list": []any{"a", "b"},
		"things": []any{tree{"name": "one", "speed": "1h"}, tree{"name": "two"}}}
	after := tree{"someLimit": 4.0, "nested": tree{"innerValue": false, "same": 1.0}, "list": []any{"b"},
		"things": []any{tree{"name": "one", "speed": "2h"}, tree{"name": "three", "speed": "5m"}}, "come": tree{"at": "noon"}}
	want := []string{
		"come at noon, new", "gone x is gone", "list a, b → b", "nested inner value true → false", "some limit 3 → 4",
		"thing one: speed 1h → 2h", "thing two → three",
	}
	if d := cmp.Diff(want, words(before, after)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestSettingsInWords(t *testing.T) {
	wave := func(name string) tree { return tree{"name": name, "selector": tree{"matchLabels": tree{"ring": name}}} }
	for _, c := range []struct {
		before, after tree
		want          []string
	}{
		{tree{}, tree{"enabled": true}, []string{"switched on"}},
		{tree{"enabled": true}, tree{}, []string{"switched off"}},
		{tree{"paused": tree{"reason": "fair"}}, tree{}, []string{`no longer paused, was "fair" (less)`}},
		{tree{"maxInFlight": 2.0}, tree{"maxInFlight": "10%"}, []string{"max in flight 2 → 10% (2 of 20)"}},
		{tree{}, tree{"maxInFlight": "10%"}, []string{"max in flight 1 → 10% (2 of 20) (less)"}},
		{tree{"minAvailable": "51%"}, tree{"minAvailable": 11.0}, []string{"min available 51% (11 of 20) → 11"}},
		{tree{"settle": "90m"}, tree{}, []string{"settle 90m → 0s (less)"}},
		{tree{"waves": []any{wave("a"), wave("b")}}, tree{"waves": []any{wave("b"), wave("a")}}, []string{"order of the waves: a, b → b, a"}},
		{tree{"waves": []any{wave("a")}}, tree{}, []string{"wave a (selector ring=a) is gone (less)"}},
		{tree{"rollbackFrom": []any{"v2"}}, tree{}, []string{"rollback from v2 → none"}},
		{tree{"selector": tree{"matchLabels": tree{"a": "1"}}}, tree{}, []string{"selects a=1 → all devices"}},
		{tree{"pilot": tree{"count": 1.0}}, tree{}, []string{"pilot count 1 is gone (less)"}},
		{tree{"backoff": tree{"base": "1m"}}, tree{"backoff": tree{"base": "1m", "cap": "1h"}}, []string{"backoff cap 24h → 1h (less)"}},
	} {
		if d := cmp.Diff(c.want, words(c.before, c.after)); d != "" {
			t.Errorf("%v → %v: -want +got\n%s", c.before, c.after, d)
		}
	}
}

// TestEverySettingIsSpokenOf fails where a field of a policy is added whose
// default and direction nobody has thought about: give it an entry in spoken.
func TestEverySettingIsSpokenOf(t *testing.T) {
	// What is told entry by entry needs no words of its own.
	lists := map[string]bool{"waves": true, "budgets": true, "windows": true, "freezes": true}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[schema.PolicySpec]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if _, known := spoken[name]; !known && !lists[name] {
			t.Errorf("the field %s has no entry", name)
		}
	}
}
