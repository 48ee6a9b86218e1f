package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func open(t *testing.T, o Options) (*Root, string) {
	t.Helper()
	dir := t.TempDir()
	r, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r, dir
}

var own = Meta{Mode: 0o644, UID: -1, GID: -1}

func TestWriteFile_ModesWhateverTheUmask(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	r, dir := open(t, Options{})
	for _, mode := range []fs.FileMode{0, 0o644, 0o666, 0o4755 &^ 0o4000, 0o755 | fs.ModeSetuid, 0o755 | fs.ModeSetgid, 0o777 | fs.ModeSticky} {
		if err := r.WriteFile("/f", []byte("x"), Meta{Mode: mode, UID: -1, GID: -1}); err != nil {
			t.Fatalf("mode %v: %v", mode, err)
		}
		info, err := os.Stat(filepath.Join(dir, "f"))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode(); got != mode {
			t.Errorf("mode: got %v, want %v", got, mode)
		}
	}
	made, err := r.MkdirAll("/a/b/c", Meta{Mode: 0o777 | fs.ModeSticky, UID: -1, GID: -1})
	if err != nil || strings.Join(made, " ") != "/a /a/b /a/b/c" {
		t.Fatalf("made %v, %v", made, err)
	}
	info, _ := os.Stat(filepath.Join(dir, "a/b"))
	if info.Mode() != fs.ModeDir|fs.ModeSticky|0o777 {
		t.Errorf("folder mode %v", info.Mode())
	}
	if made, err = r.MkdirAll("/a/b", own); err != nil || made != nil {
		t.Errorf("again: made %v, %v", made, err)
	}
}

func TestB93_SymlinksAreReadAsTheDeviceWouldAndNeverWrittenThrough(t *testing.T) {
	r, dir := open(t, Options{})
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(dir, "usr/lib"), 0o755))
	must(os.Symlink("usr/lib", filepath.Join(dir, "lib")))
	must(os.Symlink("/usr/lib", filepath.Join(dir, "abs")))
	must(os.Symlink("../../../../../..", filepath.Join(dir, "up")))
	must(os.Symlink(outside, filepath.Join(dir, "out")))
	must(os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "leak")))
	must(os.Symlink("loop2", filepath.Join(dir, "loop1")))
	must(os.Symlink("loop1", filepath.Join(dir, "loop2")))
	must(os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	must(os.Symlink("usr/real", filepath.Join(dir, "link")))
	must(os.WriteFile(filepath.Join(dir, "usr/real"), []byte("real"), 0o644))

	for path, want := range map[string]string{
		"/lib/x": "/usr/lib/x", "/abs/x": "/usr/lib/x", "/up/up/x": "/x", "/up/lib/x": "/usr/lib/x",
		"/../../x": "/x", "/lib/../x": "/x", "/nothing/at/all": "/nothing/at/all", "/link": "/link", "/": "/",
		"/dangling/x": "/nowhere/x", "/out/secret": filepath.Join(outside, "secret"),
	} {
		got, err := r.Resolve(path)
		if err != nil || got != want {
			t.Errorf("Resolve(%q) = %q, %v; want %q", path, got, err, want)
		}
	}
	can := r.straight("/usr", false) // not every kernel can tell
	for _, path := range []string{"/", "/usr", "/usr/real", "/usr/none", "/usr/none/x", "/usr/real/x", "/lib", "/lib/x", "/link", "/dangling", "/loop1"} {
		for _, last := range []bool{false, true} {
			straight := r.straight(path, last)
			long, err := r.follow(path, last)
			if straight && (err != nil || long != path) {
				t.Errorf("%s, last %v: taken for straight, and leads to %q (%v)", path, last, long, err)
			}
			if !straight && can && err == nil && long == path && path != "/usr/none/x" {
				t.Errorf("%s, last %v: not taken for straight", path, last)
			}
		}
	}
	for _, path := range []string{"/loop1/x", "relative", "", "/usr/real/x", "/a\x00b"} {
		if got, err := r.Resolve(path); err == nil {
			t.Errorf("Resolve(%q) = %q, want an error", path, got)
		}
	}
	for _, path := range []string{"/link", "/dangling", "/loop1", "/leak"} {
		if err := r.WriteFile(path, []byte("new"), own); !errors.Is(err, ErrSymlink) {
			t.Errorf("WriteFile(%s): %v, want %v", path, err, ErrSymlink)
		}
		if info, err := r.Lstat(path); err != nil || info.Mode().Type() != fs.ModeSymlink {
			t.Errorf("%s: the link is lost", path)
		}
	}
	if data, err := r.ReadFile("/link", 0); err != nil || string(data) != "real" {
		t.Errorf("the file behind the link: %q, %v", data, err)
	}
	// What a link means outside is looked for inside, and is not there.
	if data, err := r.ReadFile("/leak", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read through a link that leads out: %q, %v", data, err)
	}
	if err := r.WriteFile("/out/secret", []byte("new"), own); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("write through a link that leads out: %v", err)
	}
	if data, _ := os.ReadFile(filepath.Join(outside, "secret")); string(data) != "secret" {
		t.Errorf("the file outside is now %q", data)
	}
	must(r.WriteFile("/abs/x", []byte("new"), own))
	if data, _ := os.ReadFile(filepath.Join(dir, "usr/lib/x")); string(data) != "new" {
		t.Errorf("written through a folder's link: %q", data)
	}
}

