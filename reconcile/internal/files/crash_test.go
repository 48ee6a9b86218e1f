package files

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

var errCrash = errors.New("power is gone")

// crashAt lets n operations pass; from then on every one fails.
func crashAt(n int) func(string, string) error {
	return func(string, string) error {
		if n--; n < 0 {
			return errCrash
		}
		return nil
	}
}

func oldSpec() *schema.Spec {
	return &schema.Spec{
		Files: map[string]*schema.File{
			"/etc/a": file("old a", "0644"), "/etc/both": file("same in both", ""), "/etc/gone": file("old only", "0600"),
			"/opt/app/x": file("old x", "0755"), "/opt/type": file("a file in the old", ""), "/etc/usr": file("over the user's", ""),
			"/etc/secret": secret("old secret", ""), "/etc/secret-both": secret("same in both", "0640"), "/etc/told": secret("a secret in the old", ""),
		},
		Directories: map[string]*schema.Directory{"/opt/data": {Mode: "0700"}, "/opt/kept": {Mode: "0711"}},
	}
}

func newSpec() *schema.Spec {
	return &schema.Spec{
		Files: map[string]*schema.File{
			"/etc/a": file("new a", "0640"), "/etc/both": file("same in both", ""), "/etc/over": file("new over", "4755"),
			"/opt/app/x": file("old x", "0700"), "/opt/type/f": file("a folder in the new", ""), "/opt/deep/er/n": file("new n", ""),
			"/opt/data/in": file("", ""), "/etc/secret": secret("new secret", ""), "/etc/secret-both": secret("same in both", "0640"),
			"/etc/told": file("told in the new", ""),
		},
		Directories: map[string]*schema.Directory{"/opt/type": {Mode: "0750"}, "/opt/kept": {Mode: "0700"}, "/opt/user": {Mode: "0700"}},
	}
}

