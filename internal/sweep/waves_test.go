package sweep

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// A canary goes first and soaks, everybody can read how far it is, and while
// nothing but time passes nothing is committed.
func TestWavesThroughADaemon(t *testing.T) {
	w, d := done(t, 4)
	w.policy["waves"] = "[{name: canary, selector: {matchLabels: {ring: canary}}, soak: 45m}]"
	w.policy["targetVersion"], w.policy["maxInFlight"] = "v1.1.0", "3"
	w.push("gateways: v1.1.0, the canary first", map[string]string{
		"policies/gateways.yaml":    w.policyYAML(),
		"devices/berlin/gw-01.yaml": strings.Replace(deviceYAML("gw-01", ""), "role: gateway", "role: gateway, ring: canary", 1),
	})
	w.until(d, "the canary on v1.1.0", func() bool { return w.on("v1.1.0") > 0 && w.code("gw-01") == "Current" })
	w.wantCodes(map[string]int{"Current": 1, "Wave": 3})
	if got := w.on("v1.1.0"); got != 1 {
		t.Fatalf("%d devices are on v1.1.0, want the canary alone", got)
	}
	st := w.status()
	rec := st.Devices["gw-01"]
	if b := rec.Assignment.Because; b == nil || b.Wave != "canary" || b.Policy != "gateways" {
		t.Errorf("the canary's assignment gives %+v", b)
	}
	soaked := lastAttempt(rec.Status).EndedAt.Add(45 * time.Minute)
	want := []schema.WaveStatus{
		{Name: "canary", Open: true, Members: 1, Countable: 1, Needed: 1, Soaking: 1, SoakingUntil: &soaked},
		{Members: 3, Countable: 3, Needed: 3},
	}
	if diff := cmp.Diff(want, st.Fleet.Rollouts[0].Waves); diff != "" {
		t.Errorf("while it soaks:\n%s", diff)
	}
	// A preview made once the time is over, by somebody who has heard nothing
	// since: no more is certain then than a daemon would say.
	reports := map[string]*schema.Report{}
	for id, v := range d.reports {
		reports[id] = v.report
	}
	fleet, err := (&schema.Loader{}).Load(Source(t.Context(), w.remote(), w.repo.ref("refs/heads/main")))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range PlanNow(fleet, st, reports, soaked.Add(time.Minute), "v0.1.0").Verdicts {
		if v.Upgrade {
			t.Errorf("%s may go by a report from before the end of the soak: %s", v.Device.ID, v.Reason)
		}
	}
	for id, r := range reports {
		later := *r
		later.ReportedAt = soaked.Add(30 * time.Second)
		reports[id] = &later
	}
	if res := PlanNow(fleet, st, reports, soaked.Add(time.Minute), "v0.1.0"); !slices.ContainsFunc(res.Verdicts, func(v planner.Verdict) bool { return v.Upgrade }) {
		t.Errorf("nobody may go by a report from after the end of the soak: %+v", res.Verdicts)
	}
	before := w.commits()
	w.rounds(d, 30)
	if got := w.commits(); got != before {
		t.Errorf("%d commits while the canary soaks: %q", got-before, w.subjects(got-before))
	}
	w.until(d, "everybody on v1.1.0", func() bool { return w.on("v1.1.0") == 4 })
	if w.now.Before(soaked) {
		t.Errorf("everybody is on v1.1.0 at %v, before the canary had soaked at %v", w.now, soaked)
	}
	w.rounds(d, 3)
	st = w.status()
	if b := st.Devices["gw-02"].Assignment.Because; b == nil || b.Wave != "" {
		t.Errorf("an assignment of the rest gives %+v", b)
	}
	want = []schema.WaveStatus{
		{Name: "canary", Open: true, Satisfied: true, Members: 1, Countable: 1, Done: 1, Needed: 1},
		{Open: true, Satisfied: true, Members: 3, Countable: 3, Done: 3, Needed: 3},
	}
	if diff := cmp.Diff(want, st.Fleet.Rollouts[0].Waves); diff != "" || st.Fleet.Rollouts[0].State != stateDone {
		t.Errorf("at the end, %s:\n%s", st.Fleet.Rollouts[0].State, diff)
	}
}

// A window that is shut is a moment in fleet.yaml, and the devices wait for it
// without a commit.
func TestWindowsThroughADaemon(t *testing.T) {
	w, d := done(t, 2)
	opens := w.now.UTC().Add(3 * time.Hour).Truncate(time.Minute)
	w.policy["windows"] = "[{start: \"" + opens.Format("15:04") + "\", duration: 1h, timeZone: UTC}]"
	w.policy["targetVersion"] = "v1.1.0"
	w.push("gateways: v1.1.0, in a window", map[string]string{"policies/gateways.yaml": w.policyYAML()})
	w.rounds(d, 3)
	w.wantCodes(map[string]int{"Window": 2})
	if r := w.status().Fleet.Rollouts[0]; r.OpensAt == nil || !r.OpensAt.Equal(opens) || r.ShutsAt != nil || r.State != stateWaiting {
		t.Errorf("the rollout is %+v, want one that waits until %v", r, opens)
	}
	before := w.commits()
	w.rounds(d, 60)
	if got := w.commits(); got != before {
		t.Errorf("%d commits while the window is shut: %q", got-before, w.subjects(got-before))
	}
	w.until(d, "everybody on v1.1.0", func() bool { return w.on("v1.1.0") == 2 })
	if w.now.Before(opens) {
		t.Errorf("everybody is on v1.1.0 at %v, before the window opened at %v", w.now, opens)
	}
}
