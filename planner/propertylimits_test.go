package planner

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestProperty03_RestrictionsStopEverybody(t *testing.T) { check(t, restrictionsHold) }

func restrictionsHold(t *rapid.T, in Input, r Result) {
	for _, v := range r.Verdicts {
		if !v.Upgrade {
			continue
		}
		p := governs(in, v.Device)
		halted := summaryOf(r, p.Name).Halted && !v.Device.Pinned && !v.Device.Observes && effectiveAttempts(p) == 1 && len(v.Device.Attempts) == 0
		for why, holds := range map[string]bool{
			"disabled": !p.Enabled, "paused": p.Paused != "", "bad policy": p.MaxInFlight < 0, "stopped": in.Stopped != "",
			"no target": v.Device.NoTarget != "", "halted": halted, "fleet paused": in.Fleet.Paused != "", "bad fleet": in.Fleet.MaxInFlight < 0,
			"frozen or outside its windows": isClosed(in, p),
		} {
			if holds {
				t.Fatalf("%s is upgraded though %s: %s", v.Device.ID, why, v.Reason)
			}
		}
	}
	for _, v := range r.Verdicts {
		if p := governs(in, v.Device); (v.Code == Frozen || v.Code == CodeWindow) && !isClosed(in, p) {
			t.Fatalf("%s is %s, but nothing is closed: %s", v.Device.ID, v.Code, v.Reason)
		}
	}
}

func TestProperty04_SlotsAreKept(t *testing.T) { check(t, slotsAreKept) }

func slotsAreKept(t *rapid.T, in Input, r Result) {
	judged := apply(in, Result{Decisions: r.Decisions})
	for _, p := range in.Policies {
		s, moved := summaryOf(r, p.Name), movedOf(r, p.Name)
		if used := taken(judged, p.Name); s.InFlight != used || moved > max(0, slotsOf(p, s.N)-used) {
			t.Fatalf("policy %s: %d upgrades, %d in flight (says %d), slots %d", p.Name, moved, used, s.InFlight, slotsOf(p, s.N))
		}
		last := time.Time{}
		for _, d := range judged.Devices {
			for _, a := range d.Attempts {
				if a.Policy == p.Name && a.AssignedAt.After(last) {
					last = a.AssignedAt
				}
			}
		}
		if p.MinInterval > 0 && (moved > 1 || moved == 1 && in.Now.Sub(last) < p.MinInterval) {
			t.Fatalf("policy %s: %d upgrades %v after the last one, minInterval %v", p.Name, moved, in.Now.Sub(last), p.MinInterval)
		}
	}
	moved, used, slots := movedOf(r, "*"), taken(judged, "*"), fleetSlots(judged)
	if r.Fleet.InFlight != used || moved > max(0, slots-used) {
		t.Fatalf("the fleet: %d upgrades, %d in flight (says %d), slots %d", moved, used, r.Fleet.InFlight, slots)
	}
}

func TestProperty06_EnoughStayAvailable(t *testing.T) { check(t, enoughStay) }

func enoughStay(t *rapid.T, in Input, r Result) {
	after := apply(in, r)
	for _, p := range in.Policies {
		var c counted
		for _, d := range after.Devices {
			if d.Policy == p.Name {
				c.add(after, d, upgrades(r)[d.ID])
			}
		}
		keep := 1
		if l := p.MinAvailable; l.Percent > 0 {
			keep = (l.Percent*c.n + 99) / 100
		} else if l.Set || l.Count > 0 {
			keep = l.Count
		}
		if c.moved > 0 && c.available < min(keep, c.n-1) {
			t.Fatalf("policy %s: %d of %d stay available, %d are wanted", p.Name, c.available, c.n, keep)
		}
	}
	everyGroup(after, r, func(where string, b Budget, key, _ string, c counted) {
		if away := c.n - c.available; c.moved > 0 && away > mayBeAway(b, c.n) {
			t.Fatalf("%s: %d of %d of %s are away, %d may be", where, away, c.n, key, mayBeAway(b, c.n))
		}
	})
}

func TestProperty08_MoreSlotsMoveMore(t *testing.T) { check(t, moreSlotsMoveMore) }

func moreSlotsMoveMore(t *rapid.T, in Input, _ Result) {
	var before map[string]bool
	for k := 1; k < 6; k++ {
		in := in
		in.Policies = slices.Clone(in.Policies)
		for i := range in.Policies {
			in.Policies[i].MaxInFlight, in.Policies[i].MaxInFlightPercent = k, 0
		}
		now := upgrades(Plan(in))
		for id := range before {
			if !now[id] {
				t.Fatalf("%s moves with %d slots, but not with %d", id, k-1, k)
			}
		}
		before = now
	}
}

func TestProperty09_NoSlotIsWasted(t *testing.T) { check(t, noSlotIsWasted) }

