package simulate

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// witness looks at every plan of a simulation, and at the fleet after it.
type witness struct {
	t *rapid.T
	r *run
}

func watched(t *rapid.T, cfg Config) (*run, *Simulation) {
	if err := cfg.setDefaults(); err != nil {
		t.Fatal(err)
	}
	r := newRun(cfg)
	w := &witness{t, r}
	r.watch = w.see
	if err := r.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return r, r.simulation()
}

// see is called with what the planner was asked and what it answered.
func (w *witness) see(in planner.Input, res planner.Result) {
	upgrades := map[string]int{}
	total := 0
	for _, v := range res.Verdicts {
		if v.Upgrade {
			upgrades[v.Device.Policy]++
			total++
		}
	}
	// An attempt that ends in this plan holds no slot any more.
	open := map[string]int{}
	ended := map[string]bool{}
	for _, dec := range res.Decisions {
		if dec.End != "" {
			ended[fmt.Sprint(dec.Device, dec.Attempt)] = true
		}
	}
	all := 0
	for _, d := range in.Devices {
		for _, a := range d.Attempts {
			if a.Outcome != "" {
				continue
			}
			if !ended[fmt.Sprint(d.ID, a.Number)] {
				open[a.Policy]++
				all++
			}
		}
	}
	for _, p := range in.Policies {
		slots := max(1, p.MaxInFlight)
		if n := open[p.Name] + upgrades[p.Name]; upgrades[p.Name] > 0 && n > slots {
			w.t.Fatalf("%v: %d devices of %s in flight, maxInFlight is %d", in.Now, n, p.Name, slots)
		}
		if upgrades[p.Name] > 0 && !isOpen(in.Fleet, p, in.Now) {
			w.t.Fatalf("%v: %d upgrades of %s outside of its windows or in a freeze", in.Now, upgrades[p.Name], p.Name)
		}
		w.oneWaveAhead(in, p, res)
	}
	if most := in.Fleet.MaxInFlight; total > 0 && most > 0 && all+total > most {
		w.t.Fatalf("%v: %d devices in flight, the fleet's maxInFlight is %d", in.Now, all+total, most)
	}
	w.budgets(in, res)
}

// isOpen is an independent reading of windows (in UTC) and freezes.
func isOpen(f planner.Fleet, p planner.Policy, now time.Time) bool {
	for _, z := range append(slices.Clone(f.Freezes), p.Freezes...) {
		if !now.Before(z.From) && now.Before(z.To) {
			return false
		}
	}
	for _, w := range p.Windows {
		for back := range 2 {
			day := now.UTC().AddDate(0, 0, -back)
			start := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, time.UTC).Add(w.Start)
			if slices.Contains(w.Days, day.Weekday()) && !now.Before(start) && now.Before(start.Add(w.Duration)) {
				return true
			}
		}
	}
	return len(p.Windows) == 0
}

// oneWaveAhead says that no device of a wave goes before somebody of every
// earlier one is there, unless a later one had begun already.
func (w *witness) oneWaveAhead(in planner.Input, p planner.Policy, res planner.Result) {
	index := func(d *planner.Device) int {
		if i := slices.IndexFunc(p.Waves, func(w planner.Wave) bool { return w.Name == d.Wave }); i >= 0 {
			return i
		}
		return len(p.Waves)
	}
	there, begun := make([]int, len(p.Waves)+1), 0
	for _, v := range res.Verdicts {
		d := &v.Device
		if d.Policy != p.Name || d.Pinned || d.Observes {
			continue
		}
		if v.Code == planner.Current {
			there[index(d)]++
		}
		if slices.ContainsFunc(d.Attempts, func(a planner.Attempt) bool { return a.Rollout == d.Rollout }) {
			begun = max(begun, index(d))
		}
	}
	for _, v := range res.Verdicts {
		d := &v.Device
		if !v.Upgrade || d.Policy != p.Name || d.Pinned || d.Observes {
			continue
		}
		for j := begun; j < index(d); j++ {
			if there[j] == 0 && !p.Waves[j].Optional {
				w.t.Fatalf("%v: %s of wave %d goes, but nobody of wave %d is there", in.Now, d.ID, index(d), j)
			}
		}
	}
}

