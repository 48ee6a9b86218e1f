//go:build system

package systemtest

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSystemResetDisk: a reset is refused beside the agent, fails on a disk that
// cannot be written, is killed again and again, and then gives the device back.
func TestSystemResetDisk(t *testing.T) {
	t.Parallel()
	needRoot(t, "mount a file system")
	b := newBench(t)
	f := patientFleet(b, b.dir, 100<<10)
	root := b.tmpfs("root", "size=64m")
	for _, dir := range []string{"etc/edge", "srv", "var/lib", "run/gitopsd"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "etc/edge/release"), []byte("from the factory\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	factory := snapshot(t, root)
	f.start("serve", serveArgs(b.path("state"), "--repo", f.bare)...)
	agent := f.start("d1", agentArgs("d1", root, "--repo", f.bare)...)
	f.is("d1", "Current", "v1.0.0")
	reset := []string{"agent", "reset", "--yes", "--root", root}
	refused := func(args []string, words string) {
		t.Helper()
		if code, out := b.run(args...); code != 1 || !strings.Contains(out, words) {
			t.Errorf("%v ends with %d and says %s, want 1 and %q", args, code, out, words)
		}
	}
	refused(reset, "another agent is running")
	refused(append(agentArgs("d1", root, "--repo", f.bare), "--once"), "another agent is running")
	if err := agent.end(); err != nil {
		t.Error(err)
	}
	onlyVersion(t, root, "v1.0.0")

	remount(b, root, true)
	refused(reset, "read-only file system")
	remount(b, root, false)
	onlyVersion(t, root, "v1.0.0")

	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	killed := 0
	for range 10 {
		p := f.start("reset", reset...)
		time.Sleep(time.Duration(rnd.IntN(60_000)) * time.Microsecond)
		if p.running() {
			killed++
		}
		p.kill()
	}
	if code, out := b.run(reset...); code != 0 {
		t.Errorf("seed %d: the last reset ends with %d: %s", seed, code, out)
	}
	if now := snapshot(t, root); !maps.Equal(now, factory) {
		t.Errorf("seed %d: the device is\n%v\nwant\n%v", seed, now, factory)
	}
	nothingLeft(b, root)
	t.Logf("seed %d: %d of them were killed", seed, killed)
}

// TestSystemImportDisk: an import onto a full or read-only disk, or to where a
// link leads elsewhere, writes nothing, and all of it once it can.
func TestSystemImportDisk(t *testing.T) {
	t.Parallel()
	needRoot(t, "mount a file system")
	b := newBench(t)
	root := b.path("machine")
	if err := os.MkdirAll(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "etc/large"), []byte(strings.Repeat("a line\n", 5000)), 0o644); err != nil {
		t.Fatal(err)
	}
	elsewhere := b.path("elsewhere")
	if err := os.Mkdir(elsewhere, 0o755); err != nil {
		t.Fatal(err)
	}
	for what, trouble := range map[string]func(dir string) (over func()){
		"no space": func(dir string) func() {
			file := fill(b, dir)
			return func() { os.Remove(file) }
		},
		"no inodes": func(dir string) func() {
			files := fillInodes(b, dir)
			return func() { os.RemoveAll(files) }
		},
		"read-only": func(dir string) func() {
			remount(b, dir, true)
			return func() { remount(b, dir, false) }
		},
		"a link to a folder": link(b, "files", elsewhere),
		"a link to a file":   link(b, "devices/gw-1.yaml", filepath.Join(elsewhere, "gw-1.yaml")),
	} {
		fleet := b.tmpfs("fleet "+what, "size=256k,nr_inodes=40")
		if err := os.Mkdir(filepath.Join(fleet, "devices"), 0o755); err != nil {
			t.Fatal(err)
		}
		before := snapshot(t, fleet)
		args := []string{"agent", "import", "--root", root, "--device", "gw-1", "--file", "/etc/large", "--to", fleet}
		over := trouble(fleet)
		if code, out := b.run(args...); code != 1 {
			t.Errorf("%s: it ends with %d: %s", what, code, out)
		}
		over()
		if now := snapshot(t, fleet); !maps.Equal(now, before) {
			t.Errorf("%s: there is left %v", what, now)
		}
		if left, _ := os.ReadDir(elsewhere); len(left) > 0 {
			t.Errorf("%s: it wrote elsewhere: %v", what, left)
		}
		if code, out := b.run(args...); code != 0 {
			t.Errorf("%s: when it is over it ends with %d: %s", what, code, out)
		}
		for _, p := range []string{"devices/gw-1.yaml", "files/gw-1/etc/large"} {
			if _, err := os.Stat(filepath.Join(fleet, p)); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}

// link is the trouble of a link in the place of a path.
func link(b *bench, path, to string) func(dir string) func() {
	return func(dir string) func() {
		name := filepath.Join(dir, path)
		if err := os.Symlink(to, name); err != nil {
			b.Fatal(err)
		}
		return func() { os.Remove(name) }
	}
}
