package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/files"
	"github.com/gitopsd/gitopsd/schema"
)

// driftEvery is how often everything is compared; files in watched folders
// are repaired as they change.
const driftEvery = 5 * time.Minute

// repair compares the device with its current spec and puts right what
// differs, unless it is on its way somewhere. Hooks do not run for it. A device
// that is busy or held, or only observes, is compared and left as it is: who
// works on it by hand has to see what will be put right afterwards. changed says
// that it found something to repair.
func (a *Agent) repair(ctx context.Context) (changed bool) {
	st := a.store
	observes := st.attempts.Observes != 0
	if st.attempts.Direction != steady || !observes && (st.current.Unknown || st.current.Attempt == 0) {
		return false
	}
	a.lookAround(ctx)
	waits := a.waits() != ""
	if observes {
		a.observeAgain(ctx)
		return false
	}
	spec, err := st.currentSpec()
	if err != nil {
		a.noRepairBecause("the current spec cannot be read, and drift not be looked for", err)
		return false
	}
	var paths []string
	a.drift, a.driftReason = nil, ""
	whole := wholeSet(spec)
	look := waits || spec.OnDevice != nil && spec.OnDevice.Drift == schema.DriftReport
	if look {
		a.drift, err = a.files.Drift(whole, a.payload)
		if err != nil {
			a.driftReason = "drift could not be looked for: " + oneLine(err.Error())
		}
	} else if paths, err = a.mend(ctx, whole); err != nil {
		if ctx.Err() != nil {
			return false
		}
		a.noRepairBecause(schema.DriftUnrepaired, err)
		a.driftReason = schema.DriftUnrepaired + ": " + oneLine(err.Error())
		a.drift, _ = a.files.Drift(whole, a.payload) // what can be told of it
	}
	if len(paths) > 0 {
		a.log.Info("drift repaired", "paths", strings.Join(paths, ", "))
	}
	a.unitDrift(ctx, spec)
	if err == nil && !waits {
		if lasted, was := a.noRepair.over(a.up()); was {
			a.log.Info("the device is as its spec says again", "after", lasted)
		}
	}
	a.osDrift(ctx, spec)
	a.programDrift(spec)
	a.repairApplications(ctx, spec, paths, look)
	slices.Sort(a.drift)
	a.looked = true
	a.changed()
	return len(paths) > 0
}

// mend makes the device be as its spec says. It gives the paths and units that
// it changed.
func (a *Agent) mend(ctx context.Context, whole *schema.Spec) ([]string, error) {
	before := a.prepareUnits(ctx, whole, false)
	paths, err := a.files.Apply(ctx, whole, a.payload, files.Repair)
	if ctx.Err() != nil {
		return paths, ctx.Err()
	}
	changed, after := a.finishUnits(ctx, whole, false)
	return append(paths, changed...), failure.Join(before, err, after)
}

// unitDrift tells of units that are not as the spec says, and were not or
// could not be put right.
func (a *Agent) unitDrift(ctx context.Context, spec *schema.Spec) {
	differ, err := a.lookAtUnits(ctx, spec)
	if err != nil && a.driftReason == "" {
		a.driftReason = "units could not be looked at: " + oneLine(err.Error())
	}
	for _, d := range differ {
		a.drift = append(a.drift, d.Unit)
		if a.driftReason == "" {
			a.driftReason = oneLine("unit " + d.Unit + ": " + d.Why)
		}
	}
	for _, s := range a.unitStates {
		if s.State == "failed" && a.driftReason == "" { // one that nothing starts again is no drift
			a.driftReason = "unit " + s.Name + ": it is failed"
		}
	}
}

func (a *Agent) noRepairBecause(what string, err error) {
	if a.noRepair.tell(what+kindOf(err), a.up()) {
		a.log.Warn(what+"; it is tried again with each comparison", "interval", driftEvery, "error", err)
	}
}

// osDrift tells that another system is booted than the spec says. It is not
// repaired here: staging and rebooting is an update, and those are announced.
func (a *Agent) osDrift(ctx context.Context, spec *schema.Spec) {
	if spec.OS == nil || a.os == nil {
		return
	}
	want := cmp.Or(a.store.current.OS, spec.OS.Image)
	booted, err := a.os.Booted(ctx)
	if err != nil || booted == want {
		return
	}
	a.drift = append(a.drift, "os")
	if a.driftReason == "" {
		a.driftReason = fmt.Sprintf("os: %s is booted instead of %s", oneLine(booted), want)
	}
}
