package protocoltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// control is what an agent needs of package agentsync.
type control interface {
	Look(ctx context.Context) (schema.Delivery, string, error)
	Report(ctx context.Context, r *schema.Report) error
	Answers(ctx context.Context) error
}

// Directions in which a device is on its way.
const (
	forward = "forward"
	back    = "back"
)

// lightDisk is what survives the programs of a device.
type lightDisk struct {
	install    string
	sequence   int64
	generation int64 // newest seen
	held       bool  // so said the newest document
	last       lightEnd
	current    schema.SpecRef
	unknown    bool // what the device runs was lost
	okAt       time.Time
	desired    *schema.Assignment
	direction  string
	begun      int64 // attempt that changed something
	tries      int   // of the desired attempt that failed
	dropped    int64
}

// lightEnd is the attempt with the highest number that ended here.
type lightEnd struct {
	attempt int64
	outcome schema.Outcome
	begun   bool
	digest  string
	stage   string
}

// lightMachine is a device that follows the protocol and has no files.
type lightMachine struct {
	w        *world
	dev      *device
	disk     lightDisk
	installs int
}

func newLight(w *world, dev *device) *lightMachine {
	m := &lightMachine{w: w, dev: dev}
	m.reinstall()
	return m
}

func (m *lightMachine) newInstall() string {
	m.installs++
	return fmt.Sprintf("%s-install-%d", m.dev.id, m.installs)
}

func (m *lightMachine) reinstall() {
	m.disk = lightDisk{install: m.newInstall(), current: schema.SpecRef{Version: "v0.0.0"}}
}

// corrupt makes one of the state files unreadable: the next program finds out.
func (m *lightMachine) corrupt(n int) string {
	d := &m.disk
	was := *d
	what := []string{"install.json", "attempts.json", "current.json"}[n%3]
	switch n % 3 {
	case 1:
		d.last, d.direction, d.dropped, d.held = lightEnd{}, "", 0, false
		if was.desired != nil && !was.unknown {
			d.direction = back
		}
	case 2:
		d.current, d.unknown, d.okAt = schema.SpecRef{Version: "v0.0.0"}, true, time.Time{}
	}
	if d.direction == forward {
		d.direction = back
	}
	d.install, d.sequence = m.newInstall(), 0
	d.generation, d.desired, d.begun, d.tries = 0, nil, 0, 0
	m.tellGhost()
	return what
}

// tellGhost says what the disk says. A way back that is blocked is over as
// far as anybody waits for it.
func (m *lightMachine) tellGhost() {
	d := &m.disk
	if d.last.outcome == schema.OutcomeOK {
		m.w.ghost.did(m.dev.id, d.last.attempt)
	}
	version := ""
	if d.desired != nil {
		version = d.desired.Version
	}
	on := d.direction == forward || d.direction == back && !d.unknown
	m.w.ghost.acts(m.dev.id, d.install, d.begun, version, on)
}

func (m *lightMachine) marks() {} // its programs ask the device itself

func (m *lightMachine) start(ctl control) (program, error) {
	return &lightAgent{m: m, ctl: ctl}, nil
}

// lightAgent is one program on a lightMachine.
type lightAgent struct {
	m   *lightMachine
	ctl control

	phase    schema.Phase
	reason   string
	waiting  int64 // attempt of a document that waits without being desired
	recalled int64
	problem  string
	settle   time.Duration
	hold     bool
	busy     bool
	sent     string
	sentAt   time.Time
}

func (a *lightAgent) close() {}

// save changes the disk, which a crash may come before.
func (a *lightAgent) save(what string, f func(d *lightDisk)) error {
	if err := a.m.dev.point("writes " + what); err != nil {
		return err
	}
	f(&a.m.disk)
	a.m.tellGhost()
	return nil
}

// change is something that the device does to itself.
func (a *lightAgent) change(what string) error { return a.m.dev.point(what) }

func (a *lightAgent) pass(ctx context.Context) error {
	d := &a.m.disk
	switch d.direction {
	case back:
		if err := a.rollBack(ctx); err != nil {
			return err
		}
	case forward:
		if err := a.carryOut(ctx); err != nil {
			return err
		}
	}
	doc, problem, err := a.ctl.Look(ctx)
	for range 4 {
		if err != nil {
			return err
		}
		var next bool
		if next, err = a.consider(ctx, doc, problem); !next {
			break
		}
		doc, problem, err = a.ctl.Look(ctx)
	}
	if err != nil {
		return err
	}
	if a.content() != a.sent || a.m.w.now.Sub(a.sentAt) >= heartbeat {
		return a.tell(ctx)
	}
	return nil
}

