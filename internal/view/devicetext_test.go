package view

import (
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// sick is what a device says of which a part does not run.
func sick(install string) *schema.Report {
	return &schema.Report{
		InstallID: install, Phase: schema.PhaseUpdated, Drift: []string{"applications/db"}, DriftReason: "application db: db.service is failed",
		Applications: []schema.ApplicationState{{Name: "web", State: schema.ApplicationRunning}, {Name: "db", State: schema.ApplicationFailed, Reason: "db.service is failed"}},
		Units: []schema.UnitState{{Name: "a.service", State: "active"}, {Name: "b.service", State: "active"}, {Name: "c.timer", State: "inactive"},
			{Name: "edge.service", State: "failed"}},
		Monitors: []schema.MonitorState{{Name: "root", Level: schema.LevelCritical, Used: 97}, {Name: "load", Level: schema.LevelWarning, Used: 160}},
	}
}

// What does not run asks for a person, though the verdict asks for nobody.
func TestFleetTextTrouble(t *testing.T) {
	st := halted()
	d := st.Devices["devices/gw-1.yaml"]
	d.Observed.Online, d.Observed.InstallID = true, "i1"
	st.Reports = map[string]*schema.Report{"gw-1": sick("i1")}
	text := fleetText(t, st, Look{})
	wantText(t, text, "gw-1  Current on v1.5.0, but application db is failed: db.service is failed; and 2 more\n", "1/6   0       3        2")
	if first, second := strings.Index(text, "gw-3  Failed"), strings.Index(text, "gw-1  Current"); first > second {
		t.Errorf("what verdicts ask for comes first:\n%s", text)
	}
	for what, change := range map[string]func(){
		"it is away":                 func() { d.Observed.Online = false },
		"it is another installation": func() { d.Observed.Online, d.Observed.InstallID = true, "i2" },
		"it is being updated":        func() { d.Observed.InstallID, d.Verdict.Code = "i1", "Upgrading" },
		"nobody has read its report": func() { st.Reports = nil },
	} {
		change()
		if text := fleetText(t, st, Look{}); strings.Contains(text, "but application") {
			t.Errorf("%s:\n%s", what, text)
		}
	}
}

// Drift that is put right, or only told of, asks for nobody.
func TestFleetTextUnrepairedDrift(t *testing.T) {
	st := halted()
	d := st.Devices["devices/gw-1.yaml"]
	d.Observed.Online, d.Observed.InstallID = true, "i1"
	st.Reports = map[string]*schema.Report{"gw-1": {InstallID: "i1", Drift: []string{"/etc/edge/key"},
		DriftReason: "drift could not be repaired: /etc/edge/key: no identity of this device opens it"}}
	wantText(t, fleetText(t, st, Look{}),
		"gw-1  Current on v1.5.0, but drift could not be repaired: /etc/edge/key: no identity of this device opens it\n", "1/6   0       3        2")
	st.Reports["gw-1"].DriftReason = "os: 1 is booted instead of 2"
	if text := fleetText(t, st, Look{}); strings.Contains(text, ", but ") {
		t.Errorf("drift that is only told of:\n%s", text)
	}
}

func TestFleetTextObserving(t *testing.T) {
	st := halted()
	st.Devices["devices/gw-1.yaml"] = status("gw-1", "Observing", "only compares itself with v1.5.0; at noon: 3 things would change", func(d *schema.DeviceStatus) {
		d.Verdict.Target, d.Observed.Online, d.Observed.InstallID = "v1.5.0", true, "i1"
	})
	wantText(t, fleetText(t, st, Look{}), "OBSERVING\ngw-1  only compares itself with v1.5.0; at noon: 3 things would change\n", "1 observing")
	st.Reports = map[string]*schema.Report{"gw-1": {InstallID: "i1", WouldChange: &schema.WouldChange{Version: "v1.5.0", Count: 1}}}
	wantText(t, fleetText(t, st, Look{}), "OBSERVING\ngw-1  v1.5.0: 1 thing would change\n")
}

func TestExplainDevice(t *testing.T) {
	q := Question{Path: "devices/gw-1.yaml", Status: halted(), Report: sick("i1")}
	wantText(t, explainText(t, q),
		"drift: applications/db (application db: db.service is failed)",
		"apps     db failed: db.service is failed · web running\n",
		"units    edge.service failed · 2 active · 1 inactive\n",
		"monitors root: 97% in use, critical · load: 160% in use, warning\n")

	fresh := halted()
	fresh.Devices["devices/gw-1.yaml"] = status("gw-1", "Disabled", "", func(d *schema.DeviceStatus) { d.Observed.Attempt = 0 })
	wantText(t, explainText(t, Question{Path: "devices/gw-1.yaml", Status: fresh}), "device   nothing applied there yet · online\n")

	pulls := &schema.Report{InstallID: fresh.Devices["devices/gw-1.yaml"].Observed.InstallID, Phase: schema.PhasePreparing, Reason: "pulling image 2 of 3: example.com/web:1"}
	wantText(t, explainText(t, Question{Path: "devices/gw-1.yaml", Status: fresh, Report: pulls}), "device   Preparing: pulling image 2 of 3: example.com/web:1 · online")

	many := make([]schema.Difference, 30)
	for i := range many {
		many[i] = schema.Difference{Field: "files", Name: "/etc/a", Do: schema.DoCreate}
	}
	many[0] = schema.Difference{Field: "directories", Name: "/srv/a", Do: schema.DoChange, Detail: "mode 0755 → 0700"}
	many[1] = schema.Difference{Field: "requires", Do: schema.DoCannot, Detail: "no such command"}
	q.Report = &schema.Report{WouldChange: &schema.WouldChange{Version: "v1.6.0", Count: 300, Differences: many}}
	text := explainText(t, q)
	wantText(t, text, "compared with v1.6.0: 300 things would change\n", "         change /srv/a/ (mode 0755 → 0700)\n", "         cannot requires (no such command)\n",
		"         create /etc/a\n", "         … and 280 more\n")
	if strings.Contains(text, "drift") {
		t.Errorf("drift is not looked for there:\n%s", text)
	}
	q.Report.WouldChange = &schema.WouldChange{Version: "v1.6.0"}
	wantText(t, explainText(t, q), "compared with v1.6.0: nothing would change\n")
}

func TestApplicationsTextCountsWhatRuns(t *testing.T) {
	all := make([]schema.ApplicationState, 9)
	for i := range all {
		all[i] = schema.ApplicationState{Name: "a", State: schema.ApplicationRunning}
	}
	all[3] = schema.ApplicationState{Name: "web", State: schema.ApplicationStopped}
	if got, want := ApplicationsText(all), "web stopped · 8 running"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Which agent reported is told as well: it is what a release of the agent moves.
func TestExplainTellsTheAgent(t *testing.T) {
	st := halted()
	st.Devices["devices/gw-1.yaml"].Observed.AgentVersion = "v1.5.0"
	wantText(t, explainText(t, Question{Path: "devices/gw-1.yaml", Status: st}), "device   Updated · online · agent v1.5.0\n")
}
