package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/apps"
	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/units"
	"github.com/gitopsd/gitopsd/schema"
)

// maxApplications bounds those in a report; the ones that do not run come first.
const maxApplications = 100

// twice finds files that a spec or one of its units names and one of its
// applications brings.
func twice(spec *schema.Spec) error {
	ofUnits := units.Files(spec)
	for p := range apps.Files(spec) {
		_, named := spec.Files[p]
		if named || ofUnits[p] != nil {
			return failure.Permanent("files", p, "it is a file of an application too")
		}
	}
	return nil
}

// prepareApplications comes before the files of a whole set are written: what
// has to be stopped and started for them is on disk first.
func (a *Agent) prepareApplications(ctx context.Context, whole *schema.Spec) error {
	return a.apps.Prepare(ctx, whole, a.payload, a.files.Ahead(whole, a.payload))
}

// switchApplications has those of a spec run, where its files are. systemd stops
// with a unit what requires it, and starts only the unit again.
func (a *Agent) switchApplications(ctx context.Context, spec *schema.Spec, way apps.Way, rebootDue bool) error {
	if err := a.apps.Switch(ctx, spec, a.payload, way); err != nil || len(spec.Units) == 0 {
		return err
	}
	_, err := a.finishUnits(ctx, wholeSet(spec), rebootDue)
	return err
}

// backToApplications starts what the current spec has, where its files are.
func (a *Agent) backToApplications(ctx context.Context, spec *schema.Spec, way apps.Way) error {
	if err := a.switchApplications(ctx, spec, way, false); err != nil {
		return err
	}
	return a.apps.Started(ctx, spec)
}

// repairApplications starts what the current spec wants and does not run, or
// only tells of it.
func (a *Agent) repairApplications(ctx context.Context, spec *schema.Spec, repaired []string, look bool) {
	var started []string
	known, err := a.apps.Known(spec, a.payload)
	switch {
	case err != nil:
	case look:
	case !known: // the record was lost
		if err = a.apps.Prepare(ctx, spec, a.payload, repaired); err == nil {
			err = a.apps.Switch(ctx, spec, a.payload, apps.Back)
		}
	default:
		own := apps.Files(spec)
		reload := slices.ContainsFunc(repaired, func(p string) bool { return own[p] != nil })
		started, err = a.apps.Repair(ctx, spec, reload)
	}
	if len(started) > 0 {
		a.log.Info("drift repaired", "applications", strings.Join(started, ", "))
	}
	if err == nil {
		err = a.lookAtApplications(ctx, spec)
	}
	if err != nil && ctx.Err() == nil {
		a.noRepairBecause("applications could not be compared", err)
		a.driftReason = "applications could not be compared: " + oneLine(err.Error())
	}
	for _, s := range a.applications {
		if s.State == schema.ApplicationStopped || s.State == schema.ApplicationFailed {
			a.drift = append(a.drift, "applications/"+s.Name)
			if a.driftReason == "" {
				a.driftReason = fmt.Sprintf("application %s: %s", s.Name, s.Reason)
			}
		}
	}
}

// lookAtApplications keeps for the report how they are.
func (a *Agent) lookAtApplications(ctx context.Context, spec *schema.Spec) error {
	all, err := a.apps.States(ctx, spec)
	if err != nil {
		return err
	}
	a.applications = nil
	for _, s := range all {
		a.applications = append(a.applications, schema.ApplicationState(s))
	}
	return nil
}

// settleApplications is called when the device has come to rest on its current
// spec. What it cannot do is tidying, and tried after the next update.
func (a *Agent) settleApplications(ctx context.Context) {
	spec, err := a.store.currentSpec()
	if err == nil && a.store.desired == nil {
		err = a.apps.Settle(ctx, spec, a.payload)
	}
	if err == nil {
		err = a.lookAtApplications(ctx, spec)
	}
	if err != nil && ctx.Err() == nil {
		a.log.Warn("images that nothing needs any more may stay", "error", err)
	}
}

// reported are the applications that a report has room for.
func reported(all []schema.ApplicationState) []schema.ApplicationState {
	if len(all) <= maxApplications {
		return slices.Clone(all)
	}
	out := slices.Clone(all)
	slices.SortStableFunc(out, func(x, y schema.ApplicationState) int {
		rank := map[string]int{schema.ApplicationRunning: 1}
		return rank[x.State] - rank[y.State]
	})
	return out[:maxApplications]
}
