package sweep

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

func TestProgressIsWrittenDown(t *testing.T) {
	at := time.Date(2026, 12, 1, 22, 0, 0, 5, time.UTC)
	day := func(n int) *time.Time {
		d := time.Date(2026, 12, 1+n, 22, 0, 0, 0, time.UTC)
		return &d
	}
	summary := planner.Summary{
		Pilot: &planner.PilotSummary{Count: 2, Done: 1, Soaking: 1, InFlight: 3, SoakingUntil: at},
		Waves: []planner.WaveSummary{
			{Name: "canary", Open: true, Satisfied: true, Members: 4, Countable: 3, Successes: 2, Needed: 1, InFlight: 5, Soaking: 6},
			{Open: true},
		},
		Windows: &planner.WindowSummary{Next: at.AddDate(0, 0, 1)},
		Freeze:  &planner.FreezeSummary{Until: at.AddDate(0, 0, 2)},
	}
	want := schema.RolloutStatus{
		Pilot: &schema.PilotStatus{Count: 2, Done: 1, Soaking: 1, Moving: 3, SoakingUntil: day(0)},
		Waves: []schema.WaveStatus{
			{Name: "canary", Open: true, Satisfied: true, Members: 4, Countable: 3, Done: 2, Needed: 1, Moving: 5, Soaking: 6},
			{Open: true},
		},
		OpensAt: day(1), FrozenUntil: day(3),
	}
	var got schema.RolloutStatus
	progress(&got, &summary, &planner.FleetSummary{Freeze: &planner.FreezeSummary{Until: at.AddDate(0, 0, 3)}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("shut and frozen:\n%s", diff)
	}
	got = schema.RolloutStatus{}
	progress(&got, &planner.Summary{Windows: &planner.WindowSummary{Open: true, Until: at, Next: at.AddDate(0, 0, 1)}}, &planner.FleetSummary{})
	if diff := cmp.Diff(schema.RolloutStatus{ShutsAt: day(0)}, got); diff != "" {
		t.Errorf("open:\n%s", diff)
	}
}

// A device counts as being what it is since the record says so, and not since
// its last heartbeat.
func TestSinceIsOfTheRecord(t *testing.T) {
	recorded, seen := time.Unix(100, 0), time.Unix(900, 0)
	o := &schema.Observed{InstallID: "i", Version: "v1", Digest: "d", Since: recorded}
	d := planner.Device{InstallID: "i", Version: "v1", Digest: "d", LastSeen: seen}
	other := d
	other.Version = "v2"
	for what, c := range map[string]struct {
		d    planner.Device
		o    *schema.Observed
		want time.Time
	}{"as recorded": {d, o, recorded}, "moved since": {other, o, seen}, "new": {d, nil, seen}} {
		if got := asBefore(&c.d, c.o); !got.Equal(c.want) {
			t.Errorf("%s: since %v, want %v", what, got, c.want)
		}
	}
}
