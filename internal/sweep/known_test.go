package sweep

import (
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// What is committed of a failure is its cause, without the trace below.
func TestMessageOf(t *testing.T) {
	r := &schema.Report{Attempt: 2, Outcome: schema.OutcomeFailed, Phase: schema.PhaseError, Reason: "gave up", Failures: []schema.Failure{
		{Attempt: 1, Message: "of another attempt"},
		{Attempt: 2, Message: "applications edge: it has failed: panic: no such address\nedge starts\npanic: no such address\ngoroutine 1 [running]:"},
	}}
	if got := messageOf(r); got != "applications edge: it has failed: panic: no such address" {
		t.Errorf("of a failure is told %q", got)
	}
	if r.Attempt = 3; messageOf(r) != "gave up" {
		t.Errorf("of an attempt without a failure is told %q", messageOf(r))
	}
}
