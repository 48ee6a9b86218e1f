package planner

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// check runs a property over generated fleets; on failure rapid prints the
// seed and the flag that repeats it.
func check(t *testing.T, property func(t *rapid.T, in Input, r Result)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		in := fleet(t)
		property(t, in, Plan(in))
	})
}

func codes(r Result) map[string]Code {
	m := map[string]Code{}
	for _, v := range r.Verdicts {
		m[v.Device.ID] = v.Code
	}
	return m
}

func upgrades(r Result) map[string]bool {
	m := map[string]bool{}
	for _, v := range r.Verdicts {
		if v.Upgrade {
			m[v.Device.ID] = true
		}
	}
	return m
}

func encode(t *rapid.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// governs is the policy of a device; the fleets of this test have one.
func governs(in Input, d Device) Policy {
	return in.Policies[slices.IndexFunc(in.Policies, func(p Policy) bool { return p.Name == d.Policy })]
}

func summaryOf(r Result, policy string) Summary {
	return r.Policies[slices.IndexFunc(r.Policies, func(s Summary) bool { return s.Policy == policy })]
}

func TestProperty01_OneVerdictWithOneReasonEach(t *testing.T) {
	check(t, func(t *rapid.T, in Input, r Result) { checkShape(t, in, r) })
}

// checkShape holds for any input at all.
func checkShape(t *rapid.T, in Input, r Result) {
	present := slices.DeleteFunc(slices.Clone(in.Devices), func(d Device) bool { return d.Removed })
	if len(r.Verdicts) != len(present) || len(r.Policies) != len(in.Policies) {
		t.Fatalf("%d verdicts of %d devices, %d summaries of %d policies", len(r.Verdicts), len(present), len(r.Policies), len(in.Policies))
	}
	line := func(what, s string) {
		if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x2028 || r == 0x85 }) || !utf8.ValidString(s) {
			t.Fatalf("%s is no line: %q", what, s)
		}
	}
	total := map[Code]int{}
	for i, v := range r.Verdicts {
		if encode(t, v.Device) != encode(t, present[i]) {
			t.Fatalf("verdict %d is of %+v", i, v.Device)
		}
		if v.Code.Kind() == "" {
			t.Fatalf("%s has code %q", v.Device.ID, v.Code)
		}
		if v.Reason == "" || strings.HasSuffix(v.Reason, ".") && v.Code == Upgrade {
			t.Fatalf("%s has reason %q", v.Device.ID, v.Reason)
		}
		if v.Upgrade != (v.Code == Upgrade) {
			t.Fatalf("%s: upgrade %v, code %s", v.Device.ID, v.Upgrade, v.Code)
		}
		line("reason", v.Reason)
		line("detail", v.Detail)
		total[v.Code]++
	}
	for _, d := range r.Decisions {
		set := 0
		for _, is := range []bool{d.Started, d.OnTarget, d.End != "", d.Recall != ""} {
			if is {
				set++
			}
		}
		if set != 1 || d.Because == "" {
			t.Fatalf("decision %+v", d)
		}
		line("because", d.Because)
	}
}

func TestProperty02_Deterministic(t *testing.T) {
	check(t, func(t *rapid.T, in Input, r Result) {
		before := encode(t, in)
		if again := Plan(in); encode(t, again) != encode(t, r) {
			t.Fatalf("the same input gives\n%s\nand\n%s", encode(t, r), encode(t, again))
		}
		if encode(t, in) != before {
			t.Fatal("the input changed")
		}
		shuffled := in
		shuffled.Devices = rapid.Permutation(in.Devices).Draw(t, "order")
		other := Plan(shuffled)
		slices.SortFunc(other.Verdicts, func(a, b Verdict) int { return cmp.Compare(a.Device.ID, b.Device.ID) })
		sorted := slices.Clone(r.Verdicts)
		slices.SortFunc(sorted, func(a, b Verdict) int { return cmp.Compare(a.Device.ID, b.Device.ID) })
		if encode(t, other.Verdicts) != encode(t, sorted) || encode(t, other.Policies) != encode(t, r.Policies) {
			t.Fatalf("the order of the devices matters:\n%s\n%s", encode(t, sorted), encode(t, other.Verdicts))
		}
		byDevice := func(a, b Decision) int {
			return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Attempt, b.Attempt))
		}
		slices.SortFunc(other.Decisions, byDevice)
		decisions := slices.Clone(r.Decisions)
		slices.SortFunc(decisions, byDevice)
		if encode(t, other.Decisions) != encode(t, decisions) {
			t.Fatalf("the order of the devices matters:\n%s\n%s", encode(t, decisions), encode(t, other.Decisions))
		}
	})
}

