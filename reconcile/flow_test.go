package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gitopsd/gitopsd/reconcile/internal/units"
	"github.com/gitopsd/gitopsd/schema"
)

func TestFirstReleaseThenNext(t *testing.T) {
	d := newDevice(t)
	d.wantOnce(0, "nothing to do")
	r := d.control.last()
	if r.Current.Version != "v0.0.0" || r.Phase != schema.PhaseUpdated || r.InstallID == "" || r.Sequence == 0 || r.Outcome != "" {
		t.Fatalf("first report: %+v", r)
	}
	d.assign(1, "v1.0.0", v1)
	d.wantOnce(0, "updated from v0.0.0 to v1.0.0")
	r = d.control.last()
	want := schema.Report{
		TypeMeta: r.TypeMeta, Metadata: schema.Metadata{Name: "gw-1"}, InstallID: r.InstallID, Sequence: r.Sequence,
		AgentVersion: "v1.0.0", ProtocolVersion: 1, Capabilities: Capabilities(""), HeartbeatInterval: schema.Duration(DefaultHeartbeat),
		BootID: r.BootID, Current: schema.SpecRef{Generation: 1, Attempt: 1, Version: "v1.0.0", Digest: r.Digest}, Generation: 1, Attempt: 1,
		Digest: r.Digest, Phase: schema.PhaseUpdated, Begun: true, Outcome: schema.OutcomeOK, Settled: true, FreeDisk: r.FreeDisk, ReportedAt: d.clock,
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("report of success (-want +got):\n%s", diff)
	}
	if got := d.control.phases(); got != "Updated Starting Updated" {
		t.Errorf("phases reported: %s", got)
	}
	d.assign(2, "v1.1.0", v2(nil))
	d.wantOnce(0, "updated from v1.0.0 to v1.1.0")
	if d.content("/etc/edge/edge.conf") != "version=2\n" || d.content("/etc/edge/only-1") != "" || d.content("/etc/edge/only-2") != "two\n" {
		t.Errorf("files after the update:\n%s", d.snapshot())
	}
	d.wantOnce(0, "nothing to do: on v1.1.0")
}

// A spec that wants nothing takes away what the one before had, and brings
// back what was there.
func TestEmptySpecIsApplied(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v2.0.0", tree{})
	d.wantOnce(0, "updated from v1.0.0 to v2.0.0")
	if got := d.content("/etc/edge/edge.conf"); got != "from the factory\n" {
		t.Errorf("edge.conf is %q", got)
	}
	if got := d.content("/etc/edge/only-1"); got != "" {
		t.Errorf("only-1 is %q", got)
	}
	if r := d.control.last(); r.Outcome != schema.OutcomeOK || r.Current.Version != "v2.0.0" {
		t.Errorf("reported %+v", r)
	}
	d.assign(3, "v2.0.1", tree{"hooks": tree{"afterUpdating": tree{"it": tree{"run": []any{"/bin/false"}}}}})
	d.wantOnce(1, "back on v2.0.0")
	d.assign(4, "v1.0.0", v1)
	d.wantOnce(0, "updated")
}

func TestPayloadsArriveAndGo(t *testing.T) {
	d := newDevice(t)
	d.wantOnce(0)
	data := []byte("a payload\n")
	sum := schema.PayloadDigest(data)
	spec := tree{"files": tree{"/etc/p": tree{"payload": sum, "mode": "0600"}}}
	d.publish(func(a *schema.Assignment) { a.Attempt, a.Version, a.Spec = 1, "v1.0.0", spec }, map[string][]byte{sum: data})
	d.wantOnce(0, "updated")
	if d.content("/etc/p") != string(data) {
		t.Fatal("payload is not in place")
	}
	// What is no payload, or not the one that its name says, is not kept.
	d.write(payloadDir+"/"+strings.Repeat("0", 64), "damaged")
	d.write(payloadDir+"/README", "by hand")
	if kept := KeptPayloads(d.root); !slices.Equal(kept, []string{sum}) {
		t.Errorf("kept are %q", kept)
	}
	if kept := KeptPayloads(d.host("/none")); kept != nil {
		t.Errorf("of a device without any, kept are %q", kept)
	}
	// the delivery need not bring it again: drift is repaired from disk
	d.control.delivery.Payloads = nil
	d.remove("/etc/p")
	d.wantOnce(0, "nothing to do")
	if d.content("/etc/p") != string(data) {
		t.Error("drift was not repaired from the payload on disk")
	}
	d.assign(2, "v1.1.0", v1)
	d.wantOnce(0, "updated")
	left, _ := os.ReadDir(d.host(payloadDir))
	if len(left) != 0 {
		t.Errorf("payloads left: %v", left)
	}
}

