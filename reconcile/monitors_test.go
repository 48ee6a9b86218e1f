package reconcile

import (
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

func TestLevelsHaveAGap(t *testing.T) {
	m := &schema.Monitor{Of: schema.MonitorDisk}
	was := schema.Level("")
	for i, c := range []struct {
		used int
		want schema.Level
	}{
		{79, schema.LevelOK}, {80, schema.LevelWarning}, {79, schema.LevelWarning}, {76, schema.LevelWarning}, {75, schema.LevelWarning}, {74, schema.LevelOK},
		{79, schema.LevelOK}, {95, schema.LevelCritical}, {90, schema.LevelCritical}, {89, schema.LevelWarning}, {94, schema.LevelWarning}, {20, schema.LevelOK},
	} {
		if was = level(m, c.used, was); was != c.want {
			t.Fatalf("step %d, %d%%: %s, want %s", i, c.used, was, c.want)
		}
	}
	for _, c := range []struct {
		m    schema.Monitor
		used int
		want schema.Level
	}{
		{schema.Monitor{Warning: 97}, 96, schema.LevelOK}, {schema.Monitor{Warning: 97}, 97, schema.LevelCritical},
		{schema.Monitor{Critical: 50}, 49, schema.LevelOK}, {schema.Monitor{Critical: 50}, 50, schema.LevelCritical},
		{schema.Monitor{Warning: 10, Critical: 50}, 10, schema.LevelWarning},
	} {
		if got := level(&c.m, c.used, ""); got != c.want {
			t.Errorf("%+v at %d%%: %s, want %s", c.m, c.used, got, c.want)
		}
	}
}

func TestMonitorsAreReported(t *testing.T) {
	d := onV1(t)
	// levels that this machine cannot change between two reports
	d.assign(2, "v1.1.0", v2(tree{"resources": tree{"memory": tree{"minAvailable": "1k"}, "monitors": tree{
		"root": tree{"of": "disk", "warning": 1, "critical": 10000}, "gone": tree{"of": "luck"},
	}}}))
	d.wantOnce(0, "updated")
	got := d.control.last().Monitors
	if len(got) != 2 || got[0] != (schema.MonitorState{Name: "gone", Level: schema.LevelUnknown}) || got[1].Name != "root" || got[1].Level != schema.LevelWarning || got[1].Used < 1 {
		t.Fatalf("reported %+v", got)
	}
	d.assign(3, "v1.2.0", v2(nil))
	d.wantOnce(0, "updated")
	if got := d.control.last().Monitors; len(got) != 0 {
		t.Errorf("where nothing is watched: %+v", got)
	}
	d.assign(4, "v1.3.0", v2(tree{"resources": tree{"memory": tree{"minAvailable": "9000000000G"}}, "onDevice": tree{"retries": 0}}))
	d.wantOnce(1, "bytes are available")
	if r := d.control.last(); r.Outcome != schema.OutcomeExhausted || r.Failures[0].Class != schema.ClassRetryable {
		t.Errorf("too little memory: %+v", r)
	}
}

// A number that moves is told with the next heartbeat, a level at once.
func TestNumberOfAMonitorIsNoReport(t *testing.T) {
	at := func(level schema.Level, used int) *schema.Report {
		return &schema.Report{Monitors: []schema.MonitorState{{Name: "root", Level: level, Used: used}}}
	}
	r := at(schema.LevelOK, 41)
	if string(significant(r)) != string(significant(at(schema.LevelOK, 42))) {
		t.Error("another percentage is a report")
	}
	if string(significant(r)) == string(significant(at(schema.LevelWarning, 41))) {
		t.Error("another level is none")
	}
	if r.Monitors[0].Used != 41 {
		t.Error("the report itself was changed")
	}
}

// A file system that gives no answer holds nothing up, and is not asked again
// and again.
func TestMonitorThatGetsNoAnswer(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v1.1.0", v2(tree{"resources": tree{"monitors": tree{"root": tree{"of": "disk"}}}}))
	d.wantOnce(0, "updated")
	a := d.agent()
	defer a.Close()
	stuck := make(chan map[string]int, 1)
	a.monitors.measured, a.monitors.limit = stuck, time.Millisecond
	a.monitor()
	if got := a.monitors.states; len(got) != 1 || got[0].Level != schema.LevelUnknown || a.monitors.measured != stuck {
		t.Fatalf("%+v", got)
	}
	stuck <- map[string]int{"root": 50}
	d.clock = d.clock.Add(measureEvery - time.Second)
	a.monitor()
	if got := a.monitors.states[0].Level; got != schema.LevelUnknown {
		t.Errorf("it was measured too soon: %s", got)
	}
	d.clock = d.clock.Add(time.Second)
	a.monitor()
	if got := a.monitors.states[0]; got.Level != schema.LevelOK || got.Used != 50 {
		t.Errorf("after the answer: %+v", got)
	}
}
