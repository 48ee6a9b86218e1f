package planner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// roll is a fleet that is planned for again and again until everybody is
// there, with the least of a world around it: who is told to upgrade does so,
// and reports.
type roll struct {
	t     *rapid.T
	in    Input
	bad   bool                 // every upgrade fails
	well  map[string]time.Time // from when on a device is online, idle and unheld
	tried map[string]bool      // policy and device
	plans int
}

func newRoll(t *rapid.T) *roll {
	r := &roll{t: t, well: map[string]time.Time{}, tried: map[string]bool{}}
	r.in = Input{Now: caseNow, OwnVersion: "v1.5.0"}
	if one(t, 2, "has fleet") {
		r.in.Fleet = Fleet{MaxInFlight: rapid.IntRange(0, 3).Draw(t, "fleet maxInFlight"), Budgets: possible(drawBudgets(t)), Freezes: drawFreezes(t)}
	}
	members := map[string]bool{}
	for i := range rapid.IntRange(1, 8).Draw(t, "devices") {
		d := idle(fmt.Sprintf("d%d", i))
		d.Policy = rapid.SampledFrom([]string{"p0", "p1"}).Draw(t, "policy")
		d.Wave = rapid.SampledFrom([]string{"canary", "", "main"}).Draw(t, "wave")
		d.Labels = drawLabels(t)
		if one(t, 3, "is away") {
			r.well[d.ID] = r.in.Now.Add(time.Duration(rapid.IntRange(1, 600).Draw(t, "for minutes")) * time.Minute)
		}
		members[d.Policy+d.Wave] = true
		r.in.Devices = append(r.in.Devices, d)
	}
	for _, name := range []string{"p0", "p1"} {
		p := Policy{
			Name: name, Enabled: true, TargetVersion: "v1.5.0",
			OfflineAfter: 1000 * time.Hour, // whoever is away says so
			MaxInFlight:  rapid.IntRange(0, 3).Draw(t, "maxInFlight"), FailureLimit: Limit{Count: rapid.IntRange(0, 2).Draw(t, "failureLimit")},
			Settle: rapid.SampledFrom([]time.Duration{0, 10 * time.Minute}).Draw(t, "settle"),
		}
		drawRollout(t, &p)
		p.Budgets = possible(p.Budgets)
		for i := range p.Waves {
			p.Waves[i].MinSuccess = 0
			p.Waves[i].Optional = !members[name+p.Waves[i].Name] // or it would wait for ever
		}
		r.in.Policies = append(r.in.Policies, p)
	}
	return r
}

// possible takes away what lets nobody go for ever.
func possible(budgets []Budget) []Budget {
	for i := range budgets {
		if l := &budgets[i].MaxUnavailable; l.Set && l.Count == 0 && l.Percent == 0 {
			l.Count = 1
		}
	}
	return budgets
}

// report lets every device that is heard say what became of its attempt.
func (r *roll) report() {
	for i := range r.in.Devices {
		d := &r.in.Devices[i]
		d.Online = !r.in.Now.Before(r.well[d.ID])
		if d.OfflineSince = caseNow; !d.Online {
			continue
		}
		d.LastSeen, d.OfflineSince = r.in.Now, time.Time{}
		n := len(d.Attempts)
		if n == 0 || d.Attempts[n-1].Outcome != "" {
			continue
		}
		a := &d.Attempts[n-1]
		took := time.Duration(n+i) * 3 * time.Minute
		said := Said{Fresh: true, Attempt: a.Number, Begun: true}
		switch since := r.in.Now.Sub(a.AssignedAt); {
		case since < took:
			said.Phase, said.Starting = "Starting", true
		case r.bad:
			said.Phase, said.Outcome = "Error", "failed"
		default:
			said.Phase, said.Outcome = "Updated", "ok"
			said.Settled = !a.OnTargetAt.IsZero() && r.in.Now.Sub(a.OnTargetAt) >= 10*time.Minute
			d.Version, d.Digest = a.Target.Version, a.Target.Digest
		}
		d.Said = said
	}
}

// run plans until nothing moves any more, and gives the last plan.
func (r *roll) run() Result {
	for last := r.in.Now; ; {
		r.report()
		p := Plan(r.in)
		moved := movedOf(p, "*")
		if moved > 0 {
			for _, holds := range []property{restrictionsHold, slotsAreKept, enoughStay, noSlotIsWasted, wavesOpenInOrder, pilotsAreFew} {
				holds(r.t, r.in, p)
			}
		}
		for id := range upgrades(p) {
			r.tried[id] = true
		}
		r.in = apply(r.in, p)
		busy := moved > 0 || len(p.Decisions) > 0 || taken(r.in, "*") > 0
		next := r.in.Now.Add(5 * time.Minute)
		if !busy {
			next = p.NextChange
			for _, d := range r.in.Devices {
				if back := r.well[d.ID]; back.After(r.in.Now) && (next.IsZero() || back.Before(next)) {
					next = back
				}
			}
			if next.IsZero() || quiet(p) || next.Sub(last) > still {
				return p
			}
		} else {
			last = r.in.Now
		}
		if r.plans++; r.plans > 3000 {
			r.t.Fatalf("it does not end: %s", describe(p))
		}
		r.in.Now = next
	}
}

// still is how long nobody has to move until it is sure that nobody will.
const still = 60 * day

// quiet says whether everybody is where the plan wants it.
func quiet(p Result) bool {
	return !slices.ContainsFunc(p.Verdicts, func(v Verdict) bool { return !slices.Contains([]Code{Current, CodeFailed, Halted}, v.Code) })
}

// Devices that are away for a while or not at all, an update that works:
// whatever waves, pilots, windows, freezes, budgets and pace say, everybody
// arrives, and every limit holds on the way.
func TestProperty14_EverybodyArrives(t *testing.T) { rapid.Check(t, everybodyArrives) }

func everybodyArrives(t *rapid.T) {
	r := newRoll(t)
	for _, v := range r.run().Verdicts {
		if v.Code != Current {
			t.Fatalf("%s ends as %s: %s; %s", v.Device.ID, v.Code, v.Reason, v.Detail)
		}
	}
}

// A release that always fails reaches few devices of each policy. Once its
// content is mended everybody arrives, through the waves again.
func TestB54_Property14_ABadReleaseReachesFew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRoll(t)
		r.bad = true
		r.run()
		for _, p := range r.in.Policies {
			n := 0
			for _, d := range r.in.Devices {
				if d.Policy == p.Name && r.tried[d.ID] {
					n++
				}
			}
			if most := p.FailureLimit.Count + slotsOf(p, 0); n > most {
				t.Fatalf("it was started on %d devices of %s, not on %d at most", n, p.Name, most)
			}
		}
		r.bad = false
		for i := range r.in.Devices {
			d := &r.in.Devices[i]
			d.Target.Digest += " mended"
			d.Rollout = "r2"
		}
		for _, v := range r.run().Verdicts {
			if v.Code != Current {
				t.Fatalf("%s ends as %s: %s; %s", v.Device.ID, v.Code, v.Reason, v.Detail)
			}
		}
	})
}
