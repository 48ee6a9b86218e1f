package apps

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
	"github.com/gitopsd/gitopsd/reconcile/internal/units"
)

// Payloads gives the bytes of "sha256:<hex>".
type Payloads func(digest string) ([]byte, error)

// Runner runs a program as [hooks.Output] does.
type Runner func(ctx context.Context, argv []string, dir string, env []string, timeoutSeconds, most int) (out string, err error)

// Config of a Controller.
type Config struct {
	Root  *disk.Root
	State string // folder below the root: "/var/lib/gitopsd"
	// Scratch has the files that podman is shown, at the same place; nil = Root.
	Scratch *disk.Root
	Warn    func(error) // told what a person should know but stops nothing; nil = nobody
	// Pulls is told before each pull which of how many it is; nil = nobody.
	Pulls func(ref string, n, of int)
	// Made says whether a file would not be there without a spec; nil = none is.
	Made func(path string) bool
	// Goes says whether a unit is there by a spec alone, and goes with its file
	// before applications start; nil = none does.
	Goes func(unit string) bool
	Now  func() time.Time // dates what is set aside; nil = time.Now
	// What follows is the device's own when it is nil.
	Connect func(context.Context) (units.Manager, error)
	Run     Runner
	Wait    func(ctx context.Context, d time.Duration) error // before a unit is looked at again
	Uptime  func() time.Duration                             // a clock that nobody sets
	Journal func(context.Context, units.Starts) string       // the words of units
	// Generator is the program that makes units of quadlets; "" = where podman
	// puts it.
	Generator string
}

// Controller runs the applications of a spec.
type Controller struct {
	Config
	rec *record
	// began is when Switch had stopped what was to be stopped, on [units.Clock].
	began time.Duration
}

// New makes a controller. What it remembers is read when it is first needed.
func New(c Config) (*Controller, error) {
	if c.Root == nil || c.State == "" {
		return nil, errors.New("apps: root and state folder are needed")
	}
	if c.Warn == nil {
		c.Warn = func(error) {}
	}
	if c.Pulls == nil {
		c.Pulls = func(string, int, int) {}
	}
	if c.Made == nil {
		c.Made = func(string) bool { return false }
	}
	if c.Goes == nil {
		c.Goes = func(string) bool { return false }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Connect == nil {
		c.Connect = units.Connect
	}
	if c.Run == nil {
		c.Run = hooks.Output
	}
	if c.Wait == nil {
		c.Wait = wait
	}
	if c.Uptime == nil {
		begun := time.Now()
		c.Uptime = func() time.Duration { return time.Since(begun) }
	}
	if c.Journal == nil {
		c.Journal = units.Journal
	}
	if c.Generator == "" {
		c.Generator = generator()
	}
	return &Controller{Config: c}, nil
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// generators are where podman's packages put it.
var generators = []string{
	"/usr/lib/systemd/system-generators/podman-system-generator",
	"/lib/systemd/system-generators/podman-system-generator",
	"/usr/local/lib/systemd/system-generators/podman-system-generator",
}

func generator() string {
	for _, p := range generators {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	return ""
}

// Quadlets says whether applications of quadlet files run on this device:
// below its own root, with systemd, podman and podman's generator.
func (c *Controller) Quadlets() bool {
	if c.Generator == "" || path.Clean(c.Root.Dir()) != "/" {
		return false
	}
	if _, err := os.Stat("/run/systemd/system"); err != nil { // sd_booted(3)
		return false
	}
	_, err := exec.LookPath("podman")
	return err == nil
}
