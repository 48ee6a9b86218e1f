package sweep

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

func (w *world) condition(kind string) *schema.Condition {
	w.t.Helper()
	for _, c := range w.status().Fleet.Conditions {
		if c.Type == kind {
			return &c
		}
	}
	return nil
}

// A device whose name was mistyped is told of, once, with the name that was
// meant; it stops nothing, and its heartbeats commit nothing.
func TestReportsOfStrangersAreTold(t *testing.T) {
	w, _ := done(t, 2)
	var logs bytes.Buffer
	d := w.daemon(func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&logs, nil)) })
	w.round(d)
	stranger := newFakeDevice(t, w.repo, func() time.Time { return w.now }, "wg-01")
	stranger.heartbeat()
	wantNoStop(t, w.round(d))
	c := w.condition(conditionStranger)
	if c == nil || !strings.Contains(c.Message, "wg-01 reports, but is not in the fleet (did you mean gw-01?)") || c.Remedy == "" {
		t.Fatalf("the condition is %+v", c)
	}
	before := w.commits()
	for range 5 {
		stranger.heartbeat()
		w.pass(time.Minute)
		w.sweep(d)
	}
	w.sweep(w.daemon())
	if w.commits() != before {
		t.Errorf("its heartbeats are committed: %q", w.subjects(w.commits()-before))
	}
	if n := strings.Count(logs.String(), "wg-01 reports"); n != 1 {
		t.Errorf("it was logged %d times:\n%s", n, logs.String())
	}
	w.repo.set(schema.DefaultReportRefs+"wg-01", "")
	w.round(d)
	if c := w.condition(conditionStranger); c != nil {
		t.Errorf("it is gone, and still told: %+v", c)
	}
}

// Many strangers, and names made to hurt, leave a short condition.
func TestStrangersAreBounded(t *testing.T) {
	w, d := done(t, 2)
	for i := range 50 {
		newFakeDevice(t, w.repo, func() time.Time { return w.now }, fmt.Sprintf("zz-%02d", i)).heartbeat()
	}
	w.round(d)
	before := w.commits()
	newFakeDevice(t, w.repo, func() time.Time { return w.now }, "zz-99").heartbeat()
	w.pass(time.Minute)
	w.sweep(d)
	c := w.condition(conditionStranger)
	if len(c.Message) > 500 || !strings.Contains(c.Message, "and others") || w.commits() != before {
		t.Fatalf("%d commits more, and the condition is %d long: %s", w.commits()-before, len(c.Message), c.Message)
	}
}

func TestStrangerNamesAreQuoted(t *testing.T) {
	for name, want := range map[string]string{
		"gw-01":                             "gw-01",
		"gw-\x1b[31m":                       `"gw-\x1b[31m"`,
		"a b":                               `"a b"`,
		"$(reboot)":                         `"$(reboot)"`,
		strings.Repeat("x", 100) + "\u202e": `"` + strings.Repeat("x", 63) + `…"`,
	} {
		if got := quoteID(name); got != want {
			t.Errorf("%q is shown as %s, want %s", name, got, want)
		}
	}
}
