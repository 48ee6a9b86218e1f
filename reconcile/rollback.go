package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/apps"
	"github.com/gitopsd/gitopsd/reconcile/internal/files"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
	"github.com/gitopsd/gitopsd/schema"
)

// rollBack is the same work with from and to exchanged: it makes the device
// be the current spec again, continues past single errors, and tells all of
// them. The direction is on disk before it is called. what is the failure
// that led here. Whatever comes of it, the next try has to wait.
func (a *Agent) rollBack(ctx context.Context, what string) Result {
	a.rollbackWait = min(max(2*a.rollbackWait, firstRollbackWait), lastRollbackWait)
	a.nextRollback = a.up() + a.rollbackWait
	a.enter(schema.PhaseRollingBack, StageRollback)
	if p := a.store.pending; p != nil && !p.Rollback {
		if err := a.store.savePending(nil); err != nil {
			return a.stateFailed(err)
		}
	}
	// The old program itself puts the device back; it is known to be good.
	programErr := a.settleProgram()
	if a.elsewhere() && programErr == nil {
		return a.handOver()
	}
	if wait := a.bootedBack(ctx); wait != nil {
		return *wait
	}
	if a.store.current.Unknown {
		return a.incomplete(ctx, []error{errors.New("the last good spec is not known; what was applied is left in place")})
	}
	spec, err := a.store.currentSpec()
	if err != nil {
		return a.incomplete(ctx, []error{err})
	}
	errs := []error{programErr}
	due, err := a.osBack(ctx)
	if due {
		return a.rebootBack(ctx, spec)
	}
	errs = append(errs, err)
	whole := wholeSet(spec)
	errs = append(errs, a.prepareUnits(ctx, whole, true), a.prepareApplications(ctx, whole))
	way := apps.Back
	changed, err := a.files.Apply(ctx, whole, a.payload, files.Back)
	if errs = append(errs, err); err != nil {
		way = apps.BackInPart
	}
	_, err = a.finishUnits(ctx, whole, false)
	errs = append(errs, err)
	errs = append(errs, a.hooksBack(ctx, spec, changed, errors.Join(errs...)))
	errs = append(errs, a.backToApplications(ctx, spec, way))
	if ctx.Err() != nil {
		return a.stopped()
	}
	if errors.Join(errs...) != nil {
		return a.incomplete(ctx, errs)
	}
	return a.rolledBack(ctx, what)
}

// rebootBack goes to the old system before anything else is put back: it has an
// /etc of its own, as the update left it, and what is known of the files in it
// must last until it is booted.
func (a *Agent) rebootBack(ctx context.Context, spec *schema.Spec) Result {
	hc := a.backContext(nil)
	hc.RebootPending = true
	if err := a.runHooks(ctx, hooks.BeforeRebooting, spec, hc); err != nil {
		a.log.Warn("a hook failed before the reboot into the old system, which nothing keeps from happening", "error", err)
	}
	if ctx.Err() != nil {
		return a.stopped()
	}
	return a.reboot(ctx, a.store.attempts.Work.OSFrom, true)
}

// hooksBack runs the current spec's hooks and the device's own, so that what they restart runs
// with the files that came back. amiss is what could not be put right before.
func (a *Agent) hooksBack(ctx context.Context, spec *schema.Spec, changed []string, amiss error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	hc := a.backContext(changed)
	errs := []error{a.hooksAnew(amiss)}
	if p := a.store.pending; p != nil && p.Rollback && p.Boots > 0 && !p.Hooked {
		errs = append(errs, a.runHooks(ctx, hooks.AfterRebooting, spec, hc))
		done := *p
		done.Hooked = true
		errs = append(errs, a.store.savePending(&done))
	}
	errs = append(errs, a.runHooks(ctx, hooks.AfterUpdating, spec, hc))
	return errors.Join(errs...)
}

// backContext is what hooks are told on the way back.
func (a *Agent) backContext(changed []string) hooks.Context {
	st := &a.store.attempts
	hc := hooks.Context{
		Root: a.root.Dir(), Device: a.cfg.Device, To: a.store.current.Version, Attempt: st.Work.Attempt,
		Changed: merged(st.Work.Changed, changed), RollingBack: true,
	}
	if d := a.store.desired; a.begunWork() {
		hc.From = d.Version
	} else if l := st.failed(); l != nil {
		hc.From = l.Version
	}
	return hc
}

// rolledBack ends a rollback: the device is whole and on its current spec.
func (a *Agent) rolledBack(ctx context.Context, what string) Result {
	att := a.store.attempts.clone()
	att.Direction, att.Incomplete = steady, ""
	if a.store.desired == nil {
		att.Work = work{}
	} else {
		att.Work.OSFrom, att.Work.OSTo, att.Work.OSOpen, att.Work.Changed, att.Work.Hooks = "", "", false, nil, hookRuns{}
	}
	if err := a.store.saveAttempts(att); err != nil {
		return a.stateFailed(err)
	}
	if err := a.store.savePending(nil); err != nil {
		return a.stateFailed(err)
	}
	a.rollbackWait = 0
	a.noteUnits(ctx)
	a.prune()
	a.settleApplications(ctx)
	a.rest()
	to := "back on " + a.store.current.Version
	if a.store.current.Attempt == 0 {
		to = "what was there before the first release is back"
	}
	if lasted, was := a.noWayBack.over(a.up()); was {
		a.log.Info("rolled back", "version", a.store.current.Version, "after", lasted)
	} else {
		a.log.Info("rolled back", "version", a.store.current.Version)
	}
	a.tell(ctx)
	if a.store.desired != nil {
		return Result{Exit: 1, Summary: "a retry is due: " + what + "; " + to}
	}
	return Result{Exit: 1, Summary: "failed: " + what + "; " + to}
}

// incomplete says that the rollback could not finish; it is tried again.
func (a *Agent) incomplete(ctx context.Context, errs []error) Result {
	if ctx.Err() != nil {
		return a.stopped()
	}
	var all []string
	for _, err := range errs {
		if err != nil {
			all = append(all, bounded(strings.ReplaceAll(a.said(err), "\n", "; ")))
		}
	}
	why := bounded(strings.Join(all, "; "))
	if a.noWayBack.tell(why, a.up()) {
		a.log.Error("rollback incomplete; it is tried again until it is done, or a newer version takes its place", "next", a.rollbackWait, "atMost", lastRollbackWait, "error", why)
	}
	if att := a.store.attempts.clone(); att.Incomplete != why {
		att.Incomplete = why
		if err := a.store.saveAttempts(att); err != nil {
			return a.stateFailed(err)
		}
	}
	a.rest()
	a.tell(ctx)
	return Result{Exit: 1, Summary: "rollback incomplete: " + oneLine(why)}
}

// lastFailure is what led to a rollback that an earlier start began.
func (a *Agent) lastFailure() string {
	st := &a.store.attempts
	if d := a.store.desired; a.begunWork() {
		return fmt.Sprintf("attempt %d of %s: %s", d.Attempt, d.Version, degradedReason(st.of(d.Attempt)))
	}
	if l := st.failed(); l != nil {
		return fmt.Sprintf("attempt %d of %s: %s: %s", l.Attempt, l.Version, l.Stage, l.Reason)
	}
	return "an update whose record was lost"
}
