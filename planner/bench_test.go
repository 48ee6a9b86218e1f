package planner

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"
	"time"
)

// The reference of each benchmark is what no planner can do without: hash
// every device's place in the queue and sort by that.
func BenchmarkPlan1000(b *testing.B)   { benchmarkPlan(b, 1_000) }
func BenchmarkPlan10000(b *testing.B)  { benchmarkPlan(b, 10_000) }
func BenchmarkPlan100000(b *testing.B) { benchmarkPlan(b, 100_000) }

func benchmarkPlan(b *testing.B, n int) {
	in := largeFleet(n)
	start := time.Now()
	runs := 0
	for b.Loop() {
		if r := Plan(in); len(r.Verdicts) != n {
			b.Fatal(len(r.Verdicts))
		}
		runs++
	}
	plan := time.Since(start) / time.Duration(runs)
	b.StopTimer()
	reference := time.Duration(1 << 62)
	for range 3 {
		reference = min(reference, sortByHash(in))
	}
	b.ReportMetric(float64(plan)/float64(reference), "x-reference")
	b.ReportMetric(float64(plan.Nanoseconds())/float64(n), "ns/device")
}

func sortByHash(in Input) time.Duration {
	start := time.Now()
	keys := make([][sha256.Size]byte, len(in.Devices))
	for i, d := range in.Devices {
		keys[i] = sha256.Sum256([]byte(d.Rollout + "\x00" + d.ID))
	}
	slices.SortFunc(keys, func(a, b [sha256.Size]byte) int { return slices.Compare(a[:], b[:]) })
	return time.Since(start)
}

// largeFleet is a fleet in the middle of a rollout: a third done, some away,
// some failed and some in flight, the others waiting.
func largeFleet(n int) Input {
	in := Input{Now: caseNow, OwnVersion: "v1.5.0"}
	for i := range 10 {
		in.Policies = append(in.Policies, Policy{
			Name: fmt.Sprintf("p%d", i), Enabled: true, TargetVersion: "v1.5.0", MaxInFlightPercent: 5, FailureLimit: Limit{Percent: 5},
		})
	}
	for i := range n {
		d := idle(fmt.Sprintf("device-%06d", i))
		d.Policy = in.Policies[i%10].Name
		last := Attempt{
			Number: 1, Policy: d.Policy, Target: Target{Version: "v1.4.0", Digest: "v1.4.0-" + d.ID}, Rollout: "r0", InstallID: d.InstallID,
			AssignedAt: in.Now.Add(-100 * time.Hour), StartedAt: in.Now.Add(-99 * time.Hour), EndedAt: in.Now.Add(-98 * time.Hour), Outcome: OK,
		}
		d.Attempts = []Attempt{last}
		last.Number, last.Target, last.Rollout = 2, d.Target, d.Rollout
		last.AssignedAt = in.Now.Add(-10 * time.Minute)
		switch {
		case i%3 == 0:
			d.Version, d.Digest = "v1.5.0", d.Target.Digest
		case i%50 == 1:
			last.Outcome, last.EndedAt = Failed, in.Now.Add(-time.Minute)
			d.Attempts = append(d.Attempts, last)
		case i%50 == 2:
			last.Outcome, last.EndedAt, last.StartedAt = "", time.Time{}, in.Now.Add(-5*time.Minute)
			d.Attempts = append(d.Attempts, last)
		case i%20 == 4:
			d.LastSeen = in.Now.Add(-time.Hour)
		case i%20 == 5:
			d.Busy = true
		}
		in.Devices = append(in.Devices, d)
	}
	return in
}
