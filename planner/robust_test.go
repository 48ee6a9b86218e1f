package planner

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Any value of any field, sensible or not, gives one verdict per device and
// no panic.
func TestAnyInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Input{
			Now: anyTime(t), OwnVersion: anyWord(t), Watching: anyTime(t), Stopped: anyWord(t), NoTimeouts: rapid.Bool().Draw(t, "b"),
			Fleet: Fleet{
				Paused: anyWord(t), MaxInFlight: anySmall(t), MaxInFlightPercent: anySmall(t), Budgets: anyBudgets(t), Freezes: anyFreezes(t),
			},
			Policies: rapid.SliceOfN(rapid.Custom(anyPolicy), 0, 4).Draw(t, "policies"),
			Devices:  rapid.SliceOfN(rapid.Custom(anyDevice), 0, 8).Draw(t, "devices"),
		}
		// JSON cannot say some of these times, so the shape is checked on what
		// it can.
		r := Plan(in)
		if len(r.Policies) != len(in.Policies) {
			t.Fatalf("%d summaries of %d policies", len(r.Policies), len(in.Policies))
		}
		for _, v := range r.Verdicts {
			if v.Code.Kind() == "" || v.Reason == "" || strings.ContainsAny(v.Reason+v.Detail, "\n\r\x1b\x00") {
				t.Fatalf("%+v", v)
			}
			if v.Upgrade && (v.Device.Busy || v.Device.AdminHeld || !v.Device.Online || v.Device.Upgrading || in.Stopped != "") {
				t.Fatalf("%+v is upgraded", v.Device)
			}
		}
	})
}

func anyWord(t *rapid.T) string {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", "a", "b", "p", "v1.5.0", "1.5", "v1.4.0-3-gdeadbee", "ok", "failed", "lost", "deferred", "Waiting", "\n", "\x1b[2J", "\xff\xfe"}),
		rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
	).Draw(t, "word")
}

func anyTime(t *rapid.T) time.Time {
	switch rapid.IntRange(0, 4).Draw(t, "kind of time") {
	case 0:
		return time.Time{}
	case 1:
		return time.Unix(rapid.Int64().Draw(t, "seconds"), 0)
	default:
		return caseNow.Add(time.Duration(rapid.Int64Range(-1e15, 1e15).Draw(t, "near")))
	}
}

func anyDuration(t *rapid.T) time.Duration { return time.Duration(rapid.Int64().Draw(t, "duration")) }

func anyLimit(t *rapid.T) Limit {
	return Limit{
		Count:   rapid.IntRange(-2, 10).Draw(t, "count"),
		Percent: rapid.SampledFrom([]int{0, 0, 0, 1, 100, 101, -1, 1 << 62}).Draw(t, "percent"),
		Set:     rapid.Bool().Draw(t, "set"),
	}
}

// anyPolicy is nearly always invalid, unless it is tamed.
func anyPolicy(t *rapid.T) Policy {
	p := wildPolicy(t)
	if rapid.IntRange(0, 3).Draw(t, "wild") > 0 {
		if tame(&p); p.problem().text != "" {
			t.Fatalf("still invalid: %s", p.problem().text)
		}
	}
	return p
}

// tame leaves what is extreme, but not what is refused.
func tame(p *Policy) {
	for _, d := range []*time.Duration{
		&p.PickupTimeout, &p.UpdateTimeout, &p.Settle, &p.Backoff.Base, &p.Backoff.Cap, &p.OfflineAfter, &p.AbsentAfter, &p.OfflineGrace,
		&p.MinInterval, &p.Pilot.Soak,
	} {
		*d = d.Abs()
	}
	for _, n := range []*int{&p.MaxInFlight, &p.MaxAttempts, &p.MinProtocol, &p.Pilot.Count} {
		*n = max(*n, 0)
	}
	p.Backoff.Factor, p.MaxInFlightPercent = 0, 0
	p.MinAvailable, p.FailureLimit, p.RefusalLimit = Limit{Set: true}, Limit{Percent: 100}, Limit{}
	for i := range p.Waves {
		w := &p.Waves[i]
		w.Name, w.SuccessThreshold, w.MinSuccess, w.Soak = string(rune('a'+i))+w.Name, min(max(w.SuccessThreshold, 0), 100), max(w.MinSuccess, 0), w.Soak.Abs()
	}
	for i := range p.Windows {
		w := &p.Windows[i]
		w.Days[0], w.Start, w.Duration = (w.Days[0]+7)%7, w.Start.Abs()%day, min(max(w.Duration.Abs(), MinWindow), MaxWindow)
	}
	p.Budgets = slices.DeleteFunc(p.Budgets, func(b Budget) bool { return wrongBudgets([]Budget{b}).text != "" })
	p.Freezes = slices.DeleteFunc(p.Freezes, func(f Freeze) bool { return !f.From.Before(f.To) })
}

