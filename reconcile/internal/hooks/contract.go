// Package hooks CONTRACT (replaced by its owner).
package hooks

import (
	"context"

	"github.com/gitopsd/gitopsd/schema"
)

// Point is where in an update hooks run.
type Point string

const (
	BeforeUpdating  Point = "beforeUpdating"
	AfterUpdating   Point = "afterUpdating"
	BeforeRebooting Point = "beforeRebooting"
	AfterRebooting  Point = "afterRebooting"
)

// Context is what hooks are told.
type Context struct {
	Root, Device, From, To string // From and To are versions
	Attempt                int64
	Changed                []string
	RebootPending          bool
	RollingBack            bool
}

// Of picks the hooks of a point.
func Of(h *schema.Hooks, p Point) map[string]*schema.Hook { panic("contract") }

// Check resolves every hook's program without running it: a missing one is a
// permanent failure.
func Check(root string, h *schema.Hooks) error { panic("contract") }

// Run runs the hooks of one point in order; the first failure stops (onFailure:
// ignore goes on; warn is told). Exit 75 at BeforeUpdating is Deferred, any
// other failure there Permanent; a timeout is Retryable at BeforeUpdating and
// Permanent elsewhere.
func Run(ctx context.Context, p Point, h map[string]*schema.Hook, c Context, warn func(error)) error {
	panic("contract")
}

// Command runs one program as hooks are run (process group, timeout, bounded
// output, no background child that keeps it hanging); out is its stdout.
func Command(ctx context.Context, argv []string, dir string, env []string, timeoutSeconds int) (out string, err error) {
	panic("contract")
}
