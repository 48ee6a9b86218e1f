package schema

import (
	"strings"
	"testing"
)

// A field that is misspelled hides nothing that is wrong elsewhere in a spec.
func TestUnformedDocumentsAreLookedAt(t *testing.T) {
	problems := releaseProblems(t, `
  units:
    a.service: {content: "[Servce]\n"}
    b.service: {contnt: x, dropIns: {x.conf: {content: y}}}
  files: {/proc/a: {content: x}, /etc/b: {content: x, mode: 0644}, /sys/c: {content: x, mdoe: "0644"}}
  speed: 1`)
	got := lines(problems)
	for _, want := range []string{"a.service/content error unit-syntax", "b.service/contnt error unknown-field", "~1proc~1a error device-path-protected", "~1etc~1b/mode error wrong-type", "/spec/speed error unknown-field"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, not := range []string{"unit-name", "~1sys~1c error"} {
		if strings.Contains(got, not) {
			t.Errorf("what is near another problem is told of, %q in\n%s", not, got)
		}
	}
	for _, p := range problems {
		if p.Hides() != (p.Rule == ruleUnknownField || p.Rule == ruleType) {
			t.Errorf("hides: %v for %+v", p.Hides(), p)
		}
	}
}
