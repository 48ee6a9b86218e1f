package reconcile

import (
	"context"
	"errors"
	"fmt"

	"github.com/gitopsd/gitopsd/schema"
)

// observedFile is the spec of the attempt that attempts.json says is only
// compared with.
const observedFile = stateDir + "/observed.json"

// maxDifferences bounds those in a report; they are counted all the same.
const maxDifferences = 100

// observed is the attempt of the spec that was compared with last; 0 = none.
func (s *store) observed() int64 {
	if s.absent(observedFile) {
		return 0
	}
	r, err := s.whole(observedFile)
	if err != nil || !r.reportable() {
		return 0
	}
	return r.Attempt
}

// observe is all that is done about a spec that the device is only to be
// compared with: nothing is announced, nothing is fetched or run that could
// change something, and nothing but the agent's own records is written. From
// then on the device is left as it is, whatever it ran before, until it begins
// something.
func (a *Agent) observe(ctx context.Context, r record, spec *schema.Spec) Result {
	a.enter(schema.PhasePreparing, StagePreCheck)
	var found []Change
	cur, err := a.store.currentSpec()
	if err == nil {
		found, err = a.differences(ctx, cur, spec)
	}
	if err != nil {
		return a.fail(ctx, StagePreCheck, err)
	}
	if err := a.store.write(observedFile, r); err != nil {
		return a.stateFailed(err)
	}
	att := a.store.attempts.clone()
	att.Observes = r.Attempt
	what := wouldChangeText(len(found))
	att.end(ended{Attempt: r.Attempt, Version: r.Version, Digest: r.Digest, Outcome: schema.OutcomeObserved, Reason: what, At: a.now()})
	if att.Work.Attempt == r.Attempt {
		att.Work = work{}
	}
	if err := a.store.saveAttempts(att); err != nil {
		return a.stateFailed(err)
	}
	if err := a.store.dropDesired(); err != nil {
		return a.stateFailed(err)
	}
	a.drift, a.driftReason, a.wouldChange = nil, "", wouldChange(r.Version, found)
	a.prune()
	a.rest()
	a.log.Info("compared, and nothing changed", "version", r.Version, "attempt", r.Attempt, "would_change", len(found))
	a.tell(ctx)
	return Result{Summary: fmt.Sprintf("compared with %s, and changed nothing: %s", r.Version, what)}
}

// keepObserved writes the record of what the device is compared with again, where
// it is gone or damaged while the same is assigned: no other attempt would come
// that brings it.
func (a *Agent) keepObserved(doc *schema.Assignment) error {
	st := a.store
	if doc.Attempt != st.attempts.Observes || a.wouldChange != nil || st.observed() == doc.Attempt {
		return nil
	}
	r, err := recordOf(doc)
	if err == nil {
		err = st.write(observedFile, r)
	}
	return err
}

// observeAgain compares once more, and looks at what the device runs.
func (a *Agent) observeAgain(ctx context.Context) {
	found, version, err := a.observed(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		a.wouldChange = nil
		a.noRepairBecause("the device could not be compared with the spec that it observes", err)
	} else {
		a.noRepair.over(a.up())
		a.wouldChange = wouldChange(version, found)
	}
	if cur, err := a.store.currentSpec(); err == nil {
		_, err := a.lookAtUnits(ctx, cur)
		if err = errors.Join(err, a.lookAtApplications(ctx, cur)); err != nil {
			a.log.Debug("what the device runs could not be looked at", "error", err)
		}
	}
	a.changed()
}

func (a *Agent) observed(ctx context.Context) ([]Change, string, error) {
	r, err := a.store.whole(observedFile)
	if err != nil {
		return nil, "", err
	}
	if r.Attempt != a.store.attempts.Observes {
		return nil, "", fmt.Errorf("%s is of attempt %d", observedFile, r.Attempt)
	}
	spec, err := r.spec()
	if err != nil {
		return nil, "", err
	}
	cur, err := a.store.currentSpec()
	if err != nil {
		return nil, "", err
	}
	found, err := a.differences(ctx, cur, spec)
	return found, r.Version, err
}

func wouldChange(version string, found []Change) *schema.WouldChange {
	shown := []schema.Difference{}
	for i := range found[:min(len(found), maxDifferences)] {
		shown = append(shown, found[i].Difference)
	}
	return &schema.WouldChange{Version: version, Count: len(found), Differences: shown}
}

func wouldChangeText(n int) string {
	switch n {
	case 0:
		return "nothing would change"
	case 1:
		return "1 thing would change"
	}
	return fmt.Sprintf("%d things would change", n)
}