func base(t *testing.T) *device {
	d := newDevice(t)
	d.put("etc/a", "the user's a", 0o600)
	d.put("etc/over", "the user's over", 0o640)
	d.put("etc/usr", "the user's usr", 0o604)
	d.put("opt/user/f", "the user's f", 0o644)
	if os.Geteuid() == 0 {
		if err := os.Chown(filepath.Join(d.dir, "etc/over"), 1234, 1235); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// TestB65_B90_CrashAtEveryStep: power goes at every operation of an update.
// Whichever spec is applied next, the device ends on it byte for byte, and
// without any it is what it was before the agent came.
func TestB65_B90_CrashAtEveryStep(t *testing.T) {
	d := base(t)
	bare := d.tree()
	d.apply(oldSpec())
	onOld := d.tree()
	d.apply(newSpec())
	onNew := d.tree()
	if onOld == onNew {
		t.Fatal("the two specs are one")
	}
	same := func(t *testing.T, n int, what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("step %d, %s:\n%s\nwant\n%s", n, what, got, want)
		}
	}
	n := 0
	for done := false; !done && !t.Failed(); n++ {
		t.Run("", func(t *testing.T) {
			d := base(t)
			d.apply(oldSpec())
			d.start(crashAt(n))
			_, err := d.ctl.Apply(context.Background(), newSpec(), nil, Onward)
			if err == nil {
				done = true
			} else if !errors.Is(err, errCrash) {
				t.Fatalf("step %d: %v", n, err)
			}
			// The rollback is interrupted too, at a place that moves along.
			d.start(crashAt(n * 7 % 41))
			if _, err := d.ctl.Apply(context.Background(), oldSpec(), nil, Back); err != nil && !errors.Is(err, errCrash) {
				t.Fatalf("step %d: %v", n, err)
			}
			way := []*schema.Spec{oldSpec(), newSpec(), nil}
			if n%2 == 1 {
				way = []*schema.Spec{newSpec(), oldSpec(), nil}
			}
			for _, spec := range way {
				d.start(nil)
				d.apply(spec)
				want := map[bool]string{true: bare}[spec == nil]
				if spec != nil {
					if want = onOld; spec.Files["/etc/over"] != nil {
						want = onNew
					}
				}
				same(t, n, "after it", d.tree(), want)
			}
			left, _ := os.ReadDir(filepath.Join(d.dir, state, "original"))
			if len(left) > 0 {
				t.Errorf("step %d: copies %v stay", n, left)
			}
			for _, w := range d.warns {
				if !strings.Contains(w, errCrash.Error()) {
					t.Errorf("step %d: warning: %s", n, w)
				}
			}
		})
	}
	if n < 60 {
		t.Errorf("only %d steps: the update is too small for this test", n)
	}
}

// TestB67_FullOrReadOnlyDiskAtEveryStep: one operation fails, the device goes
// back, and when there is room again it goes on.
func TestB67_FullOrReadOnlyDiskAtEveryStep(t *testing.T) {
	d := base(t)
	d.apply(oldSpec())
	onOld := d.tree()
	d.apply(newSpec())
	onNew := d.tree()
	for _, errno := range []error{syscall.ENOSPC, syscall.EROFS} {
		hit := true
		for n := 0; hit && !t.Failed(); n++ {
			t.Run("", func(t *testing.T) {
				d := base(t)
				d.apply(oldSpec())
				left := n
				hit = false
				d.start(func(op, _ string) error {
					// Removing works on a full disk.
					if op == "remove" && errno == syscall.ENOSPC {
						return nil
					}
					if left--; left < 0 && (errno == syscall.EROFS || left == -1) {
						hit = true
						return errno
					}
					return nil
				})
				_, err := d.ctl.Apply(context.Background(), newSpec(), nil, Onward)
				if hit && errno == syscall.ENOSPC && err != nil && (class(err) != schema.ClassRetryable || !errors.Is(err, errno)) {
					t.Errorf("step %d: %v, want a retryable failure", n, err)
				}
				if errno == syscall.EROFS {
					d.start(nil)
				} else {
					left = 1 << 30
				}
				if n%2 == 0 {
					if _, err := d.ctl.Apply(context.Background(), oldSpec(), nil, Back); err != nil {
						t.Fatalf("step %d: going back: %v", n, err)
					}
					if got := d.tree(); got != onOld {
						t.Errorf("step %d: back on the old:\n%s\nwant\n%s", n, got, onOld)
					}
				}
				d.apply(newSpec())
				if got := d.tree(); got != onNew {
					t.Errorf("step %d: on the new:\n%s\nwant\n%s", n, got, onNew)
				}
			})
		}
	}
}

// A record that could not be written whole is written again, also when memory
// has come back to what it was before: the next start must not know more.
func TestRecordOnDiskIsTheOneInMemory(t *testing.T) {
	hit := true
	for n := 1; hit && !t.Failed(); n += 3 {
		d := base(t)
		d.apply(oldSpec())
		left := n
		hit = false
		d.start(func(string, string) error {
			if left--; left == 0 {
				hit = true
				return syscall.EIO
			}
			return nil
		})
		_, _ = d.ctl.Apply(context.Background(), newSpec(), nil, Onward)
		left = 0 // over
		d.apply(oldSpec())
		memory := d.ctl.managed
		for _, p := range []string{d.ctl.recordPath(), d.ctl.secondPath()} {
			if disk, err := d.ctl.read(p); err != nil || !maps.EqualFunc(memory, disk, sameEntry) {
				t.Errorf("operation %d failed: %s has %d entries, memory %d, %v", n, p, len(disk), len(memory), err)
			}
		}
	}
}

// A copy of what was there before, and a file, that could not be synced are
// written again.
func TestCopyThatCouldNotBeSynced(t *testing.T) {
	d := newDevice(t)
	d.put("etc/a", "the user's", 0o600)
	bad, placed := true, map[string]int{}
	d.start(func(op, p string) error {
		if op == "rename" {
			placed[filepath.Dir(p)]++
		}
		if bad && op == "syncdir" && (filepath.Base(p) == "original" || p == "/etc") {
			return syscall.EIO
		}
		return nil
	})
	spec := &schema.Spec{Files: map[string]*schema.File{"/etc/a": file("ours", "0600")}}
	if _, err := d.ctl.Apply(context.Background(), spec, nil, Onward); !errors.Is(err, syscall.EIO) || placed[state+"/original"] != 1 {
		t.Fatalf("%v, %v", err, placed)
	}
	bad = false
	d.apply(spec)
	if placed[state+"/original"] != 2 || placed["/etc"] != 1 {
		t.Errorf("written: %v", placed)
	}
	spec.Files["/etc/a"] = file("ours, newer", "0600")
	bad = true
	if _, err := d.ctl.Apply(context.Background(), spec, nil, Onward); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	bad = false
	d.apply(spec)
	if placed["/etc"] != 3 {
		t.Errorf("written: %v", placed)
	}
	d.apply(spec)
	if placed["/etc"] != 3 {
		t.Errorf("written once more: %v", placed)
	}
}

func TestB65_DamagedRecord(t *testing.T) {
	for name, damage := range map[string]func(p string) error{
		"empty":   func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"half":    func(p string) error { return os.Truncate(p, 60) },
		"no JSON": func(p string) error { return os.WriteFile(p, []byte("\x00\x00"), 0o600) },
		"null":    func(p string) error { return os.WriteFile(p, []byte("null"), 0o600) },
		"newer":   func(p string) error { return os.WriteFile(p, []byte(`{"format":2,"entries":{}}`), 0o600) },
		"leads out": func(p string) error {
			return os.WriteFile(p, []byte(`{"format":1,"entries":{"/../x":{"spec":"/x"}}}`), 0o600)
		},
		"gone": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			d := base(t)
			bare := d.tree()
			d.apply(oldSpec())
			onOld := d.tree()
			record := filepath.Join(d.dir, state, "managed.json")
			second := filepath.Join(d.dir, state, "managed.copy.json")
			if err := damage(record); err != nil {
				t.Fatal(err)
			}
			d.start(nil)
			if name != "gone" {
				if found, _ := filepath.Glob(record + ".*Z"); len(found) != 1 {
					t.Errorf("set aside: %v, warnings %v", found, d.warns)
				}
			}
			d.apply(oldSpec())
			if d.tree() != onOld {
				t.Errorf("from the second record:\n%s", d.tree())
			}
			if _, err := os.Stat(record); err != nil {
				t.Errorf("the record is not written again: %v", err)
			}
			d.apply(nil)
			if d.tree() != bare {
				t.Errorf("dropped after the second record was used:\n%s\nwant\n%s", d.tree(), bare)
			}

			// Both are lost: nothing of the user's goes, also when dropped.
			d.apply(oldSpec())
			for _, p := range []string{record, second} {
				if err := damage(p); err != nil {
					t.Fatal(err)
				}
			}
			d.start(nil)
			d.apply(oldSpec())
			if d.tree() != onOld {
				t.Errorf("with both lost:\n%s", d.tree())
			}
			d.apply(nil)
			if d.content("opt/user/f") != "the user's f" || d.content("etc/over") != "the user's over" {
				t.Errorf("the user's files:\n%s", d.tree())
			}
			if name != "gone" {
				kept, _ := filepath.Glob(filepath.Join(d.dir, state, "original.*", "*"))
				if len(kept) != 2 {
					t.Errorf("the copies of before are not kept for a person: %v", kept)
				}
			}
		})
	}
}

