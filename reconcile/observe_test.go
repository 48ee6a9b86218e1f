package reconcile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gitopsd/gitopsd/schema"
)

var observing = tree{"onDevice": tree{"mode": "observe"}}

// touched is what on the device has changed since before, the agent's own
// records aside.
func (d *device) touched(before string) string {
	d.t.Helper()
	if after := d.snapshot() + d.managed(); after != before {
		return fmt.Sprintf("it was\n%s\nand is\n%s", before, after)
	}
	return ""
}

// managed is what the controllers remember, with their copies.
func (d *device) managed() string {
	var names []string
	all, _ := filepath.Glob(d.host(stateDir) + "/*")
	for _, p := range all {
		switch name := filepath.Base(p); name {
		case "install.json", "attempts.json", "observed.json", "desired.json", "ballast", "lock", "payload":
		default:
			data, _ := os.ReadFile(p)
			names = append(names, name+" "+string(data))
		}
	}
	return strings.Join(names, "\n")
}

func toldOf(r schema.Report) []string {
	list := []string{}
	if r.WouldChange == nil {
		return nil
	}
	for _, d := range r.WouldChange.Differences {
		list = append(list, strings.TrimSpace(d.Do+" "+d.Name+" "+d.Detail))
	}
	return list
}

func TestObserve_NothingIsTouched(t *testing.T) {
	d := newDevice(t)
	d.write("/etc/edge/edge.conf", "from the factory\n")
	d.write("/etc/edge/only-2", "two\n")
	d.wantOnce(0)
	before := d.snapshot() + d.managed()
	spec := v2(tree{
		"onDevice": observing["onDevice"],
		"hooks": tree{
			"beforeUpdating": tree{"ask": tree{"run": []any{"touch", "asked"}}},
			"afterUpdating":  tree{"do": tree{"run": []any{"touch", "done"}}},
		},
		"requires": tree{"commands": []any{"no-such-program"}},
	})
	d.assign(1, "v1.1.0", spec)
	d.wantOnce(0, "compared with v1.1.0, and changed nothing: 3 things would change")
	if diff := d.touched(before); diff != "" {
		t.Error(diff)
	}
	r := d.control.last()
	if r.Outcome != schema.OutcomeObserved || r.Begun || r.Phase != schema.PhaseObserving || r.Attempt != 1 || r.Reason != "3 things would change" || r.Current.Version != "v0.0.0" {
		t.Errorf("report: %+v", r)
	}
	want := []string{"cannot  requires: the device does not have: command no-such-program", "change /etc/edge/edge.conf", "create /opt/new/deep/file mode 0644"}
	if got := toldOf(r); r.WouldChange == nil || r.WouldChange.Version != "v1.1.0" || !slices.Equal(got, want) {
		t.Errorf("would change %q, want %q", got, want)
	}
	if strings.Contains(d.control.phases(), "Starting") {
		t.Errorf("a start was announced: %s", d.control.phases())
	}
	d.wantOnce(0, "v1.1.0 ended as observed: 3 things would change")

	// What the device does by itself is seen. What it is told to do is an update
	// like any other.
	d.write("/etc/edge/edge.conf", "version=2\n")
	d.wantOnce(0)
	if r := d.control.last(); r.WouldChange.Count != 2 || r.Reason != "3 things would change" {
		t.Errorf("after a change: %+v, %s", r.WouldChange, r.Reason)
	}
	d.assign(2, "v1.1.0", v2(nil))
	d.wantOnce(0, "updated from v0.0.0 to v1.1.0")
	if r := d.control.last(); r.WouldChange != nil || r.Phase != schema.PhaseUpdated || d.content(observedFile) != "" {
		t.Errorf("after the update: %+v", r)
	}
}

// A device that was managed is left as it is: what its spec before had is
// neither repaired nor removed.
func TestObserve_WhatWasManagedStays(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v1.1.0", v2(observing))
	d.wantOnce(0, "compared")
	d.write("/etc/edge/edge.conf", "by hand\n")
	d.remove("/etc/edge/only-1")
	before := d.snapshot() + d.managed()
	d.wantOnce(0)
	a := d.agent()
	a.repair(t.Context())
	a.Close()
	if diff := d.touched(before); diff != "" {
		t.Error(diff)
	}
	if r := d.control.last(); r.Current.Version != "v1.0.0" || len(r.Drift) != 0 || !slices.Contains(toldOf(r), "change /etc/edge/edge.conf") {
		t.Errorf("report: %+v %q", r, toldOf(r))
	}

	// Back to what it ran before is an update, not taken for granted.
	d.assign(3, "v1.0.0", v1)
	d.wantOnce(0, "updated to a new configuration of v1.0.0")
	if d.content("/etc/edge/edge.conf") != "version=1\n" || d.content("/etc/edge/only-1") != "one\n" {
		t.Errorf("the device is\n%s", d.snapshot())
	}
	if !strings.Contains(d.control.phases(), "Starting") {
		t.Error("no start was announced")
	}
}