func wildPolicy(t *rapid.T) Policy {
	return Policy{
		Name: anyWord(t), Enabled: rapid.Bool().Draw(t, "b"), TargetVersion: anyWord(t), Paused: anyWord(t), Line: anyWord(t), Release: anyWord(t),
		MaxInFlight:        rapid.SampledFrom([]int{0, 1, 2, -1, 1 << 62}).Draw(t, "maxInFlight"),
		MaxInFlightPercent: rapid.SampledFrom([]int{0, 0, 50, -1, 1 << 62}).Draw(t, "percent"),
		RollbackFrom:       rapid.SliceOfN(rapid.Custom(anyWord), 0, 2).Draw(t, "from"),
		MinAvailable:       anyLimit(t), FailureLimit: anyLimit(t), RefusalLimit: anyLimit(t),
		PickupTimeout: anyDuration(t), UpdateTimeout: anyDuration(t), Settle: anyDuration(t),
		MaxAttempts:  rapid.Int().Draw(t, "maxAttempts"),
		Backoff:      Backoff{Base: anyDuration(t), Factor: rapid.Float64().Draw(t, "factor"), Cap: anyDuration(t)},
		ForgetBefore: anyTime(t), OfflineAfter: anyDuration(t), AbsentAfter: anyDuration(t),
		MinProtocol: rapid.Int().Draw(t, "minProtocol"), OfflineGrace: anyDuration(t), MinInterval: anyDuration(t),
		Pilot:   Pilot{Count: anySmall(t), Soak: anyDuration(t)},
		Waves:   rapid.SliceOfN(rapid.Custom(anyWave), 0, 3).Draw(t, "waves"),
		Budgets: anyBudgets(t), Freezes: anyFreezes(t),
		Windows: rapid.SliceOfN(rapid.Custom(anyWindow), 0, 3).Draw(t, "windows"),
	}
}

func anySmall(t *rapid.T) int {
	return rapid.SampledFrom([]int{0, 0, 1, 2, 50, 101, -1, 1 << 62}).Draw(t, "small")
}

func anyWave(t *rapid.T) Wave {
	return Wave{
		Name: anyWord(t), SuccessThreshold: anySmall(t), MinSuccess: anySmall(t), Soak: anyDuration(t),
		Optional: rapid.Bool().Draw(t, "optional"),
	}
}

func anyBudgets(t *rapid.T) []Budget {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Budget {
		return Budget{GroupBy: rapid.SliceOfN(rapid.Custom(anyWord), 0, 2).Draw(t, "by"), MaxUnavailable: anyLimit(t)}
	}), 0, 2).Draw(t, "budgets")
}

func anyFreezes(t *rapid.T) []Freeze {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Freeze {
		return Freeze{From: anyTime(t), To: anyTime(t), Note: anyWord(t)}
	}), 0, 2).Draw(t, "freezes")
}

func anyWindow(t *rapid.T) Window {
	odd := []*time.Location{time.FixedZone("far", 1<<30), time.FixedZone("\n", -1<<30), time.FixedZone("", 61)}
	return Window{
		Days: []time.Weekday{time.Weekday(rapid.IntRange(-1, 7).Draw(t, "day"))}, Start: anyDuration(t), Duration: anyDuration(t),
		Zone: rapid.SampledFrom(append(odd, zones()...)).Draw(t, "zone"),
	}
}

func anyDevice(t *rapid.T) Device {
	b := func() bool { return rapid.Bool().Draw(t, "b") }
	return Device{
		ID: anyWord(t), Name: anyWord(t), Version: anyWord(t), ProtocolVersion: rapid.Int().Draw(t, "protocol"),
		Online: b(), Busy: b(), AdminHeld: b(), Upgrading: b(), Policy: anyWord(t), Target: Target{anyWord(t), anyWord(t)},
		Rollout: anyWord(t), NoTarget: anyWord(t), Pinned: b(), Observes: b(), Duplicate: b(), ForgetBefore: anyTime(t), Removed: b(),
		Missing: rapid.SliceOfN(rapid.Custom(anyWord), 0, 7).Draw(t, "missing"), Seen: b(), InstallID: anyWord(t), Digest: anyWord(t),
		Wave: anyWord(t), Labels: rapid.MapOfN(rapid.Custom(anyWord), rapid.Custom(anyWord), 0, 2).Draw(t, "labels"), Since: anyTime(t),
		LastSeen: anyTime(t), HeardAt: anyTime(t), OfflineSince: anyTime(t), Heartbeat: anyDuration(t), BusyReason: anyWord(t), HeldReason: anyWord(t),
		Said: Said{
			Fresh: b(), Sequence: rapid.Int64().Draw(t, "seq"), Attempt: rapid.Int64Range(-1, 4).Draw(t, "attempt"), Phase: anyWord(t),
			Begun: b(), Starting: b(), Outcome: anyWord(t), Settled: b(), Recalled: rapid.Int64Range(-1, 4).Draw(t, "recalled"),
			Stage: anyWord(t), Message: anyWord(t),
		},
		Attempts: rapid.SliceOfN(rapid.Custom(anyAttempt), 0, 4).Draw(t, "attempts"),
	}
}

func anyAttempt(t *rapid.T) Attempt {
	return Attempt{
		Number: rapid.Int64Range(-1, 4).Draw(t, "number"), Policy: anyWord(t), Line: anyWord(t), Target: Target{anyWord(t), anyWord(t)},
		Rollout: anyWord(t), InstallID: anyWord(t), Pinned: rapid.Bool().Draw(t, "b"), Release: anyWord(t),
		AssignedAt: anyTime(t), PickupFrom: anyTime(t), StartedAt: anyTime(t), OnTargetAt: anyTime(t), EndedAt: anyTime(t),
		Outcome: Outcome(anyWord(t)), Recalled: Outcome(anyWord(t)), RecallDelivered: rapid.Bool().Draw(t, "b"),
	}
}