func TestB64_StateRemovedWhileRunning(t *testing.T) {
	d := base(t)
	d.apply(oldSpec())
	onOld := d.tree()
	if err := os.RemoveAll(filepath.Join(d.dir, state)); err != nil {
		t.Fatal(err)
	}
	d.apply(oldSpec())
	if d.tree() != onOld {
		t.Errorf("not as wanted:\n%s", d.tree())
	}
	d.start(nil)
	d.apply(newSpec())
	d.apply(nil)
	if d.content("etc/gone") != "missing" {
		t.Error("a file of the old spec stays: the record was not written again")
	}
	// The copy is lost; deleting the file would lose even more.
	if d.content("etc/usr") != "over the user's" || !strings.Contains(strings.Join(d.warns, "\n"), "/etc/usr") {
		t.Errorf("etc/usr is %q, warnings %v", d.content("etc/usr"), d.warns)
	}
}

func TestDropped_WhatAPersonPutThereSince(t *testing.T) {
	d := base(t)
	d.apply(oldSpec())
	for _, p := range []string{"etc/usr", "etc/gone"} {
		if err := os.Remove(filepath.Join(d.dir, p)); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(d.dir, p), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.put("etc/gone/mine", "mine", 0o644)
	d.apply(nil)
	if d.content("etc/gone/mine") != "mine" || d.mode("etc/usr") != "0755" {
		t.Errorf("\n%s", d.tree())
	}
	kept, _ := filepath.Glob(filepath.Join(d.dir, state, "set-aside", "*"))
	if len(kept) != 1 {
		t.Fatalf("kept: %v, warnings %v", kept, d.warns)
	}
	if data, _ := os.ReadFile(kept[0]); string(data) != "the user's usr" {
		t.Errorf("kept %q", data)
	}
}