// What may not begin leaves a device observing; one that began and came back is
// looked after again.
func TestObserve_UntilSomethingBegins(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v1.1.0", v2(observing))
	d.wantOnce(0, "compared")
	d.assign(3, "v1.2.0", tree{"requires": tree{"commands": []any{"no-such-program"}}})
	d.wantOnce(1, "refused")
	d.write("/etc/edge/edge.conf", "by hand\n")
	d.recall(4)
	d.wantOnce(0)
	if r := d.control.last(); d.content("/etc/edge/edge.conf") != "by hand\n" || r.WouldChange == nil {
		t.Errorf("edge.conf is %q, report %+v", d.content("/etc/edge/edge.conf"), r)
	}
	d.assign(5, "v1.3.0", hook("afterUpdating", "/bin/false"))
	d.wantOnce(1, "back on v1.0.0")
	d.write("/etc/edge/only-1", "by hand\n")
	d.wantOnce(0)
	if d.content("/etc/edge/only-1") != "one\n" || d.control.last().WouldChange != nil {
		t.Errorf("the device is\n%s", d.snapshot())
	}
}

func TestObserve_BusyIsNotDisturbed(t *testing.T) {
	d := onV1(t)
	d.write(busyFile, "milling\n")
	d.assign(2, "v1.1.0", v2(observing))
	d.wantOnce(0, "deferred")
	d.remove(busyFile)
	d.wantOnce(0, "compared")
}

// Whatever an agent does not know of a mode, it must not apply the spec.
func TestObserve_UnknownModeIsRefused(t *testing.T) {
	d := onV1(t)
	before := d.snapshot()
	d.assign(2, "v1.1.0", v2(tree{"onDevice": tree{"mode": "rehearse"}}))
	d.wantOnce(1, "refused", "onDevice.rehearse")
	if d.snapshot() != before {
		t.Error("the device has changed")
	}
	if !slices.Contains(Capabilities(""), schema.NeedsObserve) {
		t.Error("the agent does not say that it observes")
	}
}

func TestObserve_ReportIsBounded(t *testing.T) {
	files := map[string]string{}
	for i := range 3 * maxDifferences {
		files[fmt.Sprintf("/etc/many/%03d", i)] = "x"
	}
	d := onV1(t)
	d.assign(2, "v1.1.0", filesSpec(files, observing))
	d.wantOnce(0, "compared")
	w := d.control.last().WouldChange
	if w.Count < len(files) || len(w.Differences) != maxDifferences {
		t.Errorf("%d of %d are told", len(w.Differences), w.Count)
	}
}

// Killed anywhere it ends observing, with nothing touched; state that is lost
// does not make it look after anything.
func TestObserve_CrashAtEveryStep(t *testing.T) {
	crashEverywhere(t, func(t *testing.T) *device {
		d := onV1(t)
		d.write("/etc/edge/edge.conf", "by hand\n")
		d.write(busyFile, "") // nothing is repaired before it is compared
		d.assign(2, "v1.1.0", v2(observing))
		d.remove(busyFile)
		return d
	}, func(t *testing.T, d *device, where string) {
		d.wantOnce(0)
		r := d.control.last()
		if r.Outcome != schema.OutcomeObserved || r.WouldChange == nil || d.content(desiredFile) != "" {
			t.Errorf("report: %+v", r)
		}
		if d.content("/etc/edge/edge.conf") != "by hand\n" || d.content("/etc/edge/only-2") != "" {
			t.Errorf("the device is\n%s", d.snapshot())
		}
	})
}

func TestObserve_LostState(t *testing.T) {
	for _, file := range []string{attemptsFile, observedFile, installFile} {
		d := onV1(t)
		d.assign(2, "v1.1.0", v2(observing))
		d.wantOnce(0, "compared")
		d.write("/etc/edge/edge.conf", "by hand\n")
		d.write(file, "{")
		d.once()
		d.once()
		if d.content("/etc/edge/edge.conf") != "by hand\n" {
			t.Errorf("%s: what was managed before was repaired", file)
		}
	}
}

func TestObserve_Compare(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v1.1.0", v2(observing))
	d.wantOnce(0, "compared")
	v, err := OpenView(d.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	c, err := v.Compare(t.Context(), false, false)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range c.Changes {
		names = append(names, one.Do+" "+one.Name)
	}
	if !c.Observed || c.Desired || c.To.Version != "v1.1.0" || !slices.Contains(names, "remove /etc/edge/only-1") || !slices.Contains(names, "create /etc/edge/only-2") {
		t.Errorf("compared %+v: %q", c.To, names)
	}
	if c, err := v.Compare(t.Context(), true, false); err != nil || c.Observed || c.To.Version != "v1.0.0" || len(c.Changes) != 0 {
		t.Errorf("compared with the current one: %+v, %v", c, err)
	}
}

// Another system than the booted one is told, and neither staged nor booted.
func TestObserve_OS(t *testing.T) {
	d := osDevice(t)
	spec := osSpec(observing)
	d.assign(2, "v1.1.0", spec)
	staged := d.content(osStaged)
	d.wantOnce(0, "compared")
	if got := toldOf(d.control.last()); !slices.Contains(got, "change os-2 os-1 is booted") {
		t.Errorf("would change %q", got)
	}
	if got := d.content(osStaged); got != staged || d.content(pendingFile) != "" {
		t.Errorf("staged is %q", got)
	}
	d.boot(true, "os-2\n")
	d.wantOnce(0)
	if got := toldOf(d.control.last()); slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "os-2") }) {
		t.Errorf("booted as it should be, it would change %q", got)
	}
}

