package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/schema"
)

// Whatever keeps a device from the newest version is said, with what helps.
func TestReasonsOfADevice(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	retry := now.Add(90 * time.Second)
	desired := &schema.SpecRef{Attempt: 7, Version: "v1.1.0"}
	failure := schema.Failure{Stage: "PRE-CHECK", Message: "requires: no program jq", Tries: 2}
	for _, c := range []struct {
		name string
		s    reconcile.Standing
		want string
	}{
		{"a retry", reconcile.Standing{RetryAt: &retry, Report: schema.Report{Phase: schema.PhaseDegraded, Attempt: 7, Desired: desired, Failures: []schema.Failure{failure}}},
			"v1.1.0, attempt 7, did not work and is tried again: 2026-11-29T12:01Z (in 1m30s)|failed at PRE-CHECK: requires: no program jq (2 tries)"},
		{"no announcement", reconcile.Standing{Unannounced: "the announcement was not accepted", Report: schema.Report{Phase: schema.PhasePreparing, Attempt: 7, Desired: desired}},
			"v1.1.0 does not begin before control knows of it: the announcement was not accepted; it is tried again with each poll"},
		{"no way back", reconcile.Standing{RetryAt: &retry, Report: schema.Report{Phase: schema.PhaseError, Stage: "ROLLBACK", Reason: "rollback incomplete: a folder"}},
			"the way back is not finished, and is tried again: 2026-11-29T12:01Z (in 1m30s)|rollback incomplete: a folder"},
		{"a reboot", reconcile.Standing{Report: schema.Report{Phase: schema.PhaseRebooting, Desired: desired}}, "it reboots into v1.1.0; what comes up must prove itself"},
		{"half way", reconcile.Standing{Report: schema.Report{Phase: schema.PhaseApplying, Stage: "RECONCILE", Desired: desired}}, "it is on its way to v1.1.0: Applying, RECONCILE"},
		{"it observes", reconcile.Standing{Report: schema.Report{Phase: schema.PhaseObserving, Reason: "2 things would change", WouldChange: &schema.WouldChange{Version: "v1.1.0"}}},
			"it only compares itself with v1.1.0, as the spec says (onDevice.mode), and is left as it is: 2 things would change"},
		{"it observes, and something waits", reconcile.Standing{Report: schema.Report{Phase: schema.PhaseWaiting, Attempt: 7, Reason: "busy", WouldChange: &schema.WouldChange{Version: "v1.0.0"}}},
			"attempt 7 waits, and has changed nothing: busy|nothing has begun since it was told only to compare itself with v1.0.0: it is left as it is"},
		{"nothing assigned, held in git", reconcile.Standing{Waits: "held: broken", Report: schema.Report{Phase: schema.PhaseUpdated, Assigned: "nothing is assigned to this device yet"}},
			"nothing was ever applied here|nothing may begin and nothing is repaired: held: broken|nothing is assigned to this device yet"},
		{"an attempt was recalled", reconcile.Standing{Report: schema.Report{Phase: schema.PhaseUpdated, Attempt: 7, Reason: "attempt 7 was recalled before it changed anything"}},
			"it is on what was assigned to it last|attempt 7 was recalled before it changed anything"},
		{"refused", reconcile.Standing{Last: &reconcile.LastAttempt{Version: "v1.1.0"}, Report: schema.Report{Phase: schema.PhaseError, Stage: "PRE-CHECK", Attempt: 7,
			Outcome: schema.OutcomeRefused, Reason: failure.Message, Failures: []schema.Failure{failure}}},
			"v1.1.0, attempt 7, ended as refused at PRE-CHECK, and nothing was changed|failed at PRE-CHECK: requires: no program jq (2 tries)"},
		{"put back", reconcile.Standing{Last: &reconcile.LastAttempt{Version: "v1.1.0"}, Report: schema.Report{Phase: schema.PhaseError, Stage: "PRE-CHECK", Attempt: 7, Begun: true,
			Outcome: schema.OutcomeFailed, Reason: failure.Message + "; attempt 8 took its place", Failures: []schema.Failure{failure}}},
			"v1.1.0, attempt 7, ended as failed at PRE-CHECK, and the device is back on its last good version: attempt 8 took its place|failed at PRE-CHECK: requires: no program jq (2 tries)"},
	} {
		doc := (&device{root: "/"}).reasonsOf(&deviceStanding{Running: true, Standing: c.s}, now)
		if got := strings.Join(doc.Reasons, "|"); got != c.want {
			t.Errorf("%s: it says\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// An attempt that used up its tries before it changed anything is assigned
// again by itself; one that failed or was refused is not.
func TestWhatHelpsAfterAnAttempt(t *testing.T) {
	for outcome, want := range map[schema.Outcome]string{
		schema.OutcomeExhausted: "nothing, if what stood in the way passes: the daemon assigns v1.1.0 again after the backoff of its policy; gitopsd explain d1, at a desk, says when",
		schema.OutcomeFailed:    "the same attempt is never tried again: mend the release, or gitopsd retry d1 in the fleet repository",
		schema.OutcomeRefused:   "the same attempt is never tried again: mend the release, or gitopsd retry d1 in the fleet repository",
	} {
		s := &deviceStanding{Running: true, Standing: reconcile.Standing{Last: &reconcile.LastAttempt{Version: "v1.1.0"}, Report: schema.Report{
			Metadata: schema.Metadata{Name: "d1"}, Phase: schema.PhaseError, Stage: "PRE-CHECK", Outcome: outcome}}}
		if got := strings.Join((&device{root: "/"}).reasonsOf(s, time.Time{}).Next, "|"); got != want {
			t.Errorf("%s: next is\n%s\nwant\n%s", outcome, got, want)
		}
	}
}

// Nobody can try a release again on a device that has left the fleet.
func TestNextOfADeviceThatLeft(t *testing.T) {
	s := &deviceStanding{Running: true, Standing: reconcile.Standing{Report: schema.Report{Phase: schema.PhaseError, Attempt: 7, Outcome: schema.OutcomeFailed, Assigned: reconcile.LeftFleet}}}
	doc := (&device{root: "/"}).reasonsOf(s, time.Time{})
	next := strings.Join(doc.Next, "\n")
	if strings.Contains(next, "retry") || !strings.Contains(next, "gitopsd agent reset gives back what was there before") || !slices.Contains(doc.Reasons, reconcile.LeftFleet) {
		t.Errorf("it says %q, and as next\n%s", doc.Reasons, next)
	}
}

// What a failure says is not said twice, and where it was cut not either.
func TestReasonBesideAFailure(t *testing.T) {
	long := strings.Repeat("no route to the line ", 20)
	for _, c := range []struct{ reason, message, want string }{
		{"no program jq", "no program jq", ""},
		{"a retry is due after no program jq", "no program jq\nand more", "a retry is due"},
		{"no program jq; attempt 8 took its place", "no program jq", "attempt 8 took its place"},
		{"two columns", "two\t columns", ""},
		{long[:200] + "…", long, ""},
		{"a retry is due after " + long[:200] + "…", long, "a retry is due"},
		{"held", "no program jq", "held"},
		{"rollback incomplete: a folder…", "no program jq", "rollback incomplete: a folder…"},
	} {
		if got := besideFailure(&schema.Report{Reason: c.reason, Failures: []schema.Failure{{}, {Message: c.message}}}); got != c.want {
			t.Errorf("%q beside %q: %q, want %q", c.reason, c.message, got, c.want)
		}
	}
}

// Below another root no service runs the agent, and commands name the root.
func TestHintsBelowARoot(t *testing.T) {
	s := &deviceStanding{Standing: reconcile.Standing{Waits: "held on the device: x", Report: schema.Report{Phase: schema.PhaseUpdated}}}
	for root, want := range map[string]string{
		"/":         "gitopsd agent unhold ends|systemctl status gitopsd-agent",
		"/tmp/gw 1": "gitopsd agent unhold --root '/tmp/gw 1' ends|gitopsd agent --repo URL --device NAME --root '/tmp/gw 1' runs one",
	} {
		got := strings.Join((&device{root: root}).reasonsOf(s, time.Time{}).Next, "\n")
		for _, part := range strings.Split(want, "|") {
			if !strings.Contains(got, part) {
				t.Errorf("%s: no %q in\n%s", root, part, got)
			}
		}
		if root != "/" && strings.Contains(got, "systemctl") {
			t.Errorf("%s: a service is named in\n%s", root, got)
		}
	}
}