func TestMissingPayloadIsRetryable(t *testing.T) {
	d := onV1(t)
	data := []byte("late\n")
	sum := schema.PayloadDigest(data)
	d.assign(2, "v1.1.0", tree{"files": tree{"/etc/p": tree{"payload": sum}}})
	d.wantOnce(1, "a retry is due", "PRE-CHECK")
	if r := d.control.last(); r.Phase != schema.PhaseDegraded || r.Begun || r.Outcome != "" || r.Failures[0].Class != schema.ClassRetryable {
		t.Errorf("report: %+v", r)
	}
	d.control.delivery.Payloads = map[string][]byte{sum: data}
	d.wantOnce(0, "updated")
}

// A person who reads one line of a report learns that the disk is full.
func TestFullDiskIsNamedInOneLine(t *testing.T) {
	d := onV1(t)
	bytes := []byte("payload\n")
	sum := schema.PayloadDigest(bytes)
	d.publish(func(a *schema.Assignment) {
		a.Attempt, a.Version = 2, "v1.1.0"
		a.Spec = tree{"files": tree{"/etc/edge/edge.conf": tree{"payload": sum}}, "onDevice": tree{"retries": 1}}
	}, map[string][]byte{sum: bytes})
	d.cfg.Step = func(op, path string) error {
		if op == "write" && strings.HasPrefix(path, payloadDir) {
			return syscall.ENOSPC
		}
		return nil
	}
	for _, phase := range []schema.Phase{schema.PhaseDegraded, schema.PhaseError} {
		d.wantOnce(1, "no space left on device (keep payload")
		r := d.control.last()
		if r.Phase != phase || !strings.Contains(r.Reason, "no space left on device") || strings.Contains(r.Reason, sum) || r.Failures[0].Element != sum {
			t.Errorf("%+v", r)
		}
	}
}

func TestPreCheckFailures(t *testing.T) {
	for _, c := range []struct {
		name    string
		more    tree
		outcome schema.Outcome
		words   string
	}{
		{"missing command", tree{"requires": tree{"commands": []any{"no-such-program-here"}}}, schema.OutcomeRefused, "no-such-program-here"},
		{"unknown field", tree{"teleport": tree{}}, schema.OutcomeRefused, "teleport"},
		{"no os driver", tree{"os": tree{"image": "os-2"}}, schema.OutcomeRefused, "os"},
		{"before hook fails", hook("beforeUpdating", "/bin/sh", "-c", "echo not here; exit 3"), schema.OutcomeRefused, "not here"},
		{"before hook missing", hook("beforeUpdating", "/no/such/hook"), schema.OutcomeRefused, "/no/such/hook"},
		{"protected path", tree{"directories": tree{"/proc/x": tree{}}}, schema.OutcomeRefused, "/proc/x"},
		{"unreachable url", tree{"confirm": tree{"reach": []any{"file:///etc/passwd"}}}, schema.OutcomeRefused, "file:///etc/passwd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := onV1(t)
			before := d.snapshot()
			d.control.reports = nil
			d.assign(2, "v1.1.0", v2(c.more))
			d.wantOnce(1, string(c.outcome), c.words)
			r := d.control.last()
			if r.Outcome != c.outcome || r.Attempt != 2 || r.Begun || r.Phase != schema.PhaseError || r.Stage != string(StagePreCheck) || len(r.Failures) != 1 {
				t.Errorf("report: %+v", r)
			}
			if !strings.Contains(r.Failures[0].Message, c.words) {
				t.Errorf("message %q does not say %q", r.Failures[0].Message, c.words)
			}
			if strings.Contains(d.control.phases(), "Starting") {
				t.Error("it was announced although the pre-check failed")
			}
			if after := d.snapshot(); after != before {
				t.Errorf("something changed:\n%s", cmp.Diff(before, after))
			}
			// the same attempt is never tried again; a newer one is
			d.wantOnce(0, "v1.1.0 ended as "+string(c.outcome))
			d.assign(3, "v1.1.0", v2(nil))
			d.wantOnce(0, "updated")
		})
	}
}

func TestExhaustedBeforeItBegan(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v1.1.0", v2(tree{"resources": tree{"disk": tree{"minFree": "8000000000Gi"}}, "onDevice": tree{"retries": 2}}))
	d.wantOnce(1, "a retry is due")
	d.wantOnce(1, "a retry is due")
	if r := d.control.last(); r.Failures[0].Tries != 2 {
		t.Errorf("tries: %+v", r.Failures)
	}
	d.wantOnce(1, "exhausted")
	if r := d.control.last(); r.Outcome != schema.OutcomeExhausted || r.Begun || r.Failures[0].Tries != 3 {
		t.Errorf("report: %+v", r)
	}
}