// Trouble with the disk: when it is over, the running agent has compared, nothing
// is touched, and a power cut changes nothing of that. It is here and there; the
// system test does all.
func TestObserve_TroubleWithTheDisk(t *testing.T) { observeInTrouble(t, 37) }

func observeInTrouble(t *testing.T, stride int) {
	eachKind(t, stride, func(t *testing.T, kind string, lasting bool, n int) (more bool) {
		d := onV1(t)
		d.assign(2, "v1.1.0", v2(observing))
		before := d.snapshot()
		w := &trouble{d: d, fault: troubles[kind](d), at: n, lasting: lasting}
		d.cfg.Step = w.step
		if a, err := New(d.cfg); err == nil {
			for range 3 {
				_, err = a.Once(t.Context())
				w.over = true
			}
			if r := d.control.last(); err != nil || r.Outcome != schema.OutcomeObserved || r.WouldChange == nil {
				t.Errorf("running on: %v, report %+v", err, r)
			}
			a.Close()
			w.cut(t)
		}
		d.cfg.Step = nil
		d.once()
		d.once()
		r := d.control.last()
		if left := strays(d); r.Outcome != schema.OutcomeObserved || d.content(desiredFile) != "" || d.snapshot() != before || len(left) > 0 {
			t.Errorf("after a power cut: report %+v, left %v, the device is\n%s", r, left, d.snapshot())
		}
		if t.Failed() {
			t.Logf("operation %d: %s", n, w.hit)
		}
		return w.count >= n
	})
}

// The way back of what had begun before is gone to its end: a device is left as
// it is on a good spec only. Nothing is repaired after that.
func TestObserve_WayBackIsGoneToItsEnd(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v1.0.1", filesSpec(map[string]string{"/etc/edge/edge.conf": "version=1.0.1\n"},
		hook("afterUpdating", "/bin/sh", "-c", `test "$GITOPSD_ROLLING_BACK" = 0 || { echo "from $GITOPSD_FROM" > "$GITOPSD_ROOT/asked"; test -e "$GITOPSD_ROOT/test-ok"; }`)))
	d.wantOnce(0, "updated")
	d.assign(3, "v1.1.0", v2(hook("afterUpdating", "/bin/false")))
	d.wantOnce(1, "rollback incomplete")
	d.assign(4, "v1.2.0", v2(observing))
	d.wantOnce(0, "compared with v1.2.0")
	if r := d.control.last(); r.Phase != schema.PhaseError || r.Attempt != 4 || r.Outcome != schema.OutcomeObserved || !strings.HasPrefix(r.Reason, "rollback incomplete: ") {
		t.Errorf("report: %+v", r)
	}
	d.write("/test-ok", "")
	d.wantOnce(1, "failed: attempt 3 of v1.1.0", "back on v1.0.1")
	if got := d.content("/asked"); got != "from v1.1.0\n" {
		t.Errorf("the hook was told that the way back is %s", got)
	}
	if r := d.control.last(); r.Phase != schema.PhaseObserving || r.Attempt != 4 || r.Current.Version != "v1.0.1" {
		t.Errorf("report: %+v", r)
	}
	d.write("/etc/edge/edge.conf", "by hand\n")
	d.wantOnce(0)
	if d.content("/etc/edge/edge.conf") != "by hand\n" {
		t.Error("what is only observed was repaired")
	}
}

// A damaged record of what is observed is written again of what is assigned.
func TestObserve_DamagedRecord(t *testing.T) {
	for _, damage := range []func(d *device){
		func(d *device) { d.write(observedFile, `{"attempt": 2, "ver`) },
		func(d *device) { d.write(observedFile, `{"attempt": 1, "version": "v1.0.0"}`) },
		func(d *device) { d.remove(observedFile) },
	} {
		d := onV1(t)
		d.assign(2, "v1.1.0", v2(observing))
		d.wantOnce(0, "compared")
		want := d.control.last().WouldChange
		damage(d)
		before := d.snapshot()
		d.wantOnce(0)
		if r := d.control.last(); r.Phase != schema.PhaseObserving || r.Attempt != 2 || !cmp.Equal(r.WouldChange, want) {
			t.Errorf("report: %+v\nwould change %+v, want %+v", r, r.WouldChange, want)
		}
		if diff := cmp.Diff(before, d.snapshot()); diff != "" {
			t.Error(diff)
		}
	}
}
