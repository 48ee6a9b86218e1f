package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// spoil puts a folder of somebody's, an empty one and a pipe in the place of
// files.
func (d *device) spoil(folder, empty, pipe string) {
	d.t.Helper()
	d.sh(d.t, d.rm(folder), d.rm(empty), d.rm(pipe), func() error { return os.Mkdir(d.host(empty), 0o700) }, func() error { return syscall.Mkfifo(d.host(pipe), 0o600) })
	d.put(folder+"/in/theirs", "theirs", 0o640)
}

// asides are names of what was set aside, anywhere, without their marks; the
// folder must be whole.
func (d *device) asides(folder string) string {
	d.t.Helper()
	var names []string
	for _, pattern := range []string{state + "/set-aside/*.unreadable-*", "etc/*.unreadable-*", "opt/app/*.unreadable-*"} {
		found, _ := filepath.Glob(d.host(pattern))
		for _, p := range found {
			name, _, _ := strings.Cut(filepath.Base(p), ".unreadable-")
			names = append(names, name)
			if data, err := os.ReadFile(p + "/in/theirs"); name == filepath.Base(folder) && string(data) != "theirs" {
				d.t.Errorf("%s: %q, %v", p, data, err)
			}
		}
	}
	return strings.Join(names, " ")
}

// What a hook has put in the place of files is out of the way after the
// rollback, wherever power goes in it, and nothing of it is lost.
func TestSomethingElseInPlaceOfFilesAndCrashes(t *testing.T) {
	for n := 0; ; n += 2 {
		d := base(t)
		d.apply(oldSpec())
		before := d.tree()
		d.apply(newSpec())
		d.spoil("etc/gone", "etc/a", "etc/usr") // dropped by the new, in both, and the user's before
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
		if got := d.asides("etc/gone"); got != "gone usr" {
			t.Fatalf("step %d: set aside: %q", n, got)
		}
		if err == nil {
			return
		}
	}
}

// So is what was there before the first release back.
func TestSomethingElseInPlaceOfAnOriginalAndCrashes(t *testing.T) {
	for n := 0; ; n++ {
		d := base(t)
		bare := d.tree()
		d.apply(oldSpec())
		d.sh(t, d.rm("etc/usr"))
		d.put("etc/usr/in/theirs", "theirs", 0o640)
		d.start(crashAt(n))
		_, err := d.ctl.Apply(context.Background(), nil, nil, Back)
		if err != nil && !errors.Is(err, errCrash) {
			t.Fatalf("step %d: %v", n, err)
		}
		d.start(nil)
		if _, err := d.ctl.Apply(context.Background(), nil, nil, Back); err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		if after := d.tree(); after != bare || d.asides("etc/usr") != "usr" {
			t.Fatalf("step %d: set aside %q, after\n%s\nbare\n%s", n, d.asides("etc/usr"), after, bare)
		}
		if err == nil {
			return
		}
	}
}

// Behind a mount, or where its owner is another, it stays in its own folder.
func TestSomethingElseThatCannotBeMovedFar(t *testing.T) {
	for _, errno := range []error{syscall.EXDEV, syscall.EACCES} {
		d := base(t)
		d.apply(oldSpec())
		d.spoil("etc/gone", "etc/a", "etc/both")
		d.start(func(op, p string) error {
			if op == "rename" && strings.HasPrefix(p, state+"/set-aside/") {
				return errno
			}
			return nil
		})
		d.apply(oldSpec())
		if got := d.asides("etc/gone"); got != "both gone" || d.content("etc/gone") != "old only" {
			t.Errorf("%v: set aside: %q\n%s", errno, got, d.tree())
		}
	}
}

// A mount point can be neither moved nor removed; what is wrong is told, and the
// rest is done.
func TestSomethingElseThatCannotBeMoved(t *testing.T) {
	d := base(t)
	d.apply(oldSpec())
	d.spoil("etc/gone", "etc/a", "etc/both")
	d.start(func(op, p string) error {
		if (op == "remove" && p == "/etc/a") || (op == "rename" && strings.Contains(p, "/gone.")) {
			return syscall.EBUSY
		}
		return nil
	})
	_, err := d.ctl.Apply(context.Background(), oldSpec(), nil, Back)
	if class(err) != schema.ClassRetryable || !strings.Contains(err.Error(), "/etc/a") || !strings.Contains(err.Error(), "/etc/gone") {
		t.Errorf("%v", err)
	}
	if d.content("etc/gone/in/theirs") != "theirs" || d.content("etc/both") != "same in both" {
		t.Errorf("\n%s", d.tree())
	}
}

func TestSomethingElseWithALongName(t *testing.T) {
	d := newDevice(t)
	long := "/etc/" + strings.Repeat("é", 127)
	spec := &schema.Spec{Files: map[string]*schema.File{long: file("x", "")}}
	d.apply(spec)
	d.sh(t, d.rm(long))
	d.put(long+"/in/theirs", "theirs", 0o640)
	d.apply(spec)
	if d.content(long) != "x" || d.asides(long) != strings.Repeat("é", 100) {
		t.Errorf("set aside %q\n%s", d.asides(long), d.tree())
	}
}

// A program that makes it again and again does not fill the disk.
func TestSomethingElseAgainAndAgain(t *testing.T) {
	d := newDevice(t)
	spec := &schema.Spec{Files: map[string]*schema.File{"/etc/f": file("x", "")}}
	d.apply(spec)
	spoil := func() {
		d.sh(t, d.rm("etc/f"))
		d.put("etc/f/in/theirs", "theirs", 0o640)
	}
	for range mostAsides {
		spoil()
		if _, err := d.ctl.Apply(context.Background(), spec, nil, Repair); err != nil {
			t.Fatal(err)
		}
	}
	spoil()
	if _, err := d.ctl.Apply(context.Background(), spec, nil, Repair); class(err) != schema.ClassPermanent || !strings.Contains(err.Error(), "20 times") {
		t.Errorf("%v", err)
	}
	if got := strings.Count(d.asides("etc/f"), "f"); got != mostAsides || d.content("etc/f/in/theirs") != "theirs" {
		t.Errorf("set aside %d times\n%s", got, d.tree())
	}
	if _, err := d.ctl.Apply(context.Background(), spec, nil, Back); err != nil || d.content("etc/f") != "x" {
		t.Errorf("a way back must end: %v\n%s", err, d.tree())
	}
}
