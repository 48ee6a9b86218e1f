package sweep

import (
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// progress writes down how far the steps of a rollout are, and what the
// calendar says: numbers that move with devices, and moments that stay until
// they have come.
func progress(r *schema.RolloutStatus, s *planner.Summary, fleet *planner.FleetSummary) {
	if t := s.Pilot; t != nil {
		r.Pilot = &schema.PilotStatus{
			Count: t.Count, Done: t.Done, Soaking: t.Soaking, Moving: t.InFlight, Over: t.Over, SoakingUntil: moment(t.SoakingUntil),
		}
	}
	for i := range s.Waves {
		w := &s.Waves[i]
		r.Waves = append(r.Waves, schema.WaveStatus{
			Name: w.Name, Open: w.Open, Satisfied: w.Satisfied, Members: w.Members, Countable: w.Countable, Done: w.Successes,
			Needed: w.Needed, Soaking: w.Soaking, Moving: w.InFlight, SoakingUntil: moment(w.SoakingUntil),
		})
	}
	if w := s.Windows; w != nil && w.Open {
		r.ShutsAt = moment(w.Until)
	} else if w != nil {
		r.OpensAt = moment(w.Next)
	}
	for _, f := range []*planner.FreezeSummary{s.Freeze, fleet.Freeze} {
		if f != nil && f.Until.After(timeOf(r.FrozenUntil)) {
			r.FrozenUntil = moment(f.Until)
		}
	}
}

// moment is a time as documents have it, to the second; nil = none.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = stamp(t)
	return &t
}

// asBefore is since when a device is what it says that it is: the record's
// word, where the record says the same.
func asBefore(d *planner.Device, o *schema.Observed) time.Time {
	if o != nil && o.InstallID == d.InstallID && o.Version == d.Version && o.Digest == d.Digest {
		return o.Since
	}
	return d.LastSeen
}
