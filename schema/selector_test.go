package schema

import (
	"strings"
	"testing"
)

func TestSelectorMatches(t *testing.T) {
	labels := map[string]string{"site": "berlin", "ring": "canary", "empty": ""}
	expr := func(key, op string, values ...string) *Selector {
		return &Selector{MatchExpressions: []Requirement{{Key: key, Operator: op, Values: values}}}
	}
	cases := []struct {
		name string
		s    *Selector
		want bool
	}{
		{"nil", nil, true},
		{"empty", &Selector{}, true},
		{"equal", &Selector{MatchLabels: map[string]string{"site": "berlin", "ring": "canary"}}, true},
		{"one differs", &Selector{MatchLabels: map[string]string{"site": "berlin", "ring": "stable"}}, false},
		{"absent", &Selector{MatchLabels: map[string]string{"x": ""}}, false},
		{"empty value", &Selector{MatchLabels: map[string]string{"empty": ""}}, true},
		{"In", expr("site", OpIn, "oslo", "berlin"), true},
		{"In, other", expr("site", OpIn, "oslo"), false},
		{"In, absent", expr("x", OpIn, "", "y"), false},
		{"NotIn", expr("site", OpNotIn, "oslo"), true},
		{"NotIn, same", expr("site", OpNotIn, "berlin"), false},
		{"NotIn, absent", expr("x", OpNotIn, "berlin"), true},
		{"Exists", expr("empty", OpExists), true},
		{"Exists, absent", expr("x", OpExists), false},
		{"DoesNotExist", expr("x", OpDoesNotExist), true},
		{"DoesNotExist, there", expr("empty", OpDoesNotExist), false},
		{"unknown operator", expr("site", "Near", "berlin"), false},
		{"both kinds", &Selector{MatchLabels: map[string]string{"site": "berlin"}, MatchExpressions: []Requirement{{Key: "ring", Operator: OpNotIn, Values: []string{"canary"}}}}, false},
	}
	for _, c := range cases {
		if got := c.s.Matches(labels); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// FuzzSelector: In and NotIn, Exists and DoesNotExist exclude each other for
// whatever labels.
func FuzzSelector(f *testing.F) {
	f.Add("site", "berlin", "site", "berlin,oslo")
	f.Add("a", "", "a", "")
	f.Add("a", "x", "b", "x")
	f.Fuzz(func(t *testing.T, key, value, asked, values string) {
		labels := map[string]string{key: value}
		one := func(op string) bool {
			return (&Selector{MatchExpressions: []Requirement{{Key: asked, Operator: op, Values: strings.Split(values, ",")}}}).Matches(labels)
		}
		if one(OpIn) == one(OpNotIn) || one(OpExists) == one(OpDoesNotExist) || one(OpIn) && !one(OpExists) {
			t.Errorf("labels %q, asked for %q in %q: contradiction", labels, asked, values)
		}
	})
}
