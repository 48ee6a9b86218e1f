package view

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/schema"
)

func TestFleetTextSaysHowFarARolloutIs(t *testing.T) {
	for name, c := range map[string]struct {
		rollout     schema.RolloutStatus
		state, want string // "" = no line
	}{
		"a canary soaks": {schema.RolloutStatus{State: "waiting", Waves: []schema.WaveStatus{
			{Name: "canary", Open: true, Members: 3, Countable: 3, Done: 2, Needed: 3, Soaking: 1, SoakingUntil: at(20)}, {Members: 4},
		}}, "waiting", "gateways: canary 2/3 done, soaks until 12:20Z · rest waits"},
		"it has to report": {schema.RolloutStatus{State: "waiting", Waves: []schema.WaveStatus{
			{Name: "canary", Open: true, Members: 1, Countable: 1, Needed: 1, Soaking: 1}, {Name: "berlin", Members: 2}, {Name: "oslo", Members: 2}, {Members: 4},
		}}, "waiting", "gateways: canary 0/1 done, 1 to report after the soak · berlin, oslo and 1 more wait"},
		"the rest moves": {schema.RolloutStatus{State: "rolling", Moving: 1, Waves: []schema.WaveStatus{
			{Name: "canary", Open: true, Satisfied: true, Members: 1, Countable: 1, Done: 1}, {Open: true, Members: 4, Countable: 4, Done: 1, Moving: 1},
		}}, "rolling", "gateways: canary done · rest 1/4 done, 1 moving"},
		"a pilot":           {schema.RolloutStatus{State: "rolling", Moving: 1, Pilot: &schema.PilotStatus{Count: 2, Done: 1, Moving: 1}}, "rolling", "gateways: pilot 1/2 done, 1 moving"},
		"a pilot is over":   {schema.RolloutStatus{State: "rolling", Moving: 1, Pilot: &schema.PilotStatus{Count: 2, Done: 2, Over: true}}, "rolling", ""},
		"a window":          {schema.RolloutStatus{State: "waiting", OpensAt: at(60)}, "waiting", "gateways: the window opens 13:00Z"},
		"a freeze":          {schema.RolloutStatus{State: "waiting", OpensAt: at(60), FrozenUntil: at(120)}, "waiting", "gateways: frozen until 14:00Z"},
		"a guard blocks":    {schema.RolloutStatus{State: "rolling", Limit: "FleetGuard", Next: []string{"gw-1"}}, "rolling", "gateways: minAvailable lets nobody go"},
		"a budget blocks":   {schema.RolloutStatus{State: "rolling", Limit: "Budget", Next: []string{"gw-1"}}, "rolling", "gateways: a budget lets nobody go"},
		"one is on the way": {schema.RolloutStatus{State: "rolling", Limit: "Queued", InFlight: []schema.InFlight{{Device: "gw-1"}}}, "rolling", ""},
		"done":              {schema.RolloutStatus{State: "done", Waves: []schema.WaveStatus{{Name: "canary", Open: true, Satisfied: true}}}, "done", ""},
	} {
		c.rollout.Policy, c.rollout.Version = "gateways", "v1.5.0"
		st := Status{Commit: "c", Fleet: &schema.FleetStatus{SourceCommit: "a", SweptAt: *at(0), Rollouts: []schema.RolloutStatus{c.rollout}}}
		text := fleetText(t, st, Look{})
		lines := strings.Split(text, "\n")
		got := ""
		for _, l := range lines {
			if strings.HasPrefix(l, "gateways: ") {
				got = l
			}
		}
		if got != c.want || !strings.Contains(text, "gateways  v1.5.0  "+c.state+" ") {
			t.Errorf("%s: got %q, want %q and the state %s\n%s", name, got, c.want, c.state, text)
		}
		for _, l := range strings.Split(fleetText(t, st, Look{Width: 40}), "\n") {
			if n := utf8.RuneCountInString(l); n > 40 {
				t.Errorf("%s: a line has %d columns: %q", name, n, l)
			}
		}
	}
}
