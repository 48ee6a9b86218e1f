package view

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func at(minutes int) *time.Time {
	t := noon.Add(time.Duration(minutes) * time.Minute)
	return &t
}

func status(id, code, reason string, change func(*schema.DeviceStatus)) *schema.DeviceStatus {
	d := &schema.DeviceStatus{
		Metadata: schema.Metadata{Name: id}, Policy: "gateways",
		Verdict:  schema.Verdict{Code: code, Target: "v1.5.0", Reason: reason},
		Observed: &schema.Observed{Version: "v1.4.2", Phase: schema.PhaseUpdated, Attempt: 4, Online: true},
	}
	if change != nil {
		change(d)
	}
	return d
}

// halted is a fleet in which gw-3 failed v1.5.0.
func halted() Status {
	return Status{
		Commit: "aaaaaaaaaaaa",
		Fleet: &schema.FleetStatus{
			SourceCommit: "4f2c91a0000", Subject: "gateways: v1.5.0", Author: "op@example.com", SweptAt: noon,
			Counts: map[string]int{"Halted": 2, "Failed": 1, "Current": 1, "Held": 1},
			Rollouts: []schema.RolloutStatus{
				{Policy: "sensors", Version: "v2.2.0", State: "done", Total: 1, Done: 1},
				{Policy: "gateways", Version: "v1.5.0", State: "halted", Total: 6, Done: 1, Waiting: 3, Attention: 1, Failed: []string{"gw-3"}},
			},
		},
		Devices: map[string]*schema.DeviceStatus{
			"devices/gw-1.yaml":        status("gw-1", "Current", "on v1.5.0", func(d *schema.DeviceStatus) { d.Observed.Version = "v1.5.0" }),
			"devices/oslo/gw-2.yaml":   status("gw-2", "Halted", "too many devices failed v1.5.0", nil),
			"devices/berlin/gw-3.yaml": status("gw-3", "Failed", "failed v1.5.0", failedAttempt),
			"devices/berlin/gw-4.yaml": status("gw-4", "Halted", "too many devices failed v1.5.0", nil),
			"devices/gw-5.yaml":        status("gw-5", "Held", "held: disk", nil),
			"devices/temp-1.yaml":      status("temp-1", "Current", "on v2.2.0", func(d *schema.DeviceStatus) { d.Policy = "sensors" }),
			"devices/gw-6.yaml":        status("gw-6", "NeverSeen", "it has never reported", nil),
		},
		Marks: []*schema.FailureMarks{
			{Policy: "gateways", Version: "v1.4.0", Marks: []schema.FailureMark{{Device: "gw-9"}}},
			{Policy: "gateways", Version: "v1.5.0", Halted: true, Marks: []schema.FailureMark{
				{Device: "gw-3", Outcome: schema.OutcomeFailed, At: *at(-5), Message: "hook check: exit 1\nmore"}}},
		},
	}
}

func failedAttempt(d *schema.DeviceStatus) {
	d.Attempts = []schema.Attempt{
		{Attempt: 1, Version: "v1.4.2", AssignedAt: *at(-600), StartedAt: at(-599), EndedAt: at(-598), Outcome: schema.OutcomeOK},
		{Attempt: 2, Version: "v1.5.0", AssignedAt: *at(-7), StartedAt: at(-6), EndedAt: at(-5), Outcome: schema.OutcomeFailed,
			Stage: "after-update hooks", Message: "hook check: exit 1\nmore"},
	}
}

