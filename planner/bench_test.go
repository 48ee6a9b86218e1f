package planner

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
	"strconv"
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
	start := cpuTime()
	runs := 0
	for b.Loop() {
		if r := Plan(in); len(r.Verdicts) != n {
			b.Fatal(len(r.Verdicts))
		}
		runs++
	}
	plan := (cpuTime() - start) / time.Duration(runs)
	b.StopTimer()
	reference := time.Duration(1 << 62)
	for range 3 {
		reference = min(reference, sortByHash(in))
	}
	b.ReportMetric(float64(plan)/float64(reference), "x-reference")
	b.ReportMetric(float64(plan.Nanoseconds())/float64(n), "ns/device")
}

// BenchmarkPlanEverything100000 plans for a fleet with four waves, two budgets,
// a pilot, windows and a pace, beside the same fleet without them.
func BenchmarkPlanEverything100000(b *testing.B) {
	const n = 100_000
	plain := largeFleet(n)
	full := withEverything(plain)
	fastest := map[*Input]time.Duration{&plain: 1 << 62, &full: 1 << 62}
	var before, after runtime.MemStats
	runs := uint64(0)
	plan := func(in *Input) {
		start := cpuTime()
		r := Plan(*in)
		fastest[in] = min(fastest[in], cpuTime()-start)
		if len(r.Verdicts) != n || movedOf(r, "*") == 0 {
			b.Fatalf("%d verdicts, %d upgrades", len(r.Verdicts), movedOf(r, "*"))
		}
	}
	for b.Loop() {
		// Side by side, so that what else the machine does is the same for both.
		for range 3 {
			plan(&plain)
			runtime.ReadMemStats(&before)
			plan(&full)
			runtime.ReadMemStats(&after)
			runs++
		}
	}
	b.ReportMetric(float64(fastest[&full])/float64(fastest[&plain]), "x-plain")
	b.ReportMetric(float64(fastest[&full].Nanoseconds())/n, "ns/device")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/device")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/device")
}

// BenchmarkPlanGrowth prints what a device costs in fleets of all sizes; x-1000
// is that beside one of a thousand devices. A daemon plans once a minute at
// most, so the processor's caches have forgotten the fleet before each plan:
// with them, small fleets would seem cheaper than they are.
func BenchmarkPlanGrowth(b *testing.B) {
	var small float64
	others := make([]byte, otherWork)
	for _, n := range []int{1_000, 3_000, 10_000, 30_000, 100_000, 300_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			in := withEverything(largeFleet(n))
			fastest := time.Duration(1 << 62)
			for b.Loop() {
				for range max(3, 20_000/n) {
					for i := 0; i < len(others); i += cacheLine {
						others[i]++
					}
					start := cpuTime()
					Plan(in)
					fastest = min(fastest, cpuTime()-start)
				}
			}
			each := float64(fastest.Nanoseconds()) / float64(n)
			if small == 0 {
				small = each
			}
			b.ReportMetric(each, "ns/device")
			b.ReportMetric(each/small, "x-1000")
		})
	}
}

const (
	otherWork = 256 << 20 // bytes: more than any cache of a processor
	cacheLine = 64        // bytes
)

// withEverything adds to a fleet what policies can be asked for.
func withEverything(in Input) Input {
	in.Policies, in.Devices = slices.Clone(in.Policies), slices.Clone(in.Devices)
	budget := func(labels ...string) Budget {
		return Budget{GroupBy: labels, MaxUnavailable: Limit{Percent: 30}}
	}
	night := Window{Days: everyDay, Start: 11 * time.Hour, Duration: 4 * time.Hour, Zone: zones()[1]}
	noon := Window{Days: []time.Weekday{time.Sunday}, Start: 12 * time.Hour, Duration: 2 * time.Hour, Zone: zones()[2]}
	in.Fleet = Fleet{MaxInFlightPercent: 5, Budgets: []Budget{budget("site")}}
	for i := range in.Policies {
		p := &in.Policies[i]
		p.Waves = []Wave{{Name: "canary", Soak: time.Hour}, {Name: "early", SuccessThreshold: 50}, {Name: "main", SuccessThreshold: 90, Soak: time.Hour}}
		p.Budgets, p.Windows = []Budget{budget("site", "role")}, []Window{night, noon}
	}
	for i := range in.Devices {
		in.Devices[i].Wave = []string{"canary", "early", "main", "main", "main", ""}[i/10%6]
		in.Devices[i].Labels = map[string]string{"site": strconv.Itoa(i / 100), "role": []string{"gateway", "sensor"}[i/100%2], "model": "x"}
	}
	return in
}

func sortByHash(in Input) time.Duration {
	start := cpuTime()
	keys := make([][sha256.Size]byte, len(in.Devices))
	for i, d := range in.Devices {
		keys[i] = sha256.Sum256([]byte(d.Rollout + "\x00" + d.ID))
	}
	slices.SortFunc(keys, func(a, b [sha256.Size]byte) int { return slices.Compare(a[:], b[:]) })
	return cpuTime() - start
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
