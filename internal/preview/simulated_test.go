package preview_test

import (
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/internal/simulate"
	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/schema"
)

// A simulated release of which every update fails gets as far as was said
// before, or less far: the arithmetic is for the unluckiest order. Where it is
// less, the case says how far, because then failures come in before every slot
// is taken.
func TestReachIsNoLessThanWhatIsSimulated(t *testing.T) {
	for name, c := range map[string]struct {
		policy, fleet  string
		said, happened int
	}{
		"defaults":        {"", "", 1, 1},
		"slots":           {"maxInFlight: 4, failureLimit: 2", "", 6, 5},
		"guard":           {"maxInFlight: 12, minAvailable: 75%", "", 3, 3},
		"everybody":       {"maxInFlight: 100%, failureLimit: 100%", "", 12, 12},
		"pilot":           {"maxInFlight: 6, failureLimit: 1, pilot: {count: 2}", "", 3, 3},
		"first wave":      {"maxInFlight: 6, failureLimit: 3, waves: [{name: canary, selector: {matchLabels: {ring: canary}}}]", "", 2, 2},
		"wave of nobody":  {"maxInFlight: 3, waves: [{name: none, selector: {matchLabels: {ring: none}}}]", "", 0, 0},
		"budget":          {"maxInFlight: 10, failureLimit: 1, budgets: [{groupBy: [site], maxUnavailable: 1}]", "", 4, 4},
		"closed budget":   {"maxInFlight: 10, budgets: [{groupBy: [site], maxUnavailable: 0}]", "", 0, 0},
		"fleet's slots":   {"maxInFlight: 10", "maxInFlight: 2", 2, 2},
		"fleet's budgets": {"maxInFlight: 10", "budgets: [{groupBy: [site], maxUnavailable: 2}]", 6, 6},
	} {
		t.Run(name, func(t *testing.T) {
			ch := rollout(c.policy, c.fleet)
			reach := preview.Compare(ch.input(t)).WorstCase
			var loader schema.Loader
			base, err := loader.Load(ch.base)
			if err != nil {
				t.Fatal(err)
			}
			head, err := loader.Load(ch.head)
			if err != nil {
				t.Fatal(err)
			}
			s, err := simulate.Run(t.Context(), simulate.Config{
				Input:  sweep.PlannerInput(sweep.Scene{Fleet: head, Status: ch.status(base, head, base), Now: now, OwnVersion: "v9.0.0"}),
				Assume: simulate.Assumptions{Until: schema.Duration(48 * time.Hour)}, BadRelease: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := s.BadRelease.Started; reach[0].Devices != c.said || got != c.happened || got > reach[0].Devices {
				t.Errorf("said %d, simulated %d, want %d and %d\n%v", reach[0].Devices, got, c.said, c.happened, reach[0].Words)
			}
		})
	}
}
