// Package osimage CONTRACT (replaced by its owner).
package osimage

import (
	"context"

	"github.com/gitopsd/gitopsd/schema"
)

// Driver answers what is booted and staged, and stages or undoes.
type Driver interface {
	Name() string
	Booted(ctx context.Context) (string, error)
	Staged(ctx context.Context) (string, error) // "" = nothing is staged
	Stage(ctx context.Context, image string) error
	Undo(ctx context.Context) error
	Reboot(ctx context.Context) error // starts a reboot; the agent exits after it
	BootID() (string, error)
}

// Command is the driver that runs the operator's own programs.
func Command(root string, c *schema.OSConfig) Driver { panic("contract") }
