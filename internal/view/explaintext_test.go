package view

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

func explainText(t *testing.T, q Question) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteExplanation(&b, Explain(q), Look{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A pin, and not its policy, says where a pinned device should be.
func TestExplainPinned(t *testing.T) {
	st := halted()
	q := Question{Path: "devices/gw-1.yaml", Status: st, Source: func(file, field string) (string, int) {
		if file == "devices/gw-1.yaml" && field == "pin" {
			return "pin: v1.5.0", 8
		}
		return field + ": v9.9.9", 16
	}}
	q.Source = onlyPin(q.Source)
	wantText(t, explainText(t, q),
		"because  pinned, on v1.5.0   devices/gw-1.yaml:8 pin: v1.5.0\n",
		"until    the pin changes\n")

	// Without the documents its last attempt tells.
	q.Source = nil
	st.Devices["devices/gw-1.yaml"].Attempts = []schema.Attempt{{Attempt: 1, Version: "v1.5.0", Pinned: true}}
	wantText(t, explainText(t, q), "because  pinned, on v1.5.0\n", "until    the pin changes\n")
}

// onlyPin leaves a device's document without another field than its pin.
func onlyPin(source func(file, field string) (string, int)) func(file, field string) (string, int) {
	return func(file, field string) (string, int) {
		if strings.HasPrefix(file, "devices/") && field != "pin" {
			return field + " is not set", 0
		}
		return source(file, field)
	}
}

// A device that was removed comes back with its file, and not with a selector.
func TestExplainRemoved(t *testing.T) {
	st := halted()
	d := st.Devices["devices/gw-5.yaml"]
	d.Verdict.Code, d.Verdict.Reason = "Excluded", "removed from the fleet repository"
	q := Question{Path: "devices/gw-5.yaml", Status: st, Assignment: &schema.Assignment{Removed: true}}
	wantText(t, explainText(t, q), "until    its file is in the fleet repository again\n")
	d.Verdict.Reason = "no policy selects it"
	q.Assignment.Removed = false
	wantText(t, explainText(t, q), "until    a policy's selector matches the device's labels\n")
}

// The record has every attempt that failed a version; what is told is who halts
// the policy now, each once.
func TestExplainTellsWhatCountsOnce(t *testing.T) {
	st := halted()
	first := schema.FailureMark{Device: "gw-3", Outcome: schema.OutcomeFailed, At: *at(-90), Message: "of another content"}
	over := schema.FailureMark{Device: "gw-1", Outcome: schema.OutcomeFailed, At: *at(-60), Message: "the cable"}
	st.Marks[0].Marks = append(st.Marks[0].Marks, first, over)
	st.Marks[1].Marks = append([]schema.FailureMark{over, first}, st.Marks[1].Marks...)
	next := func(id, code string) *NextSweep {
		v := planner.Verdict{Device: planner.Device{ID: id, Policy: "gateways"}, Code: planner.Code(code), Reason: "too many devices failed v1.5.0"}
		return &NextSweep{At: noon, Verdict: v, Result: planner.Result{Verdicts: []planner.Verdict{v},
			Policies: []planner.Summary{{Policy: "gateways", Target: "v1.5.0", Halted: true, HaltedBy: []string{"gw-3"}}}}}
	}
	for _, c := range []struct {
		path, want string
		next       *NextSweep
	}{
		{"devices/gw-1.yaml", "", nil},
		{"devices/gw-1.yaml", "", next("gw-1", "Current")},
		{"devices/berlin/gw-3.yaml", "tries    attempt 2 failed v1.5.0 at 2026-11-29T11:55Z\n         it is among those that halt gateways, because it failed v1.5.0\n", nil},
		{"devices/oslo/gw-2.yaml", "because  gw-3 failed v1.5.0 at 11:55Z: hook check: exit 1\nuntil", next("gw-2", "Halted")},
	} {
		text := explainText(t, Question{Path: c.path, Status: st, Next: c.next})
		if !strings.Contains(text, c.want) || strings.Contains(text, "of another content") || strings.Contains(text, "the cable") ||
			c.want == "" && strings.Contains(text, "tries") || strings.Count(text, "halt gateways") > 1 {
			t.Errorf("%s: want %q in\n%s", c.path, c.want, text)
		}
	}
}

// What did not begin was recalled, in the word of the history.
func TestExplainTellsRecalls(t *testing.T) {
	st := halted()
	st.Devices["devices/berlin/gw-3.yaml"] = status("gw-3", "Backoff", "will be tried again", func(d *schema.DeviceStatus) {
		d.Verdict.Target, d.Assignment = "v1.5.0", &schema.AssignmentRef{Recalled: 2}
		d.Attempts = []schema.Attempt{{Attempt: 2, Version: "v1.5.0", AssignedAt: *at(-7), EndedAt: at(-5), Outcome: schema.OutcomeDeferred,
			Recall: &schema.Recall{At: *at(-6), Because: "busy", Outcome: schema.OutcomeDeferred}}}
	})
	wantText(t, explainText(t, Question{Path: "devices/berlin/gw-3.yaml", Status: st}),
		"tries    attempt 2 of v1.5.0 was recalled as deferred at 2026-11-29T11:55Z\n", "assigned nothing: attempt 2 was recalled\n", "attempt 2: recalled, busy\n")
}

// A place is only named where the cause is written.
func TestExplainNamesNoPlaceForWhatIsNotWritten(t *testing.T) {
	st := halted()
	nothing := func(_, field string) (string, int) { return field + " is not set", 0 }
	held := explainText(t, Question{Path: "devices/gw-5.yaml", Status: st, Source: nothing})
	wantText(t, held, "because  held: disk\n")
	st.Devices["devices/gw-5.yaml"].Verdict.Code = "Backoff"
	wantText(t, explainText(t, Question{Path: "devices/gw-5.yaml", Status: st, Source: nothing}),
		"policies/gateways.yaml: backoff is not set, so its default holds: 10m, times 2 with each failure, at most 24h\n")
}

// A default that nobody wrote down is told; what has none is not.
func TestDefaultText(t *testing.T) {
	for _, c := range []struct {
		cause Cause
		want  string
	}{
		{Cause{File: "policies/p.yaml", Setting: "maxAttempts is not set"}, "maxAttempts is not set, so its default holds: 1"},
		{Cause{File: "policies/p.yaml", Setting: "refusalLimit is not set"}, "refusalLimit is not set, so its default holds: 10%, at least 3"},
		{Cause{File: "policies/p.yaml", Setting: "waves is not set"}, "waves is not set, so its default holds"},
		{Cause{File: "fleet.yaml", Setting: "maxInFlight is not set"}, "maxInFlight is not set, so its default holds"},
	} {
		if got := defaultText(c.cause); got != c.want {
			t.Errorf("%+v: %q, want %q", c.cause, got, c.want)
		}
	}
}

// In one second much can happen; what was the cause comes first.
func TestHistoryIsInTheOrderOfTheCommits(t *testing.T) {
	second := func(n int) *time.Time {
		at := noon.Add(time.Duration(n) * time.Second)
		return &at
	}
	one := schema.Attempt{Attempt: 1, Version: "v1.4.2", AssignedAt: *second(0)}
	ended := one
	ended.EndedAt, ended.Outcome = second(0), schema.OutcomeOK
	two := schema.Attempt{Attempt: 2, Version: "v1.5.0", AssignedAt: *second(1)}
	failed := two
	failed.EndedAt, failed.Outcome, failed.Message = second(1), schema.OutcomeFailed, "no good"
	version := func(code, target string, attempts ...schema.Attempt) *schema.DeviceStatus {
		return status("gw-3", code, "", func(d *schema.DeviceStatus) { d.Verdict.Target, d.Attempts = target, attempts })
	}
	now := version("Failed", "v1.5.0", ended, failed)
	st := halted()
	st.Devices["devices/berlin/gw-3.yaml"] = now
	e := Explain(Question{Path: "devices/berlin/gw-3.yaml", Status: st, Changes: chain([]recorded{
		{Commit: "4444444", Time: *second(1), Status: now},
		{Commit: "3333333", Time: *second(1), Status: version("Upgrading", "v1.5.0", ended, two)},
		{Commit: "2222222", Time: *second(0), Status: version("Current", "v1.4.2", ended)},
		{Commit: "1111111", Time: *second(0), Status: version("Upgrading", "v1.4.2", one)},
		{Commit: "0000000", Time: *second(-90), Status: version("Queued", "v1.4.2")},
	})})
	var b bytes.Buffer
	if err := WriteExplanation(&b, e, Look{}); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(b.String(), "\nhistory")
	text, _, _ = strings.Cut(text, "\ndevice")
	want := `  2026-11-29T12:00:01Z Upgrading → Failed (4444444)
         2026-11-29T12:00:01Z attempt 2: failed: no good (4444444)
         2026-11-29T12:00:01Z attempt 2: v1.5.0 was assigned; it was Current since 12:00Z (3333333)
         2026-11-29T12:00:00Z Upgrading → Current (2222222)
         2026-11-29T12:00:00Z attempt 1: ok (2222222)
         2026-11-29T12:00:00Z attempt 1: v1.4.2 was assigned; it was Queued since 11:58Z (1111111)
         2026-11-29T11:58Z Queued, wanted v1.4.2 (0000000)`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