func TestAfterHookFailureRollsBackForGood(t *testing.T) {
	d := onV1(t)
	before := d.snapshot()
	d.assign(2, "v1.1.0", v2(hook("afterUpdating", "/bin/sh", "-c", "echo not healthy; exit 1")))
	d.wantOnce(1, "failed: attempt 2 of v1.1.0: POST-ACTION", "not healthy", "back on v1.0.0")
	if after := d.snapshot(); after != before {
		t.Errorf("not back as it was:\n%s", cmp.Diff(before, after))
	}
	r := d.control.last()
	if r.Outcome != schema.OutcomeFailed || !r.Begun || r.Attempt != 2 || r.Phase != schema.PhaseError || r.Current.Version != "v1.0.0" || r.Desired != nil {
		t.Errorf("report: %+v", r)
	}
	if got, want := r.Failures[0].Element, "afterUpdating/it"; got != want {
		t.Errorf("element %q, want %q", got, want)
	}
	d.wantOnce(0, "on v1.0.0; v1.1.0 ended as failed")
	d.assign(3, "v1.1.0", v2(nil))
	d.wantOnce(0, "updated from v1.0.0 to v1.1.0")
}

// The error is over once what the device runs is assigned to it again, and stays
// so without control.
func TestWhatRunsIsAssignedAgain(t *testing.T) {
	d := onV1(t)
	bad := v2(hook("afterUpdating", "/bin/false"))
	d.assign(2, "v1.1.0", bad)
	d.wantOnce(1, "failed")
	d.recall(2)
	d.wantOnce(0, "v1.1.0 ended as failed")
	if r := d.control.last(); r.Phase != schema.PhaseError {
		t.Fatalf("report: %+v", r)
	}
	d.control.reports = nil
	d.assign(1, "v1.0.0", v1)
	d.wantOnce(0, "nothing to do: on v1.0.0")
	good := func(when string) {
		t.Helper()
		r := d.control.last()
		if r.Phase != schema.PhaseUpdated || r.Attempt != 1 || r.Outcome != schema.OutcomeOK || !r.Settled || r.Recalled != 2 || len(r.Failures) > 0 || r.Reason != "" {
			t.Errorf("%s, the report is %+v", when, r)
		}
		if strings.Contains(d.control.phases(), "Applying") {
			t.Errorf("%s, the device has changed itself", when)
		}
	}
	good("assigned again")
	d.control.lookErr = errors.New("no network")
	d.wantOnce(1, "control did not answer")
	good("without control")
	d.control.lookErr = nil

	d.assign(2, "v1.1.0", bad) // what failed is not begun again
	d.wantOnce(0, "nothing to do: on v1.0.0")
	good("with an old number")
	d.assign(3, "v1.2.0", bad)
	d.wantOnce(1, "failed")
	if r := d.control.last(); r.Phase != schema.PhaseError || r.Attempt != 3 || r.Recalled != 0 {
		t.Errorf("the next failure is reported as %+v", r)
	}
}

func TestB74_FirstReleaseFails(t *testing.T) {
	d := newDevice(t)
	d.write("/etc/edge/edge.conf", "from the factory\n")
	d.wantOnce(0)
	before := d.snapshot()
	d.assign(1, "v1.0.0", filesSpec(map[string]string{"/etc/edge/edge.conf": "x\n", "/srv/a/b": "y\n"}, hook("afterUpdating", "/bin/false")))
	d.wantOnce(1, "failed", "what was there before the first release is back")
	if after := d.snapshot(); after != before {
		t.Errorf("not back as it was:\n%s", cmp.Diff(before, after))
	}
}

func TestB74_RollbackThatCannotFinish(t *testing.T) {
	d := onV1(t)
	// the current release's own hook fails on the way back until a file is there
	d.assign(2, "v1.0.1", filesSpec(map[string]string{"/etc/edge/edge.conf": "version=1.0.1\n"},
		hook("afterUpdating", "/bin/sh", "-c", `test "$GITOPSD_ROLLING_BACK" = 0 || test -e "$GITOPSD_ROOT/test-ok"`)))
	d.wantOnce(0, "updated")
	d.assign(3, "v1.1.0", v2(hook("afterUpdating", "/bin/false")))
	d.wantOnce(1, "rollback incomplete")
	r := d.control.last()
	if r.Phase != schema.PhaseError || !strings.HasPrefix(r.Reason, "rollback incomplete: ") || r.Outcome != schema.OutcomeFailed {
		t.Errorf("report: %+v", r)
	}
	d.wantOnce(1, "rollback incomplete")
	d.write("/test-ok", "")
	d.wantOnce(1, "failed", "back on v1.0.1")
	d.wantOnce(0, "v1.1.0 ended as failed")
	if r := d.control.last(); strings.Contains(r.Reason, "incomplete") || r.Outcome != schema.OutcomeFailed {
		t.Errorf("report after the rollback was completed: %+v", r)
	}
	if d.content("/etc/edge/edge.conf") != "version=1.0.1\n" {
		t.Error("not back on v1.0.1")
	}
}

