package reconcile

import (
	"context"

	"github.com/gitopsd/gitopsd/schema"
)

// Control is where assignments come from and reports go; package agentsync
// has one.
type Control interface {
	// Look reads the delivery ref and checks what stands there: name, digest,
	// payloads. With an unchanged ref it is one small request. An error means
	// that nothing is known; an unusable document is an [schema.Delivery] with
	// a revision and no assignment, and problem says why.
	Look(ctx context.Context) (d schema.Delivery, problem string, err error)
	// Report sends the report; nil means that it was accepted.
	Report(ctx context.Context, r *schema.Report) error
	// Answers is nil if control gives an answer of any kind.
	Answers(ctx context.Context) error
}
