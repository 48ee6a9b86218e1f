package preview_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/schema"
)

// TestReachIsWhatABadReleaseGets lets the planner roll out a release that
// fails everywhere, as unluckily as it goes: every slot is taken before a device
// fails. What it got to is what was said before.
func TestReachIsWhatABadReleaseGets(t *testing.T) {
	for name, c := range map[string]struct {
		policy, fleet string
		want          int
	}{
		"defaults":        {"", "", 1},
		"slots":           {"maxInFlight: 4, failureLimit: 2", "", 6},
		"percentages":     {"maxInFlight: 25%, failureLimit: 10%", "", 4},
		"guard":           {"maxInFlight: 12, minAvailable: 75%", "", 3},
		"everybody":       {"maxInFlight: 100%, failureLimit: 100%", "", 12},
		"pilot":           {"maxInFlight: 6, failureLimit: 1, pilot: {count: 2}", "", 3},
		"first wave":      {"maxInFlight: 6, failureLimit: 3, waves: [{name: canary, selector: {matchLabels: {ring: canary}}}]", "", 2},
		"optional wave":   {"maxInFlight: 3, waves: [{name: none, selector: {matchLabels: {ring: none}}, optional: true}]", "", 3},
		"wave of nobody":  {"maxInFlight: 3, waves: [{name: none, selector: {matchLabels: {ring: none}}}]", "", 0},
		"budget":          {"maxInFlight: 10, failureLimit: 1, budgets: [{groupBy: [site], maxUnavailable: 1}]", "", 4},
		"percent budget":  {"maxInFlight: 10, budgets: [{groupBy: [site], maxUnavailable: 60%}]", "", 6},
		"closed budget":   {"maxInFlight: 10, budgets: [{groupBy: [site], maxUnavailable: 0}]", "", 0},
		"fleet's slots":   {"maxInFlight: 10", "maxInFlight: 2", 2},
		"fleet's budgets": {"maxInFlight: 10", "budgets: [{groupBy: [site], maxUnavailable: 2}]", 6},
	} {
		t.Run(name, func(t *testing.T) {
			ch := rollout(c.policy, c.fleet)
			reach := preview.Compare(ch.input(t)).WorstCase
			if len(reach) != 1 {
				t.Fatalf("got %+v, want one policy", reach)
			}
			if got := started(t, ch); reach[0].Devices != c.want || got != c.want {
				t.Errorf("said %d, started %d, want %d\n%v", reach[0].Devices, got, c.want, reach[0].Words)
			}
		})
	}
}

// TestReachBeforeTheFirstReport: what stands before anybody has reported is
// what will hold once everybody has.
func TestReachBeforeTheFirstReport(t *testing.T) {
	for name, c := range map[string]struct {
		policy     string
		silent     int
		want       int
		wantSilent int
	}{
		"nobody has reported": {"maxInFlight: 25%, failureLimit: 10%", 12, 4, 12},
		"one has not":         {"maxInFlight: 4, failureLimit: 2", 1, 6, 1},
		"a first wave":        {"maxInFlight: 6, failureLimit: 3, waves: [{name: canary, selector: {matchLabels: {ring: canary}}}]", 12, 2, 12},
	} {
		ch := rollout(c.policy, "")
		for i := range c.silent {
			delete(ch.present, fmt.Sprintf("gw-%02d", i))
		}
		reach := preview.Compare(ch.input(t)).WorstCase
		if len(reach) != 1 || reach[0].Devices != c.want || reach[0].NeverSeen != c.wantSilent {
			t.Errorf("%s: got %+v, want %d devices", name, reach, c.want)
		}
	}
}

// rollout is a bump for twelve devices at three sites, two of them canaries.
func rollout(policy, fleet string) change {
	const api = "apiVersion: gitopsd.dev/v1alpha1\n"
	c := change{base: files{}, head: files{}, present: map[string]presentDevice{}}
	for _, v := range []string{"v1.0.0", "v1.1.0"} {
		c.base["releases/p/"+v+".yaml"] = fmt.Sprintf("%skind: Release\nmetadata: {name: %s}\nspec: {files: {/etc/v: {content: %s}}}\n", api, v, v)
	}
	for i := range 12 {
		ring := ""
		if i < 2 {
			ring = ", ring: canary"
		}
		id := fmt.Sprintf("gw-%02d", i)
		c.base["devices/"+id+".yaml"] = fmt.Sprintf("%skind: Device\nmetadata: {name: %s, labels: {site: s%d%s}}\n", api, id, i%3, ring)
		c.present[id] = presentDevice{Version: "v1.0.0", Content: "base", Policy: "p"}
	}
	for path, text := range c.base {
		c.head[path] = text
	}
	c.base["policies/p.yaml"] = api + "kind: Policy\nmetadata: {name: p}\nspec: {enabled: true, targetVersion: v1.0.0}\n"
	c.head["policies/p.yaml"] = api + "kind: Policy\nmetadata: {name: p}\nspec: {enabled: true, targetVersion: v1.1.0, " + policy + "}\n"
	if fleet != "" {
		c.head["fleet.yaml"] = api + "kind: Fleet\nspec: {" + fleet + "}\n"
	}
	return c
}

// started counts the devices on which an attempt of the head begins.
func started(t *testing.T, c change) int {
	t.Helper()
	var loader schema.Loader
	base, err := loader.Load(c.base)
	if err != nil {
		t.Fatal(err)
	}
	head, err := loader.Load(c.head)
	if err != nil || !head.Valid() {
		t.Fatalf("%v %+v", err, head.Problems)
	}
	status := c.status(base, head, base)
	var open []*schema.Attempt
	devices := map[string]bool{}
	at := now
	for range 1000 {
		at = at.Add(time.Second)
		moved := false
		for _, v := range sweep.PlanNow(head, status, nil, at, "v9.0.0").Verdicts {
			if !v.Upgrade {
				continue
			}
			moved = true
			d := &v.Device
			begun := at
			rec := status.Devices[d.ID].Status
			rec.Attempts = append(rec.Attempts, schema.Attempt{Attempt: int64(len(devices) + 1), Policy: d.Policy, Line: "p", Version: v.Target.Version,
				Digest: v.Target.Digest, Rollout: d.Rollout, InstallID: d.InstallID, AssignedAt: at, StartedAt: &begun})
			open = append(open, &rec.Attempts[len(rec.Attempts)-1])
			if devices[d.ID] {
				t.Fatalf("%s begins again", d.ID)
			}
			devices[d.ID] = true
		}
		switch {
		case moved:
		case len(open) == 0:
			return len(devices)
		default:
			ended := at
			open[0].Outcome, open[0].EndedAt = schema.OutcomeFailed, &ended
			open = open[1:]
		}
	}
	t.Fatal("it never comes to an end")
	return 0
}
