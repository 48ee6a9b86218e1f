package planner

import (
	"strings"
	"testing"
	"time"
)

// passed joins what a device came past.
func passed(r Result, id string) string {
	var list []string
	for _, v := range r.Verdicts {
		if v.Device.ID == id {
			for _, c := range r.Passed(v) {
				list = append(list, c.Text)
			}
		}
	}
	return strings.Join(list, " · ")
}

func TestPassed(t *testing.T) {
	in := Input{Now: caseNow, Policies: []Policy{{
		Name: "p", Enabled: true, TargetVersion: "v1.5.0", Pilot: Pilot{Count: 1}, Waves: []Wave{{Name: "canary", Soak: 3 * time.Hour}},
		Windows: []Window{{Days: everyDay, Start: 11 * time.Hour, Duration: 2 * time.Hour}},
	}}}
	canary, away, main, pinned := idle("canary"), idle("away"), idle("main"), idle("pinned")
	canary.Wave, away.Wave = "canary", "canary"
	canary.Version, canary.Digest = "v1.5.0", canary.Target.Digest
	canary.Attempts = []Attempt{{
		Number: 1, Policy: "p", Target: canary.Target, Rollout: canary.Rollout, AssignedAt: caseNow.Add(-2 * time.Hour),
		StartedAt: caseNow.Add(-2 * time.Hour), EndedAt: caseNow.Add(-time.Hour), Outcome: OK,
	}}
	away.Online, pinned.Pinned = false, true
	in.Devices = []Device{canary, away, main, pinned}
	const facts = "selected by policy p · enabled · seen"
	const here = facts + " · version v1.4.0 · protocol · capabilities · not held · not failed"
	const free = here + " · online · idle · not stopped · not paused"
	for id, want := range map[string]string{
		"canary": facts,
		"away":   here,
		"main":   free + " · not halted · not frozen · its windows are open until 2026-11-29T13:00Z · the pilot is over: 1 of 1 done",
		"pinned": free + " · pinned, so no halt concerns it · not frozen · its windows are open until 2026-11-29T13:00Z · a slot is free: 0 of 1 are taken",
	} {
		if got := passed(Plan(in), id); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", id, got, want)
		}
	}
	in.Devices[2].Wave, in.Devices[2].Pinned = "canary", false
	if got := passed(Plan(in), "main"); !strings.HasSuffix(got, " · wave canary is open") {
		t.Errorf("got %s", got)
	}
}
