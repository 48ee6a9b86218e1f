package reconcile

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// The tests of this file are named after what has gone wrong with other tools.

// An agent that starts with something to do does it at once; only a try that
// really failed is waited for, and that wait survives the restart.
func TestB71_RestartWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		d.wantOnce(0)
		d.write(busyFile, "milling\n")
		d.assign(1, "v1.0.0", v1)
		for range 3 { // deferred, and no failure
			d.wantOnce(0, "deferred")
		}
		d.remove(busyFile)
		began := time.Now()
		r := d.start()
		for d.control.last().Current.Version != "v1.0.0" && time.Since(began) < time.Hour {
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("after a restart the update took %v", took)
		}
		r.end(t)

		// A failed try, and then restarts all the time.
		full := &fullDisk{path: "/opt/new/deep/file"}
		d.cfg.Step = full.step
		d.assign(2, "v1.1.0", v2(tree{"onDevice": tree{"backoff": tree{"base": "1h"}}}))
		for range 10 {
			r := d.start()
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			r.end(t)
		}
		if n := d.work().Tries; n != 1 {
			t.Errorf("%d tries within 20 minutes of restarts, with a backoff of an hour", n)
		}
		if rep := d.control.last(); rep.Phase != schema.PhaseDegraded || rep.Current.Version != "v1.0.0" {
			t.Errorf("report: %+v", rep)
		}
		// What is newer does not wait for it.
		full.empty.Store(true)
		d.assign(3, "v1.1.1", v2(nil))
		r = d.start()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := d.control.last().Current.Version; got != "v1.1.1" {
			t.Errorf("on %s", got)
		}
		r.end(t)
	})
}

// What is said of a rollback is what is on the disk, in the exit code, the
// summary and the report: back, nothing to go back to, or not back.
func TestB73_WhatIsSaidOfARollbackIsTrue(t *testing.T) {
	bad := hook("afterUpdating", "/bin/sh", "-c", "exit 7")
	t.Run("back", func(t *testing.T) {
		d := onV1(t)
		before := d.snapshot()
		d.assign(2, "v1.1.0", v2(bad))
		d.wantOnce(1, "failed", "exit code 7", "back on v1.0.0")
		if d.snapshot() != before {
			t.Errorf("it says so, but the device is\n%s", d.snapshot())
		}
		r := d.control.last()
		if r.Outcome != schema.OutcomeFailed || r.Current.Version != "v1.0.0" || strings.Contains(r.Reason, "incomplete") || r.Phase != schema.PhaseError {
			t.Errorf("report: %+v", r)
		}
		// It was said once, and is no failure of later runs.
		d.wantOnce(0, "on v1.0.0", "v1.1.0 ended as failed")
	})
	t.Run("not back", func(t *testing.T) {
		d := onV1(t)
		stuck := true
		d.cfg.Step = stuckFile(d, "/etc/edge/edge.conf", &stuck)
		d.assign(2, "v1.1.0", v2(bad))
		res := d.wantOnce(1, "rollback incomplete", "/etc/edge/edge.conf")
		if strings.Contains(res.Summary, "back on v1.0.0") || d.content("/etc/edge/edge.conf") != "version=2\n" {
			t.Errorf("%q, but the file is %q", res.Summary, d.content("/etc/edge/edge.conf"))
		}
		if r := d.control.last(); r.Phase != schema.PhaseError || !strings.HasPrefix(r.Reason, "rollback incomplete: ") || !strings.Contains(r.Reason, "/etc/edge/edge.conf") {
			t.Errorf("report: %+v", r)
		}
	})
}

// stuckFile lets a file be written once, by the update, and never again while
// it is stuck, as chattr +i does.
func stuckFile(d *device, path string, stuck *bool) func(op, p string) error {
	return func(op, p string) error {
		if op == "rename" && p == path && *stuck && d.content(path) == "version=2\n" {
			return syscall.EPERM
		}
		return nil
	}
}

