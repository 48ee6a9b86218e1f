package planner

import (
	"testing"
	"time"
)

// What is told without a plan is what a plan goes by.
func TestLimitsAreThoseOfPlans(t *testing.T) {
	at := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	for n := 1; n <= 12; n++ {
		for percent := 1; percent <= 100; percent++ {
			b := Budget{GroupBy: []string{"site"}, MaxUnavailable: Limit{Percent: percent, Set: true}}
			p := Policy{Name: "p", Enabled: true, TargetVersion: "v2.0.0", MaxInFlightPercent: percent, Budgets: []Budget{b}}
			in := Input{Now: at, Policies: []Policy{p}, Fleet: Fleet{MaxInFlightPercent: percent}}
			for i := range n {
				in.Devices = append(in.Devices, Device{
					ID: string(rune('a' + i)), Policy: "p", Target: Target{Version: "v2.0.0", Digest: "d"}, Rollout: "r",
					Seen: true, LastSeen: at.Add(-time.Hour), Version: "v1.0.0", ProtocolVersion: 1,
				})
			}
			result := Plan(in)
			s := result.Policies[0]
			slots, limited := in.Fleet.SlotsFor(n)
			if got := p.LimitsFor(n); got.Slots != s.Slots || slots != result.Fleet.Slots || !limited {
				t.Fatalf("%d%% of %d: %+v and %d slots, the plan has %d and %d", percent, n, got, slots, s.Slots, result.Fleet.Slots)
			}
			if len(s.Budgets) != 1 || len(s.Budgets[0].Used) != 1 {
				t.Fatalf("the plan has the budgets %+v, want one group of devices that are offline", s.Budgets)
			}
			if got, want := b.LimitFor(n), s.Budgets[0].Used[0].Limit; got != want {
				t.Fatalf("%d%% of a group of %d is %d, the plan has %d", percent, n, got, want)
			}
		}
	}
}

func TestNextOpen(t *testing.T) {
	at := func(day, hour int) time.Time { return time.Date(2026, 12, day, hour, 0, 0, 0, time.UTC) }
	nightly := []Window{{Days: []time.Weekday{0, 1, 2, 3, 4, 5, 6}, Start: 22 * time.Hour, Duration: 6 * time.Hour}}
	sundays := []Window{{Days: []time.Weekday{time.Sunday}, Start: 22 * time.Hour, Duration: time.Hour}}
	const days = 30
	for name, c := range map[string]struct {
		windows []Window
		freezes []Freeze
		want    time.Time
	}{
		"nothing":                             {want: at(1, 12)},
		"a window":                            {windows: nightly, want: at(1, 22)},
		"a freeze":                            {freezes: []Freeze{{From: at(1, 0), To: at(3, 5)}}, want: at(3, 5)},
		"a freeze into a window":              {windows: nightly, freezes: []Freeze{{From: at(1, 0), To: at(3, 2)}}, want: at(3, 2)},
		"a freeze until a window":             {windows: nightly, freezes: []Freeze{{From: at(1, 0), To: at(3, 4)}}, want: at(3, 22)},
		"freezes in a row":                    {windows: nightly, freezes: []Freeze{{From: at(5, 0), To: at(9, 23)}, {From: at(1, 0), To: at(5, 0)}}, want: at(9, 23)},
		"frozen for longer":                   {freezes: []Freeze{{From: at(1, 0), To: at(1, 0).AddDate(1, 0, 0)}}},
		"each Sunday is frozen":               {windows: sundays, freezes: []Freeze{{From: at(6, 0), To: at(7, 0)}, {From: at(13, 0), To: at(14, 0)}, {From: at(20, 0), To: at(21, 0)}, {From: at(27, 0), To: at(28, 0)}}},
		"all Sundays but the last":            {windows: sundays, freezes: []Freeze{{From: at(6, 0), To: at(21, 0)}}, want: at(27, 22)},
		"the beginning of a window is frozen": {windows: sundays, freezes: []Freeze{{From: at(6, 0), To: time.Date(2026, 12, 6, 22, 59, 0, 0, time.UTC)}}, want: time.Date(2026, 12, 6, 22, 59, 0, 0, time.UTC)},
	} {
		if got := NextOpen(c.windows, c.freezes, at(1, 12), days); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