// meaning is what a document means for the device.
type meaning int

const (
	means meaning = iota // nothing
	drop
	wait
	done
	begin
	goOn
)

// admit says what may begin.
func (a *lightAgent) admit(dl schema.Delivery, problem string) (meaning, string) {
	d, doc := &a.m.disk, dl.Assignment
	switch {
	case problem != "" || doc == nil:
		return means, problem
	case doc.Generation < d.generation:
		return means, "an older generation"
	case doc.For != d.install || doc.Spec == nil:
		return drop, ""
	case doc.Attempt <= d.last.attempt || doc.Attempt <= d.current.Attempt:
		if d.desired != nil {
			return drop, ""
		}
		return means, ""
	case doc.Hold != nil:
		return wait, ""
	case doc.Version == d.current.Version && doc.Digest == d.current.Digest && d.direction == "" && !d.unknown:
		return done, ""
	case d.desired != nil && doc.Attempt == d.desired.Attempt:
		return goOn, ""
	}
	return begin, ""
}

// consider acts on a document; next says that there is another one.
func (a *lightAgent) consider(ctx context.Context, dl schema.Delivery, problem string) (next bool, err error) {
	what, why := a.admit(dl, problem)
	a.phase, a.reason, a.waiting, a.problem = "", "", 0, why
	d, doc := &a.m.disk, dl.Assignment
	if doc != nil && problem == "" && doc.Generation >= d.generation {
		a.recalled, a.settle = doc.Recalled, doc.Settle.D(0)
		if doc.Generation > d.generation {
			if err := a.saw(doc); err != nil {
				return false, err
			}
		}
	}
	a.lookAround()
	switch what {
	case drop:
		return false, a.dropIt(ctx, doc)
	case wait:
		return false, a.waitForHold(ctx, doc)
	case done:
		return false, a.alreadyThere(ctx, doc)
	case begin:
		if err := a.endBegunBy(doc); err != nil {
			return false, err
		}
		if err := a.save("desired", func(d *lightDisk) { d.desired, d.tries = doc, 0 }); err != nil {
			return false, err
		}
		return a.update(ctx)
	case goOn:
		return a.update(ctx)
	}
	return false, nil
}

func (a *lightAgent) saw(doc *schema.Assignment) error {
	return a.save("generation", func(d *lightDisk) { d.generation, d.held = doc.Generation, doc.Hold != nil })
}

func (a *lightAgent) lookAround() { a.busy, a.hold = a.m.dev.busy, a.m.dev.held }

func (a *lightAgent) begunWork() bool {
	d := &a.m.disk
	return d.desired != nil && d.begun == d.desired.Attempt
}

// endBegunBy ends what was begun and put back, because doc takes its place.
func (a *lightAgent) endBegunBy(*schema.Assignment) error {
	if !a.begunWork() {
		return nil
	}
	return a.endBegun()
}

func (a *lightAgent) endBegun() error {
	des := a.m.disk.desired
	if err := a.save("failed mark", func(d *lightDisk) {
		d.last = lightEnd{des.Attempt, schema.OutcomeFailed, true, des.Digest, "preCheck"}
	}); err != nil {
		return err
	}
	return a.save("no desired", func(d *lightDisk) { d.desired = nil })
}

func (a *lightAgent) dropIt(ctx context.Context, doc *schema.Assignment) error {
	if a.begunWork() {
		if err := a.endBegun(); err != nil {
			return err
		}
		return a.tell(ctx)
	}
	d := &a.m.disk
	dropped := doc.Recalled
	if d.desired != nil {
		dropped = max(dropped, d.desired.Attempt)
	}
	if dropped > d.dropped && dropped > d.last.attempt {
		if err := a.save("dropped", func(d *lightDisk) { d.dropped = dropped }); err != nil {
			return err
		}
	}
	if d.desired == nil {
		return nil
	}
	if err := a.save("no desired", func(d *lightDisk) { d.desired = nil }); err != nil {
		return err
	}
	return a.tell(ctx)
}

func (a *lightAgent) waitForHold(ctx context.Context, doc *schema.Assignment) error {
	d := &a.m.disk
	if a.begunWork() {
		if err := a.endBegun(); err != nil {
			return err
		}
		return a.tell(ctx)
	}
	if d.desired != nil {
		if err := a.save("no desired", func(d *lightDisk) { d.desired = nil }); err != nil {
			return err
		}
	}
	a.waiting, a.reason = doc.Attempt, "held"
	return nil
}

