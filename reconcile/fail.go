package reconcile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// Defaults and bounds of spec.onDevice.
const (
	DefaultRetries    = 3
	maxRetries        = 1000 // more would never end within an updateTimeout
	retryBase         = 10 * time.Second
	retryFactor       = 2
	retryCap          = 10 * time.Minute
	longestWait       = 24 * time.Hour // whatever a spec says
	retryJitter       = 0.25           // of the wait, either way
	messageLimit      = 8 << 10        // bytes of one failure in a report
	keptFailures      = 5              // of one attempt in its report
	firstRollbackWait = 10 * time.Second
	lastRollbackWait  = 5 * time.Minute
)

var zeroTime time.Time

// fail records a failure of the desired attempt, puts the device back where
// it has begun to change, and says so. The record is on disk before the
// rollback starts, because power may go in between.
func (a *Agent) fail(ctx context.Context, stage Stage, err error) Result {
	if ctx.Err() != nil {
		return a.stopped()
	}
	f := failure.From(err)
	why := a.said(f)
	d := a.store.desired
	att := a.store.attempts.clone()
	w := att.of(d.Attempt)
	acting := att.Direction == forward
	if f.Class == schema.ClassDeferred && !acting {
		return a.deferred(ctx, stage, why)
	}
	retries, backoff := a.retryRules()
	w.Tries++
	w.note(schema.Failure{
		Attempt: d.Attempt, Digest: d.Digest, Stage: string(stage), Component: f.Component, Element: f.Element,
		Class: f.Class, Message: bounded(why), Tries: w.Tries,
	})
	usedUp := w.Tries > retries
	if p := a.store.pending; acting && p != nil && !p.Rollback {
		w.Boots += p.Boots
	}
	lastBoot := acting && w.Boots >= maxBoots
	proved := stage == StagePostAction && !failure.OfDisk(err) // which proves nothing
	final := proved || f.Class == schema.ClassPermanent || usedUp || lastBoot
	a.log.Warn("attempt failed", "attempt", d.Attempt, "version", d.Version, "stage", stage, "class", f.Class, "tries", w.Tries, "final", final, "error", err)
	if !final {
		w.wait(a.clock, backoff(w.Tries, a.jitter()))
	}
	w.Resumes, w.Stops = 0, 0
	att.Work = w
	outcome := schema.OutcomeFailed
	if !w.Begun {
		outcome = schema.OutcomeExhausted
		if f.Class == schema.ClassPermanent {
			outcome = schema.OutcomeRefused
		}
	}
	if final {
		att.end(ended{
			Attempt: d.Attempt, Version: d.Version, Digest: d.Digest, Outcome: outcome, Begun: w.Begun,
			Stage: string(stage), Reason: oneLine(why), Failures: w.Failures, At: a.now(),
		})
	}
	if acting {
		att.Direction = back
	}
	if err := a.store.saveAttempts(att); err != nil {
		return a.stateFailed(err)
	}
	if final {
		if err := a.store.dropDesired(); err != nil {
			return a.stateFailed(err)
		}
	}
	what := fmt.Sprintf("attempt %d of %s: %s: %s", d.Attempt, d.Version, stage, oneLine(why))
	if acting {
		return a.rollBack(ctx, what)
	}
	a.rest()
	a.tell(ctx)
	if final {
		a.prune()
		return Result{Exit: 1, Summary: fmt.Sprintf("%s: %s", outcome, what)}
	}
	return Result{Exit: 1, Summary: "a retry is due: " + what}
}

// stateOrFail tells a failure of the work from one of its record.
func (a *Agent) stateOrFail(ctx context.Context, stage Stage, err error) Result {
	var se *stateError
	if errors.As(err, &se) {
		return a.stateFailed(err)
	}
	return a.fail(ctx, stage, err)
}

// stopped is the result when the agent is told to end: no failure of
// anything; the next start goes on from disk.
func (a *Agent) stopped() Result {
	if att := a.store.attempts.clone(); att.Direction == forward {
		att.Work.Stops++
		if err := a.store.saveAttempts(att); err != nil {
			a.log.Warn("state cannot be kept", "error", err)
		}
	}
	return Result{Summary: "stopped; the next start goes on from here"}
}

// note keeps the newest failures, one for each element of a stage.
func (w *work) note(f schema.Failure) {
	w.Failures = slices.DeleteFunc(w.Failures, func(o schema.Failure) bool {
		return o.Stage == f.Stage && o.Component == f.Component && o.Element == f.Element
	})
	w.Failures = append(w.Failures, f)
	if n := len(w.Failures); n > keptFailures {
		w.Failures = slices.Clone(w.Failures[n-keptFailures:])
	}
}

// bounded keeps a message's first line, which tells the cause, and its end: that
// is where tools say what was wrong.
func bounded(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= messageLimit {
		return s
	}
	mark := "… "
	if first, _, below := strings.Cut(s, "\n"); below && len(first) < messageLimit/2 {
		mark = first + "\n" + mark
	}
	s = s[len(s)-messageLimit+len(mark):]
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return mark + s
}

