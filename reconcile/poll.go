package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// sanestYear is when this program was not yet written: a clock before it was
// never set, and certificates and times of reports would be wrong.
const sanestYear = 2024

// maxLooks is how often one pass follows a delivery ref that moves while it
// is being acted on.
const maxLooks = 4

func (c clock) clockSet() bool { return c.now().Year() >= sanestYear }

var errNoClock = errors.New("the clock is not set")

// look reads the delivery ref, and keeps payloads until they are on disk.
func (a *Agent) look(ctx context.Context) (schema.Delivery, string, error) {
	if !a.clockSet() {
		return schema.Delivery{}, "", fmt.Errorf("%w (it says %s)", errNoClock, a.now().UTC().Format(time.RFC3339))
	}
	d, problem, err := a.control.Look(ctx)
	if err == nil && len(d.Payloads) > 0 {
		a.payloads = d.Payloads
	}
	return d, problem, err
}

// poll asks control what is assigned, and acts on it.
func (a *Agent) poll(ctx context.Context) Result {
	d, problem, err := a.look(ctx)
	a.contacted(err)
	a.tellAskers(d, err)
	if err != nil {
		a.lookAround(ctx)
		return a.unanswered(ctx, err)
	}
	if lasted, was := a.silence.over(a.up()); was {
		a.log.Info("control answers again", "after", lasted)
		a.reports.again()
	}
	for range maxLooks {
		res, next := a.consider(ctx, d, problem)
		if next == nil {
			return res
		}
		d, problem = next.delivery, next.problem
	}
	return Result{Summary: "deferred: the assignment keeps changing"}
}

// unanswered is the result of a poll without an answer. Nothing depends on
// when there will be one: what runs goes on, and nothing new begins.
func (a *Agent) unanswered(ctx context.Context, err error) Result {
	if errors.Is(err, errNoClock) {
		if a.silence.tell("no clock", a.up()) {
			a.log.Warn("control is not asked until the clock is set; what the device runs stays", "error", err)
		}
		return Result{Exit: 1, Summary: "control was not asked: " + oneLine(err.Error()), idle: true}
	}
	if ctx.Err() == nil && a.silence.tell("no answer", a.up()) {
		a.log.Warn("control did not answer; it is asked again at each poll until it does, and nothing new begins before", "interval", a.cfg.Interval, "error", err)
	}
	return Result{Exit: 1, Summary: "control did not answer: " + oneLine(err.Error()), idle: true}
}

// found is another document than the one that was being acted on.
type found struct {
	delivery schema.Delivery
	problem  string
}

// consider acts on a document. next is a newer one that it came across.
func (a *Agent) consider(ctx context.Context, d schema.Delivery, problem string) (res Result, next *found) {
	verdict, why := admit(a.facts(), d, problem)
	a.rest()
	a.doc.problem = why
	if doc := d.Assignment; doc != nil && verdict != admitNothing {
		a.doc = docSeen{attempt: doc.Attempt, recalled: doc.Recalled, settle: doc.Settle, problem: why}
		if doc.Generation > a.store.attempts.Generation {
			if err := a.sawGeneration(doc); err != nil {
				return a.stateFailed(err), nil
			}
			a.logGeneration(doc)
		}
	}
	a.lookAround(ctx)
	a.keepPayloads(verdict, d.Assignment)
	switch verdict {
	case admitDrop:
		res = a.drop(ctx, d.Assignment, why)
	case admitHold:
		res = a.heldBack(ctx, d.Assignment)
	case admitDone:
		res = a.alreadyThere(ctx, d.Assignment)
	case admitBegin:
		if err := a.desire(d.Assignment); err != nil {
			return a.stateFailed(err), nil
		}
		if _, spec, err := a.store.desiredRecord(); err == nil {
			a.keep(spec) // a device that is busy for days must not hold them in memory
		}
		return a.update(ctx)
	case admitGoOn:
		return a.update(ctx)
	case admitSame:
		res = a.stay(ctx, d.Assignment)
	default:
		res = a.unchanged()
	}
	return res, nil
}

// logGeneration tells of a newer document; one that takes an attempt back has
// no version.
func (a *Agent) logGeneration(doc *schema.Assignment) {
	said := []any{"generation", doc.Generation}
	if doc.Version != "" {
		said = append(said, "attempt", doc.Attempt, "version", doc.Version)
	}
	if doc.Recalled > 0 {
		said = append(said, "recalled", doc.Recalled)
	}
	a.log.Info("new generation", said...)
}