func TestFleetText(t *testing.T) {
	var b bytes.Buffer
	if err := WriteFleet(&b, NewFleet("main", halted()), Look{}); err != nil {
		t.Fatal(err)
	}
	want := `main 4f2c91a "gateways: v1.5.0" by op@example.com · last change 2026-11-29T12:00Z
POLICY    TARGET  STATE   DONE  MOVING  WAITING  ATTENTION  LEFT ALONE
gateways  v1.5.0  HALTED  1/6   0       3        1          1
sensors   v2.2.0  done    1/1   0       0        0          0

ATTENTION
gw-3  Failed v1.5.0 11:55Z: hook check: exit 1 (after-update hooks); on v1.4.2, Updated
WAITING  2 halted · 1 never seen
LEFT ALONE  1 held
next: gitopsd explain gw-3
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestFleetTextNamesWhatMoves(t *testing.T) {
	st := halted()
	st.Fleet.Rollouts[1].InFlight = []schema.InFlight{{Device: "gw-2", Attempt: 4, Version: "v1.5.0", Since: *at(-3), Started: true}}
	st.Devices["devices/oslo/gw-2.yaml"] = status("gw-2", "Upgrading", "to v1.5.0", func(d *schema.DeviceStatus) {
		d.Observed.Phase, d.Observed.Attempt = schema.PhaseApplying, 4
		d.Attempts = []schema.Attempt{{Attempt: 4, Version: "v1.5.0", AssignedAt: *at(-4), StartedAt: at(-3)}}
	})
	if got, want := fleetText(t, st, Look{}), "MOVING\ngw-2  v1.5.0 Applying since 11:57Z\n"; !strings.Contains(got, want) {
		t.Errorf("want %q in\n%s", want, got)
	}
}

func TestFleetJSONHasNoNullList(t *testing.T) {
	for name, st := range map[string]Status{
		"nothing": {}, "halted": halted(),
		"only devices": {Devices: map[string]*schema.DeviceStatus{"devices/a.yaml": {Metadata: schema.Metadata{Name: "a"}}}},
	} {
		data, err := json.Marshal(NewFleet("main", st))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "null") {
			t.Errorf("%s: null in %s", name, data)
		}
	}
	if data, err := json.Marshal(Explain(Question{Path: "devices/gw-1.yaml", Status: halted()})); err != nil || strings.Contains(string(data), "null") {
		t.Errorf("null in %s (%v)", data, err)
	}
}

func TestExplainHalted(t *testing.T) {
	e := Explain(Question{
		Path: "devices/oslo/gw-2.yaml", Status: halted(),
		Source: func(file, field string) (string, int) {
			if file == "policies/gateways.yaml" && field == "failureLimit" {
				return "failureLimit: 0", 14
			}
			return "", 0
		},
		Changes: chain([]recorded{
			{Commit: "cccccccccccc", Time: *at(-5), Status: status("gw-2", "Halted", "", nil)},
			{Commit: "bbbbbbbbbbbb", Time: *at(-18), Status: status("gw-2", "Queued", "", nil)},
			{Commit: "aaaaaaaaaaaa", Time: *at(-600), Status: status("gw-2", "Current", "", func(d *schema.DeviceStatus) { d.Verdict.Target = "v1.4.2" })},
		}),
		Report: &schema.Report{FreeDisk: 4_100_000_000},
	})
	var b bytes.Buffer
	if err := WriteExplanation(&b, e, Look{}); err != nil {
		t.Fatal(err)
	}
	want := `gw-2  v1.4.2 → v1.5.0  NOT NOW: Halted
because  gw-3 failed v1.5.0 at 11:55Z: hook check: exit 1   policies/gateways.yaml:14 failureLimit: 0
until    the target or its content changes, or the failures are forgotten (forgetFailuresBefore), or the target goes back
passed   enabled · seen · version · protocol · capabilities · not held · not failed · online · idle · not stopped · not paused
history  2026-11-29T11:55Z Queued → Halted (ccccccc)
         2026-11-29T11:42Z Current → Queued, wanted v1.5.0 (bbbbbbb)
         2026-11-29T02:00Z Current, wanted v1.4.2 (aaaaaaa)
device   Updated · online · no drift · 4.1 GB free
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestExplainFailedTellsTheAttempts(t *testing.T) {
	e := Explain(Question{Path: "devices/berlin/gw-3.yaml", Status: halted()})
	if got, want := e.Because[0].Text, "attempt 2 failed v1.5.0 at 11:55Z: hook check: exit 1 (after-update hooks)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var texts []string
	for _, h := range e.History {
		texts = append(texts, h.Text)
	}
	want := []string{
		"attempt 2: failed: hook check: exit 1 (after-update hooks)", "attempt 2: its start was seen", "attempt 2: v1.5.0 was assigned",
		"attempt 1: ok", "attempt 1: its start was seen", "attempt 1: v1.4.2 was assigned",
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestExplainQueuedNamesPositionAndLimit(t *testing.T) {
	st := halted()
	st.Fleet.Rollouts[1] = schema.RolloutStatus{Policy: "gateways", Version: "v1.5.0", State: "rolling", Next: []string{"gw-4", "gw-2"},
		Limit: "FleetGuard", InFlight: []schema.InFlight{{Device: "gw-5", Version: "v1.5.0", Since: *at(-2)}}}
	st.Devices["devices/oslo/gw-2.yaml"] = status("gw-2", "Queued", "waiting for a slot", nil)
	asked := ""
	e := Explain(Question{Path: "devices/oslo/gw-2.yaml", Status: st, Source: func(_, field string) (string, int) {
		if field != "minAvailable" {
			return field + " is not set", 0
		}
		asked = field
		return field + ": 1", 3
	}})
	if e.Position != 2 || asked != "minAvailable" {
		t.Errorf("position %d, setting %q; want 2 and minAvailable", e.Position, asked)
	}
	if got, want := e.Because[1].Text, "gw-5 has a slot since 11:58Z, for v1.5.0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestExplainUnknownDevice(t *testing.T) {
	if e := Explain(Question{Path: "devices/nobody.yaml", Status: halted()}); e != nil {
		t.Errorf("got %+v, want nil", e)
	}
}

// Every code of the planner must have words, or explain would be silent.
func TestEveryCodeHasWords(t *testing.T) {
	for _, c := range planner.Codes() {
		if len(words[c.Code].until) == 0 {
			t.Errorf("%s says nothing about what would change it", c.Code)
		}
	}
	for code := range words {
		if code.Kind() == "" {
			t.Errorf("%q is no code of the planner", code)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain, ümlaut, 漢": "plain, ümlaut, 漢",
		"a\x1b[31mred":     `a\x1b[31mred`,
		"a\nb\tc":          "a b c",
		"a\r\nb":           "a b",
		"over\rwritten":    "over written",
		"\u202eright":      `\u202eright`,
		"\u009b31m":        `\u009b31m`,
		"bad\xff":          "bad\ufffd",
		"\x00":             `\x00`,
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
	if got, want := CleanLines("a\r\n\tb\x07"), "a\n\tb\\a"; got != want {
		t.Errorf("CleanLines: got %q, want %q", got, want)
	}
}

func TestTableFitsTheTerminal(t *testing.T) {
	table := Table{Head: []string{"ID", "REASON"}}
	table.Row("gw-1", "a reason that is much too long for the line")
	var b bytes.Buffer
	if err := table.Write(&b, Look{Width: 24, Color: true}); err != nil {
		t.Fatal(err)
	}
	want := "\x1b[1mID\x1b[0m    \x1b[1mREASON\x1b[0m\ngw-1  a reason that is\n      much too long for\n      the line\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Text of devices and repositories never reaches a terminal as it is.
func TestHostileTextIsHarmless(t *testing.T) {
	const evil = "x\x1b]0;owned\x07\u202e\n\ry"
	st := halted()
	st.Fleet.Subject, st.Fleet.Author = evil, evil
	st.Fleet.Conditions = []schema.Condition{{Type: evil, Reason: evil, Message: evil, Remedy: evil}}
	for _, d := range st.Devices {
		d.Verdict.Reason, d.Observed.Reason, d.Observed.Held, d.Observed.Problem = evil, evil, evil, evil
		for i := range d.Attempts {
			d.Attempts[i].Message, d.Attempts[i].Stage = evil, evil
		}
	}
	st.Marks[1].Marks[0].Message = evil
	var b bytes.Buffer
	if err := WriteFleet(&b, NewFleet(evil, st), Look{}); err != nil {
		t.Fatal(err)
	}
	for path := range st.Devices {
		e := Explain(Question{Path: path, Status: st, Report: &schema.Report{Drift: []string{evil}}})
		if err := WriteExplanation(&b, e, Look{}); err != nil {
			t.Fatal(err)
		}
	}
	if i := strings.IndexAny(b.String(), "\x1b\x07\r\u202e"); i >= 0 {
		t.Errorf("a control character at %d: %q", i, b.String()[max(0, i-40):i+20])
	}
}

// A document means the same with its escapes, and a terminal only draws it.
func TestCleanJSON(t *testing.T) {
	want := map[string]string{"a\u202e\x7f": "\u009b31m\U000e0001 é 日 \U0001f600\n\t\"<&>"}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(want); err != nil {
		t.Fatal(err)
	}
	text := CleanJSON(b.Bytes())
	var got map[string]string
	if err := json.Unmarshal(text, &got); err != nil || !maps.Equal(got, want) {
		t.Errorf("%s means %q, %v", text, got, err)
	}
	for _, r := range string(text) {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%q is in %q", r, text)
		}
	}
	if !strings.Contains(string(text), "é 日 \U0001f600") {
		t.Errorf("what is harmless is changed: %s", text)
	}
}
