package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// The document is a contract: no list in it is null, whatever there is to say,
// and what goes in is not changed.
func TestDocumentsOfAllKinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t, true)
		if one(t, 10, "is empty") {
			in = planner.Input{Now: testNow}
		}
		before := in
		before.Devices = slices.Clone(in.Devices)
		for i := range before.Devices {
			before.Devices[i].Attempts = slices.Clone(before.Devices[i].Attempts)
		}
		s, err := Run(t.Context(), Config{Input: in, Assume: drawAssumptions(t), BadRelease: true})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "null") {
			t.Fatalf("a list is null: %s", text)
		}
		if diff := cmp.Diff(before, in); diff != "" {
			t.Fatalf("the input was changed:\n%s", diff)
		}
		total := 0
		for _, p := range s.Policies {
			for _, w := range p.Waves {
				total += w.Devices
			}
		}
		if total != len(in.Devices) || len(s.Devices) != total {
			t.Fatalf("%d devices in waves, %d in the list, %d there are", total, len(s.Devices), len(in.Devices))
		}
	})
}

// fleetOf is a fleet of so many devices that are ready to go, ten at a time.
func fleetOf(n int) planner.Input {
	in := planner.Input{Now: testNow, OwnVersion: "v1.5.0", Policies: []planner.Policy{
		{Name: "p", Enabled: true, TargetVersion: "v1.5.0", MaxInFlight: 10, FailureLimit: planner.Limit{Count: n}},
	}}
	for i := range n {
		in.Devices = append(in.Devices, idle(fmt.Sprintf("d%03d", i)))
	}
	return in
}

func simulated(t *testing.T, in planner.Input, as Assumptions) *Simulation {
	t.Helper()
	s, err := Run(t.Context(), Config{Input: in, Assume: as})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The same seed gives the same future, another one another; and what is left to
// chance comes out as often as it was said.
func TestSeedsAndRates(t *testing.T) {
	const n = 400
	as := Assumptions{Failures: 0.25, Refusals: 0.1, Seed: 1}
	a, b := simulated(t, fleetOf(n), as), simulated(t, fleetOf(n), as)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("one seed, two futures:\n%s", diff)
	}
	as.Seed = 2
	if c := simulated(t, fleetOf(n), as); cmp.Equal(a.Devices, c.Devices) {
		t.Error("two seeds, one future")
	}
	// The limit of refusals halts at 40 of 400, so that both are counted of
	// those that had their turn.
	failed, refused := a.Policies[0].Failed, a.Policies[0].Refused
	tried := failed + refused + a.Arrived
	if tried < 200 || failed < tried/7 || failed > tried/3 || refused < tried/20 || refused > tried/6 {
		t.Errorf("of %d devices %d failed and %d refused, want about a quarter and a tenth", tried, failed, refused)
	}
}

// Devices are away for the share of the time that was said.
func TestShareOfOutages(t *testing.T) {
	cfg := Config{Input: fleetOf(200), Assume: Assumptions{Offline: 0.2, OfflineFor: schema.Duration(2 * time.Hour), Until: schema.Duration(72 * time.Hour)}, Unknown: true}
	cfg.Input.Policies[0].Paused = "nobody moves"
	if err := cfg.setDefaults(); err != nil {
		t.Fatal(err)
	}
	cfg.Assume.Interval = schema.Duration(30 * time.Minute)
	r := newRun(cfg)
	r.eager = true
	seen, away := 0, 0
	r.watch = func(in planner.Input, _ planner.Result) {
		for i := range r.devices {
			if seen++; r.devices[i].silent {
				away++
			}
		}
	}
	r.now = r.start
	r.plan()
	for _, d := range r.devices {
		r.wake(d)
	}
	for r.now = r.nextSweep(); r.now.Before(r.end); r.now = r.nextSweep() {
		for e, ok := r.queue.until(r.now); ok; e, ok = r.queue.until(r.now) {
			r.happen(e)
		}
		r.plan()
	}
	if share := float64(away) / float64(seen); share < 0.17 || share > 0.23 {
		t.Errorf("devices were away for %.1f%% of the time, want 20%%", share*100)
	}
}

// What makes no sense is refused, and whoever listens can end a simulation.
func TestWhatIsRefused(t *testing.T) {
	for _, c := range []struct {
		as   Assumptions
		want string
	}{
		{Assumptions{Offline: 0.96}, "offline must be between"},
		{Assumptions{Failures: 1.1}, "failures must be between"},
		{Assumptions{Refusals: -1}, "refusals must be between"},
		{Assumptions{UpdateTime: -1}, "negative"},
		{Assumptions{BackAfter: -1}, "negative"},
		{Assumptions{Interval: 1}, "too many to look ahead"},
		{Assumptions{Offline: 0.5, OfflineFor: 1000}, "too many to look ahead"},
		{Assumptions{Offline: 0.0001, OfflineFor: 1}, "too many to look ahead"},
	} {
		if err := c.as.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.as, err, c.want)
		}
		if _, err := Run(t.Context(), Config{Input: fleetOf(1), Assume: c.as}); err == nil {
			t.Errorf("%+v is simulated", c.as)
		}
	}
	enough := errors.New("enough")
	steps := 0
	_, err := Run(t.Context(), Config{Input: fleetOf(30), Step: func(s Step) error {
		if steps++; steps == 3 {
			return enough
		}
		if s.Pending != 30 || s.Plans < steps || !s.Now.After(testNow) {
			t.Errorf("%+v", s)
		}
		return nil
	}})
	if !errors.Is(err, enough) || steps != 3 {
		t.Errorf("%v after %d steps", err, steps)
	}
}

// What is well for one device can be too much for many.
func TestOutagesOfMany(t *testing.T) {
	as := Assumptions{Offline: 0.5, OfflineFor: schema.Duration(2 * time.Minute)}
	if err := as.Check(); err != nil {
		t.Errorf("one device: %v", err)
	}
	if err := as.CheckFor(1000); err == nil || !strings.Contains(err.Error(), "of 1000 devices are too many") {
		t.Errorf("many devices: %v", err)
	}
	if err := (Assumptions{Offline: 0.05}).CheckFor(20_000); err != nil {
		t.Errorf("the usual outages: %v", err)
	}
}

// Whoever ends a simulation need not wait for a plan.
func TestRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, Config{Input: fleetOf(3)}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A fleet that is made up has the proportions of its samples.
func TestMakeUp(t *testing.T) {
	in := fleetOf(4)
	in.Devices[0].Labels = map[string]string{"site": "b"}
	in.Devices[1].Attempts = []planner.Attempt{{Number: 1}}
	in.Devices[2].Removed = true
	for _, n := range []int{1, 2, 3, 7, 300} {
		made := MakeUp(in, n)
		ids, b := map[string]bool{}, 0
		for _, d := range made.Devices {
			ids[d.ID] = true
			if d.Labels["site"] == "b" {
				b++
			}
			if d.Removed || len(d.Attempts) > 0 {
				t.Errorf("%+v is made up", d)
			}
		}
		if len(ids) != n || b != (n+2)/3 {
			t.Errorf("%d devices with %d ids, %d of them of one of three", len(made.Devices), len(ids), b)
		}
	}
	if made := MakeUp(planner.Input{}, 5); len(made.Devices) != 0 {
		t.Errorf("made up of nothing: %+v", made.Devices)
	}
}
