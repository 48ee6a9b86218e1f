package schema

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

const ruleFleet = `
-- policies/gateways.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Policy
metadata: {name: gateways}
spec: {enabled: true, selector: {matchLabels: {role: gateway}}, targetVersion: v1.5.0}
-- releases/gateways/v1.5.0.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Release
metadata: {name: v1.5.0}
spec: {files: {/etc/motd: {content: hello}}}
-- devices/gw-1.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Device
metadata: {name: gw-1, labels: {role: gateway}}
`

// bigExamples are the ones that rules.yaml only describes.
func bigExamples() map[string][2]*fakeSource {
	base := repoOf(ruleFleet)
	device := func(spec string) string {
		return "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-1, labels: {role: gateway}}\nspec: " + spec + "\n"
	}
	numbered := func(n int, format string) *fakeSource {
		s := base
		s = s.with("devices/gw-1.yaml", device("{}"))
		for i := range n {
			id := fmt.Sprintf("n-%d", i)
			s.files[fmt.Sprintf(format, i%2, id)] = strings.ReplaceAll(device("{}"), "gw-1", id)
		}
		return s
	}
	unknown := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "x%d: 1, ", i)
		}
		return device("{" + strings.TrimSuffix(b.String(), ", ") + "}")
	}
	release := func(source string, template bool) string {
		return fmt.Sprintf("apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.5.0}\nspec: {files: {/opt/x: {source: %s, template: %t}}}\n", source, template)
	}
	payload := func(size int, template bool) *fakeSource {
		return base.with("releases/gateways/v1.5.0.yaml", release("files/x", template)).with("files/x", strings.Repeat("x", size))
	}
	// Each document is small enough, what they are merged to is not.
	specOf := func(size int) *fakeSource {
		text := strings.Repeat("x", size/2)
		return base.with("releases/gateways/v1.5.0.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.5.0}\nspec: {files: {/opt/x: {content: "+text+"}, /opt/y: {content: "+text+"}}}\n").
			with("overlays/a.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Overlay\nmetadata: {name: a}\nspec: {desired: {files: {/opt/z: {content: "+text+"}}}}\n")
	}
	return map[string][2]*fakeSource{
		ruleTooLarge:     {base.with("devices/gw-1.yaml", device("{vars: {a: "+strings.Repeat("x", 2<<20)+"}}")), payload(2<<20, false)},
		ruleTooDeep:      {base.with("devices/gw-1.yaml", device(strings.Repeat("{a: ", 100)+"1"+strings.Repeat("}", 100))), base},
		ruleTooMany:      {base.with("devices/gw-1.yaml", unknown(300)), base},
		ruleSourceSize:   {payload(maxPayload+1, false), payload(10, false)},
		ruleTemplateSize: {payload(2<<20, true), payload(2<<20, false)},
		ruleSpecSize:     {specOf(900 << 10), specOf(100 << 10)},
		ruleBigFolder:    {numbered(1001, "devices/all/%[2]s.yaml"), numbered(1001, "devices/%d/%s.yaml")},
		ruleBigPayload:   {payload(2<<20, false), payload(1<<20, false)},
		ruleBigFleet:     {numbered(5000, "devices/%d/%s.yaml"), numbered(4999, "devices/%d/%s.yaml")},
	}
}

// exampleRepo puts the files of an example over the small fleet.
func exampleRepo(text string) *fakeSource {
	s := repoOf(ruleFleet)
	for name, content := range repoOf("\n" + text).files {
		path, mode, _ := strings.Cut(name, " ")
		if mode == "(symlink)" {
			s.modes[path] = ModeSymlink
		}
		s.files[path] = content
	}
	return s
}

// Every rule has one fleet that it finds something in, and one that it does
// not, in which nothing else is wrong either.
func TestRulesExamples(t *testing.T) {
	big := bigExamples()
	for _, r := range Rules() {
		if r.Advice {
			continue // package advice has a test like this one
		}
		t.Run(r.Name, func(t *testing.T) {
			wrong, right := big[r.Name][0], big[r.Name][1]
			if wrong == nil {
				if strings.HasPrefix(r.Wrong, "<") {
					t.Fatal("the example is only described, and no fleet is made for it here")
				}
				wrong, right = exampleRepo(r.Wrong), exampleRepo(r.Right)
			}
			found := false
			problems := load(t, wrong).Problems
			for _, p := range problems {
				if p.Rule == r.Name {
					found = true
					if p.Severity != r.Severity {
						t.Errorf("severity %s, the rule says %s", p.Severity, r.Severity)
					}
				}
				if strings.ContainsAny(p.Message+p.Hint, "\n\r") || p.Message == "" || p.File == "" {
					t.Errorf("not a problem to show: %+v", p)
				}
			}
			if !found {
				t.Errorf("not found in the wrong example:\n%s", clip2(lines(problems)))
			}
			t.Logf("%s", clip2(lines(problems)))
			if f := load(t, right); !f.Valid() || strings.Contains(lines(f.Problems), " "+r.Name+": ") {
				t.Errorf("the right example has problems:\n%s", clip2(lines(f.Problems)))
			}
		})
	}
}

func clip2(s string) string { return s[:min(len(s), 1000)] }

// The rule names in the code and in the list are the same.
func TestRulesAreListed(t *testing.T) {
	code, err := os.ReadFile("rules.go")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, r := range Rules() {
		if r.Advice {
			continue
		}
		if listed[r.Name] {
			t.Errorf("rule %s is listed twice", r.Name)
		}
		listed[r.Name] = true
	}
	names := regexp.MustCompile(`(?m)^\trule\w+ += "([a-z0-9-]+)"$`).FindAllStringSubmatch(string(code), -1)
	if len(names) != len(listed) {
		t.Errorf("%d names in the code, %d listed", len(names), len(listed))
	}
	for _, n := range names {
		if !listed[n[1]] {
			t.Errorf("rule %s is not listed", n[1])
		}
	}
}
