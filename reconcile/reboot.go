package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
	"github.com/gitopsd/gitopsd/schema"
)

const (
	// maxBoots into a new system, or back into the old one, may go without
	// success; then the device stays up and says so.
	maxBoots = 3
	// maxAsks bounds how often a reboot that does not happen is asked for.
	maxAsks = 10
	// rebootReportWait bounds the report before a reboot: it is a courtesy.
	rebootReportWait = 15 * time.Second
)

// stageOS has the image booted or staged when it returns nil; rebootDue says
// which. What else is staged goes, because the next boot would be into it.
func (a *Agent) stageOS(ctx context.Context, image string) (rebootDue bool, err error) {
	if a.os == nil {
		return false, failure.Permanent("os", image, "this agent has no os driver configured")
	}
	booted, staged, err := a.slots(ctx)
	if err != nil {
		return false, failureOf("os", image, err)
	}
	to := a.store.attempts.Work.target(image)
	if open := a.store.attempts.Work.OSOpen; open || (booted != to && staged != to) {
		if err := a.os.Stage(ctx, to); err != nil {
			return false, failureOf("os", image, err)
		}
		if booted, staged, err = a.slots(ctx); err != nil {
			return false, failureOf("os", image, err)
		}
		if open {
			to = cmp.Or(staged, booted)
			if err := a.learn(to); err != nil {
				return false, err
			}
		}
	}
	switch {
	case booted == to && (staged == "" || staged == to):
		return false, nil
	case booted == to:
		return false, a.unstage(ctx, booted, staged)
	case staged == to:
		return true, nil
	}
	return false, failure.Retryable("os", image, "staging ended well, but %q is staged", staged)
}

// slots gives what is booted and what is staged.
func (a *Agent) slots(ctx context.Context) (booted, staged string, err error) {
	if booted, err = a.os.Booted(ctx); err == nil {
		staged, err = a.os.Staged(ctx)
	}
	return booted, staged, err
}

// target is the version that must be booted in the end, which stays the same
// where the image's name becomes another one meanwhile.
func (w *work) target(image string) string { return cmp.Or(w.OSTo, image) }

// learn keeps the version that staging told.
func (a *Agent) learn(version string) error {
	att := a.store.attempts.clone()
	att.Work.OSTo, att.Work.OSOpen = version, false
	if err := a.store.saveAttempts(att); err != nil {
		return err
	}
	if p := a.store.pending; p != nil && !p.Rollback {
		told := *p
		told.Image = version
		return a.store.savePending(&told)
	}
	return nil
}

// unstage drops what is staged while the booted system is to stay.
func (a *Agent) unstage(ctx context.Context, booted, staged string) error {
	if err := a.os.Undo(ctx, booted); err != nil {
		return failureOf("os", staged, err)
	}
	now, err := a.os.Staged(ctx)
	if err != nil {
		return failureOf("os", staged, err)
	}
	if now == staged {
		return failure.Retryable("os", staged, "undoing ended well, but it is still staged")
	}
	return nil
}

// reboot puts on disk what the next boot must prove, and starts a reboot.
func (a *Agent) reboot(ctx context.Context, image string, rollback bool) Result {
	id, err := a.os.BootID()
	if err != nil {
		return a.rebootFailed(ctx, rollback, failureOf("os", image, err))
	}
	p := pending{Image: image, Rollback: rollback, Asked: a.now(), AskedUp: a.instant(), BootID: id}
	if d := a.store.desired; d != nil {
		p.Attempt = d.Attempt
	}
	if old := a.store.pending; old != nil && old.Rollback == rollback && old.Image == image {
		p.Boots = old.Boots
		if old.BootID == id && old.Asks > 0 && old.Boots == 0 {
			p.Asked, p.AskedUp, p.Asks = old.Asked, old.AskedUp, old.Asks
		}
	}
	return a.askReboot(ctx, p)
}

