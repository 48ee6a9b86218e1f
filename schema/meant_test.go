package schema

import (
	"strings"
	"testing"
)

// What a selector that matches nobody probably meant is looked for in the
// labels that there are, the key before the value.
func TestMeantLabels(t *testing.T) {
	for selector, want := range map[string]string{
		"matchLabels: {role: gatewya}":                                   `no device has role: "gatewya"; did you mean "gateway"?`,
		"matchLabels: {rolle: gateway}":                                  `no device has the label "rolle"; did you mean "role"?`,
		"matchExpressions: [{key: role, operator: In, values: [gatew]}]": `no device has role: "gatew"; did you mean "gateway"?`,
		"matchExpressions: [{key: roel, operator: Exists}]":              `no device has the label "roel"; did you mean "role"?`,
		"matchLabels: {role: switch}":                                    "",
		"matchLabels: {colour: blue}":                                    "",
	} {
		src := repoOf(ruleFleet)
		file := "policies/gateways.yaml"
		f := load(t, src.with(file, strings.Replace(src.files[file], "matchLabels: {role: gateway}", selector, 1)))
		got := "no problem"
		for _, p := range f.Problems {
			if p.Rule == ruleNoDevice {
				got = p.Hint
			}
		}
		if got != want {
			t.Errorf("%s: the hint is %q, want %q\n%s", selector, got, want, lines(f.Problems))
		}
	}
}
