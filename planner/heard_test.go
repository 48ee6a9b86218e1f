package planner

import (
	"testing"
	"time"
)

// A device that failed and is on its target after all counts as current once
// it is heard of later; of one that is heard at any time this is a matter of
// time alone, and the plan says of which.
func TestHeardLaterIsAChange(t *testing.T) {
	now := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	target := Target{Version: "v1.0.0", Digest: "a"}
	in := Input{
		Now:      now,
		Policies: []Policy{{Name: "gateways", Enabled: true, TargetVersion: "v1.0.0"}},
		Devices: []Device{{
			ID: "gw-1", Policy: "gateways", Target: target, Version: "v1.0.0", Digest: "a", ProtocolVersion: 1,
			Seen: true, Online: true, LastSeen: now,
			Attempts: []Attempt{{Number: 1, Policy: "gateways", Target: target, AssignedAt: now.Add(-time.Hour), StartedAt: now.Add(-time.Hour), EndedAt: now, Outcome: Failed}},
		}},
	}
	first := Plan(in)
	if got := first.Verdicts[0].Code; got != CodeFailed || !first.NextChange.Equal(now.Add(1)) {
		t.Fatalf("it is %s until %s", got, first.NextChange)
	}
	in.Now, in.Devices[0].LastSeen = first.NextChange, first.NextChange
	if got := Plan(in).Verdicts[0].Code; got != Current {
		t.Errorf("heard later it is %s", got)
	}
}
