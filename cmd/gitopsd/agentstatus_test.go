package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

func TestStandingShowsMonitors(t *testing.T) {
	var doc deviceStanding
	doc.Running = true
	doc.Report.Monitors = []schema.MonitorState{{Name: "gone", Level: schema.LevelUnknown}, {Name: "root", Level: schema.LevelCritical, Used: 97}}
	var out bytes.Buffer
	writeStanding(&out, &doc, time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), view.Look{})
	for _, want := range []string{"gone: could not be measured\n", "root: 97% in use, critical\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not there:\n%s", want, out.String())
		}
	}
}
