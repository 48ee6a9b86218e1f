package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/gitopsd/gitopsd/schema"
)

// recorded is what a commit of the status branch says of a device.
type recorded struct {
	Commit     string
	Time       time.Time
	Path       string
	Status     *schema.DeviceStatus
	Assignment *schema.Assignment
}

// chain makes changes of versions, newest first.
func chain(list []recorded) []Change {
	var changes []Change
	for i, r := range list {
		c := Change{Commit: r.Commit, Time: r.Time, After: Standing{r.Path, r.Status, r.Assignment}}
		if i+1 < len(list) {
			b := list[i+1]
			c.Before = Standing{b.Path, b.Status, b.Assignment}
		}
		changes = append(changes, c)
	}
	return changes
}

// life is a device that is updated, held, moved, replaced, removed and back.
func life() []Change {
	doc := func(generation, attempt int64, hold string, because *schema.Because) *schema.Assignment {
		a := &schema.Assignment{Generation: generation, Attempt: attempt, Because: because}
		if hold != "" {
			a.Hold = &schema.Reason{Reason: hold}
		}
		return a
	}
	why := &schema.Because{Commit: "4f2c91a0000", Subject: "gateways: v1.5.0", Author: "Op <op@example.com>", Policy: "gateways", Wave: "canary"}
	assigned := schema.Attempt{Attempt: 2, Version: "v1.5.0", Digest: "sha256:0123456789abcdef", AssignedAt: *at(30)}
	failed := assigned
	failed.StartedAt, failed.EndedAt, failed.Outcome, failed.Stage, failed.Message = at(31), at(33), schema.OutcomeFailed, "hooks", "no uplink\x1b[2J"
	is := func(code, reason string, change func(*schema.DeviceStatus)) *schema.DeviceStatus {
		return status("gw-1", code, reason, change)
	}
	with := func(a schema.Attempt, install string) func(*schema.DeviceStatus) {
		return func(d *schema.DeviceStatus) { d.Attempts, d.Observed.InstallID = []schema.Attempt{a}, install }
	}
	const oslo, berlin = "devices/oslo/gw-1.yaml", "devices/berlin/gw-1.yaml"
	gone := doc(5, 1, "", nil)
	gone.Removed = true
	list := []recorded{
		{"01", *at(0), oslo, is("Queued", "waiting for a slot", nil), nil},
		{"02", *at(20), oslo, is("Paused", "policy gateways is paused: by the brake: look", nil), nil},
		{"03", *at(25), oslo, is("Queued", "waiting for a slot", nil), nil},
		{"04", *at(30), oslo, is("Upgrading", "to v1.5.0", with(assigned, "one")), doc(2, 2, "", why)},
		{"05", *at(33), oslo, is("Failed", "failed v1.5.0", with(failed, "one")), doc(3, 1, "", nil)},
		{"06", *at(40), oslo, is("Held", "held: mine", with(failed, "one")), doc(4, 1, "mine", nil)},
		{"07", *at(50), berlin, is("Failed", "failed v1.5.0", func(d *schema.DeviceStatus) {
			with(failed, "two")(d)
			d.Policy, d.Observed.Online, d.Observed.OfflineSince = "sensors", false, at(49)
		}), doc(5, 1, "", nil)},
		{"08", *at(55), berlin, is("Failed", "failed v1.5.0", func(d *schema.DeviceStatus) {
			with(failed, "two")(d)
			d.Policy, d.Observed.Version = "sensors", "v9"
		}), doc(5, 1, "", nil)},
		{"09", *at(60), berlin, is("Excluded", "removed from the fleet repository", with(failed, "two")), gone},
		{"10", *at(61), "retired/gw-1.yaml", is("Excluded", "removed from the fleet repository", with(failed, "two")), nil},
		{"11", *at(90), oslo, is("Queued", "waiting for a slot", with(failed, "two")), doc(6, 1, "", nil)},
	}
	slices.Reverse(list)
	return chain(list)
}

