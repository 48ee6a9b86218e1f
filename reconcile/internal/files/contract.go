// Package files CONTRACT (replaced by its owner).
package files

import (
	"context"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/schema"
)

// Payloads gives the bytes of "sha256:<hex>".
type Payloads func(digest string) ([]byte, error)

// Config of a Controller.
type Config struct {
	Root      *disk.Root
	State     string   // folder below the root: "/var/lib/gitopsd"
	Protected []string // further paths that no spec may touch
}

// Controller manages the files and directories of a spec; what it put on the
// device stands in managed.json, with a copy of what was there before.
type Controller struct{}

func New(c Config) (*Controller, error) { panic("contract") }

// Check finds what can never work here (permanent failures), changing nothing.
func (c *Controller) Check(spec *schema.Spec, p Payloads) error { panic("contract") }

// Apply makes the device have exactly the spec's files and directories, in an
// order in which every step can be repeated; what the spec drops goes, and
// what was there before comes back. changed lists paths that differ now.
// Called with the old spec it is the rollback: keepGoing continues past single
// errors and joins them.
func (c *Controller) Apply(ctx context.Context, spec *schema.Spec, p Payloads, keepGoing bool) (changed []string, err error) {
	panic("contract")
}

// Drift lists managed paths that differ from the spec.
func (c *Controller) Drift(spec *schema.Spec, p Payloads) ([]string, error) { panic("contract") }

// Watched lists the folders whose changes may be drift.
func (c *Controller) Watched(spec *schema.Spec) []string { panic("contract") }
