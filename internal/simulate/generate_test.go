package simulate

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

var testNow = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC) // a Sunday

// idle is a device of policy p that is ready to go.
func idle(id string) planner.Device {
	return planner.Device{
		ID: id, Policy: "p", Version: "v1.4.0", Digest: "old", ProtocolVersion: 1, Seen: true, Online: true, InstallID: "i1",
		LastSeen: testNow.Add(-time.Minute), Target: planner.Target{Version: "v1.5.0", Digest: "new-" + id}, Rollout: "r1",
		Labels: map[string]string{"site": "a"},
	}
}

// one draws one case of so many; the common one is what a failure shrinks to.
func one(t *rapid.T, of int, name string) bool {
	return rapid.IntRange(1, of).Draw(t, name) == of
}

func minutes(t *rapid.T, name string, most int) time.Duration {
	return time.Duration(rapid.IntRange(0, most).Draw(t, name)) * time.Minute
}

// drawInput draws a fleet as it may be found; obstacles are what does not pass
// by itself.
func drawInput(t *rapid.T, obstacles bool) planner.Input {
	in := planner.Input{Now: testNow, OwnVersion: "v1.5.0"}
	if one(t, 3, "has fleet") {
		in.Fleet = planner.Fleet{MaxInFlight: rapid.IntRange(0, 3).Draw(t, "fleet maxInFlight"), Budgets: drawBudgets(t), Freezes: drawFreezes(t)}
	}
	for _, name := range []string{"p", "q"} {
		in.Policies = append(in.Policies, drawPolicy(t, name))
	}
	members := map[string]bool{}
	for i := range rapid.IntRange(1, 9).Draw(t, "devices") {
		d := idle(fmt.Sprintf("d%d", i))
		d.Policy = rapid.SampledFrom([]string{"p", "p", "q"}).Draw(t, "policy")
		d.Wave = rapid.SampledFrom([]string{"", "canary", "main"}).Draw(t, "wave")
		d.Labels = map[string]string{"site": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "site")}
		if one(t, 3, "knows its heartbeat") {
			d.Heartbeat = rapid.SampledFrom([]time.Duration{30 * time.Second, 10 * time.Minute}).Draw(t, "heartbeat")
		}
		if obstacles {
			drawObstacle(t, &d)
		}
		drawPast(t, &d)
		members[d.Policy+"/"+d.Wave] = true
		in.Devices = append(in.Devices, d)
	}
	for i := range in.Policies {
		p := &in.Policies[i]
		for j := range p.Waves {
			if w := &p.Waves[j]; !obstacles {
				w.MinSuccess, w.Optional = 0, !members[p.Name+"/"+w.Name]
			}
		}
	}
	return in
}

func drawPolicy(t *rapid.T, name string) planner.Policy {
	p := planner.Policy{
		Name: name, Enabled: true, TargetVersion: "v1.5.0",
		MaxInFlight:  rapid.IntRange(0, 3).Draw(t, "maxInFlight"),
		FailureLimit: planner.Limit{Count: rapid.IntRange(0, 2).Draw(t, "failureLimit"), Set: true},
		MinAvailable: planner.Limit{Count: rapid.IntRange(0, 2).Draw(t, "minAvailable")},
		MaxAttempts:  rapid.IntRange(0, 2).Draw(t, "maxAttempts"),
		Settle:       rapid.SampledFrom([]time.Duration{0, 0, 10 * time.Minute}).Draw(t, "settle"),
	}
	soak := func() time.Duration {
		return rapid.SampledFrom([]time.Duration{0, 10 * time.Minute, 2 * time.Hour}).Draw(t, "soak")
	}
	if one(t, 3, "has pilot") {
		p.Pilot = planner.Pilot{Count: rapid.IntRange(1, 3).Draw(t, "pilot"), Soak: soak()}
	}
	if one(t, 2, "has waves") {
		for _, w := range []string{"canary", "main"}[:rapid.IntRange(1, 2).Draw(t, "waves")] {
			p.Waves = append(p.Waves, planner.Wave{
				Name: w, Soak: soak(), Optional: rapid.Bool().Draw(t, "optional"),
				SuccessThreshold: rapid.SampledFrom([]int{0, 50, 34}).Draw(t, "threshold"), MinSuccess: rapid.IntRange(0, 2).Draw(t, "minSuccess"),
			})
		}
	}
	if one(t, 3, "has budgets") {
		p.Budgets = drawBudgets(t)
	}
	if one(t, 4, "has windows") {
		p.Windows = []planner.Window{{
			Days:  []time.Weekday{time.Sunday, time.Monday, time.Tuesday},
			Start: minutes(t, "window start", 24*60-1), Duration: time.Hour + minutes(t, "window duration", 5*60),
		}}
	}
	if one(t, 6, "has freezes") {
		p.Freezes = drawFreezes(t)
	}
	if one(t, 4, "has pace") {
		p.MinInterval = time.Minute + minutes(t, "minInterval", 40)
	}
	if one(t, 4, "has grace") {
		p.OfflineGrace = time.Minute + minutes(t, "offlineGrace", 100)
	}
	return p
}