func (a *Agent) askReboot(ctx context.Context, p pending) Result {
	p.Asks++
	if err := a.store.savePending(&p); err != nil {
		return a.stateFailed(err)
	}
	phase := schema.PhaseRebooting
	if p.Rollback {
		phase = schema.PhaseRollingBack
	}
	a.enter(phase, StageReboot)
	told, cancel := context.WithTimeout(ctx, rebootReportWait)
	a.tell(told)
	cancel()
	if err := a.os.Reboot(ctx); err != nil {
		return a.rebootFailed(ctx, p.Rollback, failureOf("os", p.Image, err))
	}
	a.log.Info("reboot started", "image", p.Image, "rollback", p.Rollback)
	return Result{Summary: "a reboot into " + p.Image + " was started", Rebooting: true}
}

func (a *Agent) rebootFailed(ctx context.Context, rollback bool, err error) Result {
	if ctx.Err() != nil {
		return a.stopped()
	}
	if rollback {
		return a.incomplete(ctx, []error{err})
	}
	return a.fail(ctx, StageReboot, err)
}

// expectBoot puts on disk which boot this is, before an image is staged: a
// power cut may boot it before it is asked for.
func (a *Agent) expectBoot(image string) error {
	id, err := a.os.BootID()
	if err != nil {
		return failureOf("os", image, err)
	}
	return a.store.savePending(&pending{Attempt: a.store.desired.Attempt, Image: image, BootID: id})
}

// reboots says that the desired attempt comes with a boot that must be proved.
func (a *Agent) reboots() bool {
	p := a.store.pending
	return p != nil && p.Image != "" && !p.Rollback
}

// sawBoot brings the pending boot up to date with the boot id; same says that
// no boot has happened since the reboot was asked for.
func (a *Agent) sawBoot() (same bool, err error) {
	p := *a.store.pending
	id, err := a.os.BootID()
	if err != nil {
		return false, failureOf("os", p.Image, err)
	}
	if id == p.BootID {
		return p.Boots == 0, nil
	}
	p.BootID, p.Boots, p.BootedAt, p.BootedUp = id, p.Boots+1, a.now(), a.instant()
	p.Hooked, p.Deadline = false, zeroTime
	return false, a.store.savePending(&p)
}

// overdue says that a reboot that was asked for does not happen.
func (a *Agent) overdue() bool {
	p := a.store.pending
	return p.Asks >= maxAsks || a.since(p.AskedUp) >= a.cfg.BootTimeout
}

// afterReboot goes on with an attempt after the boot that it asked for, or
// finds that the boot led elsewhere.
func (a *Agent) afterReboot(ctx context.Context, r *record, spec *schema.Spec) Result {
	if a.os == nil {
		return a.fail(ctx, StageReboot, failure.Permanent("os", "", "this agent has no os driver configured any more"))
	}
	same, err := a.sawBoot()
	if err != nil {
		return a.stateOrFail(ctx, StageReboot, err)
	}
	p := *a.store.pending
	if same && p.Asks == 0 {
		return a.carryOut(ctx, r, spec, 0) // it has not come to the reboot yet
	}
	if same {
		if a.overdue() {
			return a.fail(ctx, StageReboot, failure.Retryable("os", p.Image, "a reboot was started %d times and has not happened", p.Asks))
		}
		return a.askReboot(ctx, p)
	}
	boots := a.store.attempts.of(r.Attempt).Boots + p.Boots
	if boots > maxBoots {
		return a.fail(ctx, StageReboot, failure.Permanent("os", p.Image, "%d boots into it without success", boots-1))
	}
	left := a.cfg.BootTimeout - a.since(p.BootedUp)
	bounded, cancel := context.WithTimeout(ctx, max(left, time.Second))
	defer cancel()
	booted, err := a.os.Booted(bounded)
	has := true
	if err == nil && booted != p.Image {
		has, err = a.os.Has(bounded, p.Image)
	}
	if err != nil {
		if left > 0 && ctx.Err() == nil {
			a.log.Warn("the booted system cannot be told yet; it is asked again with each poll, and the update is taken back if that does not help in time", "left", left.Round(time.Second), "error", err)
			return Result{Exit: 1, Summary: "the booted system cannot be told yet: " + oneLine(err.Error())}
		}
		return a.fail(ctx, StageReboot, failure.Permanent("os", p.Image, "the booted system could not be told within %s: %w", a.cfg.BootTimeout, err))
	}
	if booted != p.Image && (p.Asks == 0 || (!has && boots < maxBoots)) {
		return a.bootedTooEarly(ctx, r, spec)
	}
	if booted != p.Image {
		return a.fail(ctx, StageReboot, failure.Permanent("os", p.Image, "the system came back as %s", booted))
	}
	if !p.Hooked {
		a.enter(schema.PhaseVerifying, StageReboot)
		if err := a.runHooks(bounded, hooks.AfterRebooting, spec, a.hookContext(r)); err != nil {
			return a.stateOrFail(ctx, StagePostAction, bootBound(ctx, bounded, err))
		}
		p.Hooked = true
		if err := a.store.savePending(&p); err != nil {
			return a.stateFailed(err)
		}
	}
	return a.carryOut(ctx, r, spec, max(left, time.Second))
}

