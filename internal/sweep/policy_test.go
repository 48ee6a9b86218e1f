package sweep

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// fleetOf loads files as a fleet.
func fleetOf(t *testing.T, files map[string]string) *schema.Fleet {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte("apiVersion: gitopsd.dev/v1alpha1\n"+text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	src, err := schema.DirSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := (&schema.Loader{}).Load(src)
	if err != nil {
		t.Fatal(err)
	}
	return fleet
}

const (
	carefulPolicy = `kind: Policy
metadata: {name: gateways}
spec:
  enabled: true
  targetVersion: v1.5.0
  pilot: {count: 2, soak: 1h}
  waves:
  - {name: canary, selector: {matchLabels: {ring: canary}}, soak: 24h}
  - {name: early, selector: {matchLabels: {ring: early}}, successThreshold: 90%, minSuccess: 3, optional: true}
  budgets:
  - {groupBy: [site, rack], maxUnavailable: 10%}
  - {groupBy: [site], maxUnavailable: 0}
  windows:
  - {days: [Fri-Mon, Wednesday], start: "22:30", duration: 6h, timeZone: Europe/Berlin}
  - {start: "00:00", duration: 24h, timeZone: UTC}
  freezes:
  - {from: "2026-12-18T00:00:00+01:00", to: "2027-01-07T00:00:00Z", note: holidays}
  minInterval: 10m
  offlineGrace: 2h
`
	wholeFleet = `kind: Fleet
spec:
  paused: {reason: stock-taking}
  maxInFlight: 10%
  budgets: [{groupBy: [site], maxUnavailable: 1}]
  freezes: [{from: "2026-12-24T00:00:00Z", to: "2026-12-27T00:00:00Z"}]
  deletionLimit: 1
`
	release = "kind: Release\nmetadata: {name: v1.5.0}\nspec: {files: {/etc/motd: {content: hello}}}\n"
)

// Everything that the documents say of restraint reaches the planner.
func TestStepsReachThePlanner(t *testing.T) {
	fleet := fleetOf(t, map[string]string{
		"policies/gateways.yaml":        carefulPolicy,
		"fleet.yaml":                    wholeFleet,
		"releases/gateways/v1.5.0.yaml": release,
		"devices/a.yaml":                "kind: Device\nmetadata: {name: a, labels: {ring: canary, site: berlin}}\n",
		"devices/b.yaml":                "kind: Device\nmetadata: {name: b, labels: {ring: early}}\n",
		"devices/c.yaml":                "kind: Device\nmetadata: {name: c}\n",
	})
	if !fleet.Valid() {
		t.Fatalf("%+v", fleet.Problems)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	in := PlannerInput(Scene{Fleet: fleet})
	want := planner.Policy{
		Name: "gateways", Line: "gateways", Enabled: true, TargetVersion: "v1.5.0", Release: in.Policies[0].Release,
		OfflineGrace: 2 * time.Hour, MinInterval: 10 * time.Minute,
		Pilot: planner.Pilot{Count: 2, Soak: time.Hour},
		Waves: []planner.Wave{{Name: "canary", Soak: 24 * time.Hour}, {Name: "early", SuccessThreshold: 90, MinSuccess: 3, Optional: true}},
		Budgets: []planner.Budget{
			{GroupBy: []string{"site", "rack"}, MaxUnavailable: planner.Limit{Percent: 10, Set: true}},
			{GroupBy: []string{"site"}, MaxUnavailable: planner.Limit{Set: true}},
		},
		Windows: []planner.Window{
			{Days: []time.Weekday{time.Sunday, time.Monday, time.Wednesday, time.Friday, time.Saturday}, Start: 22*time.Hour + 30*time.Minute, Duration: 6 * time.Hour, Zone: berlin},
			{Days: []time.Weekday{0, 1, 2, 3, 4, 5, 6}, Duration: 24 * time.Hour, Zone: time.UTC},
		},
		Freezes: []planner.Freeze{{From: time.Date(2026, 12, 17, 23, 0, 0, 0, time.UTC), To: time.Date(2027, 1, 7, 0, 0, 0, 0, time.UTC), Note: "holidays"}},
	}
	opts := cmp.Options{cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() }), cmpopts.EquateEmpty()}
	if diff := cmp.Diff([]planner.Policy{want}, in.Policies, opts); diff != "" {
		t.Errorf("policy:\n%s", diff)
	}
	all := planner.Fleet{
		Paused: "stock-taking", MaxInFlightPercent: 10,
		Budgets: []planner.Budget{{GroupBy: []string{"site"}, MaxUnavailable: planner.Limit{Count: 1, Set: true}}},
		Freezes: []planner.Freeze{{From: time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 12, 27, 0, 0, 0, 0, time.UTC)}},
	}
	if diff := cmp.Diff(all, in.Fleet, opts); diff != "" {
		t.Errorf("fleet:\n%s", diff)
	}
	for i, wave := range []string{"canary", "early", ""} {
		if d := in.Devices[i]; d.Wave != wave || !cmp.Equal(d.Labels, fleet.Devices[i].Labels()) {
			t.Errorf("%s is in wave %q with labels %v, want wave %q", d.ID, d.Wave, d.Labels, wave)
		}
	}
}

// A zone that cannot be loaded must not make a window of UTC.
func TestWindowWithoutZoneNeverOpens(t *testing.T) {
	s := Scene{Fleet: fleetOf(t, map[string]string{})}
	if w := s.window(&schema.Window{Start: "22:00", Duration: schema.Duration(time.Hour), TimeZone: "Europe/Berln"}); w.Duration != 0 || len(w.Days) != 0 {
		t.Errorf("the window is %+v, want one that never opens", w)
	}
}

func TestPausedFleetOfABrokenHead(t *testing.T) {
	fleet := fleetOf(t, map[string]string{"fleet.yaml": "kind: Fleet\nspec: {paused: {reason: fire}, maxInFlght: 3}\n"})
	if fleet.Valid() {
		t.Fatal("the fleet is valid")
	}
	good := fleetOf(t, map[string]string{})
	if got := (&Scene{Fleet: good, Restrict: restrictionsOf(fleet)}).fleetLimits().Paused; got != "fire" {
		t.Errorf("paused because of %q, want fire", got)
	}
}

func TestDeletionLimit(t *testing.T) {
	for text, want := range map[string]int{"": 20, "5": 5, "0": 0, "50%": 50, "1%": 2, "0%": 2} {
		files := map[string]string{}
		if text != "" {
			files["fleet.yaml"] = "kind: Fleet\nspec: {deletionLimit: " + text + "}\n"
		}
		if got := DeletionLimit(fleetOf(t, files), 100); got != want {
			t.Errorf("deletionLimit %q of 100 devices is %d, want %d", text, got, want)
		}
	}
}