// budgets says that no upgrade makes more of a group unavailable than a budget
// allows.
func (w *witness) budgets(in planner.Input, res planner.Result) {
	away := map[string]bool{}
	going := map[string]bool{}
	for _, v := range res.Verdicts {
		d := &v.Device
		open := slices.ContainsFunc(d.Attempts, func(a planner.Attempt) bool { return a.Outcome == "" })
		ended := slices.ContainsFunc(res.Decisions, func(dec planner.Decision) bool { return dec.Device == d.ID && dec.End != "" })
		going[d.ID] = v.Upgrade
		away[d.ID] = v.Upgrade || open && !ended || d.AdminHeld || !d.Online || v.Code == planner.Offline
	}
	check := func(b planner.Budget, policy string) {
		n, upgrades := map[string]int{}, map[string]int{}
		for _, v := range res.Verdicts {
			if d := &v.Device; policy == "" || d.Policy == policy {
				key := groupKey("", 0, b.GroupBy, d.Labels)
				absent := !d.Seen || !d.Online && !d.LastSeen.IsZero() && in.Now.Sub(d.LastSeen) > planner.DefaultAbsentAfter
				if away[d.ID] && !absent {
					n[key]++
				}
				if going[d.ID] {
					upgrades[key]++
				}
			}
		}
		for key, k := range upgrades {
			if k > 0 && n[key] > b.MaxUnavailable.Count {
				w.t.Fatalf("%v: %d devices of group %s are away, the budget is %d", in.Now, n[key], key, b.MaxUnavailable.Count)
			}
		}
	}
	for _, p := range in.Policies {
		for _, b := range p.Budgets {
			check(b, p.Name)
		}
	}
	for _, b := range in.Fleet.Budgets {
		check(b, "")
	}
}

// Whatever devices and networks do: slots, budgets, windows and freezes hold in
// every sweep, waves open one after the other, and the end agrees with what the
// planner says of it.
func TestLimitsHoldInEverySweep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s := watched(t, Config{Input: drawInput(t, true), Assume: drawAssumptions(t), Unknown: rapid.Bool().Draw(t, "unknown")})
		codes := map[string]int{}
		for _, sum := range r.last.Policies {
			for code, n := range sum.Counts {
				codes[string(code)] += n
			}
		}
		for _, d := range s.Devices {
			codes[d.Code]--
		}
		for code, n := range codes {
			if n != 0 {
				t.Fatalf("%s: the planner counts %d more than there are devices with it", code, n)
			}
		}
		if s.Total != len(r.shown) || s.Current+s.Arrived+s.Remaining+s.Counts[string(planner.Excluded)] != s.Total {
			t.Fatalf("%d devices: %d were there, %d arrived, %d remain", s.Total, s.Current, s.Arrived, s.Remaining)
		}
	})
}

// Where nothing lasts that is in the way, everybody arrives, whatever the
// limits, and nobody needs a second try.
func TestEverybodyArrives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t, false)
		for i := range in.Policies {
			// Whoever is cut off in the middle must have the time to come back.
			in.Policies[i].UpdateTimeout, in.Policies[i].PickupTimeout = 1000*time.Hour, 1000*time.Hour
			in.Policies[i].OfflineAfter = 1000 * time.Hour
		}
		for i := range in.Devices {
			in.Devices[i].Heartbeat = 0
			if d := &in.Devices[i]; len(d.Attempts) > 0 && d.Attempts[0].Recalled != "" {
				d.Attempts = nil
			}
		}
		as := drawAssumptions(t)
		as.Failures, as.Refusals, as.Until = 0, 0, schema.Duration(60*24*time.Hour)
		_, s := watched(t, Config{Input: in, Assume: as})
		for _, d := range s.Devices {
			if d.Code != string(planner.Current) || d.Failures > 0 || d.Attempts > 1 {
				t.Fatalf("%+v", d)
			}
		}
	})
}

// A release that always fails is started on at most failureLimit + maxInFlight
// devices of a policy, beside those that had begun before.
func TestABadReleaseReachesFew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t, true)
		as := drawAssumptions(t)
		as.Failures, as.Refusals = 1, 0
		_, s := watched(t, Config{Input: in, Assume: as})
		for _, p := range in.Policies {
			n := 0
			for _, d := range s.Devices {
				if d.Policy == p.Name && !d.Pinned && !d.StartedAt.IsZero() {
					n++
				}
			}
			before := 0
			for _, d := range in.Devices {
				if d.Policy == p.Name && len(d.Attempts) > 0 && d.Attempts[0].Outcome == "" {
					before++
				}
			}
			if most := max(before, p.FailureLimit.Count+max(1, p.MaxInFlight)); n > most {
				t.Fatalf("it was started on %d devices of %s, not on %d at most", n, p.Name, most)
			}
		}
	})
}

// The future does not depend on the order in which devices are listed.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t, true)
		as := drawAssumptions(t)
		other := in
		other.Devices = rapid.Permutation(in.Devices).Draw(t, "order")
		var got [2]map[string]Device
		for i, in := range []planner.Input{in, other} {
			_, s := watched(t, Config{Input: in, Assume: as})
			got[i] = map[string]Device{}
			for _, d := range s.Devices {
				got[i][d.Device] = d
			}
		}
		for id, d := range got[0] {
			if got[1][id] != d {
				t.Fatalf("%+v in one order, %+v in another", d, got[1][id])
			}
		}
	})
}