// bootedTooEarly goes on with an attempt after a boot that came before its image
// was in place, and so says nothing of it. One that was asked for counts all the
// same: what never gets in place must come to an end.
func (a *Agent) bootedTooEarly(ctx context.Context, r *record, spec *schema.Spec) Result {
	p := a.store.pending
	if p.Asks > 0 {
		a.log.Warn("the system went down before the staged image was in place; it is staged again", "image", p.Image)
		att := a.store.attempts.clone()
		att.Work.Boots += p.Boots
		if err := a.store.saveAttempts(att); err != nil {
			return a.stateFailed(err)
		}
	}
	if err := a.expectBoot(p.Image); err != nil {
		return a.stateOrFail(ctx, StageReboot, err)
	}
	return a.carryOut(ctx, r, spec, 0)
}

// bootBound names boot.timeout as the cause where it was.
func bootBound(ctx, work context.Context, err error) error {
	if ctx.Err() == nil && errors.Is(work.Err(), context.DeadlineExceeded) {
		return failure.Permanent("os", "", "not done within boot.timeout after the boot: %w", err)
	}
	return err
}

// osBack has the system that was booted before the attempt booted or next to
// boot; due says that it takes a reboot.
func (a *Agent) osBack(ctx context.Context) (due bool, err error) {
	from := a.store.attempts.Work.OSFrom
	if from == "" || a.os == nil {
		return false, nil
	}
	booted, staged, err := a.slots(ctx)
	if err != nil {
		return false, failureOf("os", from, err)
	}
	if booted == from {
		if staged == "" || staged == from {
			return false, nil
		}
		return false, a.unstage(ctx, booted, staged)
	}
	if p := a.store.pending; p != nil && p.Rollback && p.Boots >= maxBoots {
		return false, failure.Retryable("os", from, "after %d reboots the system is still %s", p.Boots, booted)
	}
	if staged != from {
		// undoing makes the old system the next one where it is still there
		if err := a.os.Undo(ctx, from); err != nil {
			a.log.Warn("undoing the staged system did not work; staging the old one", "error", err)
		}
		if staged, err = a.os.Staged(ctx); err != nil {
			return false, failureOf("os", from, err)
		}
	}
	if staged != from {
		if err := a.os.Stage(ctx, from); err != nil {
			return false, failureOf("os", from, err)
		}
		if staged, err = a.os.Staged(ctx); err != nil {
			return false, failureOf("os", from, err)
		}
	}
	if staged != from {
		return false, failure.Retryable("os", from, "%q is staged instead", staged)
	}
	return true, nil
}

// bootedBack deals with the boot that a rollback asked for, before it goes
// on. wait is a result to return instead.
func (a *Agent) bootedBack(ctx context.Context) (wait *Result) {
	p := a.store.pending
	if p == nil || !p.Rollback || a.os == nil {
		return nil
	}
	same, err := a.sawBoot()
	if err != nil {
		var se *stateError
		if errors.As(err, &se) {
			res := a.stateFailed(err)
			return &res
		}
		res := a.incomplete(ctx, []error{err})
		return &res
	}
	if !same {
		return nil
	}
	var res Result
	if a.overdue() {
		res = a.incomplete(ctx, []error{fmt.Errorf("a reboot was started %d times and has not happened", p.Asks)})
	} else {
		res = a.askReboot(ctx, *p)
	}
	return &res
}
