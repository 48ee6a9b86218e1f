package schema

import (
	"fmt"
	"strings"
	"testing"
)

// What one overlay does to every device is told once, and is bounded; what was
// only counted still keeps the fleet from being valid.
func TestDeviceFindingsAreBounded(t *testing.T) {
	const wrong, devices = maxProblems + 50, 3
	var files strings.Builder
	for i := range wrong {
		fmt.Fprintf(&files, "      /opt/%03d: {content: '{{ .vars.missing }}', template: true}\n", i)
	}
	src := repoOf(ruleFleet).with("overlays/all.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Overlay\nmetadata: {name: all}\nspec:\n  selector: {}\n  desired:\n    files:\n"+files.String())
	for i := range devices - 1 {
		id := fmt.Sprintf("more-%d", i)
		src = src.with("devices/"+id+".yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: "+id+", labels: {role: gateway}}\n")
	}
	f := load(t, src)
	text := lines(f.Problems)
	if got := strings.Count(text, ruleTemplateRender); got != maxProblems {
		t.Errorf("%d templates are told, want %d", got, maxProblems)
	}
	if got := strings.Count(text, "50 more problems in the spec of this device"); got != devices || f.Valid() {
		t.Errorf("%d devices say that there is more, want %d; valid %t\n%s", got, devices, f.Valid(), clip2(text))
	}
}

// A few kilobytes of git can hold one wrong document a million times.
func TestProblemsAreBounded(t *testing.T) {
	warning := Problem{File: "a", Message: "odd", Severity: SeverityWarning}
	p := &pass{}
	for range maxListed {
		p.problem(warning)
	}
	p.sayUnlisted()
	if len(p.problems) != maxListed {
		t.Fatalf("%d problems became %d", maxListed, len(p.problems))
	}
	p.problem(warning, warning, Problem{File: "b", Message: "wrong", Severity: SeverityError})
	p.sayUnlisted()
	last := p.problems[len(p.problems)-1]
	if len(p.problems) != maxListed+1 || last.File != "a" || !strings.Contains(last.Message, "2 further problems") {
		t.Errorf("%d are listed, the last is %+v", len(p.problems), last)
	}
	if !hasErrors(p.problems) {
		t.Error("a fleet whose only error is not listed is valid")
	}
}
