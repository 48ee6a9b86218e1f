package units

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/files"
	"github.com/gitopsd/gitopsd/schema"
)

// device is a root with a systemd, and the two controllers on it.
type device struct {
	t       *testing.T
	dir     string
	systemd *fake
	disk    func(op, path string) error
	warned  []string
	made    map[string]bool // by another part of the spec
	anew    map[string]bool // started by it after this
	had     map[string]bool // by it, until now
}

func newDevice(t *testing.T) *device {
	// In memory where there is such a folder: a sync costs more than all else.
	dir, err := os.MkdirTemp("/dev/shm", "gitopsd-units-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &device{t: t, dir: dir}
	d.systemd = &fake{t: t, root: d.dir, links: map[string]bool{}}
	d.systemd.boot()
	for _, dir := range []string{"etc", "usr/lib/systemd/system", "etc/systemd/system", "var/lib"} {
		if err := os.MkdirAll(filepath.Join(d.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func (d *device) put(p, text string) {
	if err := os.WriteFile(filepath.Join(d.dir, p), []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// open starts an agent's controllers anew, from what is on disk.
func (d *device) open() (*disk.Root, *files.Controller, *Controller) {
	root, err := disk.Open(d.dir, disk.Options{Step: d.disk})
	if err != nil {
		d.t.Fatal(err)
	}
	warn := func(err error) { d.warned = append(d.warned, err.Error()) }
	fc, err := files.New(files.Config{Root: root, State: "/var/lib/gitopsd", Warn: warn})
	if err != nil {
		d.t.Fatal(err)
	}
	uc, err := New(Config{Root: root, State: "/var/lib/gitopsd", Warn: warn, Steady: 1, Scratch: filepath.Join(d.t.TempDir(), "scratch"),
		Made:    func(*schema.Spec) map[string]bool { return d.made },
		Had:     func(unit string) bool { return d.had[unit] },
		Anew:    func(unit string) bool { return d.anew[unit] },
		Connect: func(context.Context) (Manager, error) { return d.systemd, nil },
		Journal: func(_ context.Context, of Starts) string { return "journal of " + of.Units[0] }})
	if err != nil {
		d.t.Fatal(err)
	}
	return root, fc, uc
}

// apply makes the device be a spec, as an agent does that has just started.
func (d *device) apply(spec *schema.Spec) error {
	root, fc, uc := d.open()
	defer root.Close()
	spec = whole(spec)
	if err := uc.Prepare(d.t.Context(), spec, fc.Ahead(spec, nil), false); err != nil {
		return err
	}
	if _, err := fc.Apply(d.t.Context(), spec, nil, files.Back); err != nil {
		return err
	}
	_, err := uc.Finish(d.t.Context(), spec, false)
	return err
}

// whole is a spec with the files of its units among its files.
func whole(spec *schema.Spec) *schema.Spec {
	all := *spec
	all.Files = maps.Clone(spec.Files)
	if all.Files == nil {
		all.Files = map[string]*schema.File{}
	}
	maps.Copy(all.Files, Files(spec))
	return &all
}

func (d *device) must(spec *schema.Spec) {
	d.t.Helper()
	if err := d.apply(spec); err != nil {
		d.t.Fatal(err)
	}
}

// is tells how the device is: files, links, and what each unit runs with.
func (d *device) is() string {
	var all []string
	err := filepath.WalkDir(d.dir, func(p string, e os.DirEntry, err error) error {
		rel, _ := filepath.Rel(d.dir, p)
		switch {
		case err != nil:
			return err
		case rel == "var/lib/gitopsd":
			return filepath.SkipDir
		case e.Type() == os.ModeSymlink:
			to, err := os.Readlink(p)
			all = append(all, rel+" -> "+to)
			return err
		case e.Type().IsRegular():
			data, err := os.ReadFile(p)
			all = append(all, fmt.Sprintf("%s %q", rel, data))
			return err
		}
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	for name := range d.systemd.links {
		all = append(all, "enabled "+name)
	}
	for name, r := range d.systemd.runs {
		switch {
		case r.active == "active":
			all = append(all, fmt.Sprintf("runs %s %q", name, r.with))
		case r.active != "inactive":
			all = append(all, r.active+" "+name)
		}
	}
	sort.Strings(all)
	return strings.Join(all, "\n")
}

func (d *device) invocations() map[string]string {
	all := map[string]string{}
	for name, r := range d.systemd.runs {
		if r.invocation != "" {
			all[name] = r.invocation
		}
	}
	return all
}

// logged gives what systemd was told since, and forgets it.
func (d *device) logged() string {
	log := slices.Clone(d.systemd.log)
	d.systemd.log = nil
	return strings.Join(log, ", ")
}

func unit(text string, enabled bool, state string) *schema.Unit {
	u := &schema.Unit{State: state}
	if text != "" {
		u.Content = &text
	}
	if enabled {
		u.Enabled = &enabled
	}
	return u
}

func body(text string) *schema.Body { return &schema.Body{Content: &text} }
func file(text string, restart, reload []string) *schema.File {
	return &schema.File{Content: &text, Restart: restart, Reload: reload}
}
