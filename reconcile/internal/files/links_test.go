package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// sh changes the device as a hook or a person would.
func (d *device) sh(t *testing.T, steps ...func() error) {
	t.Helper()
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
}

func (d *device) host(p string) string { return filepath.Join(d.dir, p) }

func (d *device) move(from, to string) func() error {
	return func() error { return os.Rename(d.host(from), d.host(to)) }
}

func (d *device) rm(p string) func() error { return func() error { return os.RemoveAll(d.host(p)) } }

func (d *device) link(to, at string) func() error {
	return func() error { return os.Symlink(to, d.host(at)) }
}

func (d *device) isLink(p string) bool {
	info, err := os.Lstat(d.host(p))
	return err == nil && isLink(info)
}

// On the way back a link in the place of a folder that we had made goes, and
// what it leads to stays; where that would put somebody's things out of sight,
// the link stays and is told.
func TestLinkInPlaceOfAFolderOnTheWayBack(t *testing.T) {
	const inBoth, onlyNew, parent = "opt/kept", "opt/type", "opt/app"
	for name, test := range map[string]struct {
		at    string
		make  func(d *device) []func() error
		stays string // words of the error; "" = it is all as before
	}{
		"to nothing": {at: inBoth, make: func(d *device) []func() error {
			return []func() error{d.rm(inBoth), d.link("/nowhere", inBoth)}
		}},
		"to itself": {at: inBoth, make: func(d *device) []func() error {
			return []func() error{d.rm(inBoth), d.link("kept", inBoth)}
		}},
		"to a file": {at: inBoth, make: func(d *device) []func() error {
			return []func() error{d.rm(inBoth), d.link("/etc/usr", inBoth)}
		}},
		"out of the root": {at: inBoth, make: func(d *device) []func() error {
			return []func() error{d.rm(inBoth), d.link(t.TempDir(), inBoth)}
		}},
		"to where what is ours was moved": {at: parent, make: func(d *device) []func() error {
			return []func() error{d.move(parent, "srv"), d.link("/srv", parent)}
		}},
		"to a folder of ours": {at: inBoth, make: func(d *device) []func() error {
			return []func() error{d.rm(inBoth), d.link("app", inBoth)}
		}},
		"in place of one that goes": {at: onlyNew, make: func(d *device) []func() error {
			return []func() error{d.rm(onlyNew), d.link("/nowhere", onlyNew)}
		}},
		"to where a user's file is": {at: inBoth, stays: "symlink", make: func(d *device) []func() error {
			d.put("opt/kept/data", "the user's data", 0o600)
			return []func() error{d.move(inBoth, "srv"), d.link("/srv", inBoth)}
		}},
		"to the user's folder": {at: inBoth, stays: "symlink", make: func(d *device) []func() error {
			return []func() error{d.rm(inBoth), d.link("user", inBoth)}
		}},
		"to the agent's own": {at: inBoth, stays: "symlink", make: func(d *device) []func() error {
			return []func() error{d.rm(inBoth), d.link(state, inBoth)}
		}},
		"to everything": {at: inBoth, stays: "symlink", make: func(d *device) []func() error {
			return []func() error{d.rm(inBoth), d.link("/", inBoth)}
		}},
		"in place of the user's folder": {at: "opt/user", make: func(d *device) []func() error {
			return []func() error{d.move("opt/user", "srv"), d.link("/srv", "opt/user")}
		}, stays: "-"},
	} {
		t.Run(name, func(t *testing.T) {
			d := base(t)
			d.apply(oldSpec())
			before := d.tree()
			d.apply(newSpec())
			d.sh(t, test.make(d)...)
			// An update and a repair tell it and leave it alone.
			for _, way := range []Way{Onward, Repair} {
				if test.at == parent || test.at == onlyNew {
					continue // what is below is had where the link leads
				}
				if _, err := d.ctl.Apply(context.Background(), newSpec(), nil, way); class(err) != schema.ClassPermanent || !d.isLink(test.at) {
					t.Errorf("way %d: %v, link %t", way, err, d.isLink(test.at))
				}
			}
			_, err := d.ctl.Apply(context.Background(), oldSpec(), nil, Back)
			switch {
			case test.stays == "":
				if err != nil {
					t.Fatalf("%v; warnings %v", err, d.warns)
				}
				d.sh(t, d.rm("srv"))
				if after := d.tree(); after != before {
					t.Errorf("after\n%s\nbefore\n%s", after, before)
				}
			case !d.isLink(test.at):
				t.Errorf("the link is gone; warnings %v", d.warns)
			case test.stays != "-" && (class(err) != schema.ClassPermanent || !strings.Contains(err.Error(), test.stays)):
				t.Errorf("%v", err)
			}
		})
	}
}

// A link that a hook has put there is gone after the rollback, wherever power
// goes in it.
func TestLinkInPlaceOfAFolderAndCrashes(t *testing.T) {
	spoilt := func(t *testing.T) (*device, string) {
		d := base(t)
		d.apply(oldSpec())
		before := d.tree()
		d.apply(newSpec())
		d.sh(t, d.rm("opt/app"), d.link("/etc/nowhere", "opt/app"), d.rm("opt/kept"), d.link("user/f", "opt/kept"), d.rm("opt/deep"), d.link("deep", "opt/deep"))
		return d, before
	}
	for n := 0; ; n += 2 {
		d, before := spoilt(t)
		d.start(crashAt(n))
		_, err := d.ctl.Apply(context.Background(), oldSpec(), nil, Back)
		if err != nil && !errors.Is(err, errCrash) {
			t.Fatalf("step %d: %v", n, err)
		}
		d.start(nil)
		if _, err := d.ctl.Apply(context.Background(), oldSpec(), nil, Back); err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		if after := d.tree(); after != before {
			t.Fatalf("step %d: after\n%s\nbefore\n%s", n, after, before)
		}
		if err == nil {
			return
		}
	}
}