func (a *lightAgent) alreadyThere(ctx context.Context, doc *schema.Assignment) error {
	if err := a.endBegunBy(doc); err != nil {
		return err
	}
	for _, f := range []func(d *lightDisk){
		func(d *lightDisk) {
			d.current.Attempt, d.current.Generation, d.okAt = doc.Attempt, doc.Generation, a.m.w.now
		},
		func(d *lightDisk) {
			d.last, d.tries = lightEnd{doc.Attempt, schema.OutcomeOK, false, doc.Digest, ""}, 0
		},
		func(d *lightDisk) { d.desired = nil },
	} {
		if err := a.save("that it is there already", f); err != nil {
			return err
		}
	}
	return a.tell(ctx)
}

// waits is why nothing may begin now.
func (a *lightAgent) waits() string {
	switch {
	case a.hold || a.m.disk.held:
		return "held"
	case a.busy:
		return "busy"
	}
	return ""
}

func (a *lightAgent) deferred(ctx context.Context, why string) error {
	if a.begunWork() {
		if err := a.endBegun(); err != nil {
			return err
		}
		return a.tell(ctx)
	}
	a.phase, a.reason = schema.PhaseWaiting, why
	return nil
}

// update leads the desired attempt from its pre-checks to its end.
func (a *lightAgent) update(ctx context.Context) (next bool, err error) {
	d := &a.m.disk
	if d.direction == back && a.begunWork() {
		return false, nil
	}
	if why := a.waits(); why != "" {
		return false, a.deferred(ctx, why)
	}
	a.phase = schema.PhasePreparing
	if err := a.change("prepares"); err != nil {
		return false, err
	}
	if a.m.w.kind(d.desired.Version) == refuses {
		outcome := schema.OutcomeRefused
		if a.begunWork() {
			outcome = schema.OutcomeFailed
		}
		des := d.desired
		if err := a.save("refusal", func(d *lightDisk) {
			d.last = lightEnd{des.Attempt, outcome, d.begun == des.Attempt, des.Digest, "preCheck"}
		}); err != nil {
			return false, err
		}
		if err := a.save("no desired", func(d *lightDisk) { d.desired = nil }); err != nil {
			return false, err
		}
		a.phase = ""
		return false, a.tell(ctx)
	}
	a.phase = schema.PhaseStarting
	if err := a.tell(ctx); err != nil {
		a.phase = ""
		return false, err
	}
	dl, problem, err := a.ctl.Look(ctx)
	if err != nil {
		a.phase = ""
		return false, err
	}
	if what, _ := a.admit(dl, problem); what != goOn {
		return true, nil
	}
	if dl.Assignment.Generation > d.generation {
		if err := a.saw(dl.Assignment); err != nil {
			return false, err
		}
	}
	a.lookAround()
	if why := a.waits(); why != "" {
		return false, a.deferred(ctx, why)
	}
	if err := a.save("that it begins", func(d *lightDisk) { d.direction, d.begun = forward, d.desired.Attempt }); err != nil {
		return false, err
	}
	return false, a.carryOut(ctx)
}

// carryOut changes the device; every part of it may be repeated.
func (a *lightAgent) carryOut(ctx context.Context) error {
	d := &a.m.disk
	if d.desired == nil {
		return errors.New("nothing is desired, and the device is on its way")
	}
	des := d.desired
	if d.current.Attempt != des.Attempt {
		a.phase = schema.PhaseApplying
		for _, what := range []string{"changes one half", "changes the other half"} {
			if err := a.change(what); err != nil {
				return err
			}
		}
		if k := a.m.w.kind(des.Version); k == fails || k == failsAgain {
			return a.fail(ctx, k)
		}
		if err := a.save("current", func(d *lightDisk) {
			d.current = schema.SpecRef{Generation: des.Generation, Attempt: des.Attempt, Version: des.Version, Digest: des.Digest}
			d.unknown, d.okAt = false, a.m.w.now
		}); err != nil {
			return err
		}
	}
	if err := a.save("ok", func(d *lightDisk) {
		d.last, d.direction, d.dropped, d.tries = lightEnd{des.Attempt, schema.OutcomeOK, true, des.Digest, ""}, "", 0, 0
	}); err != nil {
		return err
	}
	if err := a.save("no desired", func(d *lightDisk) { d.desired = nil }); err != nil {
		return err
	}
	a.phase = ""
	return a.tell(ctx)
}