func TestProperty03_RestrictionsStopEverybody(t *testing.T) {
	check(t, func(t *rapid.T, in Input, r Result) {
		for _, v := range r.Verdicts {
			p := governs(in, v.Device)
			halted := summaryOf(r, p.Name).Halted && !v.Device.Pinned && effectiveAttempts(p) == 1 && len(v.Device.Attempts) == 0
			if v.Upgrade && (!p.Enabled || p.Paused != "" || p.MaxInFlight < 0 || in.Stopped != "" || halted || v.Device.NoTarget != "") {
				t.Fatalf("%s is upgraded: %s", v.Device.ID, v.Reason)
			}
		}
	})
}

func effectiveAttempts(p Policy) int { return max(1, p.MaxAttempts) }

// slotsOf says what a policy may have in flight, counted anew.
func slotsOf(p Policy, n int) int {
	switch {
	case p.MaxInFlightPercent > 0:
		return max(1, p.MaxInFlightPercent*n/100)
	case p.MaxInFlight > 0:
		return p.MaxInFlight
	}
	return 1
}

// taken counts the slots of a policy as they stand after a plan.
func taken(in Input, policy string) int {
	n := 0
	for _, d := range in.Devices {
		open := 0
		for _, a := range d.Attempts {
			if a.Outcome == "" {
				open++
				if a.Policy == policy {
					n++
				}
			}
		}
		if open == 0 && d.Upgrading && !d.Removed && d.Policy == policy {
			n++
		}
	}
	return n
}

func TestProperty04_SlotsAreKept(t *testing.T) {
	check(t, func(t *rapid.T, in Input, r Result) {
		judged := apply(in, Result{Decisions: r.Decisions})
		for _, p := range in.Policies {
			moved := 0
			for _, v := range r.Verdicts {
				if v.Upgrade && v.Device.Policy == p.Name {
					moved++
				}
			}
			s := summaryOf(r, p.Name)
			if used := taken(judged, p.Name); s.InFlight != used || moved > max(0, slotsOf(p, s.N)-used) {
				t.Fatalf("policy %s: %d upgrades, %d in flight (says %d), slots %d", p.Name, moved, used, s.InFlight, slotsOf(p, s.N))
			}
		}
	})
}

func TestProperty05_OnlyWhatMayBeUpgradedIs(t *testing.T) {
	check(t, func(t *rapid.T, in Input, r Result) {
		judged := apply(in, Result{Decisions: r.Decisions})
		for _, v := range r.Verdicts {
			if !v.Upgrade {
				continue
			}
			d := judged.Devices[slices.IndexFunc(judged.Devices, func(d Device) bool { return d.ID == v.Device.ID })]
			p := governs(in, d)
			silent := !in.NoTimeouts && in.Now.Sub(d.LastSeen) > p.OfflineAfter
			if !d.Seen || !d.Online || silent || d.Busy || d.AdminHeld || d.ProtocolVersion < 1 || len(d.Missing) > 0 || d.Upgrading || d.Duplicate {
				t.Fatalf("%+v is upgraded", d)
			}
			have, want := parseVersion(d.Version), parseVersion(d.Target.Version)
			if have == nil || want == nil {
				t.Fatalf("from %q to %q", d.Version, d.Target.Version)
			}
			switch have.Compare(want) {
			case 0:
				if d.Digest == "" || d.Digest == d.Target.Digest {
					if last := d.Attempts; len(last) == 0 || last[len(last)-1].Outcome != Lost && last[len(last)-1].Outcome != Failed {
						t.Fatalf("%+v is on its target", d)
					}
				}
			case 1:
				if !slices.Contains(p.RollbackFrom, d.Version) {
					t.Fatalf("%s goes down from %s to %s", d.ID, d.Version, d.Target.Version)
				}
			}
			failures := 0
			forget := later(notYet(in.Now, p.ForgetBefore), notYet(in.Now, d.ForgetBefore))
			for _, a := range d.Attempts {
				if a.Outcome == "" {
					t.Fatalf("%s is in flight", d.ID)
				}
				if a.Target != d.Target || a.EndedAt.Before(forget) || a.InstallID != "" && a.InstallID != d.InstallID {
					continue
				}
				wait := DefaultBackoffBase
				switch a.Outcome {
				case Failed, Lost:
					failures++
				case Refused:
					t.Fatalf("%s refused its target", d.ID)
				case OK:
					wait = 0
				}
				if a.EndedAt.Add(wait).After(in.Now) {
					t.Fatalf("%s is tried again %v after %s", d.ID, in.Now.Sub(a.EndedAt), a.Outcome)
				}
			}
			if failures >= effectiveAttempts(p) {
				t.Fatalf("%s failed %d times", d.ID, failures)
			}
		}
	})
}

