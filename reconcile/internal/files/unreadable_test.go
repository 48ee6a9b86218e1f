package files

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// nobody is the user that has nothing.
const nobody = 65534

// unprivileged runs a test as another user than root.
func unprivileged(t *testing.T, test func()) {
	t.Helper()
	if os.Geteuid() == 0 {
		for _, set := range []func(int) error{syscall.Setegid, syscall.Seteuid} {
			if err := set(nobody); err != nil {
				t.Fatal(err)
			}
		}
		defer func() {
			if err := syscall.Seteuid(0); err != nil {
				panic(err)
			}
			if err := syscall.Setegid(0); err != nil {
				panic(err)
			}
		}()
	}
	test()
}

func opaque() *schema.Spec {
	return &schema.Spec{
		Files:       map[string]*schema.File{"/opt/f": file("a", "0200")},
		Directories: map[string]*schema.Directory{"/opt/d": {Mode: "0300"}},
	}
}

// What an agent without root could not read again it could never compare nor take
// back.
func TestModesThatKeepTheAgentOut(t *testing.T) {
	unprivileged(t, func() {
		check := func(spec *schema.Spec) error { return newDevice(t).ctl.Check(spec, nil) }
		for mode, ok := range map[string]bool{"0400": true, "0600": true, "0200": false, "0077": false} {
			err := check(&schema.Spec{Files: map[string]*schema.File{"/opt/f": file("a", mode)}})
			if (err == nil) != ok || err != nil && (class(err) != schema.ClassPermanent || !strings.Contains(err.Error(), "/opt/f: mode "+mode)) {
				t.Errorf("file %s: %v", mode, err)
			}
		}
		for mode, ok := range map[string]bool{"0500": true, "0700": true, "0300": false, "0677": false} {
			err := check(&schema.Spec{Directories: map[string]*schema.Directory{"/opt/d": {Mode: mode}}})
			if (err == nil) != ok || err != nil && (class(err) != schema.ClassPermanent || !strings.Contains(err.Error(), "/opt/d: mode "+mode)) {
				t.Errorf("folder %s: %v", mode, err)
			}
		}
	})
}

func TestModesThatKeepRootOutOfNothing(t *testing.T) {
	if err := newDevice(t).ctl.Check(opaque(), nil); err != nil && os.Geteuid() == 0 {
		t.Error(err)
	}
}

// Where they are there already they keep it neither from another spec nor from
// the way back.
func TestModesThatKeptTheAgentOut(t *testing.T) {
	unprivileged(t, func() {
		d := newDevice(t)
		d.put("opt/user", "the user's", 0o644)
		bare := d.tree()
		d.apply(opaque())
		if drift, err := d.ctl.Drift(opaque(), nil); len(drift) > 0 || err != nil {
			t.Errorf("drift %v, %v", drift, err)
		}
		if changed := d.apply(opaque()); len(changed) > 0 {
			t.Errorf("written again: %v", changed)
		}
		open := &schema.Spec{Files: map[string]*schema.File{"/opt/f": file("b", "0644")}}
		d.apply(open)
		if d.content("opt/f") != "b" || d.mode("opt/d") != "missing" {
			t.Errorf("open:\n%s", d.tree())
		}
		d.start(nil)
		if _, err := d.ctl.Apply(context.Background(), opaque(), nil, Back); err != nil || d.mode("opt/f") != "0200" || d.mode("opt/d") != "0300" {
			t.Errorf("back: %v, %s %s", err, d.mode("opt/f"), d.mode("opt/d"))
		}
		d.sh(t, func() error { return os.Chmod(d.host("opt/f"), 0o644) })
		if d.content("opt/f") != "a" {
			t.Errorf("back: %q", d.content("opt/f"))
		}
		d.put("opt/d/theirs", "theirs", 0o644)
		d.apply(open)
		if d.content("opt/d/theirs") != "theirs" {
			t.Errorf("with a file of somebody's:\n%s", d.tree())
		}
		d.sh(t, d.rm("opt/d"))
		d.apply(nil)
		if got := d.tree(); got != bare {
			t.Errorf("dropped:\n%s\nbefore\n%s", got, bare)
		}
	})
}

// Power goes at every step of taking them back.
func TestModesThatKeptTheAgentOutAndCrashes(t *testing.T) {
	unprivileged(t, func() {
		for n := 0; ; n++ {
			d := newDevice(t)
			d.put("opt/user", "the user's", 0o644)
			bare := d.tree()
			d.apply(opaque())
			d.start(crashAt(n))
			_, err := d.ctl.Apply(context.Background(), nil, nil, Back)
			d.start(nil)
			d.apply(nil)
			if got := d.tree(); got != bare {
				t.Fatalf("step %d:\n%s\nbefore\n%s", n, got, bare)
			}
			if err == nil {
				return
			}
		}
	})
}
