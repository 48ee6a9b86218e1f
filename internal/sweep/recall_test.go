package sweep

import (
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// moving gives the device with an open attempt.
func (w *world) moving() *fakeDevice {
	w.t.Helper()
	for id, rec := range w.status().Devices {
		if a := lastAttempt(rec.Status); a != nil && a.Outcome == "" {
			return w.devices[id]
		}
	}
	w.t.Fatalf("nobody is in flight\n%s", w.describe())
	return nil
}

func (w *world) attempt(id string, number int64) *schema.Attempt {
	w.t.Helper()
	for _, a := range w.status().Devices[id].Status.Attempts {
		if a.Attempt == number {
			return &a
		}
	}
	w.t.Fatalf("%s has no attempt %d\n%s", id, number, w.describe())
	return nil
}

// settled is a world where everybody is on v1.0.0 and the target is v1.1.0,
// just assigned to one device that has not looked yet.
func settled(t *testing.T, n int) (*world, *Daemon, *fakeDevice) {
	w := newWorld(t, n)
	w.state = ""
	d := w.daemon()
	w.until(d, "everybody on v1.0.0", func() bool { return w.on("v1.0.0") == n })
	w.rounds(d, 2)
	w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	w.pass(time.Minute)
	if p := w.sweep(d); len(p.Assigned) != 1 {
		t.Fatalf("assigned %+v, want one device", p.Assigned)
	}
	return w, d, w.moving()
}

func TestRecallBusy(t *testing.T) {
	w, d, dev := settled(t, 3)
	dev.busy = true
	w.until(d, "another one on v1.1.0", func() bool { return w.on("v1.1.0") >= 1 })
	a := w.attempt(dev.id, 2)
	if a.Outcome != schema.OutcomeDeferred || a.Recall == nil {
		t.Fatalf("the attempt of the busy device is %+v, want deferred after a recall", a)
	}
	if dev.acted[2] {
		t.Fatal("the busy device was touched")
	}
	doc := w.status().Devices[dev.id].Assignment
	if doc.Recalled != 2 || doc.Spec != nil || doc.Attempt != 1 || doc.Generation != a.Recall.Generation {
		t.Errorf("the recall reads %+v, recorded with generation %d", doc, a.Recall.Generation)
	}
	w.rounds(d, 20)
	if w.on("v1.1.0") != 2 || w.code(dev.id) != "Busy" {
		t.Fatalf("the busy device keeps the others\n%s", w.describe())
	}
	dev.busy = false
	w.until(d, "the device that was busy on v1.1.0", func() bool { return w.on("v1.1.0") == 3 })
}

func TestRecallHeldInGit(t *testing.T) {
	w, d, dev := settled(t, 3)
	w.push("hold it", map[string]string{"devices/berlin/" + dev.id + ".yaml": deviceYAML(dev.id, "  hold: {reason: disk being replaced}\n")})
	w.pass(time.Minute)
	p := w.sweep(d)
	if len(p.Recalled) != 1 || p.Recalled[0].Device != dev.id {
		t.Fatalf("recalled %+v, want %s", p.Recalled, dev.id)
	}
	if doc := w.status().Devices[dev.id].Assignment; doc.Hold == nil || doc.Hold.Reason != "disk being replaced" || doc.Spec != nil {
		t.Fatalf("the document of the held device is %+v", doc)
	}
	w.until(d, "the others on v1.1.0", func() bool { return w.on("v1.1.0") == 2 })
	w.rounds(d, 3)
	if dev.acted[2] || w.code(dev.id) != "Held" {
		t.Fatalf("the held device was touched, or is not Held\n%s", w.describe())
	}
}

func TestHoldOnStartedAttemptKeepsItsSpec(t *testing.T) {
	w, d, dev := settled(t, 2)
	w.until(d, "it acts", func() bool { return dev.acting() != 0 })
	w.push("hold it", map[string]string{"devices/berlin/" + dev.id + ".yaml": deviceYAML(dev.id, "  hold: {reason: look}\n")})
	before := w.status().Devices[dev.id].Assignment
	w.pass(time.Minute)
	w.sweep(d)
	doc := w.status().Devices[dev.id].Assignment
	if doc.Hold == nil || doc.Spec == nil || doc.Attempt != before.Attempt || doc.Generation != before.Generation+1 {
		t.Fatalf("the hold made %+v out of generation %d attempt %d", doc, before.Generation, before.Attempt)
	}
	w.until(d, "it is done", func() bool { return dev.current.Version == "v1.1.0" })
}

func TestRecallTargetChanged(t *testing.T) {
	w, d, dev := settled(t, 3)
	dev.off = true // with an assignment that it has not seen
	w.pass(time.Minute)
	w.sweep(d)
	w.change("back to v1.0.0", "targetVersion", "v1.0.0")
	w.pass(time.Minute)
	w.sweep(d) // recalled
	w.pass(time.Minute)
	w.sweep(d) // ended
	if a := w.attempt(dev.id, 2); a.Outcome != schema.OutcomeDeferred {
		t.Fatalf("the attempt at the reverted target is %+v", a)
	}
	dev.off = false
	w.rounds(d, 10)
	if dev.acted[2] || dev.current.Version != "v1.0.0" {
		t.Fatalf("the device applied the reverted target\n%s", w.describe())
	}
}

func TestRecallPickupTimeout(t *testing.T) {
	w, d, dev := settled(t, 3)
	dev.off = true
	w.rounds(d, 58)
	if a := w.attempt(dev.id, 2); a.Recall != nil {
		t.Fatalf("recalled before pickupTimeout: %+v", a)
	}
	w.rounds(d, 3)
	if a := w.attempt(dev.id, 2); a.Outcome != schema.OutcomeUnreached {
		t.Fatalf("the attempt that was never picked up is %+v\n%s", a, w.describe())
	}
	w.until(d, "the others on v1.1.0", func() bool { return w.on("v1.1.0") == 2 })
}

func TestRecallIsTwoCommits(t *testing.T) {
	w, d, dev := settled(t, 3)
	w.change("pause", "paused", "{reason: wait}")
	w.pass(time.Minute)
	w.sweep(d)
	a := w.attempt(dev.id, 2)
	if a.Recall == nil || a.Outcome != "" {
		t.Fatalf("the first commit of a recall ended the attempt: %+v", a)
	}
	// The device began between its announcement and the recall: the report
	// that is read behind the delivered recall says so.
	dev.step, dev.desired = stepLook, &schema.Assignment{Attempt: 2, Version: "v1.1.0"}
	dev.report(schema.Report{Attempt: 2, Phase: schema.PhaseStarting})
	w.pass(time.Minute)
	w.sweep(d)
	if a := w.attempt(dev.id, 2); a.StartedAt == nil || a.Outcome != "" {
		t.Fatalf("an announced attempt was freed: %+v", a)
	}
}

func TestRecalledAttemptTurnsOutOK(t *testing.T) {
	w, d, dev := settled(t, 3)
	dev.poll() // sees it
	dev.poll() // announces
	dev.poll() // looks again: acts
	if dev.acting() != 2 {
		t.Fatalf("the device does not act: %s", dev)
	}
	// Its announcement never arrives; the daemon sees an old report.
	w.repo.set(schema.DefaultReportRefs+dev.id, "")
	d.state.watch.Since = epoch
	w.change("pause", "paused", "{reason: wait}")
	w.pass(time.Minute)
	if p := w.sweep(d); len(p.Recalled) != 1 {
		t.Fatalf("recalled %+v", p.Recalled)
	}
	doc := w.status().Devices[dev.id].Assignment
	dev.poll() // done, reports ok
	w.pass(time.Minute)
	if _, err := d.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := w.attempt(dev.id, 2); a.Outcome != schema.OutcomeOK {
		t.Fatalf("the attempt is %+v", a)
	}
	next := w.status().Devices[dev.id].Assignment
	if next.Spec == nil || next.Attempt != 2 || next.Generation != doc.Generation+1 || next.Recalled != 0 {
		t.Fatalf("after the success the document is %+v", next)
	}
}

func TestLostComesBackOK(t *testing.T) {
	w, d, dev := settled(t, 3)
	w.until(d, "it acts", func() bool { return dev.acting() != 0 })
	dev.off = true
	w.rounds(d, 35)
	if a := w.attempt(dev.id, 2); a.Outcome != schema.OutcomeLost {
		t.Fatalf("a device that never came back is %+v\n%s", a, w.describe())
	}
	if w.code(dev.id) != "Failed" || w.codes()["Halted"] != 2 {
		t.Fatalf("codes after the loss: %v", w.codes())
	}
	if doc := w.status().Devices[dev.id].Assignment; doc.Recalled != 2 || doc.Spec != nil {
		t.Fatalf("the document of a lost attempt can still be begun: %+v", doc)
	}
	dev.off = false
	w.until(d, "everybody on v1.1.0", func() bool { return w.on("v1.1.0") == 3 })
	w.rounds(d, 2)
	if a := w.attempt(dev.id, 2); a.Outcome != schema.OutcomeOK {
		t.Fatalf("the lost device came back on the target, its attempt is %+v", a)
	}
}

// Once what a device runs is wanted of it again, it is told so: it would be in
// Error for ever.
func TestWhatRunsIsAssignedAgain(t *testing.T) {
	w, d, dev := settled(t, 3)
	dev.bad["v1.1.0"] = true
	w.until(d, "it fails", func() bool { return w.attempt(dev.id, 2).Outcome == schema.OutcomeFailed })
	w.rounds(d, 2)
	recall := w.status().Devices[dev.id].Assignment
	if recall.Spec != nil || recall.Recalled != 2 {
		t.Fatalf("after the failure the document is %+v", recall)
	}
	w.change("back to v1.0.0", "targetVersion", "v1.0.0")
	w.pass(time.Minute)
	w.sweep(d)
	if doc := w.status().Devices[dev.id].Assignment; doc.Spec == nil || doc.Attempt != 1 || doc.Version != "v1.0.0" || doc.Recalled != 0 || doc.Generation != recall.Generation+1 {
		t.Fatalf("back on what runs, the document is %+v", doc)
	}
	w.rounds(d, 2)
	if w.code(dev.id) != "Current" || w.attempt(dev.id, 2).Outcome != schema.OutcomeFailed {
		t.Errorf("the device is %s, its attempts %+v", w.code(dev.id), w.status().Devices[dev.id].Status.Attempts)
	}
	w.pass(time.Minute)
	if p := w.sweep(d); p.Committed {
		t.Error("a sweep that changes nothing commits")
	}
	w.change("v1.2.0", "targetVersion", "v1.2.0")
	w.until(d, "it goes on", func() bool { return dev.current.Version == "v1.2.0" })
	if a := w.attempt(dev.id, 3); a.Version != "v1.2.0" {
		t.Errorf("the next attempt is %+v", a)
	}
}

// One that was given up may be at work yet: told of another attempt, it would
// not say any more how this one ended.
func TestLostDeviceIsHeardFirst(t *testing.T) {
	w, d, dev := settled(t, 3)
	dev.bad["v1.1.0"] = true
	w.until(d, "it acts", func() bool { return dev.acting() != 0 })
	dev.off = true
	w.rounds(d, 35)
	w.change("back to v1.0.0", "targetVersion", "v1.0.0")
	w.rounds(d, 2)
	if doc := w.status().Devices[dev.id].Assignment; w.code(dev.id) != "Current" || doc.Spec != nil || doc.Recalled != 2 {
		t.Fatalf("the lost device is %s, its document %+v", w.code(dev.id), doc)
	}
	dev.off = false
	w.rounds(d, 3)
	if doc := w.status().Devices[dev.id].Assignment; w.attempt(dev.id, 2).Outcome != schema.OutcomeFailed || doc.Spec == nil || doc.Attempt != 1 {
		t.Fatalf("it was heard, its attempt is %+v, its document %+v", w.attempt(dev.id, 2), doc)
	}
}

func TestNewInstallationEndsAttemptAsLost(t *testing.T) {
	w, d, dev := settled(t, 2)
	dev.install, dev.seq = "install-new", 0
	dev.current, dev.ended, dev.generation, dev.desired, dev.step = schema.SpecRef{Version: AssumedVersion}, 0, 0, nil, stepIdle
	dev.report(schema.Report{Phase: schema.PhaseUpdated})
	w.pass(time.Minute)
	w.sweep(d)
	if a := w.attempt(dev.id, 2); a.Outcome != schema.OutcomeLost {
		t.Fatalf("the attempt of the old installation is %+v", a)
	}
}

func TestRefusedEndsDirectly(t *testing.T) {
	w, d, dev := settled(t, 4)
	dev.refuses["v1.1.0"] = true
	w.until(d, "the others on v1.1.0", func() bool { return w.on("v1.1.0") == 3 })
	if a := w.attempt(dev.id, 2); a.Outcome != schema.OutcomeRefused || a.Recall != nil {
		t.Fatalf("the refused attempt is %+v", a)
	}
	if w.code(dev.id) != "Refused" {
		t.Fatalf("its code is %s", w.code(dev.id))
	}
}

func TestTwoInstallationsUnderOneName(t *testing.T) {
	w := newWorld(t, 2)
	d := w.daemon()
	w.until(d, "everybody on v1.0.0", func() bool { return w.on("v1.0.0") == 2 })
	dev := w.devices["gw-01"]
	for i := range 4 {
		dev.install = []string{"install-x", "install-gw-01"}[i%2]
		dev.seq += 10
		dev.heartbeat()
		w.pass(time.Minute)
		w.sweep(d)
	}
	if w.code("gw-01") != "Duplicate" {
		t.Fatalf("two machines under one name are %s\n%s", w.code("gw-01"), w.describe())
	}
}

func TestDeliveryRepairRestartsPickup(t *testing.T) {
	w, d, dev := settled(t, 3)
	dev.off = true
	w.repo.set(schema.DefaultDeviceRefs+dev.id, "") // somebody deleted it
	for _, other := range w.devices {
		other.off = true
	}
	for range 61 {
		w.pass(time.Minute)
		w.sweep(d)
	}
	if w.repo.ref(schema.DefaultDeviceRefs+dev.id) == "" {
		t.Fatal("the delivery was not repaired within an hour")
	}
	w.pass(30 * time.Minute)
	w.sweep(d)
	if a := w.attempt(dev.id, 2); a.Recall != nil {
		t.Fatalf("recalled before its restarted pickup clock ran out: %+v", a.Recall)
	}
}

func TestRecallThatWasNotDeliveredFreesNothing(t *testing.T) {
	w, d, dev := settled(t, 3)
	w.repo.refuse = func(ref string) string {
		if ref == schema.DefaultDeviceRefs+dev.id {
			return "not now"
		}
		return ""
	}
	w.change("pause", "paused", "{reason: wait}")
	for range 3 {
		w.pass(time.Minute)
		w.sweep(d)
	}
	if a := w.attempt(dev.id, 2); a.Recall == nil || a.Outcome != "" {
		t.Fatalf("the recall that nobody could see made the attempt %+v", a)
	}
	for range 3 {
		dev.poll() // it still sees what was assigned, and acts on it
	}
	if dev.acting() != 2 {
		t.Fatalf("the device does not act: %s", dev)
	}
	w.repo.refuse = nil
	w.pass(time.Minute)
	w.sweep(d) // holds I3
	if a := w.attempt(dev.id, 2); a.StartedAt == nil || a.Outcome != "" {
		t.Fatalf("the attempt that was begun is %+v", a)
	}
}

// The report that frees a slot is read behind the recall's delivery: one that
// was listed before could miss the start.
func TestReportIsReadBehindTheDelivery(t *testing.T) {
	w, d, dev := settled(t, 3)
	ref := schema.DefaultDeviceRefs + dev.id
	before := w.repo.ref(ref)
	w.change("pause", "paused", "{reason: wait}")
	w.pass(time.Minute)
	w.sweep(d)
	for _, written := range []bool{false, true} { // by this pass, or by somebody else while it ran
		recalled := w.repo.ref(ref)
		w.repo.set(ref, before)
		dev.generation = 0
		remote := w.remote()
		acted := false
		remote.onCall = func(n int, op string) {
			if n == 3 && !acted { // branches, deliveries and reports are listed
				acted = true
				dev.step = stepIdle
				for range 3 {
					dev.poll()
				}
				if written {
					w.repo.set(ref, recalled)
				}
			}
		}
		late := w.daemon(func(c *Config) { c.Remote = remote })
		w.pass(time.Minute)
		if _, err := late.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !acted || dev.acting() != 2 {
			t.Fatalf("the device does not act: %s", dev)
		}
		if a := w.attempt(dev.id, 2); a.Outcome != "" {
			t.Fatalf("an acting device's attempt was ended: %+v", a)
		}
	}
}
