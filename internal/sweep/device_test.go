package sweep

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// Steps of a simulated device between two polls.
const (
	stepIdle     = "idle"
	stepAnnounce = "announce"
	stepLook     = "look"
	stepAct      = "act"
)

// fakeDevice follows the device's half of the protocol, one step at a time:
// it announces, looks again, and acts only if the attempt is still its own.
type fakeDevice struct {
	t       *testing.T
	repo    *memRepo
	reports *memRepo
	clock   func() time.Time
	id      string
	install string
	boot    string
	bad     map[string]bool // versions that fail
	refuses map[string]bool // versions that are refused before anything changes
	busy    bool
	held    bool
	off     bool // it neither polls nor reports

	step       string
	seq        int64
	generation int64 // of the newest document seen
	seen       int64 // generation reported
	recalled   int64
	current    schema.SpecRef
	desired    *schema.Assignment
	ended      int64 // highest attempt that ended here
	acted      map[int64]bool
	last       schema.Report
}

func newFakeDevice(t *testing.T, repo *memRepo, clock func() time.Time, id string) *fakeDevice {
	return &fakeDevice{
		t: t, repo: repo, reports: repo, clock: clock, id: id, install: "install-" + id, step: stepIdle,
		bad: map[string]bool{}, refuses: map[string]bool{}, acted: map[int64]bool{},
		current: schema.SpecRef{Version: AssumedVersion},
	}
}

// acting says whether the device is changing itself, and by which attempt.
func (d *fakeDevice) acting() int64 {
	if d.step == stepAct {
		return d.desired.Attempt
	}
	return 0
}

func (d *fakeDevice) read() *schema.Assignment {
	data := d.repo.file(schema.DefaultDeviceRefs+d.id, assignmentFile)
	if data == nil {
		return nil
	}
	a := &schema.Assignment{}
	if problems := schema.Decode(assignmentFile, data, a); len(problems) > 0 {
		d.t.Fatalf("%s got a document that does not decode: %v\n%s", d.id, problems, data)
	}
	if a.Generation < d.generation {
		d.t.Fatalf("I7: %s sees generation %d after %d", d.id, a.Generation, d.generation)
	}
	d.generation = a.Generation
	return a
}

func (d *fakeDevice) mayBegin(a *schema.Assignment) bool {
	return a != nil && a.Spec != nil && a.For == d.install && a.Hold == nil && a.Attempt > d.ended
}

// poll does one step.
func (d *fakeDevice) poll() {
	if d.off {
		return
	}
	switch d.step {
	case stepIdle:
		d.idle()
	case stepAnnounce:
		d.report(schema.Report{Attempt: d.desired.Attempt, Phase: schema.PhaseStarting})
		d.step = stepLook
	case stepLook:
		a := d.read()
		if !d.mayBegin(a) || a.Attempt != d.desired.Attempt || d.busy || d.held {
			d.putOff(a)
			return
		}
		d.acted[a.Attempt] = true
		d.step = stepAct
	case stepAct:
		a := d.desired
		d.ended, d.desired, d.step = a.Attempt, nil, stepIdle
		if d.bad[a.Version] {
			d.report(schema.Report{
				Attempt: a.Attempt, Phase: schema.PhaseError, Begun: true, Outcome: schema.OutcomeFailed, Stage: "afterUpdating",
				Failures: []schema.Failure{{Attempt: a.Attempt, Stage: "afterUpdating", Class: schema.ClassPermanent, Message: "hook check: exit 1", Tries: 1}},
			})
			return
		}
		d.current = schema.SpecRef{Generation: a.Generation, Attempt: a.Attempt, Version: a.Version, Digest: a.Digest}
		d.report(schema.Report{Attempt: a.Attempt, Phase: schema.PhaseUpdated, Outcome: schema.OutcomeOK, Settled: a.Settle == nil})
	}
}

func (d *fakeDevice) idle() {
	a := d.read()
	switch {
	case a == nil:
	case d.mayBegin(a) && d.refuses[a.Version]:
		d.ended = a.Attempt
		d.report(schema.Report{Attempt: a.Attempt, Phase: schema.PhaseError, Outcome: schema.OutcomeRefused, Stage: "requires", Reason: "no such command"})
		return
	case d.mayBegin(a) && slices.Contains(schema.Needs(a.Spec), schema.NeedsObserve):
		d.ended = a.Attempt
		d.report(schema.Report{Attempt: a.Attempt, Phase: schema.PhaseObserving, Outcome: schema.OutcomeObserved, Reason: "2 things would change"})
		return
	case d.mayBegin(a) && a.Version == d.current.Version && a.Digest == d.current.Digest:
		d.ended = a.Attempt
		d.current.Attempt = a.Attempt
		d.report(schema.Report{Attempt: a.Attempt, Phase: schema.PhaseUpdated, Outcome: schema.OutcomeOK, Settled: true})
		return
	case d.mayBegin(a):
		d.desired = a
		if d.busy || d.held {
			d.putOff(a)
			return
		}
		d.step = stepAnnounce
		return
	case a.Recalled > 0:
		d.recalled = a.Recalled
	}
	over := d.last.Phase == schema.PhaseWaiting && !d.busy && !d.held // what it waited for
	if d.generation != d.seen || d.seq == 0 || over {
		d.rest()
	}
}

// putOff gives the attempt up for now; nothing has changed.
func (d *fakeDevice) putOff(a *schema.Assignment) {
	attempt := d.desired.Attempt
	d.desired, d.step = nil, stepIdle
	if a != nil && a.Recalled > 0 {
		d.recalled = a.Recalled
	}
	why := "busy"
	switch {
	case d.held:
		why = "held"
	case !d.busy:
		d.rest()
		return
	}
	d.report(schema.Report{Attempt: attempt, Phase: schema.PhaseWaiting, Reason: why})
}

// rest reports that nothing is under way.
func (d *fakeDevice) rest() {
	r := schema.Report{Attempt: d.current.Attempt, Phase: schema.PhaseUpdated, Settled: d.current.Attempt > 0}
	if d.current.Attempt > 0 {
		r.Outcome = schema.OutcomeOK
	}
	d.report(r)
}

// heartbeat repeats the last report.
func (d *fakeDevice) heartbeat() {
	if d.off {
		return
	}
	if d.seq == 0 {
		d.rest()
		return
	}
	d.report(d.last)
}

func (d *fakeDevice) report(r schema.Report) {
	d.last = r
	d.seq++
	d.seen = d.generation
	r.TypeMeta = schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindReport}
	r.Metadata.Name = d.id
	r.InstallID, r.Sequence, r.BootID = d.install, d.seq, d.boot
	r.AgentVersion, r.ProtocolVersion = "v0.1.0", 1
	r.Capabilities = []string{"files", "hooks", "onDevice", schema.NeedsObserve}
	r.HeartbeatInterval = schema.Duration(10 * time.Minute)
	r.Current = d.current
	r.Generation = d.generation
	r.Recalled = d.recalled
	r.Busy = d.busy
	if d.held {
		r.Hold = &schema.Reason{Reason: "on the device"}
	}
	r.ReportedAt = d.clock()
	data, err := schema.Encode(r)
	if err != nil {
		d.t.Fatal(err)
	}
	d.reports.force(schema.DefaultReportRefs+d.id, map[string][]byte{reportFile: data})
}

func (d *fakeDevice) String() string {
	return fmt.Sprintf("%s at %s, step %s, generation %d", d.id, d.current.Version, d.step, d.generation)
}