func notYet(now, t time.Time) time.Time {
	if t.After(now) {
		return time.Time{}
	}
	return t
}

func TestProperty06_EnoughStayAvailable(t *testing.T) {
	check(t, func(t *rapid.T, in Input, r Result) {
		after := apply(in, r)
		for _, p := range in.Policies {
			n, available, moved := 0, 0, 0
			for _, d := range after.Devices {
				silence := in.Now.Sub(d.LastSeen)
				if in.NoTimeouts {
					silence = 0
				}
				offline := !d.Online || silence > p.OfflineAfter
				if d.Policy != p.Name || d.Removed || !d.Seen || offline && silence > DefaultAbsentAfter {
					continue
				}
				n++
				open := slices.ContainsFunc(d.Attempts, func(a Attempt) bool { return a.Outcome == "" })
				if !offline && !d.AdminHeld && !d.Upgrading && !open {
					available++
				}
				if upgrades(r)[d.ID] {
					moved++
				}
			}
			keep := 1
			if l := p.MinAvailable; l.Percent > 0 {
				keep = (l.Percent*n + 99) / 100
			} else if l.Set || l.Count > 0 {
				keep = l.Count
			}
			if moved > 0 && available < min(keep, n-1) {
				t.Fatalf("policy %s: %d of %d stay available, %d are wanted", p.Name, available, n, keep)
			}
		}
	})
}

func TestProperty07_ABlockerNeverHelps(t *testing.T) {
	check(t, func(t *rapid.T, in Input, r Result) {
		if len(in.Devices) == 0 {
			return
		}
		i := rapid.IntRange(0, len(in.Devices)-1).Draw(t, "blocked")
		for name, block := range map[string]func(*Device){
			"busy":     func(d *Device) { d.Busy = true },
			"held":     func(d *Device) { d.AdminHeld = true },
			"offline":  func(d *Device) { d.Online = false },
			"protocol": func(d *Device) { d.ProtocolVersion = 0 },
			"hold":     func(d *Device) { d.HeldReason = "mine" },
		} {
			blocked := in
			blocked.Devices = slices.Clone(in.Devices)
			block(&blocked.Devices[i])
			if upgrades(Plan(blocked))[in.Devices[i].ID] {
				t.Fatalf("%s is upgraded though %s", in.Devices[i].ID, name)
			}
		}
	})
}

func TestProperty08_MoreSlotsMoveMore(t *testing.T) {
	check(t, func(t *rapid.T, in Input, _ Result) {
		for k := 1; k < 5; k++ {
			few, many := in, in
			few.Policies, many.Policies = slices.Clone(in.Policies), slices.Clone(in.Policies)
			for i := range in.Policies {
				few.Policies[i].MaxInFlight, few.Policies[i].MaxInFlightPercent = k, 0
				many.Policies[i].MaxInFlight, many.Policies[i].MaxInFlightPercent = k+1, 0
			}
			more := upgrades(Plan(many))
			for id := range upgrades(Plan(few)) {
				if !more[id] {
					t.Fatalf("%s moves with %d slots, but not with %d", id, k, k+1)
				}
			}
		}
	})
}

func TestProperty09_NoSlotIsWasted(t *testing.T) {
	check(t, func(t *rapid.T, in Input, r Result) {
		for _, p := range r.Policies {
			moved := 0
			for _, v := range r.Verdicts {
				if v.Upgrade && v.Device.Policy == p.Policy {
					moved++
				}
			}
			positions := map[int]bool{}
			for _, v := range r.Verdicts {
				if v.Device.Policy != p.Policy || v.Code != Queued && v.Code != FleetGuard {
					continue
				}
				if v.Code == Queued && p.InFlight+moved < p.Slots {
					t.Fatalf("%s waits for a slot, %d of %d are taken", v.Device.ID, p.InFlight+moved, p.Slots)
				}
				if v.Code == FleetGuard && p.InFlight+moved >= p.Slots {
					t.Fatalf("%s waits for the guard, but no slot is free", v.Device.ID)
				}
				positions[v.Position] = true
			}
			for i := range len(positions) {
				if !positions[i+1] {
					t.Fatalf("nobody has position %d: %v", i+1, positions)
				}
			}
		}
	})
}

