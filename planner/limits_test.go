package planner

import (
	"fmt"
	"math"
	"testing"
	"time"
)

func TestB47_PercentagesRoundOneWay(t *testing.T) {
	for _, c := range []struct{ percent, n, down, up int }{
		{34, 3, 1, 2}, {33, 3, 0, 1}, {100, 3, 3, 3}, {1, 101, 1, 2}, {25, 1, 0, 1},
		{50, 5, 2, 3}, {10, 5, 0, 1}, {99, 10, 9, 10}, {10, 0, 0, 0}, {0, 10, 0, 0},
	} {
		if got := percentDown(c.percent, c.n); got != c.down {
			t.Errorf("%d%% of %d rounded down: got %d, want %d", c.percent, c.n, got, c.down)
		}
		if got := percentUp(c.percent, c.n); got != c.up {
			t.Errorf("%d%% of %d rounded up: got %d, want %d", c.percent, c.n, got, c.up)
		}
	}
	for percent := 0; percent <= 100; percent++ {
		for n := range 102 {
			down, up := percentDown(percent, n), percentUp(percent, n)
			if down < 0 || up > n || up-down > 1 || up < down {
				t.Fatalf("%d%% of %d: %d rounded down, %d rounded up", percent, n, down, up)
			}
			if percent > 0 && percentDown(percent-1, n) > down || n > 0 && percentDown(percent, n-1) > down {
				t.Fatalf("%d%% of %d is not monotone", percent, n)
			}
		}
	}
}

// No percentage keeps an idle fleet from moving, whichever limit it is of, and
// none lets all go.
func TestProperty10_NoRoundingDeadlock(t *testing.T) {
	keeps := []Limit{{Set: true}, {Count: 50}, {}}
	for n := 1; n <= 50; n++ {
		var devices []Device
		for i := range n {
			devices = append(devices, idle(fmt.Sprint("d", i)))
		}
		for percent := 1; percent <= 100; percent++ {
			same := Limit{Percent: percent}
			for _, p := range []Policy{
				{MaxInFlightPercent: percent, MinAvailable: keeps[percent%len(keeps)]},
				{MaxInFlightPercent: percent, MinAvailable: same, Budgets: []Budget{{GroupBy: []string{"site"}, MaxUnavailable: same}}},
			} {
				p.Name, p.Enabled, p.TargetVersion = "p", true, "v1.5.0"
				in := Input{Now: caseNow, Policies: []Policy{p}, Devices: devices}
				if len(p.Budgets) > 0 {
					in.Fleet = Fleet{MaxInFlightPercent: percent, Budgets: p.Budgets}
				}
				moved, stay := movedOf(Plan(in), "p"), 1
				if p.MinAvailable.Set {
					stay = 0
				}
				if moved < 1 || moved > max(1, n*percent/100) || n > 1 && n-moved < stay {
					t.Fatalf("N %d, %d%%, %+v: %d move", n, percent, p, moved)
				}
			}
		}
	}
}

// idle is a device that only waits for its turn.
func idle(id string) Device {
	return Device{
		ID: id, Policy: "p", Version: "v1.4.0", ProtocolVersion: 1, Seen: true, Online: true, LastSeen: caseNow,
		InstallID: "i-" + id, Target: Target{Version: "v1.5.0", Digest: "v1.5.0-" + id}, Rollout: "r1",
	}
}

func TestBackoffGrowsToItsCap(t *testing.T) {
	p := newPolicy(Policy{}, "")
	last := time.Duration(0)
	for n := 1; n < 5000; n++ {
		got := p.backoff(n)
		if got < last || got <= 0 || got > DefaultBackoffCap {
			t.Fatalf("attempt %d: %v after %v", n, got, last)
		}
		last = got
	}
	for n, want := range map[int]time.Duration{1: 10 * time.Minute, 2: 20 * time.Minute, 5: 160 * time.Minute, 9: 24 * time.Hour} {
		if got := p.backoff(n); got != want {
			t.Errorf("attempt %d: got %v, want %v", n, got, want)
		}
	}
	p = newPolicy(Policy{Backoff: Backoff{Base: math.MaxInt64, Factor: math.MaxFloat64, Cap: math.MaxInt64}}, "")
	if got := p.backoff(3); got != math.MaxInt64 {
		t.Errorf("got %v", got)
	}
}

func TestDefaultsAreThoseOfTheConstants(t *testing.T) {
	p := newPolicy(Policy{Name: "p"}, "v1.0.0")
	p.n = 100
	p.setLimits()
	got := fmt.Sprint(p.slots, p.keep, p.failures.limit, p.refusals.limit, p.PickupTimeout, p.UpdateTimeout, p.MaxAttempts,
		p.Backoff, p.AbsentAfter, p.offlineAfter(0), p.offlineAfter(time.Hour), p.MinProtocol, p.target == "v1.0.0")
	want := "1 1 0 10 1h0m0s 30m0s 1 {10m0s 2 24h0m0s} 168h0m0s 5m0s 3h0m0s 1 true"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestCodesAreInTheOrderOfTheChecks(t *testing.T) {
	want := "[BadInput Duplicate Upgrading Excluded Disabled BadPolicy NeverSeen Current NoTarget UnknownVersion Newer ByHand " +
		"NeedsAgent Held Observing Failed Refused Backoff Offline Absent Busy Stopped Paused Halted Frozen Window Pilot Wave Queued FleetGuard Budget Upgrade]"
	var got []Code
	for _, c := range Codes() {
		got = append(got, c.Code)
		if c.Kind == "" || c.Meaning == "" || c.Code.Kind() != c.Kind {
			t.Errorf("%+v is not documented", c)
		}
		if git := c.Code.ForGit(); git == FleetGuard || git == CodeBudget || git == Upgrade || git.ForGit() != git {
			t.Errorf("%s is %s for git", c.Code, git)
		}
	}
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
}

// What git has of an upgrade is what the next plan says of it.
func TestUpgradeForGitStays(t *testing.T) {
	in := Input{Now: caseNow, Policies: []Policy{{Name: "p", Enabled: true, TargetVersion: "v1.5.0"}}, Devices: []Device{idle("a")}}
	v := Plan(in).Verdicts[0]
	code, reason := v.ForGit(in.Now)
	d := &in.Devices[0]
	d.Attempts = []Attempt{{Number: 1, Policy: "p", Target: v.Target, AssignedAt: in.Now}}
	in.Now = in.Now.Add(time.Minute)
	next := Plan(in).Verdicts[0]
	if nextCode, nextReason := next.ForGit(in.Now); code != nextCode || reason != nextReason {
		t.Errorf("got %s %q, then %s %q", code, reason, nextCode, nextReason)
	}
}
