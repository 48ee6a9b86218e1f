package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/schema"
)

func TestStandingShowsWhatRuns(t *testing.T) {
	var doc deviceStanding
	doc.Running = true
	doc.Report.Applications = []schema.ApplicationState{{Name: "db", State: schema.ApplicationRunning}, {Name: "web", State: schema.ApplicationStopping, Reason: "web.service is deactivating"}}
	doc.Report.Units = []schema.UnitState{{Name: "edge.service", State: "failed"}, {Name: "a.timer", State: "active"}}
	doc.Report.Monitors = []schema.MonitorState{{Name: "gone", Level: schema.LevelUnknown}, {Name: "root", Level: schema.LevelCritical, Used: 97}}
	var out bytes.Buffer
	writeStanding(&out, &doc, time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), view.Look{})
	for _, want := range []string{"gone: could not be measured\n", "root: 97% in use, critical\n", "apps      web stopping: web.service is deactivating · db running\n", "units     edge.service failed · 1 active\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not there:\n%s", want, out.String())
		}
	}
}

// A report that was not sent has neither a number nor a time.
func TestStandingAsJSON(t *testing.T) {
	doc := deviceStanding{Well: true, Standing: reconcile.Standing{Waits: "held", Report: schema.Report{Phase: schema.PhaseUpdated}}}
	got, err := json.Marshal(doc.shown())
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{`"sequence"`: false, `"reportedAt"`: false, `"phase":"Updated"`: true, `"waits":"held"`: true, `"well":true`: true} {
		if strings.Contains(string(got), text) != want {
			t.Errorf("%s: want %v in\n%s", text, want, got)
		}
	}
}

// A device that never had a release is not called updated.
func TestStandingOfAFreshDevice(t *testing.T) {
	for want, s := range map[string]reconcile.Standing{
		"phase     none yet: nothing was ever applied here\n": {Report: schema.Report{Phase: schema.PhaseUpdated}},
		"phase     Updated\n":                     {Last: &reconcile.LastAttempt{}, Report: schema.Report{Phase: schema.PhaseUpdated}},
		"phase     Updated: the record is lost\n": {Report: schema.Report{Phase: schema.PhaseUpdated, Reason: "the record is lost"}},
		"phase     Preparing\n":                   {Report: schema.Report{Phase: schema.PhasePreparing}},
		"drift     not looked for yet\n":          {},
		"drift     none\n":                        {Looked: true},
	} {
		var out bytes.Buffer
		writeStanding(&out, &deviceStanding{Running: true, Standing: s}, time.Time{}, view.Look{})
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
