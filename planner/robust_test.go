package planner

import (
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

func anyPolicy(t *rapid.T) Policy {
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
		MinProtocol: rapid.Int().Draw(t, "minProtocol"),
	}
}

func anyDevice(t *rapid.T) Device {
	b := func() bool { return rapid.Bool().Draw(t, "b") }
	return Device{
		ID: anyWord(t), Name: anyWord(t), Version: anyWord(t), ProtocolVersion: rapid.Int().Draw(t, "protocol"),
		Online: b(), Busy: b(), AdminHeld: b(), Upgrading: b(), Policy: anyWord(t), Target: Target{anyWord(t), anyWord(t)},
		Rollout: anyWord(t), NoTarget: anyWord(t), Pinned: b(), Duplicate: b(), ForgetBefore: anyTime(t), Removed: b(),
		Missing: rapid.SliceOfN(rapid.Custom(anyWord), 0, 7).Draw(t, "missing"), Seen: b(), InstallID: anyWord(t), Digest: anyWord(t),
		LastSeen: anyTime(t), OfflineSince: anyTime(t), Heartbeat: anyDuration(t), BusyReason: anyWord(t), HeldReason: anyWord(t),
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
