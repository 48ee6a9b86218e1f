package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/files"
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
	found, err := a.differences(ctx, spec)
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

func (a *Agent) observed(ctx context.Context) ([]schema.Difference, string, error) {
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
	found, err := a.differences(ctx, spec)
	return found, r.Version, err
}

// differences is what an update to the spec would change, also what of it it
// would be refused for. The error is for what could not be compared now.
func (a *Agent) differences(ctx context.Context, spec *schema.Spec) ([]schema.Difference, error) {
	cur, err := a.store.currentSpec()
	if err != nil {
		return nil, err
	}
	whole := wholeSet(spec)
	var list []schema.Difference
	cannot := func(err error) error {
		if err == nil {
			return nil
		}
		f := failure.From(err)
		if f.Class != schema.ClassPermanent {
			return err
		}
		list = append(list, schema.Difference{Field: f.Component, Name: f.Element, Do: schema.DoCannot, Detail: oneLine(f.Error())})
		return nil
	}
	if err := errors.Join(cannot(a.requirements(spec)), cannot(a.checkUnits(ctx, whole))); err != nil {
		return nil, err
	}
	paths, err := a.files.Compare(a.withoutMasks(whole), a.payload)
	if err != nil {
		return nil, err
	}
	for i := range paths {
		list = append(list, differenceOf(&paths[i]))
	}
	for _, compare := range []func(ctx context.Context, cur, spec *schema.Spec) ([]schema.Difference, error){a.compareUnits, a.compareApplications, a.compareOS, a.compareProgram} {
		more, err := compare(ctx, cur, spec)
		if err := cannot(err); err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

func differenceOf(d *files.Difference) schema.Difference {
	one := schema.Difference{Field: "files", Name: d.Path, Do: doOf(d), Detail: detail(d)}
	if d.Dir {
		one.Field = "directories"
	}
	return one
}

func (a *Agent) compareUnits(ctx context.Context, cur, spec *schema.Spec) ([]schema.Difference, error) {
	if a.units == nil {
		return nil, nil
	}
	_, unlike, err := a.units.Look(ctx, spec)
	var list []schema.Difference
	for _, d := range unlike {
		list = append(list, schema.Difference{Field: "units", Name: d.Unit, Do: schema.DoChange, Detail: oneLine(d.Why)})
	}
	for _, name := range slices.Sorted(maps.Keys(cur.Units)) {
		if spec.Units[name] == nil {
			list = append(list, schema.Difference{Field: "units", Name: name, Do: schema.DoRestore})
		}
	}
	return list, err
}

func (a *Agent) compareApplications(ctx context.Context, _, spec *schema.Spec) ([]schema.Difference, error) {
	changes, err := a.apps.Compare(ctx, spec, a.payload, a.files.Ahead(wholeSet(spec), a.payload))
	var list []schema.Difference
	for _, c := range changes {
		list = append(list, schema.Difference{Field: "applications", Name: c.Name, Do: c.Do})
	}
	return list, err
}

// compareOS asks what is booted. What the name of an image stands for would have
// to be fetched, so the name alone is compared where the device is not on it.
func (a *Agent) compareOS(ctx context.Context, cur, spec *schema.Spec) ([]schema.Difference, error) {
	if spec.OS == nil || a.os == nil {
		return nil, nil
	}
	booted, err := a.os.Booted(ctx)
	if err != nil {
		return nil, failureOf("os", spec.OS.Image, err)
	}
	want := spec.OS.Image
	if cur.OS != nil && cur.OS.Image == want {
		want = cmp.Or(a.store.current.OS, want)
	}
	if booted == want {
		return nil, nil
	}
	return []schema.Difference{{Field: "os", Name: spec.OS.Image, Do: schema.DoChange, Detail: oneLine(booted + " is booted")}}, nil
}

func wouldChange(version string, found []schema.Difference) *schema.WouldChange {
	shown := slices.Clone(found[:min(len(found), maxDifferences)])
	if shown == nil {
		shown = []schema.Difference{}
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
