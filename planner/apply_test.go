package planner

import (
	"slices"
	"time"
)

// apply records a plan as a sweep does: decisions first, then assignments.
func apply(in Input, r Result) Input {
	out := in
	out.Devices = slices.Clone(in.Devices)
	next := map[string]Verdict{}
	for _, v := range r.Verdicts {
		if v.Upgrade {
			next[v.Device.ID] = v
		}
	}
	for i := range out.Devices {
		d := &out.Devices[i]
		d.Attempts = slices.Clone(d.Attempts)
		for _, dec := range r.Decisions {
			if dec.Device != d.ID {
				continue
			}
			d.Said.Fresh = false
			for j := range d.Attempts {
				if a := &d.Attempts[j]; a.Number == dec.Attempt {
					record(a, dec, in.Now)
				}
			}
		}
		v, ok := next[d.ID]
		if !ok || d.Removed {
			continue
		}
		number := int64(1)
		for _, a := range d.Attempts {
			number = max(number, a.Number+1)
		}
		d.Said.Fresh = false
		d.Attempts = append(d.Attempts, Attempt{
			Number: number, Policy: d.Policy, Line: d.Policy, Target: v.Target, Rollout: d.Rollout, InstallID: d.InstallID,
			Pinned: d.Pinned, AssignedAt: in.Now,
		})
	}
	return out
}

func record(a *Attempt, dec Decision, now time.Time) {
	switch {
	case dec.Started:
		a.StartedAt = now
	case dec.OnTarget:
		a.OnTargetAt = now
	case dec.Recall != "":
		a.Recalled, a.RecallDelivered = dec.Recall, false
	case dec.End != "":
		a.Outcome, a.EndedAt = dec.End, now
	}
}
