package schema

import (
	"strings"
	"testing"
	"time"
)

func TestDecodeHook(t *testing.T) {
	h, problems := DecodeHook("x.yaml", []byte("# asks the line\nrun: [/usr/bin/line-idle, -q]\ntimeout: 30s\nif: {changed: [/etc/edge]}\n"))
	if len(problems) != 0 || h == nil || h.Run[1] != "-q" || time.Duration(*h.Timeout) != 30*time.Second || h.If.Changed[0] != "/etc/edge" {
		t.Fatalf("%+v: %s", h, lines(problems))
	}
	for text, want := range map[string]string{
		"":                                       "x.yaml:1",
		"run: [a]\n---\nrun: [b]\n":              "x.yaml:2",
		"run: [a]\nrnu: [b]\n":                   "x.yaml:2",
		"timeout: 30s\n":                         "x.yaml:1",
		"run: []\n":                              "x.yaml:1",
		"run: [a]\ntimeout: soon\n":              "x.yaml:2",
		"run: [a]\norder: &x 1\nenv: *x\n":       "x.yaml:2",
		"run: [a]\nenv:\n  GITOPSD_TO: v9\n":     "x.yaml:3",
		"run: [a]\nif: {changed: [/etc/../x]}\n": "x.yaml:2",
		"- run: [a]\n":                           "x.yaml:1",
		"run: [a]\norder: 010\n":                 "x.yaml:2",
	} {
		if h, problems := DecodeHook("x.yaml", []byte(text)); h != nil || !strings.HasPrefix(lines(problems), want) {
			t.Errorf("%q: %+v, %s", text, h, lines(problems))
		}
	}
}
