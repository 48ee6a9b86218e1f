package units

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// A unit that an application makes has drop-ins before it is there, restarts
// with them, and stays when only they are dropped.
func TestUnitMadeElsewhere(t *testing.T) {
	d := newDevice(t)
	d.made = map[string]bool{"web.service": true}
	with := func(dropIn, conf string) *schema.Spec {
		return &schema.Spec{
			Units: map[string]*schema.Unit{"web.service": {DropIns: map[string]*schema.Body{"a": body(dropIn)}}},
			Files: map[string]*schema.File{"/etc/web.conf": file(conf, []string{"web.service"}, nil)},
		}
	}
	root, _, c := d.open()
	defer root.Close()
	first := whole(with("# one\n", "a"))
	if err := c.Check(t.Context(), first, Plan{Ahead: []string{dropInPath("web.service", "a")}}); err != nil {
		t.Fatal(err)
	}
	d.anew = map[string]bool{"web.service": true} // the application is new
	d.must(first)
	if log := d.logged(); log != "reload" || len(d.warned) > 0 {
		t.Errorf("a unit that somebody else is about to start: %q, warned %q", log, d.warned)
	}
	d.put("usr/lib/systemd/system/web.service", "[Service]\nExecStart=/x\nEnvironment=CONFIG=/etc/web.conf\n")
	if err := d.systemd.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.systemd.Do(t.Context(), Job{Start, "web.service"}); err != nil {
		t.Fatal(err)
	}
	d.logged()
	d.must(with("# two\n", "b"))
	if log := d.logged(); log != "reload" {
		t.Errorf("a unit that is started anew after this has %q done to it", log)
	}
	d.anew = nil
	for _, c := range []struct {
		what string
		spec *schema.Spec
		want string
	}{
		{"another drop-in", with("# three\n", "b"), "reload, try-restart web.service"},
		{"another file", with("# three\n", "c"), "try-restart web.service"},
		{"neither", with("# three\n", "c"), ""},
		{"no drop-in", &schema.Spec{}, "reload, try-restart web.service"},
	} {
		d.must(c.spec)
		if log := d.logged(); log != c.want {
			t.Errorf("%s: %q, want %q", c.what, log, c.want)
		}
	}
	if is := d.is(); !strings.Contains(is, "runs web.service") || strings.Contains(is, "web.service.d") {
		t.Errorf("the device is\n%s", is)
	}
}

// A unit that an application made until now, and that a spec has with content of
// its own, is the spec's alone: it goes when it is dropped, and gives way to the
// application when that comes back.
func TestUnitInPlaceOfAnApplications(t *testing.T) {
	const generated = "usr/lib/systemd/system/web.service"
	for name, earlier := range map[string]*schema.Spec{
		"new": {}, "with a drop-in": {Units: map[string]*schema.Unit{"web.service": {DropIns: map[string]*schema.Body{"a": body("# one\n")}}}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDevice(t)
			start := func() {
				d.put(generated, "[Service]\nExecStart=/generated\n")
				if err := errors.Join(d.systemd.Reload(t.Context()), d.systemd.Do(t.Context(), Job{Start, "web.service"})); err != nil {
					t.Fatal(err)
				}
				d.made, d.had = map[string]bool{"web.service": true}, map[string]bool{"web.service": true}
			}
			become := func() {
				d.made = nil
				d.must(&schema.Spec{Units: map[string]*schema.Unit{"web.service": unit(fmt.Sprintf(service, "own"), true, "started")}})
				if err := os.Remove(filepath.Join(d.dir, generated)); err != nil {
					t.Fatal(err)
				}
				d.had = nil
				if is := d.is(); !strings.Contains(is, "runs web.service") || !strings.Contains(is, "enabled web.service") {
					t.Fatalf("the device is\n%s", is)
				}
			}
			start()
			d.must(earlier)
			become()
			d.must(&schema.Spec{})
			if is := d.is(); strings.Contains(is, "web.service") || len(d.warned) > 0 {
				t.Errorf("dropped, and the device is\n%s\nwarned %q", is, d.warned)
			}
			start()
			become()
			d.put(generated, "[Service]\nExecStart=/generated\n") // the application comes back
			d.made = map[string]bool{"web.service": true}
			d.must(&schema.Spec{})
			if is := d.is(); strings.Contains(is, "runs") || strings.Contains(is, "enabled") {
				t.Errorf("the application comes back, and the device is\n%s", is)
			}
		})
	}
}

// The way back from such a spec leaves an application alone that it did not stop.
func TestApplicationThatStayed(t *testing.T) {
	d := newDevice(t)
	d.put("usr/lib/systemd/system/web.service", "[Service]\nExecStart=/generated\n")
	if err := d.systemd.Do(t.Context(), Job{Start, "web.service"}); err != nil {
		t.Fatal(err)
	}
	d.had = map[string]bool{"web.service": true}
	root, fc, c := d.open()
	defer root.Close()
	next := whole(&schema.Spec{Units: map[string]*schema.Unit{"web.service": unit(fmt.Sprintf(service, "own"), true, "started")}})
	if err := c.Prepare(t.Context(), next, fc.Ahead(next, nil), false); err != nil {
		t.Fatal(err)
	}
	d.made = d.had
	d.logged()
	d.must(&schema.Spec{})
	if log := d.logged(); strings.Contains(log, "web.service") {
		t.Errorf("it had %q done to it", log)
	}
}