func TestFixEndsAnIncompleteRollback(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v1.0.1", filesSpec(map[string]string{"/etc/a": "1\n"}, hook("afterUpdating", "/bin/sh", "-c", `exit $GITOPSD_ROLLING_BACK`)))
	d.wantOnce(0, "updated")
	d.assign(3, "v1.1.0", v2(hook("afterUpdating", "/bin/false")))
	d.wantOnce(1, "rollback incomplete")
	d.assign(4, "v1.1.1", v2(nil))
	d.wantOnce(0, "updated from v1.0.1 to v1.1.1")
	if r := d.control.last(); r.Phase != schema.PhaseUpdated || r.Outcome != schema.OutcomeOK {
		t.Errorf("report: %+v", r)
	}
}

// fullDisk makes every write of one path fail, until it is emptied.
type fullDisk struct {
	path  string
	empty atomic.Bool
}

func (f *fullDisk) step(op, p string) error {
	if op == "rename" && p == f.path && !f.empty.Load() {
		return syscall.ENOSPC
	}
	return nil
}

func TestRetryableReconcileRollsBackAndTriesAgain(t *testing.T) {
	d := onV1(t)
	before := d.snapshot()
	full := &fullDisk{path: "/opt/new/deep/file"}
	d.cfg.Step = full.step
	d.assign(2, "v1.1.0", v2(nil))
	d.wantOnce(1, "a retry is due", "RECONCILE", "back on v1.0.0")
	r := d.control.last()
	if r.Phase != schema.PhaseDegraded || !r.Begun || r.Outcome != "" || r.Attempt != 2 {
		t.Errorf("report: %+v", r)
	}
	if after := d.snapshot(); after != before {
		t.Errorf("not back as it was:\n%s", cmp.Diff(before, after))
	}
	full.empty.Store(true)
	d.wantOnce(0, "updated from v1.0.0 to v1.1.0")
}

func TestRetriesUsedUpAfterItBegan(t *testing.T) {
	d := onV1(t)
	full := &fullDisk{path: "/opt/new/deep/file"}
	d.cfg.Step = full.step
	d.assign(2, "v1.1.0", v2(tree{"onDevice": tree{"retries": 1}}))
	d.wantOnce(1, "a retry is due")
	d.wantOnce(1, "failed", "back on v1.0.0")
	if r := d.control.last(); r.Outcome != schema.OutcomeFailed || !r.Begun {
		t.Errorf("report: %+v", r)
	}
}

// An attempt that was begun and rolled back is never reported as deferred or
// refused.
func TestBegunAttemptEndsAsFailed(t *testing.T) {
	degrade := func(t *testing.T) *device {
		d := onV1(t)
		full := &fullDisk{path: "/opt/new/deep/file"}
		d.cfg.Step = full.step
		d.assign(2, "v1.1.0", v2(hook("beforeUpdating", "/bin/sh", "-c", `test ! -e "$GITOPSD_ROOT/run/fail" && { test ! -e "$GITOPSD_ROOT/run/defer" || exit 75; }`)))
		d.wantOnce(1, "a retry is due")
		return d
	}
	for name, then := range map[string]func(d *device){
		"recall":             func(d *device) { d.recall(2) },
		"busy":               func(d *device) { d.write(busyFile, "milling\n") },
		"held on the device": func(d *device) { d.write(holdFile, "mine\n") },
		"held by assignment": func(d *device) {
			old := *d.control.delivery.Assignment
			d.publish(func(a *schema.Assignment) {
				a.Attempt, a.Version, a.Spec, a.Hold = 2, old.Version, old.Spec, &schema.Reason{Reason: "x"}
			}, nil)
		},
		"hook says not now":   func(d *device) { d.write("/run/defer", "") },
		"hook fails for good": func(d *device) { d.write("/run/fail", "") },
		"other installation": func(d *device) {
			d.publish(func(a *schema.Assignment) { a.For = "other"; a.Attempt = 3; a.Spec = v1 }, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := degrade(t)
			then(d)
			d.wantOnce(1, "failed")
			r := d.control.last()
			if r.Attempt != 2 || r.Outcome != schema.OutcomeFailed || !r.Begun {
				t.Errorf("report: %+v", r)
			}
			d.remove("/run")
			d.remove(holdFile)
			if res := d.once(); strings.Contains(res.Summary, "updated") {
				t.Errorf("the ended attempt was tried again: %s", res.Summary)
			}
		})
	}
	t.Run("network away", func(t *testing.T) {
		d := degrade(t)
		d.control.lookErr = errors.New("no route")
		d.wantOnce(1, "control did not answer")
		d.control.lookErr = nil
		d.cfg.Step = nil
		d.wantOnce(0, "updated")
	})
}

