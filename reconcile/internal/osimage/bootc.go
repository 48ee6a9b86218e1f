package osimage

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// bootc is the driver of systems that boot container images. An image is a
// reference in a registry; a version is one with a digest.
//
// It was written from bootc's manual and the schema of its status
// (org.containers.bootc/v1), and has only ever run against a stand-in program.
type bootc struct{ program }

func (d *bootc) Name() string { return schema.OSBootc }

// Fetch can only tell the version of an image that has a digest: bootc has no
// command that fetches without staging.
func (d *bootc) Fetch(_ context.Context, image string) (string, error) {
	if err := argument(image); err != nil {
		return "", err
	}
	if strings.ContainsAny(image, " \t") || strings.Contains(image, "://") {
		return "", failure.Permanent(component, image, "it is no reference of an image in a registry, like quay.io/edge/os:7")
	}
	if !strings.Contains(image, "@") {
		return "", nil
	}
	return image, nil
}

// host is what is used of the output of bootc status.
type host struct {
	Status struct {
		Booted, Staged, Rollback *entry
		RollbackQueued           bool
	}
}

// entry is a deployment; its image is null where it is none of a container.
type entry struct {
	Image *struct {
		Image struct {
			Image     string
			Transport string
		}
		ImageDigest string
	}
}

// ref is the reference that a deployment was made from, "" for none.
func (e *entry) ref() string {
	if e == nil || e.Image == nil {
		return ""
	}
	return e.Image.Image.Image
}

// version is the reference with a digest. The one that was asked for stays:
// for an image of several architectures it is another than the image's own.
func (e *entry) version() string {
	ref := e.ref()
	if ref == "" || strings.Contains(ref, "@") {
		return ref
	}
	if slash, colon := strings.LastIndexByte(ref, '/'), strings.LastIndexByte(ref, ':'); colon > slash {
		ref = ref[:colon] // a tag
	}
	return ref + "@" + e.Image.ImageDigest
}

func (d *bootc) status(ctx context.Context) (*host, error) {
	out, err := d.run(ctx, "status", []string{"bootc", "status", "--format=json", "--format-version=1"}, askTimeout)
	if err != nil {
		return nil, err
	}
	var h host
	if err := json.Unmarshal([]byte(out), &h); err != nil {
		return nil, failure.Retryable(component, "status", "bootc's status cannot be read: %w", err)
	}
	if h.Status.Booted.ref() == "" {
		return nil, failure.Retryable(component, "booted", "this system was not booted from an image of bootc")
	}
	return &h, nil
}

func (d *bootc) Booted(ctx context.Context) (string, error) {
	h, err := d.status(ctx)
	if err != nil {
		return "", err
	}
	return h.Status.Booted.version(), nil
}

func (d *bootc) Staged(ctx context.Context) (string, error) {
	h, err := d.status(ctx)
	if err != nil {
		return "", err
	}
	return h.next(), nil
}

// next is what boots next, "" for what is booted.
func (h *host) next() string {
	if h.Status.Staged == nil && h.Status.RollbackQueued {
		return h.Status.Rollback.version()
	}
	return h.Status.Staged.version()
}

// Has goes by what bootc lists: it puts in place what is staged when the system
// goes down, and forgets it where that did not happen.
func (d *bootc) Has(ctx context.Context, version string) (bool, error) {
	h, err := d.status(ctx)
	if err != nil {
		return false, err
	}
	s := &h.Status
	return slices.Contains([]string{s.Booted.version(), s.Staged.version(), s.Rollback.version()}, version), nil
}

// Stage has bootc fetch and stage. Where the image is followed already it
// would find nothing to switch to; then it is looked for a newer one.
func (d *bootc) Stage(ctx context.Context, image string) error {
	h, err := d.status(ctx)
	if err != nil {
		return err
	}
	argv := []string{"bootc", "switch", "--quiet", image}
	if cmp.Or(h.Status.Staged.ref(), h.Status.Booted.ref()) == image {
		argv = []string{"bootc", "upgrade", "--quiet"}
	}
	_, err = d.run(ctx, "stage", argv, stageTimeout)
	return err
}

// Undo goes by what bootc would do: its rollback drops what is staged, and
// exchanges the booted and the kept image in the order of booting. It is never
// asked for one that would lead to a third image.
func (d *bootc) Undo(ctx context.Context, to string) error {
	h, err := d.status(ctx)
	if err != nil {
		return err
	}
	s := &h.Status
	switch {
	case h.next() == to, s.Booted.version() == to && h.next() == "":
		return nil
	case s.Booted.version() == to && s.Staged == nil: // the kept one is queued
	case s.Booted.version() == to:
		// it has no command that only drops what is staged: the booted image
		// is staged in its place
		return d.Stage(ctx, to)
	case s.Rollback.version() != to || s.RollbackQueued:
		return failure.Retryable(component, to, "no deployment of it was kept")
	}
	_, err = d.run(ctx, "rollback", []string{"bootc", "rollback"}, undoTimeout)
	return err
}
