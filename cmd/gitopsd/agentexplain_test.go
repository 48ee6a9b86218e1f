package main

import (
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
			"v1.1.0, attempt 7, did not work and is tried again: 2026-11-29 12:01Z (in 1m30s)|failed at PRE-CHECK: requires: no program jq (2 tries)"},
		{"no announcement", reconcile.Standing{Unannounced: "the announcement was not accepted", Report: schema.Report{Phase: schema.PhasePreparing, Attempt: 7, Desired: desired}},
			"v1.1.0 does not begin before control knows of it: the announcement was not accepted; it is tried again with each poll"},
		{"no way back", reconcile.Standing{RetryAt: &retry, Report: schema.Report{Phase: schema.PhaseError, Stage: "ROLLBACK", Reason: "rollback incomplete: a folder"}},
			"the way back is not finished, and is tried again: 2026-11-29 12:01Z (in 1m30s)|rollback incomplete: a folder"},
		{"a reboot", reconcile.Standing{Report: schema.Report{Phase: schema.PhaseRebooting, Desired: desired}}, "it reboots into v1.1.0; what comes up must prove itself"},
		{"half way", reconcile.Standing{Report: schema.Report{Phase: schema.PhaseApplying, Stage: "RECONCILE", Desired: desired}}, "it is on its way to v1.1.0: Applying, RECONCILE"},
		{"it observes", reconcile.Standing{Report: schema.Report{Phase: schema.PhaseObserving, Reason: "2 things would change", WouldChange: &schema.WouldChange{Version: "v1.1.0"}}},
			"it only compares itself with v1.1.0, as the spec says (onDevice.mode), and is left as it is: 2 things would change"},
		{"it observes, and something waits", reconcile.Standing{Report: schema.Report{Phase: schema.PhaseWaiting, Attempt: 7, Reason: "busy", WouldChange: &schema.WouldChange{Version: "v1.0.0"}}},
			"attempt 7 waits, and has changed nothing: busy|nothing has begun since it was told only to compare itself with v1.0.0: it is left as it is"},
		{"nothing assigned, held in git", reconcile.Standing{Waits: "held: broken", Report: schema.Report{Phase: schema.PhaseUpdated, Assigned: "nothing is assigned to this device yet"}},
			"it is on what was assigned to it last|nothing may begin and nothing is repaired: held: broken|what is assigned to it is not acted on: nothing is assigned to this device yet"},
	} {
		doc := reasonsOf(&deviceStanding{Running: true, Standing: c.s}, now)
		if got := strings.Join(doc.Reasons, "|"); got != c.want {
			t.Errorf("%s: it says\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}
