package osimage

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
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

// Times that the operator's programs may take, in seconds.
const (
	askTimeout    = 30          // what is booted or staged is known on the spot
	stageTimeout  = 2 * 60 * 60 // an image over a slow line
	undoTimeout   = 10 * 60     // marks a slot, may unpack the old one
	rebootTimeout = 2 * 60      // only asks for the reboot
)

// kernelBootID changes with every boot.
const kernelBootID = "/proc/sys/kernel/random/boot_id"

// maxAnswer bounds a boot id, in bytes.
const maxAnswer = 4 << 10

// component is the name of this package's failures.
const component = "os"

// Command is the driver that runs the operator's own programs: the host's,
// with root as working folder and GITOPSD_ROOT in their environment.
func Command(root string, c *schema.OSConfig) Driver {
	if c == nil {
		c = &schema.OSConfig{}
	}
	return &command{root: root, c: *c}
}

type command struct {
	root string
	c    schema.OSConfig
}

func (d *command) Name() string { return "command" }

func (d *command) Booted(ctx context.Context) (string, error) {
	v, err := d.ask(ctx, "booted", d.c.Booted)
	if err == nil && v == "" {
		err = failure.Retryable(component, "booted", "%s printed no version", d.c.Booted[0])
	}
	return v, err
}

func (d *command) Staged(ctx context.Context) (string, error) {
	return d.ask(ctx, "staged", d.c.Staged)
}

func (d *command) Stage(ctx context.Context, image string) error {
	if image == "" || strings.HasPrefix(image, "-") || strings.ContainsRune(image, 0) {
		return failure.Permanent(component, "stage", "image %q cannot be a program's argument", image)
	}
	if len(d.c.Stage) == 0 {
		return missing("stage")
	}
	_, err := d.run(ctx, "stage", append(append([]string(nil), d.c.Stage...), image), stageTimeout)
	return err
}

func (d *command) Undo(ctx context.Context) error {
	_, err := d.run(ctx, "undo", d.c.Undo, undoTimeout)
	return err
}

func (d *command) Reboot(ctx context.Context) error {
	_, err := d.run(ctx, "reboot", d.c.Reboot, rebootTimeout)
	return err
}

// BootID reads the configured file below the root; without one, the host
// kernel's own.
func (d *command) BootID() (string, error) {
	var data []byte
	var err error
	if d.c.BootID == "" {
		data, err = os.ReadFile(kernelBootID)
	} else {
		var r *disk.Root
		if r, err = disk.Open(d.root, disk.Options{}); err == nil {
			defer func() { _ = r.Close() }()
			data, err = r.ReadFile(d.c.BootID, maxAnswer)
		}
	}
	if err != nil {
		return "", failure.Retryable(component, "bootID", "%w", err)
	}
	id := strings.TrimSpace(string(data))
	if id == "" || strings.ContainsAny(id, "\n\x00") {
		return "", failure.Retryable(component, "bootID", "%q is no boot id: one line is wanted", id)
	}
	return id, nil
}

// ask gives the one line that a program prints, or "".
func (d *command) ask(ctx context.Context, what string, argv []string) (string, error) {
	out, err := d.run(ctx, what, argv, askTimeout)
	if err != nil {
		return "", err
	}
	if strings.Contains(out, "\n") {
		return "", failure.Retryable(component, what, "%s printed more than one line, one version is wanted: %q", argv[0], out)
	}
	return out, nil
}

func missing(what string) error {
	return failure.Permanent(component, what, "the agent's configuration names no program for it (spec.os.%s)", what)
}

func (d *command) run(ctx context.Context, what string, argv []string, seconds int) (string, error) {
	if len(argv) == 0 {
		return "", missing(what)
	}
	out, err := hooks.Command(ctx, argv, d.root, []string{"GITOPSD_ROOT=" + d.root}, seconds)
	if err == nil {
		return out, nil
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	f := &failure.Error{Class: schema.ClassRetryable, Component: component, Element: what, Err: err}
	var end *hooks.Exit
	switch {
	case errors.As(err, &end):
		f.Output = end.Output
	case errors.Is(err, hooks.ErrNoProgram):
		f.Class = schema.ClassPermanent
	}
	return "", f
}