func TestBusyAndHeldBefore(t *testing.T) {
	for name, c := range map[string]struct {
		on, off func(d *device)
		words   string
	}{
		"busy":       {func(d *device) { d.write(busyFile, "milling\n") }, func(d *device) { d.remove(busyFile) }, "busy: milling"},
		"hold":       {func(d *device) { d.write(holdFile, "mine\n") }, func(d *device) { d.remove(holdFile) }, "held on the device: mine"},
		"busy check": {func(d *device) { d.cfg.BusyCheck = []string{"/bin/false"} }, func(d *device) { d.cfg.BusyCheck = []string{"/bin/true"} }, "busy"},
		"no check":   {func(d *device) { d.cfg.BusyCheck = []string{"/no/such/check"} }, func(d *device) { d.cfg.BusyCheck = nil }, "busy"},
	} {
		t.Run(name, func(t *testing.T) {
			d := onV1(t)
			c.on(d)
			before := d.snapshot()
			d.assign(2, "v1.1.0", v2(nil))
			d.wantOnce(0, "deferred", c.words)
			r := d.control.last()
			if r.Phase != schema.PhaseWaiting || r.Attempt != 2 || r.Begun || r.Outcome != "" {
				t.Errorf("report: %+v", r)
			}
			if d.snapshot() != before {
				t.Error("something changed")
			}
			c.off(d)
			d.wantOnce(0, "updated")
		})
	}
}

func TestBusyBetweenAnnounceAndLookAgain(t *testing.T) {
	d := onV1(t)
	before := d.snapshot()
	d.assign(2, "v1.1.0", v2(nil))
	first := d.control.looks
	d.control.onLook = func(n int) {
		if n == first+2 {
			d.write(busyFile, "milling\n")
		}
	}
	d.wantOnce(0, "deferred", "busy: milling")
	if got := d.control.phases(); !strings.HasSuffix(got, "Starting Waiting") {
		t.Errorf("phases: %s", got)
	}
	if d.snapshot() != before {
		t.Error("something changed")
	}
	d.remove(busyFile)
	n := len(d.control.reports)
	d.wantOnce(0, "updated")
	if r := d.control.reports[n]; r.Phase != schema.PhaseStarting || r.Sequence <= d.control.reports[n-1].Sequence {
		t.Errorf("it was not announced again: %+v", r)
	}
}

func TestRecalledBetweenAnnounceAndLookAgain(t *testing.T) {
	d := onV1(t)
	before := d.snapshot()
	d.assign(2, "v1.1.0", v2(nil))
	first := d.control.looks
	d.control.onLook = func(n int) {
		if n == first+2 {
			d.recall(2)
		}
	}
	d.wantOnce(0, "deferred: attempt 2")
	r := d.control.last()
	if r.Attempt != 2 || r.Begun || r.Outcome != "" || r.Phase != schema.PhaseUpdated || r.Recalled != 2 || r.Generation != d.gen {
		t.Errorf("report: %+v", r)
	}
	if d.snapshot() != before {
		t.Error("something changed")
	}
	d.assign(3, "v1.1.0", v2(nil))
	d.wantOnce(0, "updated")
}

func TestReplacedBetweenAnnounceAndLookAgain(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v1.1.0", v2(nil))
	first := d.control.looks
	d.control.onLook = func(n int) {
		if n == first+2 {
			d.assign(3, "v1.2.0", filesSpec(map[string]string{"/etc/three": "3\n"}, nil))
		}
	}
	d.wantOnce(0, "updated from v1.0.0 to v1.2.0")
	if d.content("/etc/edge/only-2") != "" {
		t.Error("the replaced version was applied")
	}
}

func TestHeldBetweenAnnounceAndLookAgain(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v1.1.0", v2(nil))
	first := d.control.looks
	d.control.onLook = func(n int) {
		if n == first+2 {
			d.publish(func(a *schema.Assignment) {
				a.Attempt, a.Version, a.Spec, a.Hold = 2, "v1.1.0", v2(nil), &schema.Reason{Reason: "disk"}
			}, nil)
		}
	}
	d.wantOnce(0, "deferred", "held: disk")
	if r := d.control.last(); r.Phase != schema.PhaseWaiting || r.Attempt != 2 || r.Begun {
		t.Errorf("report: %+v", r)
	}
	if d.content("/etc/edge/only-2") != "" {
		t.Error("it was applied")
	}
	// the hold is lifted: the same attempt goes on
	d.publish(func(a *schema.Assignment) { a.Attempt, a.Version, a.Spec = 2, "v1.1.0", v2(nil) }, nil)
	d.wantOnce(0, "updated")
}

func TestNothingBeginsWithoutControl(t *testing.T) {
	d := onV1(t)
	before := d.snapshot()
	d.assign(2, "v1.1.0", v2(nil))
	d.control.onReport = func(r *schema.Report) error { return errors.New("push refused") }
	d.wantOnce(1, "nothing was begun")
	d.control.onReport = nil
	first := d.control.looks
	d.control.onLook = func(n int) {
		if n == first+2 {
			d.control.lookErr = errors.New("no route")
		}
	}
	d.wantOnce(1, "nothing was begun")
	if d.snapshot() != before {
		t.Error("something changed")
	}
	d.control.lookErr, d.control.onLook = nil, nil
	d.wantOnce(0, "updated")
}

