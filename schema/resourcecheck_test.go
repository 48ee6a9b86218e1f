package schema

import (
	"strings"
	"testing"
)

func TestResources(t *testing.T) {
	for resources, want := range map[string]string{
		`{memory: {minAvailable: 200Mi}, monitors: {a: {of: disk}, b: {of: disk, path: /var, warning: 70, critical: 70}, c: {of: load, warning: 150, critical: 400}}}`: "",
		`{memory: {}}`:                                           ruleMissingField + " /memory",
		`{memory: {minAvailable: 0x10}}`:                         " /memory/minAvailable",
		`{memory: {minAvailable: 999999999999999999G}}`:          ruleForm + " /memory/minAvailable",
		`{monitors: {a: {}}}`:                                    ruleMissingField + " /monitors/a",
		`{monitors: {a: {of: luck}}}`:                            ruleValue + " /monitors/a/of",
		`{monitors: {a: {of: memory, path: /var}}}`:              ruleMonitor + " /monitors/a/path",
		`{monitors: {a: {of: disk, path: var}}}`:                 ruleForm + " /monitors/a/path",
		`{monitors: {a: {of: disk, warning: 90, critical: 80}}}`: ruleMonitor + " /monitors/a/warning",
		`{monitors: {a: {of: memory, critical: 101}}}`:           ruleMonitor + " /monitors/a/critical",
		`{monitors: {a: {of: load, warning: 0}}}`:                ruleRange + " /monitors/a/warning",
		`{monitors: {"a b": {of: load}}}`:                        ruleForm + " /monitors",
	} {
		problems := releaseProblems(t, "{resources: "+resources+"}")
		rule, place, _ := strings.Cut(want, " ")
		switch {
		case want == "" && len(problems) == 0:
		case want != "" && len(problems) == 1 && (rule == "" || problems[0].Rule == rule) && strings.HasPrefix(problems[0].Pointer, "/spec/resources"+place):
		default:
			t.Errorf("%s: %s, want %q", resources, lines(problems), want)
		}
	}
	// A part of a monitor in an overlay, without the rest.
	f := load(t, repoOf(ruleFleet).with("overlays/a.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Overlay\nmetadata: {name: a}\nspec: {desired: {resources: {monitors: {a: {warning: 50}}}}}\n"))
	if len(f.Problems) != 1 || f.Problems[0].Rule != ruleIncomplete {
		t.Errorf("a monitor of nothing: %s", lines(f.Problems))
	}
}
