package sweep

import (
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// steps maps what a policy says of the order and the times of its rollouts.
func (s *Scene) steps(out *planner.Policy, spec *schema.PolicySpec) {
	out.OfflineGrace, out.MinInterval = spec.OfflineGrace.D(0), spec.MinInterval.D(0)
	if p := spec.Pilot; p != nil {
		out.Pilot = planner.Pilot{Count: p.Count, Soak: p.Soak.D(0)}
	}
	for i := range spec.Waves {
		w := &spec.Waves[i]
		wave := planner.Wave{Name: w.Name, MinSuccess: w.MinSuccess, Soak: w.Soak.D(0), Optional: w.Optional}
		if w.SuccessThreshold != nil {
			wave.SuccessThreshold = w.SuccessThreshold.Value
		}
		out.Waves = append(out.Waves, wave)
	}
	out.Budgets, out.Freezes = budgets(spec.Budgets), freezes(spec.Freezes)
	for i := range spec.Windows {
		out.Windows = append(out.Windows, s.window(&spec.Windows[i]))
	}
}

// window maps one window. What validation refused is one that is never open:
// nil would be UTC, and open at an hour that nobody meant.
func (s *Scene) window(w *schema.Window) planner.Window {
	zone := s.Fleet.Location(w.TimeZone)
	if zone == nil {
		return planner.Window{Zone: time.UTC}
	}
	return planner.Window{Days: w.Weekdays(), Start: w.StartOfDay(), Duration: time.Duration(w.Duration), Zone: zone}
}

func budgets(list []schema.Budget) []planner.Budget {
	var out []planner.Budget
	for i := range list {
		out = append(out, planner.Budget{GroupBy: list[i].GroupBy, MaxUnavailable: limit(&list[i].MaxUnavailable)})
	}
	return out
}

func freezes(list []schema.Freeze) []planner.Freeze {
	var out []planner.Freeze
	for i := range list {
		f := &list[i]
		out = append(out, planner.Freeze{From: f.From, To: f.To, Note: oneLine(f.Note)})
	}
	return out
}

// fleetLimits maps what holds over all policies.
func (s *Scene) fleetLimits() planner.Fleet {
	var out planner.Fleet
	if doc := s.Fleet.Document; doc != nil {
		spec := &doc.Spec
		if m := spec.MaxInFlight; m != nil && m.Percent {
			out.MaxInFlightPercent = m.Value
		} else if m != nil {
			out.MaxInFlight = m.Value
		}
		out.Budgets, out.Freezes = budgets(spec.Budgets), freezes(spec.Freezes)
		if spec.Paused != nil {
			out.Paused = or(oneLine(spec.Paused.Reason), "paused")
		}
	}
	if out.Paused == "" && s.Restrict.All != "" {
		out.Paused = oneLine(s.Restrict.All)
	}
	return out
}

const (
	// deletionPercent and deletionFloor bound the devices that may leave the
	// fleet in one change without a word: a site, not the fleet.
	deletionPercent = 20
	deletionFloor   = 2
)

// DeletionLimit is how many of so many devices may leave in one change. A
// count is taken as written, 0 too; all of them are never let go.
func DeletionLimit(fleet *schema.Fleet, total int) int {
	percent := deletionPercent
	if doc := fleet.Document; doc != nil && doc.Spec.DeletionLimit != nil {
		if !doc.Spec.DeletionLimit.Percent {
			return doc.Spec.DeletionLimit.Value
		}
		percent = doc.Spec.DeletionLimit.Value
	}
	return max(deletionFloor, total*percent/100)
}
