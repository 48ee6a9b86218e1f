package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// However bad a drop-in is, the configuration without it is what is left.
func TestHostileDropIns(t *testing.T) {
	const head = "apiVersion: gitopsd.dev/v1alpha1\nkind: AgentConfig\nspec: "
	for name, text := range map[string]string{
		"empty": "", "null": "null\n", "list": "[]\n", "no spec": "apiVersion: gitopsd.dev/v1alpha1\nkind: AgentConfig\n",
		"spec is null": head + "null\n", "spec is a list": head + "[]\n", "twice": head + "{device: d2, device: d3}\n",
		"two documents": head + "{device: d2}\n---\n" + head + "{device: d3}\n",
		"bomb":          "a: &a [x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\n" + head + "{device: *c}\n",
		"deep":          head + strings.Repeat("{os: ", 20000) + strings.Repeat("}", 20000) + "\n",
		"large":         head + "{device: d2}\n#" + strings.Repeat("x", configLimit),
		"no text":       "\x00\xff\xfe",
		"no device":     head + "{device: null}\n",
		"bad device":    head + "{device: Bad_Id}\n",
		"pipe":          "",
	} {
		dir := t.TempDir()
		write := func(name, text string) {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		write("agent.yaml", head+"{device: d1, repo: {url: /fleet.git}}\n")
		write("agent.d/10-good.yaml", head+"{interval: 5m}\n")
		bad := filepath.Join(dir, "agent.d/20-bad.yaml")
		if write("agent.d/20-bad.yaml", text); name == "pipe" {
			if err := errors.Join(os.Remove(bad), syscall.Mkfifo(bad, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		f := &agentFiles{file: filepath.Join(dir, "agent.yaml"), asked: true, root: dir, judge: func(s *schema.AgentSpec) []error { return agentMistakes(*s) }}
		if err := f.load(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if f.spec.Device != "d1" || f.spec.Interval.String() != "5m" {
			t.Errorf("%s: device %q, interval %s", name, f.spec.Device, f.spec.Interval)
		}
		if name == "pipe" { // below a file is written
			if err := os.Remove(bad); err != nil {
				t.Fatal(err)
			}
		}
		for again, want := range map[string]string{text: "20-bad.yaml is bad, and left out: ", head + "{}\n": "was mended since the agent started: its next start reads it"} {
			write("agent.d/20-bad.yaml", again)
			if now := f.now(); len(now) != 1 || !strings.Contains(now[0], want) {
				t.Errorf("%s: now it says %q, want %q", name, now, want)
			}
		}
		if err := os.Remove(bad); err != nil {
			t.Fatal(err)
		}
		if now := f.now(); len(now) > 0 {
			t.Errorf("%s: with nothing bad any more it says %q", name, now)
		}
		if len(f.warnings) != 1 || !strings.Contains(f.warnings[0], "20-bad.yaml is bad, and left out: ") {
			t.Errorf("%s: warnings %q", name, f.warnings)
		}
	}
}