// sawGeneration keeps what a newer document says, whoever it is for.
func (a *Agent) sawGeneration(doc *schema.Assignment) error {
	att := a.store.attempts.clone()
	att.Generation, att.Hold = doc.Generation, doc.Hold
	return a.store.saveAttempts(att)
}

// unchanged is the result of a pass that had nothing to do.
func (a *Agent) unchanged() Result {
	st := &a.store.attempts
	last := st.last()
	switch {
	case st.Incomplete != "":
		return Result{Exit: 1, Summary: "rollback incomplete: " + st.Incomplete}
	case a.doc.problem != "":
		return Result{Summary: "nothing to do: " + a.doc.problem, idle: true}
	case a.store.desired != nil:
		return Result{Summary: fmt.Sprintf("attempt %d of %s waits", a.store.desired.Attempt, a.store.desired.Version)}
	case last != nil && last.Outcome != schema.OutcomeOK:
		summary := fmt.Sprintf("on %s; %s ended as %s: %s", a.store.current.Version, last.Version, last.Outcome, oneLine(last.Reason))
		return Result{Summary: summary, idle: true, gaveUp: last.Outcome != schema.OutcomeObserved}
	}
	return Result{Summary: "nothing to do: on " + a.store.current.Version, idle: true}
}

// desire writes desired.json. What was desired before and had begun ends as
// failed; what had not is replaced: the latest wins.
func (a *Agent) desire(doc *schema.Assignment) error {
	if a.begunWork() {
		if err := a.endBegun(fmt.Sprintf("attempt %d took its place while it waited to be tried again", doc.Attempt)); err != nil {
			return err
		}
	}
	r, err := recordOf(doc)
	if err != nil {
		return err
	}
	a.log.Info("new version assigned", "version", doc.Version, "attempt", doc.Attempt, "from", a.store.current.Version)
	return a.store.saveDesired(r)
}

func recordOf(doc *schema.Assignment) (record, error) {
	b, err := json.Marshal(doc.Spec)
	if err != nil {
		return record{}, &stateError{fmt.Errorf("encode the assigned spec: %w", err)}
	}
	return record{Generation: doc.Generation, Attempt: doc.Attempt, Version: doc.Version, Digest: doc.Digest, Settle: doc.Settle, Spec: b}, nil
}

// begunWork says whether the desired attempt has changed the device before
// and was put back: it can only end as ok or failed.
func (a *Agent) begunWork() bool {
	d := a.store.desired
	return d != nil && a.store.attempts.of(d.Attempt).Begun
}

// drop lets go of what has not started; what has, and was put back, ends as
// failed.
func (a *Agent) drop(ctx context.Context, doc *schema.Assignment, why string) Result {
	if why == "" {
		why = "it was recalled"
	}
	if a.begunWork() {
		d := a.store.desired
		if err := a.endBegun(why + " while it waited to be tried again"); err != nil {
			return a.stateFailed(err)
		}
		a.tell(ctx)
		return Result{Exit: 1, Summary: fmt.Sprintf("attempt %d of %s failed: %s", d.Attempt, d.Version, why)}
	}
	att := a.store.attempts.clone()
	dropped := doc.Recalled
	if d := a.store.desired; d != nil {
		a.log.Info("deferred before it changed anything", "attempt", d.Attempt, "version", d.Version, "because", why)
		dropped = max(dropped, d.Attempt)
	}
	if dropped > att.Dropped && dropped > att.highest() {
		att.Dropped = dropped
		if err := a.store.saveAttempts(att); err != nil {
			return a.stateFailed(err)
		}
	}
	if a.store.desired == nil {
		a.changed()
		return a.unchanged()
	}
	if err := a.store.dropDesired(); err != nil {
		return a.stateFailed(err)
	}
	a.prune()
	a.tell(ctx)
	return Result{Summary: fmt.Sprintf("deferred: attempt %d: %s; the device keeps %s", dropped, why, a.store.current.Version)}
}

