package sweep

import (
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// What a device may never take and what it will be given again are two things
// in the log, too.
func TestSubjectOfRefusedAndExhausted(t *testing.T) {
	p := &pass{result: Pass{Ended: []Move{
		{Device: "gw-2", Version: "v1.0.0", Outcome: schema.OutcomeExhausted},
		{Device: "gw-1", Version: "v1.0.0", Outcome: schema.OutcomeRefused},
	}}}
	const want = "gw-1 refused v1.0.0; gw-2 used up the tries for v1.0.0"
	if got := p.subject(nil); got != want {
		t.Errorf("subject: %q, want %q", got, want)
	}
}