func TestProperty11_AttemptsAtOtherTargetsDoNotCount(t *testing.T) {
	check(t, func(t *rapid.T, in Input, r Result) {
		more := in
		more.Devices = slices.Clone(in.Devices)
		for i := range more.Devices {
			d := &more.Devices[i]
			old := Attempt{
				Number: -1, Policy: d.Policy, Line: "another", Target: Target{Version: "v9.0.0", Digest: "x" + d.ID}, Rollout: "another",
				AssignedAt: in.Now.Add(-time.Hour), EndedAt: in.Now.Add(-time.Minute),
				Outcome: rapid.SampledFrom([]Outcome{Failed, Refused, Exhausted, Deferred, Lost}).Draw(t, "old outcome"),
			}
			d.Attempts = append([]Attempt{old}, d.Attempts...)
		}
		was, is := codes(r), codes(Plan(more))
		for id := range was {
			for _, c := range []Code{CodeFailed, CodeRefused, CodeBackoff, Halted, Current} {
				if (was[id] == c) != (is[id] == c) {
					t.Fatalf("%s was %s and is %s", id, was[id], is[id])
				}
			}
		}
	})
}

func TestProperty12_OnlyDifferencesOfTimeCount(t *testing.T) {
	check(t, func(t *rapid.T, in Input, r Result) {
		by := time.Duration(rapid.Int64Range(-int64(5e16), int64(5e16)).Draw(t, "shift"))
		if was, is := codes(r), codes(Plan(shift(in, by))); !mapsEqual(was, is) {
			t.Fatalf("%v later: %v, then %v", by, was, is)
		}
	})
}

func mapsEqual(a, b map[string]Code) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

func shift(in Input, by time.Duration) Input {
	move := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(by)
		}
	}
	move(&in.Now)
	move(&in.Watching)
	in.Policies = slices.Clone(in.Policies)
	for i := range in.Policies {
		move(&in.Policies[i].ForgetBefore)
	}
	in.Devices = slices.Clone(in.Devices)
	for i := range in.Devices {
		d := &in.Devices[i]
		move(&d.LastSeen)
		move(&d.OfflineSince)
		move(&d.ForgetBefore)
		d.Attempts = slices.Clone(d.Attempts)
		for j := range d.Attempts {
			a := &d.Attempts[j]
			for _, t := range []*time.Time{&a.AssignedAt, &a.PickupFrom, &a.StartedAt, &a.OnTargetAt, &a.EndedAt} {
				move(t)
			}
		}
	}
	return in
}

// A plan that decides nothing says until when it holds; a daemon that hears
// nothing new need not plan again before that.
func TestNothingChangesBeforeNextChange(t *testing.T) {
	held := 0
	check(t, func(t *rapid.T, in Input, r Result) {
		if len(r.Decisions) > 0 {
			return
		}
		held++
		moving := map[int]bool{} // heard from at any time that is asked about
		for i := range in.Devices {
			// One that does not count as online is not heard from: its reason
			// names when it was.
			moving[i] = in.Devices[i].Online && rapid.IntRange(0, 4).Draw(t, "heard now") == 0
		}
		at := func(now time.Time) Result {
			later := in
			later.Now = now
			later.Devices = slices.Clone(in.Devices)
			for i := range later.Devices {
				if moving[i] {
					later.Devices[i].LastSeen = now
				}
			}
			r := Plan(later)
			for i := range r.Verdicts {
				r.Verdicts[i].Device = Device{}
			}
			return r
		}
		first := at(in.Now)
		if len(first.Decisions) > 0 {
			return
		}
		until := first.NextChange
		if until.IsZero() {
			until = in.Now.Add(10 * 365 * 24 * time.Hour)
		}
		if !until.After(in.Now) {
			t.Fatalf("changes at %s, which is not after %s", until, in.Now)
		}
		now := in.Now.Add(time.Duration(rapid.Int64Range(0, int64(until.Sub(in.Now))-1).Draw(t, "later")))
		for _, now := range []time.Time{now, until.Add(-1)} {
			again := at(now)
			again.NextChange, first.NextChange = time.Time{}, time.Time{}
			if a, b := encode(t, first), encode(t, again); a != b {
				t.Fatalf("the plan holds until %s, but at %s it is another one\n%s\n%s", until, now, a, b)
			}
		}
	})
	if held < 10 {
		t.Fatalf("only %d plans decided nothing", held)
	}
}

func TestProperty13_ReplanningKeepsTheLimits(t *testing.T) {
	check(t, func(t *rapid.T, in Input, r Result) {
		for range 4 {
			in = apply(in, r)
			r = Plan(in)
			for _, p := range in.Policies {
				moved := 0
				for _, v := range r.Verdicts {
					if v.Upgrade && v.Device.Policy == p.Name {
						moved++
					}
				}
				s := summaryOf(r, p.Name)
				used := taken(apply(in, Result{Decisions: r.Decisions}), p.Name)
				if moved > max(0, slotsOf(p, s.N)-used) {
					t.Fatalf("policy %s: %d more upgrades, %d in flight", p.Name, moved, used)
				}
			}
		}
	})
}
