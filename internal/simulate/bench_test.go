package simulate

import (
	"fmt"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// largeFleet is a fleet of one policy with four waves, a soak, a window and a
// budget for each of its sites of a hundred devices.
func largeFleet(n int) planner.Input {
	in := planner.Input{Now: testNow, OwnVersion: "v1.5.0", Policies: []planner.Policy{{
		Name: "p", Enabled: true, TargetVersion: "v1.5.0", MaxInFlightPercent: 5, FailureLimit: planner.Limit{Percent: 2},
		UpdateTimeout: 6 * time.Hour,
		Waves: []planner.Wave{
			{Name: "canary", Soak: 24 * time.Hour}, {Name: "early", Soak: 24 * time.Hour, SuccessThreshold: 95}, {Name: "main", SuccessThreshold: 95},
		},
		Budgets: []planner.Budget{{GroupBy: []string{"site"}, MaxUnavailable: planner.Limit{Percent: 20}}},
	}}}
	for i := range n {
		d := idle(fmt.Sprintf("device-%06d", i))
		d.Labels = map[string]string{"site": fmt.Sprint(i / 100)}
		d.Wave = []string{"canary", "early", "early", "main", "main", "main", "main", "", "", ""}[i%10]
		if i%10 == 0 && i%200 != 0 {
			d.Wave = "early"
		}
		in.Devices = append(in.Devices, d)
	}
	return in
}

// The cost of a simulation is that of its plans: x-plan is how long it takes
// beside so many plans alone, sweeps/plan how many sweeps of the time that it
// covers go by for each of them.
func BenchmarkSimulate10000(b *testing.B) {
	for _, offline := range []float64{0, 0.05} {
		b.Run(fmt.Sprintf("offline=%g%%", offline*100), func(b *testing.B) {
			in := largeFleet(10_000)
			var s *Simulation
			var took time.Duration
			for b.Loop() {
				start := time.Now()
				var err error
				if s, err = Run(b.Context(), Config{Input: in, Assume: Assumptions{Offline: offline, Until: schema.Duration(30 * 24 * time.Hour)}}); err != nil {
					b.Fatal(err)
				}
				took = time.Since(start)
			}
			start := time.Now()
			const samples = 10
			for range samples {
				planner.Plan(in)
			}
			plan := time.Since(start) / samples
			if s.Arrived < len(in.Devices)*9/10 {
				b.Fatalf("%d arrived: %+v", s.Arrived, s.Never)
			}
			b.ReportMetric(float64(s.Plans), "plans")
			b.ReportMetric(float64(took)/float64(plan)/float64(s.Plans), "x-plan")
			b.ReportMetric(s.DoneAt.Sub(s.Start).Hours(), "simulated-hours")
			b.ReportMetric(s.End.Sub(s.Start).Minutes()/float64(s.Plans), "sweeps/plan")
		})
	}
}
