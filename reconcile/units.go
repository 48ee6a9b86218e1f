package reconcile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/apps"
	"github.com/gitopsd/gitopsd/reconcile/internal/units"
	"github.com/gitopsd/gitopsd/schema"
)

// maxUnits bounds the units in a report; those that are not as they should be
// stand in its drift too.
const maxUnits = 200

// booted is there where systemd is the first process (sd_booted(3)).
const booted = "/run/systemd/system"

// openUnits also serves after the state was lost at run time. Without a
// systemd to speak to, the agent says that it has no units.
func (a *Agent) openUnits() error {
	if !a.hasSystemd() {
		return nil
	}
	scratch := ""
	if a.scratch != nil {
		scratch = filepath.Join(a.scratch.Dir(), "verify")
	}
	uc, err := units.New(units.Config{
		Root: a.root, State: stateDir, Scratch: scratch, Connect: a.cfg.Systemd, Now: a.now,
		Made: func(spec *schema.Spec) map[string]bool { return apps.Units(spec, a.payload) },
		Had:  func(unit string) bool { return a.apps.Has(unit) },
		Anew: func(unit string) bool { return a.apps.Anew(unit) },
		Warn: func(err error) { a.log.Warn("units", "error", err) },
	})
	if err != nil {
		return fmt.Errorf("open the record of units: %w", err)
	}
	a.units = uc
	return nil
}

// hasSystemd says whether there is one that answers us, of this device.
func (a *Agent) hasSystemd() bool {
	if a.cfg.Systemd != nil {
		return true
	}
	if a.root.Dir() != "/" || os.Geteuid() != 0 {
		return false
	}
	_, err := os.Stat(booted)
	return err == nil
}

// checkUnits finds what cannot work here, while nothing changes.
func (a *Agent) checkUnits(ctx context.Context, whole *schema.Spec) error {
	if a.units == nil {
		return nil
	}
	return a.units.Check(ctx, whole, units.Plan{Payloads: a.payload, Ahead: a.files.Ahead(whole, a.payload), NewOS: a.newOS(ctx, whole)})
}

// newOS says whether another system than the booted one comes with a spec.
func (a *Agent) newOS(ctx context.Context, spec *schema.Spec) bool {
	if spec.OS == nil || a.os == nil {
		return false
	}
	now, err := a.os.Booted(ctx)
	return err != nil || now != spec.OS.Image
}

// withoutMasks leaves out the files in whose place masks stand that go before
// they are written.
func (a *Agent) withoutMasks(whole *schema.Spec) *schema.Spec {
	if a.units == nil {
		return whole
	}
	masks := a.units.Masks(whole)
	if len(masks) == 0 {
		return whole
	}
	less := *whole
	less.Files = map[string]*schema.File{}
	for p, f := range whole.Files {
		if !slices.Contains(masks, p) {
			less.Files[p] = f
		}
	}
	return &less
}

// prepareUnits comes before the files of a whole set are written, on every
// way, finishUnits after.
func (a *Agent) prepareUnits(ctx context.Context, whole *schema.Spec, back bool) error {
	if a.units == nil {
		return nil
	}
	return a.units.Prepare(ctx, whole, a.files.Ahead(whole, a.payload), back)
}

func (a *Agent) finishUnits(ctx context.Context, whole *schema.Spec, rebootDue bool) (changed []string, err error) {
	if a.units == nil {
		return nil, nil
	}
	changed, err = a.units.Finish(ctx, whole, rebootDue)
	if len(changed) > 0 {
		a.log.Info("units changed", "units", strings.Join(changed, ", "))
	}
	return changed, err
}

// lookAtUnits notes for reports how the units of a spec are, and gives those
// that are not as they should be.
func (a *Agent) lookAtUnits(ctx context.Context, spec *schema.Spec) (drift []units.Difference, err error) {
	if a.units == nil {
		return nil, nil
	}
	states, drift, err := a.units.Look(ctx, spec)
	if err != nil {
		return nil, err
	}
	a.unitStates = states[:min(len(states), maxUnits)]
	return drift, nil
}

// noteUnits is lookAtUnits behind an update or a rollback, whose success does
// not hang on it.
func (a *Agent) noteUnits(ctx context.Context) {
	a.unitStates = nil
	spec, err := a.store.currentSpec()
	if err == nil {
		_, err = a.lookAtUnits(ctx, spec)
	}
	if err != nil {
		a.log.Warn("units could not be looked at", "error", err)
	}
}