func TestReadFile_NeverBlocks(t *testing.T) {
	r, dir := open(t, Options{})
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := r.ReadFile("/pipe", 10); !errors.Is(err, ErrNotRegular) {
		t.Errorf("pipe: %v", err)
	}
	if err := r.WriteFile("/pipe", nil, own); !errors.Is(err, ErrNotRegular) {
		t.Errorf("write over a pipe: %v", err)
	}
	if err := r.WriteFile("/f", []byte("12345"), own); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadFile("/f", 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("limit: %v", err)
	}
	if data, err := r.ReadFile("/f", 5); err != nil || string(data) != "12345" {
		t.Errorf("at the limit: %q %v", data, err)
	}
}

var errCrash = errors.New("power is gone")

// TestB65_CrashAtEveryStep: at whichever operation power goes, the file is the
// old or the new one, and what is left beside it is swept.
func TestB65_CrashAtEveryStep(t *testing.T) {
	for n := 0; ; n++ {
		count, dead := 0, false
		r, dir := open(t, Options{Step: func(string, string) error {
			if dead {
				return errCrash
			}
			count++
			if count-1 == n {
				dead = true
				return errCrash
			}
			return nil
		}})
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := r.WriteFile("/f", []byte("new"), Meta{Mode: 0o644, UID: -1, GID: -1})
		if err == nil {
			_, err = r.MkdirAll("/d/e", Meta{Mode: 0o755, UID: -1, GID: -1})
		}
		if err == nil {
			if n < 10 {
				t.Errorf("only %d steps were asked for", n)
			}
			return
		}
		if !errors.Is(err, errCrash) {
			t.Fatalf("step %d: %v", n, err)
		}
		info, _ := os.Stat(filepath.Join(dir, "f"))
		data, _ := os.ReadFile(filepath.Join(dir, "f"))
		if s := string(data); !(s == "old" && info.Mode() == 0o600) && !(s == "new" && info.Mode() == 0o644) {
			t.Errorf("step %d: %q with mode %v", n, data, info.Mode())
		}
		r2, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r2.Close() }()
		for _, d := range []string{"/", "/d", "/f"} {
			if err := r2.Sweep(d); err != nil {
				t.Fatal(err)
			}
		}
		_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if strings.HasPrefix(d.Name(), TempPrefix) {
				t.Errorf("step %d: %s stayed", n, p)
			}
			return err
		})
	}
}

func TestFailingStepLeavesNothingBehind(t *testing.T) {
	for _, errno := range []error{syscall.ENOSPC, syscall.EROFS} {
		for n := range 7 {
			count := 0
			r, dir := open(t, Options{Step: func(op, _ string) error {
				count++
				if count-1 == n && op != "remove" {
					return errno
				}
				return nil
			}})
			err := r.WriteFile("/f", []byte("new"), own)
			if count > n && n < 6 && !errors.Is(err, errno) {
				t.Errorf("step %d: %v, want %v", n, err, errno)
			}
			entries, _ := os.ReadDir(dir)
			for _, e := range entries {
				if e.Name() != "f" {
					t.Errorf("step %d: %s stayed", n, e.Name())
				}
			}
		}
	}
}

func TestSweep_LeavesWhatIsNotOurs(t *testing.T) {
	r, dir := open(t, Options{})
	for _, name := range []string{".gitopsd-tmp-", ".gitopsd-tmp-0123456789abcdeg", ".gitopsd-tmp-0123456789abcdef0", "x.gitopsd-tmp-0123456789abcdef"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	full := filepath.Join(dir, ".gitopsd-tmp-0123456789abcdef")
	if err := os.MkdirAll(filepath.Join(full, "user"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitopsd-tmp-00000000000000ff"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Sweep("/"); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 5 {
		t.Errorf("%d entries stayed, want 5: %v", len(entries), entries)
	}
	if err := r.Sweep("/no/such/folder"); err != nil {
		t.Errorf("a folder that is missing: %v", err)
	}
}

// Two that make one folder at a time both have it; what else comes between is
// no folder.
func TestMkdirBesideAnother(t *testing.T) {
	for name, c := range map[string]struct {
		other func(full string) error
		want  error
	}{
		"an empty folder": {func(full string) error { return os.Mkdir(full, 0o700) }, nil},
		"a folder in use": {func(full string) error { return os.MkdirAll(filepath.Join(full, "x"), 0o700) }, nil},
		"a file":          {func(full string) error { return os.WriteFile(full, nil, 0o600) }, syscall.ENOTDIR},
		"a symlink":       {func(full string) error { return os.Symlink("/", full) }, syscall.ENOTDIR},
	} {
		t.Run(name, func(t *testing.T) {
			dir := ""
			r, at := open(t, Options{Step: func(op, p string) error {
				if op == "rename" && p == "/d" {
					return c.other(filepath.Join(dir, "d"))
				}
				return nil
			}})
			dir = at
			_, err := r.MkdirAll("/d/e", own)
			if c.want == nil && err != nil || c.want != nil && err == nil {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			left, err := os.ReadDir(dir)
			if err != nil || len(left) != 1 {
				t.Errorf("in the root are %v, %v", left, err)
			}
		})
	}
}
