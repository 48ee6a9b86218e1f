package protocoltest

import (
	"context"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

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
	same
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
	case doc.Attempt <= d.ended() || doc.Attempt <= d.current.Attempt:
		if d.desired != nil {
			return drop, ""
		}
		return same, ""
	case doc.Hold != nil:
		return wait, ""
	case doc.Version == d.current.Version && doc.Digest == d.current.Digest && d.direction == "" && !d.unknown && d.observes == 0:
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
	case same:
		return false, a.stay(ctx, doc)
	}
	return false, nil
}

// stay notices that what the device runs is assigned to it again.
func (a *lightAgent) stay(ctx context.Context, doc *schema.Assignment) error {
	d := &a.m.disk
	known := d.last.attempt == doc.Attempt || d.again == d.last.attempt
	if known && d.dropped == 0 || doc.Attempt != d.current.Attempt || doc.Digest != d.current.Digest || d.direction != "" || d.unknown || d.observes != 0 {
		return nil
	}
	if err := a.save("that it is assigned again", func(d *lightDisk) {
		d.again, d.taken, d.dropped = d.last.attempt, max(d.taken, d.dropped), 0
	}); err != nil {
		return err
	}
	return a.tell(ctx)
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
		d.taken = max(d.taken, a.recalled)
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
	if dropped > d.dropped && dropped > d.ended() {
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
	if a.m.w.kind(d.desired.Version) == observes {
		return false, a.observe(ctx)
	}
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
	if err := a.save("that it begins", func(d *lightDisk) {
		d.direction, d.begun, d.observes = forward, d.desired.Attempt, 0
		if a.m.w.boots && d.osFrom == "" {
			d.osFrom = d.booted
		}
	}); err != nil {
		return false, err
	}
	return false, a.carryOut(ctx)
}

// observe compares, and tells of it.
func (a *lightAgent) observe(ctx context.Context) error {
	des := a.m.disk.desired
	if err := a.save("that it has compared", func(d *lightDisk) {
		d.last, d.observes = lightEnd{des.Attempt, schema.OutcomeObserved, false, des.Digest, ""}, des.Attempt
	}); err != nil {
		return err
	}
	if err := a.save("no desired", func(d *lightDisk) { d.desired = nil }); err != nil {
		return err
	}
	a.phase = ""
	return a.tell(ctx)
}
