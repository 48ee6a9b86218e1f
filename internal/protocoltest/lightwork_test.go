package protocoltest

import (
	"context"
	"errors"

	"github.com/gitopsd/gitopsd/schema"
)

// carryOut changes the device; every part of it may be repeated.
func (a *lightAgent) carryOut(ctx context.Context) error {
	d := &a.m.disk
	if d.desired == nil {
		return errors.New("nothing is desired, and the device is on its way")
	}
	des := d.desired
	if d.current.Attempt != des.Attempt {
		if over, err := a.apply(ctx, des); over || err != nil {
			return err
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
		d.begun, d.osFrom, d.pending = 0, "", lightBoot{}
	}); err != nil {
		return err
	}
	if err := a.save("no desired", func(d *lightDisk) { d.desired = nil }); err != nil {
		return err
	}
	a.phase = ""
	return a.tell(ctx)
}

// apply makes the device what is desired, through a reboot where its system
// changes. over says that it has failed, or goes on after the boot.
func (a *lightAgent) apply(ctx context.Context, des *schema.Assignment) (over bool, err error) {
	d, w := &a.m.disk, a.m.w
	image, k := w.image(des.Version), w.kind(des.Version)
	if p := d.pending; p.attempt == des.Attempt && p.bootID == a.m.bootID() {
		return true, a.askReboot(ctx, p) // it has not happened yet
	} else if p.attempt == des.Attempt && d.booted != image {
		return true, a.fail(ctx, fails) // it came back as the old one
	}
	a.phase = schema.PhaseApplying
	if image != "" && d.booted != image {
		if err := a.save("what is staged", func(d *lightDisk) { d.staged = image }); err != nil {
			return false, err
		}
	}
	for _, what := range []string{"changes one half", "changes the other half"} {
		if err := a.change(what); err != nil {
			return false, err
		}
	}
	switch {
	case k == failsAgain, k == fails && image == "":
		return true, a.fail(ctx, k)
	case image != "" && d.booted != image:
		return true, a.askReboot(ctx, lightBoot{des.Attempt, image, a.m.bootID()})
	case k == fails:
		return true, a.fail(ctx, k)
	}
	return false, nil
}

// askReboot puts on disk what the next boot must prove. The report before it
// is a courtesy.
func (a *lightAgent) askReboot(ctx context.Context, p lightBoot) error {
	if err := a.save("pending boot", func(d *lightDisk) { d.pending = p }); err != nil {
		return err
	}
	if a.phase != schema.PhaseRollingBack {
		a.phase = schema.PhaseRebooting
	}
	if err := a.tell(ctx); errors.Is(err, errDead) || errors.Is(err, errStuck) {
		return err
	}
	if err := a.change("asks for a reboot"); err != nil {
		return err
	}
	a.m.dev.goingDown = true
	return errReboots
}

// errReboots ends a pass: the machine goes down.
var errReboots = errors.New("a reboot was started")

// fail marks the failure, on disk before the way back begins.
func (a *lightAgent) fail(ctx context.Context, k kind) error {
	des := a.m.disk.desired
	final := k == fails || a.m.disk.tries+1 > a.m.w.retries
	if err := a.save("failure", func(d *lightDisk) {
		d.tries++
		d.direction, d.pending = back, lightBoot{}
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
	if from := d.osFrom; from != "" && d.booted != from {
		if err := a.save("what is staged", func(d *lightDisk) { d.staged = from }); err != nil {
			return err
		}
		return a.askReboot(ctx, lightBoot{image: from, bootID: a.m.bootID()})
	}
	if err := a.change("goes back"); err != nil {
		return err
	}
	if err := a.save("that it is back", func(d *lightDisk) {
		d.direction, d.staged, d.osFrom, d.pending = "", "", "", lightBoot{}
	}); err != nil {
		return err
	}
	a.phase = ""
	return a.tell(ctx)
}