// fail marks the failure, on disk before the way back begins.
func (a *lightAgent) fail(ctx context.Context, k kind) error {
	des := a.m.disk.desired
	final := k == fails || a.m.disk.tries+1 > a.m.w.retries
	if err := a.save("failure", func(d *lightDisk) {
		d.tries++
		d.direction = back
		if final {
			d.last = lightEnd{des.Attempt, schema.OutcomeFailed, true, des.Digest, "postAction"}
		}
	}); err != nil {
		return err
	}
	if final {
		if err := a.save("no desired", func(d *lightDisk) { d.desired = nil }); err != nil {
			return err
		}
	}
	return a.rollBack(ctx)
}

func (a *lightAgent) rollBack(ctx context.Context) error {
	d := &a.m.disk
	a.phase = schema.PhaseRollingBack
	if d.unknown {
		a.phase = ""
		return a.tell(ctx) // incomplete: what was applied is left in place
	}
	if d.desired != nil && d.desired.Attempt <= d.last.attempt {
		if err := a.save("no desired", func(d *lightDisk) { d.desired = nil }); err != nil {
			return err
		}
	}
	if err := a.change("goes back"); err != nil {
		return err
	}
	if err := a.save("that it is back", func(d *lightDisk) { d.direction = "" }); err != nil {
		return err
	}
	a.phase = ""
	return a.tell(ctx)
}

// report says what stands on disk and what is done right now.
func (a *lightAgent) report() *schema.Report {
	d := &a.m.disk
	r := &schema.Report{
		TypeMeta:  schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindReport},
		Metadata:  schema.Metadata{Name: a.m.dev.id},
		InstallID: d.install, AgentVersion: "v0.1.0", ProtocolVersion: 1,
		Capabilities:      []string{"confirm", "files", "hooks", "onDevice", "requires"},
		HeartbeatInterval: schema.Duration(heartbeat),
		Current:           d.current, Generation: d.generation, Busy: a.busy, Recalled: a.recalled, Assigned: a.problem,
	}
	if a.hold {
		r.Hold = &schema.Reason{Reason: "on the device"}
	}
	switch des := d.desired; {
	case des != nil:
		r.Desired = &schema.SpecRef{Generation: des.Generation, Attempt: des.Attempt, Version: des.Version, Digest: des.Digest}
		r.Attempt, r.Digest, r.Begun = des.Attempt, des.Digest, d.begun == des.Attempt
		r.Phase, r.Reason = a.phase, a.reason
		if d.tries > 0 && (r.Phase == "" || (r.Begun && r.Phase == schema.PhaseWaiting)) {
			r.Phase = schema.PhaseDegraded
		}
		if r.Phase == "" {
			r.Phase = schema.PhasePreparing
		}
	case a.waiting != 0:
		r.Attempt, r.Phase, r.Reason = a.waiting, schema.PhaseWaiting, a.reason
	case d.dropped > d.last.attempt:
		r.Attempt, r.Phase = d.dropped, schema.PhaseUpdated
	case d.last.attempt != 0:
		r.Attempt, r.Digest, r.Begun, r.Outcome, r.Stage = d.last.attempt, d.last.digest, d.last.begun, d.last.outcome, d.last.stage
		r.Phase = schema.PhaseError
		if d.last.outcome == schema.OutcomeOK {
			r.Phase = schema.PhaseUpdated
			r.Settled = a.m.w.now.Sub(d.okAt) >= a.settle
		}
	default:
		r.Phase = schema.PhaseUpdated
	}
	if d.direction == back {
		if d.unknown {
			if r.Desired == nil {
				r.Phase = schema.PhaseError
			}
		} else {
			r.Phase, r.Outcome, r.Settled = schema.PhaseRollingBack, "", false
		}
	}
	return r
}

// content is what of a report is worth sending by itself.
func (a *lightAgent) content() string {
	r := a.report()
	r.Busy = false
	b, _ := json.Marshal(r) // a report always encodes
	return string(b)
}

func (a *lightAgent) tell(ctx context.Context) error {
	r, content := a.report(), a.content()
	a.m.disk.sequence++
	r.Sequence, r.ReportedAt = a.m.disk.sequence, a.m.w.now.UTC().Truncate(time.Second)
	if err := a.ctl.Report(ctx, r); err != nil {
		return err
	}
	a.sent, a.sentAt = content, a.m.w.now
	return nil
}
