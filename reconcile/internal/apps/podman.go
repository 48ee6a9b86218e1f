package apps

import (
	"context"
	"errors"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
)

const (
	// podmanLimit is for what podman does locally, in seconds; removing waits
	// ten for each container's end, and podman for its own lock.
	podmanLimit = 120
	// pullLimit is for one image on a slow line, in seconds. Layers that were
	// fetched whole are kept by podman, so that the next try goes on.
	pullLimit = 30 * 60
	// maxListed bounds what podman lists, in bytes.
	maxListed = 1 << 20
)

func (c *Controller) podman(ctx context.Context, seconds int, args ...string) (string, error) {
	out, err := c.Run(ctx, append([]string{"podman"}, args...), "/", nil, seconds, maxListed)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return strings.TrimSpace(out), err
}

// imageID gives the id of an image that is there, or "".
func (c *Controller) imageID(ctx context.Context, ref string) (string, error) {
	out, err := c.podman(ctx, podmanLimit, "image", "inspect", "--format", "{{.Id}}", ref)
	var exit *hooks.Exit
	if errors.As(err, &exit) && exit.Code > 0 {
		return "", nil
	}
	id, _, _ := strings.Cut(out, "\n")
	return id, err
}

// said is what a program tells of the cause where it tells anything, in one line.
func said(err error) string {
	var exit *hooks.Exit
	if !errors.As(err, &exit) || exit.Output == "" {
		return err.Error()
	}
	return exit.Error() + ": " + failure.Cause(failure.WithoutSecrets(exit.Output))
}