func drawBudgets(t *rapid.T) []planner.Budget {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) planner.Budget {
		return planner.Budget{
			GroupBy:        rapid.SampledFrom([][]string{{"site"}, {"site", "role"}, nil}).Draw(t, "groupBy"),
			MaxUnavailable: planner.Limit{Count: rapid.IntRange(1, 3).Draw(t, "maxUnavailable")},
		}
	}), 0, 2).Draw(t, "budgets")
}

func drawFreezes(t *rapid.T) []planner.Freeze {
	from := testNow.Add(minutes(t, "freeze from", 600))
	return []planner.Freeze{{From: from, To: from.Add(time.Minute + minutes(t, "freeze for", 300))}}
}

// drawObstacle gives a device what may keep it.
func drawObstacle(t *rapid.T, d *planner.Device) {
	switch rapid.SampledFrom([]string{"", "", "", "", "offline", "silent", "absent", "busy", "held", "never seen", "newer", "pinned", "observes"}).Draw(t, "obstacle") {
	case "offline":
		d.Online, d.OfflineSince = false, testNow.Add(-minutes(t, "offline since", 100))
		d.LastSeen = d.OfflineSince.Add(-5 * time.Minute)
	case "silent":
		d.LastSeen = testNow.Add(-minutes(t, "silent since", 200))
	case "absent":
		d.Online, d.LastSeen = false, testNow.Add(-200*time.Hour)
	case "busy":
		d.Busy = true
	case "held":
		d.AdminHeld = true
	case "never seen":
		d.Seen, d.Online = false, false
	case "newer":
		d.Version = "v1.6.0"
	case "pinned":
		d.Pinned = true
	case "observes":
		d.Observes = true
	}
}

// drawPast gives a device an attempt that it had, or has. One that was never
// seen has none.
func drawPast(t *rapid.T, d *planner.Device) {
	if !d.Seen {
		return
	}
	a := planner.Attempt{
		Number: 1, Policy: d.Policy, Target: d.Target, Rollout: d.Rollout, InstallID: d.InstallID,
		AssignedAt: testNow.Add(-5*time.Minute - minutes(t, "assigned", 20)),
	}
	switch rapid.SampledFrom([]string{"", "", "", "", "done", "current", "assigned", "started", "settling", "recalled"}).Draw(t, "past") {
	case "":
		return
	case "done":
		a.StartedAt, a.EndedAt, a.Outcome = a.AssignedAt, a.AssignedAt.Add(4*time.Minute), planner.OK
		d.Version, d.Digest = d.Target.Version, d.Target.Digest
	case "current":
		d.Version, d.Digest = d.Target.Version, d.Target.Digest
		d.Since = testNow.Add(-minutes(t, "since", 200))
		return
	case "started":
		a.StartedAt = a.AssignedAt.Add(time.Minute)
		d.Said = planner.Said{Attempt: 1, Begun: true, Phase: "Applying"}
	case "settling":
		a.StartedAt, a.OnTargetAt = a.AssignedAt.Add(time.Minute), a.AssignedAt.Add(3*time.Minute)
		d.Version, d.Digest = d.Target.Version, d.Target.Digest
		d.Said = planner.Said{Attempt: 1, Begun: true, Phase: "Updated", Outcome: "ok"}
	case "recalled":
		a.Recalled = planner.Deferred
	}
	d.Attempts = []planner.Attempt{a}
}

func drawAssumptions(t *rapid.T) Assumptions {
	return Assumptions{
		Seed: rapid.Uint64Range(0, 1000).Draw(t, "seed"), Interval: schema.Duration(5 * time.Minute), Until: schema.Duration(36 * time.Hour),
		UpdateTime: schema.Duration(time.Minute + minutes(t, "updateTime", 30)),
		Offline:    rapid.SampledFrom([]float64{0, 0, 0.05, 0.3}).Draw(t, "offline"),
		OfflineFor: schema.Duration(time.Minute + minutes(t, "offlineFor", 300)),
		Failures:   rapid.SampledFrom([]float64{0, 0, 0.2, 1}).Draw(t, "failures"),
		Refusals:   rapid.SampledFrom([]float64{0, 0, 0.2}).Draw(t, "refusals"),
		BackAfter:  schema.Duration(minutes(t, "backAfter", 100)),
	}
}