// heldBack drops what has not started because the document carries a hold.
func (a *Agent) heldBack(ctx context.Context, doc *schema.Assignment) Result {
	why := "held: " + doc.Hold.Reason
	if a.begunWork() && a.store.desired.Attempt == doc.Attempt {
		if !a.retryDue() {
			return a.degraded()
		}
		return a.endWaiting(ctx, why)
	}
	if a.store.desired != nil {
		if a.begunWork() {
			if err := a.endBegun("attempt " + fmt.Sprint(doc.Attempt) + " took its place"); err != nil {
				return a.stateFailed(err)
			}
		}
		if err := a.store.dropDesired(); err != nil {
			return a.stateFailed(err)
		}
	}
	a.live.attempt, a.live.reason = doc.Attempt, why
	a.changed()
	return Result{Summary: fmt.Sprintf("deferred: attempt %d of %s: %s", doc.Attempt, doc.Version, why)}
}

// alreadyThere ends a new attempt of what the device is already as ok.
func (a *Agent) alreadyThere(ctx context.Context, doc *schema.Assignment) Result {
	if a.begunWork() {
		if err := a.endBegun(fmt.Sprintf("attempt %d took its place", doc.Attempt)); err != nil {
			return a.stateFailed(err)
		}
	}
	a.log.Info("already there", "version", doc.Version, "attempt", doc.Attempt)
	r, err := recordOf(doc)
	if err == nil {
		r.OKAt, r.OK, r.OS = a.now(), a.instant(), a.store.current.OS
		err = a.store.saveCurrent(r)
	}
	if err == nil {
		att := a.store.attempts.clone()
		att.end(ended{Attempt: doc.Attempt, Version: doc.Version, Digest: doc.Digest, Outcome: schema.OutcomeOK, At: a.now()})
		att.Work = work{}
		err = a.store.saveAttempts(att)
	}
	if err == nil {
		err = a.store.dropDesired()
	}
	if err != nil {
		return a.stateFailed(err)
	}
	a.tell(ctx)
	return Result{Summary: fmt.Sprintf("already on %s", doc.Version)}
}

// stay takes it that what the device runs is assigned to it again, though later
// attempts ended otherwise: how they ended says nothing any more of how it is.
func (a *Agent) stay(ctx context.Context, doc *schema.Assignment) Result {
	if err := a.keepObserved(doc); err != nil {
		return a.stateFailed(err)
	}
	st, f := &a.store.attempts, a.facts()
	last := st.last()
	known := last == nil || last.Attempt == doc.Attempt && st.Dropped == 0
	if known || doc.Attempt != f.currentAttempt || doc.Version != f.version || doc.Digest != f.digest || !f.onCurrent {
		return a.unchanged()
	}
	att := st.clone()
	att.again(&a.store.current)
	if err := a.store.saveAttempts(att); err != nil {
		return a.stateFailed(err)
	}
	a.log.Info("assigned again", "version", doc.Version, "attempt", doc.Attempt)
	a.tell(ctx)
	return a.unchanged()
}

// stateFailed is the result when the record of what is being done cannot be
// written: nothing went on that it should have held. Nor is anything tried
// again at once.
func (a *Agent) stateFailed(err error) Result {
	var se *stateError
	if !errors.As(err, &se) {
		err = fmt.Errorf("state: %w", err)
	}
	a.nextRollback = max(a.nextRollback, a.up()+firstRollbackWait)
	a.stateMark = a.store.wrote
	if a.noState.tell(kindOf(err), a.up()) {
		a.log.Error("state cannot be kept; nothing goes on until it can, which is tried at each poll", "interval", a.cfg.Interval, "error", err)
	}
	why := oneLine(failure.Words(err))
	a.live.phase, a.live.reason = schema.PhaseDegraded, why
	a.changed()
	return Result{Exit: 1, Summary: "a retry is due: " + why}
}

// stateKept says that state can be kept again, once some of it was.
func (a *Agent) stateKept() {
	if a.store.wrote == a.stateMark {
		return
	}
	if lasted, was := a.noState.over(a.up()); was {
		a.log.Info("state can be kept again", "after", lasted)
	}
}

// tell reports an outcome at once. Where that fails it is sent again later.
func (a *Agent) tell(ctx context.Context) {
	a.changed()
	if err := a.reports.flush(ctx); err != nil && ctx.Err() == nil {
		a.reports.refused(err)
	}
}