// A rollback that cannot restore one file restores the others, says which one
// and why, is no failure of its own that would be rolled back again, keeps
// trying, and ends well by itself when the cause is gone.
func TestB74_FileThatCannotBeRestored(t *testing.T) {
	d := onV1(t)
	before := d.snapshot()
	stuck := true
	d.cfg.Step = stuckFile(d, "/etc/edge/edge.conf", &stuck)
	d.assign(2, "v1.1.0", v2(hook("afterUpdating", "/bin/sh", "-c", `echo ran >> "$GITOPSD_ROOT/test-log"; exit 1`)))
	for i := range 5 {
		d.wantOnce(1, "rollback incomplete", "/etc/edge/edge.conf")
		r := d.control.last()
		if r.Phase != schema.PhaseError || r.Outcome != schema.OutcomeFailed || r.Attempt != 2 || !strings.Contains(r.Reason, "operation not permitted") {
			t.Fatalf("run %d: report %+v", i, r)
		}
	}
	if d.content("/etc/edge/only-1") != "one\n" || d.content("/etc/edge/only-2") != "" || d.content("/opt/new/deep/file") != "" {
		t.Errorf("the rest was not put back:\n%s", d.snapshot())
	}
	if got := d.content("/test-log"); got != "ran\n" {
		t.Errorf("the hook ran: %q", got)
	}
	// A newer spec does not begin on a device that is half of another one
	// without taking all of it along.
	stuck = false
	d.wantOnce(1, "failed", "back on v1.0.0")
	os.Remove(d.host("/test-log"))
	if d.snapshot() != before {
		t.Errorf("not back as it was:\n%s", d.snapshot())
	}
	d.wantOnce(0, "v1.1.0 ended as failed")
	d.assign(3, "v1.1.1", v2(nil))
	d.wantOnce(0, "updated from v1.0.0 to v1.1.1")
}

// Hooks run once for each real change: not on quiet runs, not for drift, not
// after restarts, and not again for what was already done.
func TestB99_NothingChangedNothingRuns(t *testing.T) {
	log := func(word string) []string {
		return []string{"/bin/sh", "-c", "echo " + word + ` >> "$GITOPSD_ROOT/test-log"`}
	}
	hooks := func(version string) tree {
		spec := filesSpec(map[string]string{"/etc/edge/edge.conf": version + "\n"}, nil)
		points := tree{}
		for _, p := range []string{"beforeUpdating", "afterUpdating"} {
			argv := log(p + "-" + version)
			points[p] = tree{"it": tree{"run": []any{argv[0], argv[1], argv[2]}}}
		}
		spec["hooks"] = points
		return spec
	}
	d := onV1(t)
	d.assign(2, "v1.1.0", hooks("a"))
	a := d.agent()
	for range 10 {
		if _, err := a.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	a.Close()
	for range 5 {
		d.once()
	}
	d.write("/etc/edge/edge.conf", "by hand\n") // drift is repaired without them
	d.once()
	d.assign(3, "v1.1.0", hooks("a")) // a new attempt of what it already is
	d.once()
	if got := d.content("/test-log"); got != "beforeUpdating-a\nafterUpdating-a\n" {
		t.Errorf("hooks ran:\n%s", got)
	}
	d.assign(4, "v1.2.0", hooks("b"))
	for range 3 {
		d.once()
	}
	if got := d.content("/test-log"); got != "beforeUpdating-a\nafterUpdating-a\nbeforeUpdating-b\nafterUpdating-b\n" {
		t.Errorf("hooks ran:\n%s", got)
	}
}

// A spec that loses its files in one of the ways in which a list can be empty
// takes away exactly what was ours; lost state is never read as such a spec.
func TestB90_EmptyIsNotUnknown(t *testing.T) {
	for name, spec := range map[string]tree{"no files": {"directories": tree{"/srv/x": tree{}}}, "empty map": {"files": tree{}}, "nothing": {}} {
		t.Run(name, func(t *testing.T) {
			d := onV1(t)
			d.write("/etc/edge/users-own", "mine\n")
			d.assign(2, "v1.1.0", spec)
			d.wantOnce(0, "updated")
			if d.content("/etc/edge/edge.conf") != "from the factory\n" || d.content("/etc/edge/only-1") != "" || d.content("/etc/edge/users-own") != "mine\n" {
				t.Errorf("the device is\n%s", d.snapshot())
			}
		})
	}
	for _, file := range []string{currentFile, desiredFile, attemptsFile, installFile} {
		for _, content := range []string{"", "{}", `{"spec":null}`, `{"spec":{}}`, "[]"} {
			d := onV1(t)
			before := d.snapshot()
			d.write(file, content)
			for range 2 {
				d.once()
			}
			if got := d.snapshot(); got != before && content != `{"spec":{}}` {
				t.Errorf("%s = %q: the device is\n%s", file, content, got)
			}
		}
	}
}
