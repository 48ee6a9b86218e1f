package reconcile

import (
	"os"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// sayHook appends a word to the log; with paths, only when one of them changed.
func sayHook(word string, paths ...string) tree {
	h := tree{"run": []any{"/bin/sh", "-c", `echo ` + word + ` >>"$GITOPSD_ROOT/test-log"`}}
	if len(paths) > 0 {
		list := make([]any, len(paths))
		for i, p := range paths {
			list[i] = p
		}
		h["if"] = tree{"changed": list}
	}
	return h
}

func TestHooksThatRunOnlyForWhatChanged(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v1.1.0", v2(tree{"hooks": tree{
		"beforeUpdating": tree{"a": sayHook("before-conf", "/etc/edge/edge.conf"), "b": sayHook("before-other", "/srv")},
		"afterUpdating": tree{
			"a": sayHook("file", "/etc/edge/edge.conf"), "b": sayHook("folder", "/opt/new"), "c": sayHook("gone", "/srv", "/etc/edge/only-1"),
			"d": sayHook("all", "/"), "e": sayHook("always"), "f": sayHook("other", "/srv", "/etc/edg", "/etc/edge/edge.conf/x"),
		},
	}}))
	d.wantOnce(0, "updated")
	if got := d.content("/test-log"); got != "before-conf\nfile\nfolder\ngone\nall\nalways\n" {
		t.Errorf("ran: %q", got)
	}
	d.remove("/test-log")
	d.assign(3, "v1.2.0", v2(tree{
		"hooks":       tree{"beforeUpdating": tree{"a": sayHook("before", "/etc")}, "afterUpdating": tree{"a": sayHook("after", "/etc"), "b": sayHook("folder", "/srv/new")}},
		"directories": tree{"/srv/new": tree{}},
	}))
	d.wantOnce(0, "updated")
	if got := d.content("/test-log"); got != "folder\n" {
		t.Errorf("where only a directory is new, ran: %q", got)
	}
}

func TestConditionsHoldOnTheWayBack(t *testing.T) {
	d := onV1(t)
	hooks := tree{"afterUpdating": tree{"a": sayHook("back", "/etc/edge/only-2"), "b": sayHook("other", "/srv")}}
	spec := filesSpec(map[string]string{"/etc/edge/edge.conf": "version=1\n", "/etc/edge/only-1": "one\n"}, tree{"hooks": hooks})
	d.assign(2, "v1.0.1", spec)
	d.wantOnce(0, "updated")
	d.assign(3, "v1.1.0", v2(hook("afterUpdating", "/bin/false")))
	d.wantOnce(1, "back on v1.0.1")
	if got := d.content("/test-log"); got != "back\n" {
		t.Errorf("ran: %q", got)
	}
}

// Wherever power goes, the hook that waits for a change runs.
func TestConditionSurvivesCrashes(t *testing.T) {
	crashEverywhere(t, func(t *testing.T) *device {
		d := onV1(t)
		d.assign(2, "v1.1.0", v2(tree{"hooks": tree{"afterUpdating": tree{"a": sayHook("ran", "/opt/new/deep")}}}))
		return d
	}, func(t *testing.T, d *device, where string) {
		d.settle()
		if got := d.content("/test-log"); !strings.HasPrefix(got, "ran\n") || d.content("/opt/new/deep/file") == "" {
			t.Errorf("crashed at %s: ran %q", where, got)
		}
	})
}

func TestHooksOfTheDeviceItself(t *testing.T) {
	d := onV1(t)
	local := func(p, word string) { d.write(p, "run: [/bin/sh, -c, 'echo "+word+" >>\"$GITOPSD_ROOT/test-log\"']\n") }
	local("/usr/lib/gitopsd/hooks.d/afterUpdating/10-b.yaml", "vendor-10")
	local("/usr/lib/gitopsd/hooks.d/afterUpdating/20-a.yaml", "vendor-20")
	local("/etc/gitopsd/hooks.d/afterUpdating/20-a.yaml", "own-20")
	local("/etc/gitopsd/hooks.d/afterUpdating/05.yaml", "own-05")
	local("/etc/gitopsd/hooks.d/afterUpdating/README", "no")
	local("/etc/gitopsd/hooks.d/beforeUpdating/ask.yaml", "ask")
	local("/etc/gitopsd/hooks.d/afterRebooting/boot.yaml", "boot")
	d.assign(2, "v1.1.0", v2(tree{"hooks": tree{"beforeUpdating": tree{"z": sayHook("spec-before")}, "afterUpdating": tree{"z": sayHook("spec")}}}))
	d.wantOnce(0, "updated")
	if got := d.content("/test-log"); got != "spec-before\nask\nspec\nown-05\nvendor-10\nown-20\n" {
		t.Errorf("ran: %q", got)
	}
	d.remove("/test-log")
	d.assign(3, "v1.2.0", v1)
	d.wantOnce(0, "updated")
	d.wantOnce(0)
	if got := d.content("/test-log"); got != "ask\nown-05\nvendor-10\nown-20\n" {
		t.Errorf("with a spec without hooks, ran: %q", got)
	}
}

func TestBrokenHookOfTheDeviceItselfIsNotPassedOver(t *testing.T) {
	d := onV1(t)
	p := "/etc/gitopsd/hooks.d/afterRebooting/light.yaml"
	d.write(p, "run: [/bin/true]\ntimeuot: 3s\n")
	before := d.snapshot()
	d.assign(2, "v1.1.0", v2(nil))
	d.wantOnce(1, p, "line 2", "timeuot", "did you mean timeout")
	if r := d.control.last(); r.Phase != schema.PhaseError || r.Outcome != schema.OutcomeRefused || r.Failures[0].Element != p {
		t.Errorf("reported %+v", r)
	}
	if after := d.snapshot(); after != before {
		t.Errorf("changed:\n%s", after)
	}
	d.write(p, "run: [/bin/true]\ntimeout: 3s\n")
	d.assign(3, "v1.1.0", v2(nil))
	d.wantOnce(0, "updated")

	// It breaks while an update goes on: back, and there without it.
	d.assign(4, "v1.2.0", filesSpec(map[string]string{"/etc/x": "x"}, hook("afterUpdating", "/bin/sh", "-c", `echo '[' >"$GITOPSD_ROOT`+p+`"; exit 1`)))
	d.wantOnce(1, "back on v1.1.0")
	if _, err := os.Stat(d.host("/etc/x")); err == nil {
		t.Error("/etc/x is still there")
	}
}

// A device's own hook that fails counts as one of the spec.
func TestHookOfTheDeviceItselfFails(t *testing.T) {
	d := onV1(t)
	d.write("/usr/lib/gitopsd/hooks.d/beforeUpdating/ask.yaml", "run: [/bin/sh, -c, 'exit 75']\n")
	d.assign(2, "v1.1.0", v2(nil))
	d.wantOnce(0)
	if r := d.control.last(); r.Phase != schema.PhaseWaiting || !strings.Contains(r.Reason, "ask.yaml") {
		t.Errorf("%s: %s", r.Phase, r.Reason)
	}
	d.write("/etc/gitopsd/hooks.d/beforeUpdating/ask.yaml", "run: [/bin/sh, -c, 'exit 0']\n")
	d.write("/etc/gitopsd/hooks.d/afterUpdating/check.yaml", "run: [/bin/sh, -c, '[ \"$GITOPSD_ROLLING_BACK\" = 1 ]']\n")
	d.wantOnce(1, "afterUpdating/check.yaml", "back on v1.0.0")
}