func TestB68_FailedReportNeverUndoesAnUpdate(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v1.1.0", v2(nil))
	d.control.onReport = func(r *schema.Report) error {
		if r.Outcome == schema.OutcomeOK && r.Attempt == 2 {
			return errors.New("push refused")
		}
		return nil
	}
	d.wantOnce(0, "updated")
	d.wantOnce(1, "nothing to do: on v1.1.0", "not accepted")
	if d.content("/etc/edge/edge.conf") != "version=2\n" {
		t.Error("the update was undone")
	}
	d.control.onReport = nil
	d.wantOnce(0)
	if r := d.control.last(); r.Outcome != schema.OutcomeOK || r.Attempt != 2 {
		t.Errorf("report: %+v", r)
	}
}

func TestAlreadyCurrentIsOKAtOnce(t *testing.T) {
	d := onV1(t)
	n := len(d.control.reports)
	d.assign(5, "v1.0.0", v1)
	d.wantOnce(0, "already on v1.0.0")
	if len(d.control.reports) != n+1 {
		t.Errorf("reports: %s", d.control.phases())
	}
	if r := d.control.last(); r.Attempt != 5 || r.Outcome != schema.OutcomeOK || r.Begun || r.Current.Attempt != 5 {
		t.Errorf("report: %+v", r)
	}
}

func TestNewAttemptOfDesiredDigestReplacesTheNumber(t *testing.T) {
	d := onV1(t)
	d.write(busyFile, "")
	d.assign(2, "v1.1.0", v2(nil))
	d.wantOnce(0, "deferred")
	d.assign(3, "v1.1.0", v2(nil))
	d.wantOnce(0, "deferred: attempt 3")
	var des record
	d.readState(desiredFile, &des)
	if des.Attempt != 3 {
		t.Errorf("desired.json has attempt %d", des.Attempt)
	}
	d.remove(busyFile)
	d.wantOnce(0, "updated")
	if r := d.control.last(); r.Attempt != 3 || r.Outcome != schema.OutcomeOK {
		t.Errorf("report: %+v", r)
	}
}

func TestDocumentsThatAreNotActedOn(t *testing.T) {
	for name, c := range map[string]struct {
		change func(a *schema.Assignment)
		words  string
	}{
		"other installation": {func(a *schema.Assignment) { a.For = "somebody" }, "another installation"},
		"no installation":    {func(a *schema.Assignment) { a.For = "" }, "names no installation"},
		"other device":       {func(a *schema.Assignment) { a.Metadata.Name = "gw-2" }, "gw-2"},
		"older generation":   {func(a *schema.Assignment) { a.Generation = 0 }, "older than"},
		"removed":            {func(a *schema.Assignment) { a.Removed, a.Spec = true, nil }, "removed"},
	} {
		t.Run(name, func(t *testing.T) {
			d := onV1(t)
			before := d.snapshot()
			d.publish(func(a *schema.Assignment) {
				a.Attempt, a.Version, a.Spec = 2, "v1.1.0", v2(nil)
				c.change(a)
			}, nil)
			d.wantOnce(0, c.words)
			if r := d.control.last(); !strings.Contains(r.Assigned, c.words) || r.Current.Version != "v1.0.0" {
				t.Errorf("report: %+v", r)
			}
			if d.snapshot() != before {
				t.Error("it was acted on")
			}
		})
	}
	t.Run("vanished", func(t *testing.T) {
		d := onV1(t)
		d.control.delivery = schema.Delivery{}
		d.wantOnce(0, "delivery ref does not exist")
		if r := d.control.last(); r.Assigned == "" || r.Phase != schema.PhaseUpdated {
			t.Errorf("report: %+v", r)
		}
	})
	t.Run("unusable", func(t *testing.T) {
		d := onV1(t)
		d.control.delivery, d.control.problem = schema.Delivery{Revision: "x"}, "digest does not match"
		d.wantOnce(0, "digest does not match")
		if r := d.control.last(); r.Assigned != "digest does not match" {
			t.Errorf("report: %+v", r)
		}
	})
}