func noSlotIsWasted(t *rapid.T, in Input, r Result) {
	after := apply(in, r)
	fleetFull := taken(after, "*") >= fleetSlots(after)
	full := map[string]bool{} // policy or "", and group
	everyGroup(after, r, func(_ string, b Budget, key, policy string, c counted) {
		if c.n-c.available >= mayBeAway(b, c.n) {
			full[policy+" "+key] = true
		}
	})
	for _, s := range r.Policies {
		p := in.Policies[slices.IndexFunc(in.Policies, func(p Policy) bool { return p.Name == s.Policy })]
		moved := movedOf(r, s.Policy)
		paced := p.MinInterval > 0 && (moved > 0 || !s.NextUpgrade.IsZero())
		positions := map[int]bool{}
		for _, v := range r.Verdicts {
			if v.Device.Policy != s.Policy || v.Code != Queued && v.Code != FleetGuard && v.Code != CodeBudget {
				continue
			}
			switch {
			case v.Code == Queued && s.InFlight+moved < s.Slots && !fleetFull && !paced:
				t.Fatalf("%s waits for a slot, %d of %d are taken", v.Device.ID, s.InFlight+moved, s.Slots)
			case v.Code == FleetGuard && s.InFlight+moved >= s.Slots:
				t.Fatalf("%s waits for the guard, but no slot is free", v.Device.ID)
			case v.Code == CodeBudget:
				isFull := false
				for _, b := range p.Budgets {
					isFull = isFull || full[p.Name+" "+groupKey(b, v.Device)]
				}
				for _, b := range in.Fleet.Budgets {
					isFull = isFull || full[" "+groupKey(b, v.Device)]
				}
				if !isFull {
					t.Fatalf("%s waits for a budget that is not used up: %s", v.Device.ID, v.Detail)
				}
			}
			if positions[v.Position] {
				t.Fatalf("two have position %d", v.Position)
			}
			positions[v.Position] = true
		}
		for i := range len(positions) {
			if !positions[i+1] {
				t.Fatalf("nobody has position %d: %v", i+1, positions)
			}
		}
	}
}

func TestProperty13_ReplanningKeepsTheLimits(t *testing.T) { check(t, replanningKeepsLimits) }

func replanningKeepsLimits(t *rapid.T, in Input, r Result) {
	for range 4 {
		in = apply(in, r)
		r = Plan(in)
		slotsAreKept(t, in, r)
		enoughStay(t, in, r)
		pilotsAreFew(t, in, r)
	}
}

func TestWavesOpenInTheirOrder(t *testing.T) { check(t, wavesOpenInOrder) }

func wavesOpenInOrder(t *rapid.T, in Input, r Result) {
	for _, p := range in.Policies {
		s := summaryOf(r, p.Name)
		if len(p.Waves) == 0 || len(s.Waves) == 0 {
			continue
		}
		o := recountRollout(in, r, p)
		for i, w := range s.Waves {
			if w.Open != o.open(i) || i < len(p.Waves) && w.Satisfied != o.satisfied(i) {
				t.Fatalf("wave %d is open %v, satisfied %v, and should be %v: %+v", i, w.Open, w.Satisfied, o.open(i), w)
			}
			if w.Successes+w.InFlight > w.Countable || w.Countable > w.Members || (w.Why == "") != w.Satisfied {
				t.Fatalf("wave %d: %+v", i, w)
			}
		}
		for _, v := range r.Verdicts {
			if v.Device.Policy != p.Name || v.Device.Pinned || v.Device.Observes {
				continue
			}
			if open := o.open(o.index(v.Device)); v.Upgrade && !open || v.Code == CodeWave && open {
				t.Fatalf("%s is %s, its wave is open: %v", v.Device.ID, v.Code, open)
			}
			for _, other := range r.Verdicts {
				if v.Upgrade && other.Code == Queued && o.member(other.Device) && o.index(other.Device) < o.index(v.Device) {
					t.Fatalf("%s goes, and %s of an earlier wave waits", v.Device.ID, other.Device.ID)
				}
			}
		}
	}
}

func TestPilotsAreFew(t *testing.T) { check(t, pilotsAreFew) }

func pilotsAreFew(t *rapid.T, in Input, r Result) {
	for _, p := range in.Policies {
		s := summaryOf(r, p.Name)
		if p.Pilot.Count == 0 || s.Pilot == nil {
			continue
		}
		done, underway := recountRollout(in, r, p).pilots()
		over := done >= p.Pilot.Count
		if s.Pilot.Over != over || s.Pilot.Done != done || s.Pilot.InFlight+s.Pilot.Soaking != underway {
			t.Fatalf("%d done and %d under way, but %+v", done, underway, *s.Pilot)
		}
		moved := 0
		for _, v := range r.Verdicts {
			if v.Upgrade && v.Device.Policy == p.Name && !v.Device.Pinned && !v.Device.Observes {
				moved++
			}
			if v.Code == CodePilot && v.Device.Policy == p.Name && (over || v.Device.Pinned || v.Device.Observes) {
				t.Fatalf("%s waits for a pilot: %+v", v.Device.ID, *s.Pilot)
			}
		}
		if !over && moved > max(0, p.Pilot.Count-underway) {
			t.Fatalf("%d more go beside %d pilots: %+v", moved, underway, *s.Pilot)
		}
	}
}
