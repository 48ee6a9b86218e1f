package schema

import (
	"strings"
	"testing"
)

// The program of the agent comes from a URL or from the repository, and what
// an overlay sets takes the place of what it overlays.
func TestProgramIsRendered(t *testing.T) {
	const (
		sum   = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
		other = "2a22222222222222222222222222222222222222222222222222222222222222"
		byURL = "agent: {version: v1.5.0, url: 'https://{{ .vars.mirror }}/x', sha256: " + sum + "}"
	)
	file := strings.TrimPrefix(PayloadDigest([]byte("a program\n")), "sha256:")
	for _, c := range []struct {
		name, release, overlay string
		want                   AgentProgram
		problem                string
	}{
		{"a URL is a template", byURL, "", AgentProgram{Version: "v1.5.0", URL: "https://dl.example.com/x", SHA256: sum}, ""},
		{"a source", "agent: {version: v1.5.0, source: files/program}", "", AgentProgram{Version: "v1.5.0", Payload: "sha256:" + file}, ""},
		{"a source with its sum", "agent: {version: v1.5.0, source: files/program, sha256: " + file + "}", "", AgentProgram{Version: "v1.5.0", Payload: "sha256:" + file}, ""},
		{"a source with another sum", "agent: {version: v1.5.0, source: files/program, sha256: " + other + "}", "", AgentProgram{}, ruleProgram},
		{"a source over a URL", byURL, "{source: files/program}", AgentProgram{Version: "v1.5.0", Payload: "sha256:" + file}, ""},
		{"a URL over a source", "agent: {version: v1.5.0, source: files/program}", "{url: 'http://b.example.com/y', sha256: " + other + "}", AgentProgram{Version: "v1.5.0", URL: "http://b.example.com/y", SHA256: other}, ""},
		{"removed", byURL, "null", AgentProgram{}, ""},
		{"a part alone", "{}", "{version: v1.6.0}", AgentProgram{}, ruleIncomplete},
		{"no sum", "agent: {version: v1.5.0, url: 'https://a.example.com/x'}", "", AgentProgram{}, ruleIncomplete},
		{"no version", "agent: {source: files/program}", "", AgentProgram{}, ruleIncomplete},
		{"both", "agent: {version: v1.5.0, source: files/program, url: 'https://a.example.com/x', sha256: " + sum + "}", "", AgentProgram{}, ruleContent},
		{"no version at all", "agent: {version: newest, source: files/program}", "", AgentProgram{}, ruleVersion},
		{"a user", "agent: {version: v1.5.0, url: 'https://me:secret@a.example.com/x', sha256: " + sum + "}", "", AgentProgram{}, ruleProgram},
		{"a template that becomes none", strings.Replace(byURL, "https://", "{{ .vars.mirror }}:", 1), "", AgentProgram{}, ruleProgram},
		{"a variable that nobody has", strings.Replace(byURL, "mirror", "miror", 1), "", AgentProgram{}, ruleTemplateRender},
	} {
		repo := repoOf(ruleFleet).
			with("releases/gateways/v1.5.0.yaml", strings.TrimSuffix(ruleRelease, " ")+"\n  "+c.release+"\n").
			with("files/program", "a program\n").
			with("devices/gw-1.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-1, labels: {role: gateway}}\nspec: {vars: {mirror: dl.example.com}}\n")
		if c.overlay != "" {
			repo = repo.with("overlays/a.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Overlay\nmetadata: {name: a}\nspec: {desired: {agent: "+c.overlay+"}}\n")
		}
		f := load(t, repo)
		if c.problem != "" {
			if f.Valid() || !strings.Contains(lines(f.Problems), c.problem) || strings.Contains(lines(f.Problems), "secret") {
				t.Errorf("%s: the problems are %q, want %s", c.name, lines(f.Problems), c.problem)
			}
			continue
		}
		if !f.Valid() {
			t.Errorf("%s: %s", c.name, lines(f.Problems))
			continue
		}
		r := f.Member("gw-1").Rendered
		spec, err := DecodeSpec(r.Spec)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := AgentProgram{}
		if spec.Agent != nil {
			got = *spec.Agent
		}
		if got != c.want || (got.Payload != "") != (len(r.Payloads) == 1) {
			t.Errorf("%s: got %+v with %d payloads, want %+v", c.name, got, len(r.Payloads), c.want)
		}
		if want := got.Version != ""; (strings.Join(r.Needs, " ") == "agent") != want {
			t.Errorf("%s: it needs %q", c.name, r.Needs)
		}
	}
}
