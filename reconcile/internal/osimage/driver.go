package osimage

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
	"github.com/gitopsd/gitopsd/schema"
)

// Driver answers what is booted and staged, and stages or undoes. An image is
// what a spec names; a version is what is really booted, of which the name may
// become another one: a branch of a repository, a tag.
type Driver interface {
	Name() string
	// Fetch brings here what can be had of an image without a change to the
	// system, and gives the version that it stands for now; "" = only staging
	// it tells.
	Fetch(ctx context.Context, image string) (version string, err error)
	Booted(ctx context.Context) (version string, err error)
	Staged(ctx context.Context) (version string, err error) // boots next; "" = what is booted
	// Has says whether a version is booted, staged or kept. One that was staged
	// and is none of these was never booted: the power went before the system
	// had put it in place. A driver that cannot tell says that it has all.
	Has(ctx context.Context, version string) (bool, error)
	// Stage has a version boot next, or an image where Fetch gave none.
	Stage(ctx context.Context, version string) error
	// Undo has a version boot next that is booted or was kept, and drops what
	// is staged.
	Undo(ctx context.Context, to string) error
	Reboot(ctx context.Context) error // starts a reboot; the agent exits after it
	BootID() (string, error)
}

// New gives the driver that a configuration names, nil for none.
func New(root string, c *schema.OSConfig) Driver {
	switch {
	case c == nil:
		return nil
	case c.Driver == schema.OSTree:
		return &ostree{program: program{root: root, env: untranslated}, remote: c.Remote, osName: c.OSName}
	case c.Driver == schema.OSBootc:
		return &bootc{program: program{root: root, env: untranslated}}
	}
	return Command(root, c)
}

// Times that programs may take, in seconds.
const (
	askTimeout    = 30          // what is booted or staged is known on the spot
	stageTimeout  = 2 * 60 * 60 // an image over a slow line
	undoTimeout   = 10 * 60     // marks a slot, may unpack the old one
	rebootTimeout = 2 * 60      // only asks for the reboot
)

// kernelBootID changes with every boot.
const kernelBootID = "/proc/sys/kernel/random/boot_id"

// component is the name of this package's failures.
const component = "os"

// untranslated is for programs whose words are read here.
var untranslated = []string{"LC_ALL=C.UTF-8"}

// program runs programs for a driver: the host's, with root as working folder.
type program struct {
	root string
	env  []string
}

// BootID is the kernel's own.
func (p *program) BootID() (string, error) {
	data, err := os.ReadFile(kernelBootID)
	if err != nil {
		return "", failure.Retryable(component, "bootID", "%w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// Reboot is systemd's.
func (p *program) Reboot(ctx context.Context) error {
	if p.root != "/" {
		return failure.Permanent(component, "reboot", "below %s nothing is booted", p.root)
	}
	_, err := p.run(ctx, "reboot", []string{"systemctl", "reboot"}, rebootTimeout)
	return err
}

func (p *program) run(ctx context.Context, what string, argv []string, seconds int) (string, error) {
	out, err := hooks.Command(ctx, argv, p.root, append([]string{"GITOPSD_ROOT=" + p.root}, p.env...), seconds)
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

// argument refuses an image that a program would not take for one.
func argument(image string) error {
	if image == "" || strings.HasPrefix(image, "-") || strings.ContainsRune(image, 0) {
		return failure.Permanent(component, "stage", "image %q cannot be a program's argument", image)
	}
	return nil
}
