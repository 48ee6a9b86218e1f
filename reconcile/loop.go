package reconcile

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/progress"
	"github.com/gitopsd/gitopsd/schema"
)

// pollJitter moves every poll by up to this part, either way, so that a fleet
// that was started together does not poll together.
const pollJitter = 0.1

// Once makes one pass: what an earlier run left, then one poll and what
// follows from it, then a report. It waits for neither retry nor settle.
func (a *Agent) Once(ctx context.Context) (Result, error) {
	a.eager = true
	if a.cfg.Heartbeat < a.cfg.Interval {
		a.cfg.Heartbeat = a.cfg.Interval // the next report comes with the next run
	}
	res, err := a.pass(ctx, true)
	if err != nil {
		return res, err
	}
	if ctx.Err() != nil {
		return res, ctx.Err()
	}
	if !res.Rebooting && !res.HandOver {
		a.repair(ctx)
	}
	a.changed()
	if a.reports.due() {
		if err := a.reports.flush(ctx); err != nil {
			res.Summary += "; the report was not accepted: " + oneLine(err.Error())
			if res.idle {
				res.Exit = 1
			}
		}
	}
	return res, nil
}

// Run polls, works and reports until ctx ends, which is no error, until a
// reboot was started, which is [ErrRebooting], or until another program is to
// go on, which is [ErrHandOver].
func (a *Agent) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(progress.With(ctx, a.cfg.Progress))
	defer cancel()
	wg.Go(func() { a.reports.run(ctx) })
	w := a.watch()
	defer w.close()
	a.noteUnits(ctx)
	defer a.asks.end()

	// All are uptimes.
	var lastPoll time.Duration
	nextPoll, nextDrift := a.up(), a.up() // what was found before is not on disk
	kept := false                         // busy or held, as it was looked at last
	for {
		progress.Within(ctx, stepLimit)
		now := a.up()
		poll := a.asks.take() || now >= nextPoll || a.tryFrom(lastPoll) == 0
		if poll {
			lastPoll, nextPoll = now, now+a.pollWait()
			a.pollsIn(nextPoll - now)
		}
		res, _ := a.pass(ctx, poll) // what went wrong is in the log and in the report
		a.asks.done(res)
		if ctx.Err() != nil {
			return nil
		}
		if res.Rebooting {
			return ErrRebooting
		}
		if res.HandOver {
			return ErrHandOver
		}
		if kept && a.waits() == "" {
			nextDrift = a.up() // what was seen meanwhile was not repaired
		}
		if now = a.up(); now >= nextDrift || w.due(now) {
			changed := a.repair(ctx)
			w.repaired(now, changed)
			if changed {
				a.watchedOf = 0 // a folder may have come back that is not watched any more
			}
			nextDrift = a.up() + driftEvery
		}
		kept = a.waits() != ""
		a.changed()
		w.follow(a.watched())

		rest := a.sleep(lastPoll, nextPoll, nextDrift, w)
		progress.Within(ctx, rest+stepLimit)
		timer := time.NewTimer(rest)
		select {
		case <-ctx.Done():
		case <-w.events():
			w.saw(a.up())
		case <-a.asks.signal:
			a.lookAround(ctx)
			a.changed()
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// pass notices lost state, goes on with what is unfinished, and polls.
func (a *Agent) pass(ctx context.Context, poll bool) (Result, error) {
	lost, err := a.store.verify()
	if err == nil && lost {
		a.rest()
		err = a.openRecords()
	}
	if err != nil {
		res := a.stateFailed(err)
		a.stateMark-- // to read it is enough then
		return res, fmt.Errorf("read the state: %w", err)
	}
	defer a.stateKept()
	defer a.monitor() // of the spec that is the current one then
	if !poll && !a.rollbackDue() {
		return Result{}, nil
	}
	if err := a.endLost(); err != nil {
		return a.stateFailed(err), nil
	}
	res, did := a.resume(ctx)
	att := &a.store.attempts
	switch {
	case res.Rebooting || res.HandOver || ctx.Err() != nil || !poll:
		return res, nil
	case att.Direction == forward || (att.Direction == back && att.Incomplete == ""):
		return res, nil // it goes on to its end before anything is decided
	case did && res.Exit != 0 && a.eager && att.Incomplete == "":
		return res, nil // the next run tries again
	}
	polled := a.poll(ctx)
	if did && polled.idle {
		return res, nil
	}
	return polled, nil
}

// endLost ends an attempt that had begun and whose spec is not known any more.
// If it was about to be recorded as done, it is; otherwise it can be neither
// finished nor tried again. In no case may it look as if it had never begun.
func (a *Agent) endLost() error {
	st := a.store
	w := st.attempts.Work
	if st.desired != nil || !w.Begun || w.Attempt <= st.attempts.highest() {
		return nil
	}
	att := st.attempts.clone()
	e := ended{
		Attempt: w.Attempt, Outcome: schema.OutcomeFailed, Begun: true, Stage: string(StageReconcile),
		Reason: "the record of what was being applied was lost", Failures: w.Failures, At: a.now(),
	}
	if w.Attempt == st.current.Attempt {
		e = ended{Attempt: w.Attempt, Version: st.current.Version, Digest: st.current.Digest, Outcome: schema.OutcomeOK, Begun: true, At: a.now()}
		att.Direction, att.Incomplete, att.Work, att.Dropped = steady, "", work{}, 0
	}
	att.end(e)
	a.log.Warn("an attempt ended whose record was lost", "attempt", e.Attempt, "outcome", e.Outcome)
	return st.saveAttempts(att)
}

// resume goes on with what an earlier start, or an earlier pass that could
// not write its state, left unfinished. It needs no control: what was begun
// was announced, and goes on to its end.
func (a *Agent) resume(ctx context.Context) (res Result, did bool) {
	first := !a.resumed
	a.resumed = true
	st := a.store
	switch st.attempts.Direction {
	case back:
		if !first && !a.rollbackDue() {
			return Result{}, false
		}
		return a.rollBack(ctx, a.lastFailure()), true
	case forward:
		return a.goOn(ctx, first), true
	}
	if st.pending != nil {
		if err := st.savePending(nil); err != nil {
			return a.stateFailed(err), true
		}
	}
	if err := a.apps.Own(); err != nil {
		return a.stateFailed(err), true
	}
	if first || st.programs.Trial != nil {
		if err := a.settleProgram(); err != nil {
			return a.stateFailed(err), true
		}
		if a.elsewhere() {
			return a.handOver(), true
		}
		a.prunePrograms() // they are large
	}
	return Result{}, false
}

const (
	// maxResumes is how many starts may find the same update half done: beyond
	// it, the update itself is what stops the device.
	maxResumes = 5
	// maxStops is the same for an agent that was told to stop. A person does so
	// now and then; what a release starts, each time.
	maxStops = 20
)

// goOn takes up an attempt that has begun to change the device.
func (a *Agent) goOn(ctx context.Context, first bool) Result {
	st := a.store
	d := st.desired
	if d == nil || d.Attempt != st.attempts.Work.Attempt {
		att := st.attempts.clone()
		att.Direction = back
		if err := st.saveAttempts(att); err != nil {
			return a.stateFailed(err)
		}
		return a.rollBack(ctx, "the record of what was being applied was lost")
	}
	if st.current.Attempt == d.Attempt {
		return a.succeed(ctx)
	}
	if t := st.programs.Trial; t != nil && t.Attempt == d.Attempt && t.GaveUp != "" {
		return a.fail(ctx, StagePostAction, failure.Permanent(programComponent, t.Version, "%s", t.GaveUp))
	}
	if first && !(a.reboots() && st.pending.Asks > 0) && !a.onTrial() {
		att := st.attempts.clone()
		att.Work.Resumes++
		if err := st.saveAttempts(att); err != nil {
			return a.stateFailed(err)
		}
		if n := att.Work.Resumes; n-att.Work.Stops > maxResumes || n > maxStops {
			return a.fail(ctx, StageReconcile, failure.Permanent("agent", "", "the agent or the device stopped %d times in the middle of it", n))
		}
	}
	r, spec, err := a.desiredNow()
	if err != nil {
		return a.stateOrFail(ctx, StageReconcile, err)
	}
	if a.reboots() {
		return a.afterReboot(ctx, &r, spec)
	}
	return a.carryOut(ctx, &r, spec, 0)
}

// rollbackDue says that an incomplete rollback, or one whose record could not
// be written, is to be tried again now.
func (a *Agent) rollbackDue() bool {
	return a.store.attempts.Direction == back && (a.eager || a.up() >= a.nextRollback)
}

// tryFrom is how long the next try of the desired attempt still waits, if it
// falls due after the last poll; 0 = it is due, negative = there is none.
func (a *Agent) tryFrom(lastPoll time.Duration) time.Duration {
	d := a.store.desired
	if d == nil || a.store.attempts.Direction != steady {
		return -1
	}
	w := a.store.attempts.of(d.Attempt)
	if w.NextTry.IsZero() || w.Failed.Up+w.Wait <= lastPoll {
		return -1
	}
	return max(a.retryIn(), 0)
}

func (a *Agent) pollWait() time.Duration {
	return time.Duration(float64(a.cfg.Interval) * (1 - pollJitter + 2*pollJitter*a.jitter()))
}

// sleep is how long nothing is due.
func (a *Agent) sleep(lastPoll, nextPoll, nextDrift time.Duration, w *watcher) time.Duration {
	now := a.up()
	d := min(nextPoll-now, nextDrift-now)
	if t := a.tryFrom(lastPoll); t >= 0 {
		d = min(d, t)
	}
	if a.store.attempts.Direction == back {
		d = min(d, a.nextRollback-now)
	}
	if t := a.settleIn(); t > 0 {
		d = min(d, t)
	}
	if t := w.dueIn(now); t >= 0 {
		d = min(d, t)
	}
	return max(d, 0)
}

// settleIn is how long the current spec must still hold until it has settled.
func (a *Agent) settleIn() time.Duration {
	cur := &a.store.current
	settle := cur.Settle
	if a.doc.attempt != 0 && a.doc.attempt == cur.Attempt {
		settle = a.doc.settle
	}
	if settle == nil || cur.Attempt == 0 {
		return 0
	}
	return time.Duration(*settle) - a.since(cur.OK)
}

func (a *Agent) settled() bool {
	last := a.store.attempts.last()
	return last != nil && last.Attempt == a.store.current.Attempt && a.settleIn() <= 0
}