// Whoever numbers attempts anew hears of one that was taken back here, also once
// what the device runs is assigned to it again.
func TestNumberOfWhatWasTakenBackIsKept(t *testing.T) {
	for name, before := range map[string]func(d *device){
		"never seen": func(d *device) { d.recall(2) },
		"put back to be tried again, and a newer one": func(d *device) {
			d.assign(2, "v1.1.0", v2(nil))
			d.cfg.Step = func(op, path string) error {
				if op == "rename" && path == "/opt/new/deep/file" {
					return syscall.ENOSPC
				}
				return nil
			}
			d.wantOnce(1, "a retry is due")
			d.cfg.Step = nil
			d.recall(3)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := onV1(t)
			before(d)
			d.once()
			taken := d.control.last().Recalled
			d.assign(1, "v1.0.0", v1)
			d.wantOnce(0, "nothing to do: on v1.0.0")
			if r := d.control.last(); r.Phase != schema.PhaseUpdated || r.Attempt != 1 || r.Outcome != schema.OutcomeOK || r.Recalled != taken || r.Reason != "" {
				t.Errorf("attempt %d was taken back; the report is %+v", taken, r)
			}
		})
	}
}

func TestRecallOfWhatNeverArrived(t *testing.T) {
	d := onV1(t)
	book := &logbook{}
	d.cfg.Logger = slog.New(book)
	d.recall(2)
	d.wantOnce(0)
	if r := d.control.last(); r.Recalled != 2 || r.Attempt != 2 || r.Begun || r.Phase != schema.PhaseUpdated || r.Reason != "attempt 2 was recalled before it changed anything" {
		t.Errorf("report: %+v", r)
	}
	if lines, _, _ := book.take(); !strings.Contains(lines, "new generation generation=2 recalled=2") || strings.Contains(lines, "version=") {
		t.Errorf("the log:\n%s", lines)
	}
}

func TestRecallAfterFailureKeepsSayingFailed(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v1.1.0", v2(hook("afterUpdating", "/bin/false")))
	d.wantOnce(1, "failed")
	d.recall(2)
	d.wantOnce(0)
	if r := d.control.last(); r.Attempt != 2 || r.Outcome != schema.OutcomeFailed || r.Recalled != 2 || r.Phase != schema.PhaseError {
		t.Errorf("report: %+v", r)
	}
}

func TestDriftIsRepaired(t *testing.T) {
	d := onV1(t)
	d.write("/etc/edge/edge.conf", "by hand\n")
	d.write(busyFile, "")
	d.wantOnce(0)
	if d.content("/etc/edge/edge.conf") != "by hand\n" {
		t.Error("drift was repaired while busy")
	}
	d.remove(busyFile)
	d.write(holdFile, "")
	d.wantOnce(0)
	if d.content("/etc/edge/edge.conf") != "by hand\n" {
		t.Error("drift was repaired while held")
	}
	d.remove(holdFile)
	d.wantOnce(0)
	if d.content("/etc/edge/edge.conf") != "version=1\n" {
		t.Error("drift was not repaired")
	}
}

// A hold in the assignment is obeyed by a restarted agent that has no control.
func TestHeldDeviceIsLeftAloneWithoutControl(t *testing.T) {
	d := onV1(t)
	d.publish(func(a *schema.Assignment) {
		a.Attempt, a.Version, a.Spec, a.Hold = 1, "v1.0.0", v1, &schema.Reason{Reason: "bench"}
	}, nil)
	d.wantOnce(0)
	d.control.lookErr = errors.New("no route")
	d.write("/etc/edge/edge.conf", "by hand\n")
	d.once()
	if d.content("/etc/edge/edge.conf") != "by hand\n" {
		t.Error("drift was repaired while held")
	}
	d.control.lookErr = nil
	d.wantOnce(0)
	if r := d.control.last(); fmt.Sprint(r.Drift) != "[/etc/edge/edge.conf]" || d.content("/etc/edge/edge.conf") != "by hand\n" {
		t.Errorf("whoever holds the device is not told what differs: %v", r.Drift)
	}
	d.publish(func(a *schema.Assignment) { a.Attempt, a.Version, a.Spec = 1, "v1.0.0", v1 }, nil)
	d.wantOnce(0)
	if d.content("/etc/edge/edge.conf") != "version=1\n" {
		t.Error("drift was not repaired after the hold")
	}
}