// deferred says that the attempt waits. Where it had begun before, being busy
// when its next try is due ends it: the slot is not held for ever.
func (a *Agent) deferred(ctx context.Context, stage Stage, why string) Result {
	if ctx.Err() != nil {
		return a.stopped() // a check that was stopped is no answer
	}
	if a.begunWork() {
		return a.endWaiting(ctx, why)
	}
	d := a.store.desired
	a.live.phase, a.live.stage, a.live.reason = schema.PhaseWaiting, string(stage), oneLine(why)
	if a.waiting.tell(why, a.up()) {
		a.log.Info("deferred", "attempt", d.Attempt, "version", d.Version, "because", why)
	}
	a.changed()
	return Result{Summary: fmt.Sprintf("deferred: attempt %d of %s: %s", d.Attempt, d.Version, why)}
}

// notYet is the result when control is needed and does not answer: neither a
// failure nor a deferral, the next poll tries again.
func (a *Agent) notYet(ctx context.Context, what string, err error) Result {
	if ctx.Err() != nil {
		return a.stopped()
	}
	if a.unannounced.tell(what, a.up()) {
		a.log.Warn(what+"; nothing was begun, and it is tried again with each poll", "interval", a.cfg.Interval, "error", err)
	}
	a.live.phase, a.live.stage, a.live.reason = "", "", ""
	a.changed()
	return Result{Exit: 1, Summary: fmt.Sprintf("%s: %s; nothing was begun", what, oneLine(err.Error()))}
}

// endWaiting ends an attempt that was begun and rolled back, and says so.
func (a *Agent) endWaiting(ctx context.Context, why string) Result {
	d := a.store.desired
	if err := a.endBegun("when its next try was due: " + why); err != nil {
		return a.stateFailed(err)
	}
	a.rest()
	a.tell(ctx)
	return Result{Exit: 1, Summary: fmt.Sprintf("failed: attempt %d of %s: %s", d.Attempt, d.Version, why)}
}

// endBegun records as failed what was begun and has been put back.
func (a *Agent) endBegun(why string) error {
	d := a.store.desired
	att := a.store.attempts.clone()
	w := att.of(d.Attempt)
	reason := why
	stage := string(StagePreCheck)
	if n := len(w.Failures); n > 0 {
		reason = oneLine(w.Failures[n-1].Message) + "; " + why
		stage = w.Failures[n-1].Stage
	}
	att.tookBack(a.doc.recalled)
	att.end(ended{
		Attempt: d.Attempt, Version: d.Version, Digest: d.Digest, Outcome: schema.OutcomeFailed, Begun: true,
		Stage: stage, Reason: oneLine(reason), Failures: w.Failures, At: a.now(),
	})
	if err := a.store.saveAttempts(att); err != nil {
		return err
	}
	a.log.Warn("attempt ended as failed", "attempt", d.Attempt, "version", d.Version, "because", why)
	return a.store.dropDesired()
}

// degraded is the result while a retry waits for its time.
func (a *Agent) degraded() Result {
	d := a.store.desired
	w := a.store.attempts.of(d.Attempt)
	a.changed()
	return Result{Exit: 1, Summary: fmt.Sprintf("attempt %d of %s: %s", d.Attempt, d.Version, degradedReason(w))}
}

// retryDue says whether the desired attempt may be tried now.
func (a *Agent) retryDue() bool { return a.retryIn() <= 0 }

// retryIn is how long the desired attempt still waits.
func (a *Agent) retryIn() time.Duration {
	d := a.store.desired
	if d == nil || a.eager {
		return 0
	}
	w := a.store.attempts.of(d.Attempt)
	if w.NextTry.IsZero() {
		return 0
	}
	return w.Wait - a.since(w.Failed)
}

// retryRules reads what the desired spec says of retries, if it can be read.
func (a *Agent) retryRules() (retries int, backoff func(n int, jitter float64) time.Duration) {
	on := &schema.OnDevice{}
	if _, spec, err := a.store.desiredRecord(); err == nil && spec.OnDevice != nil {
		on = spec.OnDevice
	}
	retries = DefaultRetries
	if on.Retries != nil {
		retries = min(max(*on.Retries, 0), maxRetries)
	}
	return retries, func(n int, jitter float64) time.Duration { return retryWait(on.Backoff, n, jitter) }
}

// retryWait is base × factor^(n−1), at most cap, moved by the jitter.
func retryWait(b *schema.Backoff, n int, jitter float64) time.Duration {
	if b == nil {
		b = &schema.Backoff{}
	}
	factor := b.Factor
	if !(factor >= 1) { // not a number, too
		factor = retryFactor
	}
	base := b.Base.D(retryBase)
	// Who asks for a long base alone does not mean our own short cap.
	limit := float64(min(b.Cap.D(max(retryCap, base)), longestWait))
	wait := math.Min(float64(base)*math.Pow(factor, float64(n-1)), limit)
	if math.IsNaN(wait) {
		wait = limit
	}
	return time.Duration(wait * (1 - retryJitter + 2*retryJitter*jitter))
}
