package disk

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzResolve: whatever a path and a symlink on it say, the result is a clean
// path of the device, and nothing is written outside the root.
func FuzzResolve(f *testing.F) {
	for _, seed := range [][2]string{
		{"/link/x", "../../../etc"}, {"/link/../link/x", "/"}, {"/link", "link"}, {"//link//..//", "a/./b/../../.."}, {"/a\x00", "x"},
		{"/link/..", "dir/dir"}, {"relative", ""}, {"/dir/link/y", "../../.."}, {"/link/\xff", "\xff"}, {"/", "."},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, p, target string) {
		outer := t.TempDir()
		dir := filepath.Join(outer, "root")
		if err := os.MkdirAll(filepath.Join(dir, "dir/dir"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{"link", "dir/link"} {
			_ = os.Symlink(target, filepath.Join(dir, at)) // not every text can be a target
		}
		r, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Close() }()
		got, err := r.Resolve(p)
		if err == nil && (path.Clean(got) != got || !strings.HasPrefix(got, "/")) {
			t.Errorf("Resolve(%q) with a link to %q = %q", p, target, got)
		}
		if err == nil { // the short way leads where the long one does
			for _, last := range []bool{false, true} {
				short, shortErr := r.walk(p, last)
				long, longErr := r.follow(path.Clean(p), last)
				if short != long || (shortErr == nil) != (longErr == nil) {
					t.Errorf("%q with a link to %q, last %v: %q (%v), element by element %q (%v)", p, target, last, short, shortErr, long, longErr)
				}
			}
		}
		if len(got) < 200 {
			_, _ = r.MkdirAll(path.Dir(path.Clean("/"+got)), own) // it may be refused, it may not lead out
			_ = r.WriteFile(p, []byte("x"), own)
			_ = r.Sweep(p)
		}
		if list, err := os.ReadDir(outer); err != nil || len(list) != 1 {
			t.Errorf("path %q with a link to %q led out: %v %v", p, target, list, err)
		}
	})
}

// A parent is exchanged for a symlink that leads out, again and again, while
// files are written below it.
func TestB95_ParentExchangedWhileWriting(t *testing.T) {
	r, dir := open(t, Options{})
	outside := t.TempDir()
	parent, aside, link := filepath.Join(dir, "p"), filepath.Join(dir, "aside"), filepath.Join(dir, "link")
	if err := os.Mkdir(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../"+filepath.Base(outside), link); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, move := range [][2]string{{parent, aside}, {link, parent}, {parent, link}, {aside, parent}} {
				_ = os.Rename(move[0], move[1])
			}
		}
	}()
	written := 0
	for range 100 {
		if r.WriteFile("/p/f", []byte("x"), own) == nil {
			written++
		}
		_, _ = r.MkdirAll("/p/d", own)
		_ = r.SetMeta("/p/f", Meta{Mode: 0o600, UID: -1, GID: -1})
		_ = r.Remove("/p/d")
	}
	close(stop)
	<-stopped
	if list, err := os.ReadDir(outside); err != nil || len(list) != 0 {
		t.Errorf("outside there is %v, %v", list, err)
	}
	if written == 0 {
		t.Error("nothing was ever written: the test shows nothing")
	}
}
