package osimage

import (
	"context"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// maxAnswer bounds a boot id, in bytes.
const maxAnswer = 4 << 10

// Command is the driver that runs the operator's own programs: the host's,
// with root as working folder and GITOPSD_ROOT in their environment.
func Command(root string, c *schema.OSConfig) Driver {
	if c == nil {
		c = &schema.OSConfig{}
	}
	return &command{program: program{root: root}, c: *c}
}

type command struct {
	program
	c schema.OSConfig
}

func (d *command) Name() string { return schema.OSCommand }

// Fetch leaves everything to Stage: the image is the version.
func (d *command) Fetch(_ context.Context, image string) (string, error) { return image, nil }

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
	if err := argument(image); err != nil {
		return err
	}
	if len(d.c.Stage) == 0 {
		return missing("stage")
	}
	_, err := d.run(ctx, "stage", append(append([]string(nil), d.c.Stage...), image), stageTimeout)
	return err
}

// Has cannot tell: the programs say what boots next, not what else is there.
func (d *command) Has(context.Context, string) (bool, error) { return true, nil }

// Undo leaves it to the program which system is meant: there are two.
func (d *command) Undo(ctx context.Context, _ string) error {
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
	if d.c.BootID == "" {
		return d.program.BootID()
	}
	var data []byte
	r, err := disk.Open(d.root, disk.Options{})
	if err == nil {
		defer func() { _ = r.Close() }()
		data, err = r.ReadFile(d.c.BootID, maxAnswer)
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
	return d.program.run(ctx, what, argv, seconds)
}
