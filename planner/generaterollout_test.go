package planner

import (
	"sync"
	"time"

	"pgregory.net/rapid"
)

// drawRollout draws what goes beyond slots: pilots, waves, budgets, windows,
// freezes and pace.
func drawRollout(t *rapid.T, p *Policy) {
	soak := func() time.Duration {
		return rapid.SampledFrom([]time.Duration{0, 0, 10 * time.Minute, 2 * time.Hour}).Draw(t, "soak")
	}
	if one(t, 3, "has pilot") {
		p.Pilot = Pilot{Count: rapid.IntRange(1, 3).Draw(t, "pilot"), Soak: soak()}
	}
	if one(t, 2, "has waves") {
		for _, name := range []string{"canary", "main"}[:rapid.IntRange(1, 2).Draw(t, "waves")] {
			p.Waves = append(p.Waves, Wave{
				Name: name, Soak: soak(), Optional: rapid.Bool().Draw(t, "optional"),
				SuccessThreshold: rapid.SampledFrom([]int{0, 50, 34, 100}).Draw(t, "threshold"),
				MinSuccess:       rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "minSuccess"),
			})
		}
	}
	if one(t, 2, "has budgets") {
		p.Budgets = drawBudgets(t)
	}
	if one(t, 4, "has windows") {
		p.Windows = drawWindows(t)
	}
	if one(t, 6, "has freezes") {
		p.Freezes = drawFreezes(t)
	}
	if one(t, 4, "has pace") {
		p.MinInterval = rapid.SampledFrom([]time.Duration{time.Minute, 10 * time.Minute, 3 * time.Hour}).Draw(t, "minInterval")
	}
	if one(t, 4, "has grace") {
		p.OfflineGrace = rapid.SampledFrom([]time.Duration{time.Minute, 12 * time.Hour}).Draw(t, "offlineGrace")
	}
}

func drawFleetWide(t *rapid.T) Fleet {
	var f Fleet
	if !one(t, 2, "has fleet") {
		return f
	}
	if one(t, 12, "fleet paused") {
		f.Paused = "incident"
	}
	if one(t, 2, "fleet slots") {
		f.MaxInFlight = rapid.IntRange(1, 4).Draw(t, "fleet maxInFlight")
	} else if one(t, 3, "fleet percent") {
		f.MaxInFlightPercent = rapid.IntRange(1, 100).Draw(t, "fleet maxInFlightPercent")
	}
	if one(t, 2, "fleet budgets") {
		f.Budgets = drawBudgets(t)
	}
	if one(t, 10, "fleet freezes") {
		f.Freezes = drawFreezes(t)
	}
	if one(t, 20, "bad fleet") {
		f.MaxInFlight = -1
	}
	return f
}

func drawBudgets(t *rapid.T) []Budget {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Budget {
		return Budget{
			GroupBy:        rapid.SampledFrom([][]string{{"site"}, {"site"}, {"site", "role"}, {"role"}, nil}).Draw(t, "groupBy"),
			MaxUnavailable: rapid.SampledFrom([]Limit{{}, {Count: 1}, {Count: 2}, {Percent: 34}, {Percent: 80}, {Set: true}}).Draw(t, "maxUnavailable"),
		}
	}), 1, 2).Draw(t, "budgets")
}

func drawLabels(t *rapid.T) map[string]string {
	labels := map[string]string{}
	for _, l := range []struct {
		name   string
		values []string
	}{{"site", []string{"", "x", "x", "z", "-"}}, {"role", []string{"db", "web", "-"}}} {
		if v := rapid.SampledFrom(l.values).Draw(t, l.name); v != "-" {
			labels[l.name] = v
		}
	}
	return labels
}

// zones are looked for once.
var zones = sync.OnceValue(func() []*time.Location {
	list := []*time.Location{nil}
	for _, name := range []string{"Europe/Berlin", "America/St_Johns", "Pacific/Apia"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			panic(err)
		}
		list = append(list, zone)
	}
	return list
})

func drawWindows(t *rapid.T) []Window {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Window {
		return Window{
			Days:     rapid.SampledFrom([][]time.Weekday{everyDay, {time.Sunday}, {time.Saturday, time.Wednesday}}).Draw(t, "days"),
			Start:    time.Duration(rapid.IntRange(0, 24*60-1).Draw(t, "start")) * time.Minute,
			Duration: time.Duration(rapid.IntRange(1, 24*60).Draw(t, "duration")) * time.Minute,
			Zone:     rapid.SampledFrom(zones()).Draw(t, "zone"),
		}
	}), 1, 3).Draw(t, "windows")
}

func drawFreezes(t *rapid.T) []Freeze {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Freeze {
		from := caseNow.Add(time.Duration(rapid.IntRange(-600, 600).Draw(t, "freeze from")) * time.Minute)
		return Freeze{From: from, To: from.Add(time.Duration(rapid.IntRange(1, 900).Draw(t, "freeze for")) * time.Minute)}
	}), 1, 3).Draw(t, "freezes")
}