func TestDesiredFileRemovedWhileItWaits(t *testing.T) {
	d := onV1(t)
	a := d.agent()
	defer a.Close()
	d.write(busyFile, "")
	d.assign(2, "v1.1.0", v2(nil))
	if _, err := a.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.remove(desiredFile)
	d.remove(busyFile)
	res, err := a.Once(t.Context())
	if err != nil || !strings.Contains(res.Summary, "updated") {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestDriftIsReportedOnly(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v1.1.0", v2(tree{"onDevice": tree{"drift": "report"}}))
	d.wantOnce(0, "updated")
	d.write("/etc/edge/only-2", "by hand\n")
	d.wantOnce(0)
	if r := d.control.last(); fmt.Sprint(r.Drift) != "[/etc/edge/only-2]" {
		t.Errorf("drift reported: %v", r.Drift)
	}
	if d.content("/etc/edge/only-2") != "by hand\n" {
		t.Error("it was repaired")
	}
}

func TestB99_HooksRunOncePerTransition(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v1.1.0", v2(hook("afterUpdating", "/bin/sh", "-c", `echo ran >> "$GITOPSD_ROOT/test-log"`)))
	for range 5 {
		d.once()
	}
	if got := d.content("/test-log"); got != "ran\n" {
		t.Errorf("hook ran: %q", got)
	}
}

func TestHooksAreToldWhatChanges(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v1.1.0", v2(hook("afterUpdating", "/bin/sh", "-c",
		`echo "$GITOPSD_DEVICE $GITOPSD_FROM $GITOPSD_TO $GITOPSD_ATTEMPT $GITOPSD_REBOOT_PENDING $(tr '\0' ' ' < $GITOPSD_CHANGED_FILES)" > "$GITOPSD_ROOT/test-log"`)))
	d.wantOnce(0, "updated")
	want := "gw-1 v1.0.0 v1.1.0 2 0 /etc/edge/edge.conf /etc/edge/only-1 /etc/edge/only-2 /opt/new/deep/file \n"
	if got := d.content("/test-log"); got != want {
		t.Errorf("hook was told\n%q\nwant\n%q", got, want)
	}
}

func TestB12_SecondAgentIsKeptOut(t *testing.T) {
	d := newDevice(t)
	a := d.agent()
	if _, err := New(d.cfg); !errors.Is(err, ErrLocked) {
		t.Fatalf("second agent: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	d.agent().Close()
}

// What a spec may ask for in words of its own fields, this agent says that it
// offers, and nothing else.
func TestCapabilitiesAreWhatSpecsAskFor(t *testing.T) {
	spec := tree{
		"requires": tree{"arch": []any{"amd64"}}, "os": tree{"image": "x", "driver": "command"}, "files": tree{"/a": tree{"content": ""}},
		"directories": tree{"/b": tree{}}, "resources": tree{"disk": tree{"minFree": "1"}, "memory": tree{"minAvailable": "1"}, "monitors": tree{"a": tree{"of": "load"}}},
		"hooks": tree{"afterUpdating": tree{"x": tree{"run": []any{"true"}, "if": tree{"changed": []any{"/a"}}}}}, "confirm": "off", "onDevice": tree{"mode": "observe"},
	}
	spec["units"] = tree{"a.service": tree{"state": "started"}}
	spec["agent"] = tree{"version": "v1.5.0"}
	d := newDevice(t)
	d.cfg.Program = &Program{Watched: true}
	d.cfg.OS = &schema.OSConfig{}
	d.cfg.Systemd = func(context.Context) (units.Manager, error) { return nil, units.ErrNoSystemd }
	a := d.agent()
	defer a.Close()
	if diff := cmp.Diff(schema.Needs(spec), a.capabilities()); diff != "" {
		t.Errorf("(-asked +offered)\n%s", diff)
	}
	delete(spec, "units")
	delete(spec, "agent")
	if diff := cmp.Diff(schema.Needs(spec), Capabilities("command")); diff != "" {
		t.Errorf("without systemd: (-asked +offered)\n%s", diff)
	}
	spec["units"], spec["applications"], spec["agent"] = nil, nil, nil // only where there are systemd, podman and a watchdog
	if n := reflect.TypeFor[schema.Spec]().NumField(); n != len(spec) {
		t.Errorf("a spec has %d fields, this test knows %d", n, len(spec))
	}
}

func TestInitialVersionIsAsConfiguredNow(t *testing.T) {
	d := newDevice(t)
	d.wantOnce(0)
	d.cfg.InitialVersion = "v0.9.0"
	d.wantOnce(0)
	if got := d.control.last().Current.Version; got != "v0.9.0" {
		t.Errorf("reported %s", got)
	}
}

func TestClockThatWasNeverSet(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v1.1.0", v2(nil))
	d.clock = time.Date(1970, 1, 1, 0, 3, 0, 0, time.UTC)
	d.wantOnce(1, "the clock is not set")
	d.clock = time.Date(2026, 11, 29, 13, 0, 0, 0, time.UTC)
	d.wantOnce(0, "updated")
}

func TestSettledIsReportedLater(t *testing.T) {
	d := onV1(t)
	settle := schema.Duration(10 * time.Minute)
	d.publish(func(a *schema.Assignment) { a.Attempt, a.Version, a.Spec, a.Settle = 2, "v1.1.0", v2(nil), &settle }, nil)
	d.wantOnce(0, "updated")
	if r := d.control.last(); r.Settled || r.Outcome != schema.OutcomeOK {
		t.Errorf("report: %+v", r)
	}
	d.clock = d.clock.Add(9 * time.Minute)
	d.wantOnce(0)
	if d.control.last().Settled {
		t.Error("settled too early")
	}
	d.clock = d.clock.Add(time.Minute)
	d.wantOnce(0)
	if !d.control.last().Settled {
		t.Error("not settled")
	}
}