func TestHistory(t *testing.T) {
	h := &DeviceHistory{Device: "gw-1", Whole: true, Events: Events(life())}
	var b bytes.Buffer
	if err := WriteHistory(&b, h, Look{}); err != nil {
		t.Fatal(err)
	}
	want := `TIME               EVENT      COMMIT  WHAT
2026-11-29T13:30Z  verdict    11      Excluded → Queued
2026-11-29T13:30Z  returned   11      in the fleet again
2026-11-29T13:00Z  verdict    09      Failed → Excluded: removed from the fleet repository
2026-11-29T13:00Z  version    09      reports v1.4.2, before that v9
2026-11-29T13:00Z  removed    09      removed from the fleet
2026-11-29T12:55Z  version    08      reports v9, before that v1.4.2
2026-11-29T12:55Z  online     08      online again
2026-11-29T12:50Z  verdict    07      Held → Failed
2026-11-29T12:50Z  released   07      no longer held in git: mine
2026-11-29T12:50Z  offline    07      offline since 2026-11-29T12:49Z
2026-11-29T12:50Z  installed  07      another installation reports: one → two
2026-11-29T12:50Z  policy     07      policy gateways → sensors
2026-11-29T12:50Z  moved      07      moved from devices/oslo/gw-1.yaml to devices/berlin/gw-1.yaml
2026-11-29T12:40Z  verdict    06      Failed → Held
2026-11-29T12:40Z  held       06      held in git: mine
2026-11-29T12:33Z  verdict    05      Upgrading → Failed
2026-11-29T12:33Z  ended      05      attempt 2: failed: no uplink\x1b[2J (hooks)
2026-11-29T12:31Z  started    05      attempt 2: its start was seen
2026-11-29T12:30Z  assigned   04      attempt 2: v1.5.0 (sha256:0123456789ab) was assigned in wave canary, by 4f2c91a "gateways: v1.5.0" of Op <op@example.com>; it was Queued since 12:25Z
2026-11-29T12:25Z  verdict    03      Paused → Queued
2026-11-29T12:20Z  verdict    02      Queued → Paused: policy gateways is paused: by the brake: look
2026-11-29T12:00Z  verdict    01      Queued, wanted v1.5.0
`
	// Two events of one minute get seconds.
	got := regexp.MustCompile(`(\d\d:\d\d):00Z`).ReplaceAllString(b.String(), "${1}Z")
	normal := func(s string) string {
		var lines []string
		for line := range strings.Lines(s) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		return strings.Join(lines, "\n")
	}
	if diff := cmp.Diff(normal(want), normal(got)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// The JSON has what scripts ask for, and no null list.
func TestHistoryJSON(t *testing.T) {
	events := Events(life())
	i := slices.IndexFunc(events, func(e Event) bool { return e.Kind == EventAssigned })
	e := events[i]
	if e.Attempt != 2 || e.Version != "v1.5.0" || e.Because == nil || e.Because.Wave != "canary" || e.From != "Queued" || e.To != "Upgrading" ||
		e.Since == nil || !e.Since.Equal(*at(25)) || e.Commit != "04" {
		t.Errorf("the assignment: %+v", e)
	}
	data, err := json.Marshal(DeviceHistory{Events: Between(nil, nil, nil)})
	if err != nil || strings.Contains(string(data), "null") {
		t.Errorf("null in %s (%v)", data, err)
	}
}

// What a walk tells does not depend on how far it went, but for since when a
// verdict stood.
func TestHistoryIsTheSameFromAnyCommitOn(t *testing.T) {
	all := life()
	whole := Events(all)
	for n := 1; n < len(all); n++ {
		part := Events(all[:n])
		for i := range part {
			got, want := part[i], whole[i]
			if got.Kind == EventAssigned {
				got.Since, want.Since = nil, nil
				got.Text, want.Text = "", ""
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%d changes, event %d: -want +got\n%s", n, i, diff)
			}
		}
	}
}

func TestHistoryBetween(t *testing.T) {
	events := Events(life())
	for _, c := range []struct {
		since, until *time.Time
		want         int
	}{{nil, nil, len(events)}, {at(61), nil, 2}, {at(61), at(90), 0}, {nil, at(0), 0}, {nil, at(1), 1}, {at(0), at(1), 1}} {
		if got := Between(events, c.since, c.until); len(got) != c.want || got == nil {
			t.Errorf("%v–%v: %d events, want %d", c.since, c.until, len(got), c.want)
		}
	}
}

// wantFits checks that a text stays within a terminal, and steers none.
func wantFits(t *testing.T, text string, width int) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if n := utf8.RuneCountInString(line); n > width {
			t.Errorf("%d columns, want at most %d: %q", n, width, line)
		}
		if strings.ContainsFunc(line, func(r rune) bool { return !harmless(r) }) {
			t.Errorf("it steers the terminal: %q", line)
		}
	}
}

func TestHistoryFitsEveryTerminal(t *testing.T) {
	events := Events(life())
	for i := range events {
		events[i].Text = strings.Repeat("long \u202e\x1b[31m", i) + events[i].Text
	}
	since := noon
	for width := 40; width <= 200; width++ {
		for _, h := range []*DeviceHistory{{Device: "gw-1", Events: events, Why: "these are the newest 50 events, and --limit shows more"}, {Device: "gw-1", Since: &since}} {
			var b bytes.Buffer
			if err := WriteHistory(&b, h, Look{Width: width}); err != nil {
				t.Fatal(err)
			}
			wantFits(t, b.String(), width)
		}
	}
}

func BenchmarkEvents(b *testing.B) {
	one := life()
	var all []Change
	for i := range 100 {
		for _, c := range one {
			c.Commit = fmt.Sprint(i)
			all = append(all, c)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		Events(all)
	}
}

func TestBecauseText(t *testing.T) {
	for want, b := range map[string]schema.Because{
		`4f2c91a "gateways: v1.5.0" of Op <op@example.com>`: {Commit: "4f2c91a0000", Subject: "gateways: v1.5.0", Author: "Op <op@example.com>"},
		`4f2c91a (` + schema.BecauseSwept + `)`:             {Commit: "4f2c91a0000", Subject: schema.BecauseSwept},
		``:                                                  {},
	} {
		if got := becauseText(&b); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
