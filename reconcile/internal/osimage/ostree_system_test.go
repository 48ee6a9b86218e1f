//go:build system && linux

package osimage

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// builder makes images, and serves them by http.
type builder struct {
	t    *testing.T
	dir  string
	url  string
	mu   sync.Mutex
	sent map[string]int // objects, by path
	left int            // that are sent before the line breaks; < 0 = all
}

func newBuilder(t *testing.T) *builder {
	t.Helper()
	if _, err := exec.LookPath("ostree"); err != nil || os.Geteuid() != 0 {
		const why = "this needs root and ostree: install ostree"
		if os.Getenv("GITOPSD_NO_SKIP") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	w := &builder{t: t, dir: t.TempDir(), sent: map[string]int{}, left: -1}
	for file, content := range map[string]string{
		"usr/lib/modules/6.1/vmlinuz": "kernel", "usr/lib/modules/6.1/initramfs.img": "initrd", "usr/etc/motd": "hello\n",
		"usr/lib/os-release": "ID=edge\nPRETTY_NAME=Edge\n",
	} {
		w.write(file, []byte(content))
	}
	for _, dir := range []string{"boot", "dev", "proc", "run", "sys", "sysroot", "tmp", "var"} {
		if err := os.Mkdir(filepath.Join(w.dir, "tree", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.ostree("init", "--mode=archive")
	files := http.FileServer(http.Dir(filepath.Join(w.dir, "repo")))
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/objects/") {
			w.mu.Lock()
			broken := w.left == 0
			if !broken {
				w.left--
				w.sent[r.URL.Path]++
			}
			w.mu.Unlock()
			if broken {
				http.Error(rw, "the line is broken", http.StatusNotFound)
				return
			}
		}
		files.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *builder) write(file string, content []byte) {
	w.t.Helper()
	at := filepath.Join(w.dir, "tree", file)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(at, content, 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *builder) ostree(args ...string) string {
	w.t.Helper()
	out, err := exec.Command("ostree", append([]string{"--repo=" + filepath.Join(w.dir, "repo")}, args...)...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("ostree %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// image commits the tree with so much of what cannot be compressed in it.
func (w *builder) image(name string, files, size int) string {
	w.t.Helper()
	for i := range files {
		content := make([]byte, size)
		rand.Read(content)
		w.write(fmt.Sprintf("usr/share/%s/%d", name, i), content)
	}
	return w.ostree("commit", "--branch=edge/stable", "--tree=dir="+filepath.Join(w.dir, "tree"))
}

// device has an image deployed, in a folder.
func (w *builder) device(root string) *ostree {
	w.t.Helper()
	w.t.Cleanup(func() { // deployments are immutable
		_ = exec.Command("chattr", "-R", "-f", "-i", filepath.Join(root, "ostree/deploy")).Run()
	})
	for _, line := range []string{
		"admin init-fs ROOT", "admin os-init --sysroot=ROOT edge",
		"config --repo=ROOT/ostree/repo set sysroot.bootloader none", "config --repo=ROOT/ostree/repo set core.min-free-space-size 1MB",
		"remote add --repo=ROOT/ostree/repo --no-gpg-verify edge " + w.url,
		"pull --repo=ROOT/ostree/repo edge edge/stable", "admin deploy --sysroot=ROOT --os=edge edge:edge/stable",
	} {
		argv := strings.Fields(strings.ReplaceAll(line, "ROOT", root))
		if out, err := exec.Command("ostree", argv...).CombinedOutput(); err != nil {
			w.t.Fatalf("ostree %q: %v\n%s", argv, err, out)
		}
	}
	d, _ := New(root, &schema.OSConfig{Driver: schema.OSTree, Remote: "edge", OSName: "edge"}).(*ostree)
	return d
}

// TestSystemOSTree updates a folder with the real program: nothing is booted
// there, so that what is deployed counts as booted.
func TestSystemOSTree(t *testing.T) {
	w := newBuilder(t)
	first := w.image("one", 1, 10)
	d, ctx := w.device(t.TempDir()), t.Context()
	want := func(version string) {
		t.Helper()
		booted, err := d.Booted(ctx)
		staged, err2 := d.Staged(ctx)
		if booted != version || staged != "" || err != nil || err2 != nil {
			t.Errorf("booted %q (%v), staged %q (%v); want %q", booted, err, staged, err2, version)
		}
	}
	want(first)
	second := w.image("two", 1, 10)
	w.image("three", 1, 10)
	w.ostree("reset", "edge/stable", second)
	if got, err := d.Fetch(ctx, "edge/stable"); got != second || err != nil {
		t.Fatalf("the branch is %q (%v), want %q", got, err, second)
	}
	want(first) // nothing has changed
	w.image("four", 1, 10)
	for range 2 { // again after a crash
		if err := d.Stage(ctx, second); err != nil {
			t.Fatal(err)
		}
	}
	want(second)
	if err := d.Stage(ctx, first); err != nil { // kept: nothing is pulled
		t.Error(err)
	}
	want(first)
	for image, says := range map[string]string{"edge/nothing": "edge/nothing", strings.Repeat("0", 64): "404"} {
		if _, err := d.Fetch(ctx, image); err == nil || failure.From(err).Class != schema.ClassRetryable || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", image, err)
		}
	}
}

// TestSystemOSTreePull breaks the line in the middle: what came is not asked
// for again.
func TestSystemOSTreePull(t *testing.T) {
	w := newBuilder(t)
	w.image("one", 1, 10)
	d := w.device(t.TempDir())
	version := w.image("two", 80, 1000)
	clear(w.sent)
	w.left = 50
	if err := d.have(t.Context(), version); err == nil {
		t.Fatal("all of it came over a broken line")
	}
	first := len(w.sent)
	w.left = -1
	if got, err := d.Fetch(t.Context(), version); got != version || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	twice := 0
	for path, n := range w.sent {
		if n > 1 && !strings.HasSuffix(path, ".commit") && !strings.HasSuffix(path, ".dirtree") && !strings.HasSuffix(path, ".dirmeta") {
			twice++
		}
	}
	const flying = 8 // objects are under way at a time, and lost with the line
	if first < 40 || twice > flying {
		t.Errorf("%d objects came over the broken line, %d of them were sent twice", first, twice)
	}
	clear(w.sent)
	if err := d.Stage(t.Context(), version); err != nil || len(w.sent) > 0 {
		t.Errorf("staging what was fetched: %v, and asked for %d objects", err, len(w.sent))
	}
}

// TestSystemOSTreeFull has no room for an image: it may be tried again, and
// what had come of it is gone.
func TestSystemOSTreeFull(t *testing.T) {
	w := newBuilder(t)
	first := w.image("one", 1, 10)
	root := t.TempDir()
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "size=8m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(root, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	d := w.device(root)
	free := func() uint64 {
		var st unix.Statfs_t
		if err := unix.Statfs(root, &st); err != nil {
			t.Fatal(err)
		}
		return st.Bavail * uint64(st.Bsize)
	}
	before := free()
	big := w.image("big", 20, 1<<20)
	_, err := d.Fetch(t.Context(), big)
	if err == nil || failure.From(err).Class != schema.ClassRetryable || !full.MatchString(err.Error()) {
		t.Errorf("an image of 20 MB on a disk of 8: %v", err)
	}
	const slack = 512 << 10 // bytes: empty folders, and the commit itself
	if now := free(); now+slack < before {
		t.Errorf("%d bytes are free, and %d were before", now, before)
	}
	if got, err := d.Booted(t.Context()); got != first || err != nil {
		t.Errorf("booted %q, %v", got, err)
	}
	small := w.image("small", 1, 100)
	w.ostree("commit", "--branch=edge/small", "--tree=ref="+first)
	if _, err := d.Fetch(t.Context(), "edge/small"); err != nil {
		t.Errorf("a small image afterwards (%s is the big one's): %v", small, err)
	}
}
