//go:build system

package systemtest

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// snapshot is what stands below a root, but for the agent's own state: path →
// type, mode with all its bits, owner, group and content.
func snapshot(t testing.TB, root string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, name)
		if rel == "var/lib/gitopsd" {
			return fs.SkipDir
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		what := fmt.Sprintf("%v %d:%d", info.Mode(), st.Uid, st.Gid)
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(" %x", sha256.Sum256(data))
		}
		tree[rel] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// sameTree compares two snapshots, but for paths that may differ.
func sameTree(t testing.TB, what string, got, want map[string]string, but ...string) {
	t.Helper()
	for p, w := range want {
		if g := got[p]; g != w && !slices.Contains(but, p) {
			t.Errorf("%s: %s is %q, want %q", what, p, g, w)
		}
	}
	for p, g := range got {
		if _, ok := want[p]; !ok && !slices.Contains(but, p) {
			t.Errorf("%s: %s is new: %q", what, p, g)
		}
	}
}

func give(t testing.TB, path string, uid, gid int, mode os.FileMode) {
	t.Helper()
	if err := os.Chown(path, uid, gid); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // after chown, which takes bits away
		t.Fatal(err)
	}
}

// TestSystemOwners: what belongs to others, setuid bits and folders included,
// is as it was after a rollback, and after a release that wants it no more.
func TestSystemOwners(t *testing.T) {
	t.Parallel()
	needRoot(t, "give files to others")
	b := newBench(t)
	f := newFleet(b, b.dir)
	root := b.path("root")
	at := func(p string) string { return filepath.Join(root, p) }
	// The device's accounts are others than this machine's.
	writeFile(t, at("etc/passwd"), "root:x:0:0::/:/bin/sh\nedge:x:15001:15001::/:/bin/sh\nbackup:x:15002:15002::/:/bin/sh\n", 0o644)
	writeFile(t, at("etc/group"), "root:x:0:\nedge:x:16001:\nwheelers:x:16002:\n", 0o644)
	for p, o := range map[string]struct {
		uid, gid int
		mode     os.FileMode
	}{
		"opt/tool":         {15002, 16002, 0o751 | fs.ModeSetuid},
		"opt/group-tool":   {0, 16002, 0o755 | fs.ModeSetgid},
		"etc/edge/secret":  {15002, 15002, 0o600},
		"etc/edge/nothing": {12345, 54321, 0},
		"srv/spool/kept":   {7, 8, 0o444},
	} {
		writeFile(t, at(p), "the original of "+p+"\n", 0o644)
		give(t, at(p), o.uid, o.gid, o.mode)
	}
	give(t, at("srv/spool"), 15002, 16002, 0o775|fs.ModeSetgid)
	give(t, at("etc/edge"), 0, 16002, 0o750)
	before := snapshot(t, root)

	f.policy("edge", "v1.0.0", 1, 0)
	f.device("d1", "edge")
	const files = `files:
  /opt/tool: {content: "%[1]s\n", owner: edge, group: edge, mode: "4755"}
  /opt/group-tool: {content: "%[1]s\n", owner: edge, group: wheelers, mode: "6755"}
  /etc/edge/secret: {content: "%[1]s\n", owner: "15077", group: "16077", mode: "0640"}
  /etc/edge/nothing: {content: "%[1]s\n", mode: "0600"}
  /etc/edge/new: {content: "%[1]s\n", owner: backup, mode: "1644"}
  /srv/spool/kept: {content: "the original of srv/spool/kept\n", owner: edge, mode: "0444"}
directories:
  /srv/spool: {owner: edge, group: edge, mode: "1777"}
  /srv/new/deep: {owner: edge, group: wheelers, mode: "2770"}
hooks:
  afterUpdating:
    check: {run: [/bin/sh, -c, %[2]q]}
confirm: off
`
	f.release("edge", "v1.0.0", fmt.Sprintf(files, "v1.0.0", "exit 1"))
	f.push("edge: v1.0.0")
	// round is one report, one sweep, the work, and a sweep that notes it.
	round := func(want string, exit int) {
		t.Helper()
		sweep := func() {
			t.Helper()
			if code, out := b.run("serve", "--once", "--repo", f.bare, "--state", b.path("state")); code != 0 {
				t.Fatalf("serve --once ended with %d:\n%s", code, out)
			}
		}
		agent := []string{"agent", "--once", "--repo", f.bare, "--device", "d1", "--root", root}
		if code, out := b.run(agent...); strings.Contains(out, "panic") {
			t.Fatalf("agent --once ended with %d:\n%s", code, out)
		}
		sweep()
		code, out := b.run(agent...)
		if code != exit {
			t.Fatalf("agent --once ended with %d, want %d:\n%s", code, exit, out)
		}
		sweep()
		s, err := f.now()
		if err == nil {
			err = s.is("d1", want, "")
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	round("Failed", 1)
	own := []string{"var", "var/lib", "run", "run/gitopsd", "run/gitopsd/agent.sock"} // where the agent keeps its own
	sameTree(t, "after the first release was rolled back", snapshot(t, root), before, own...)

	f.release("edge", "v1.1.0", fmt.Sprintf(files, "v1.1.0", "true"))
	f.policy("edge", "v1.1.0", 1, 0)
	f.push("edge: v1.1.0")
	round("Current", 0)
	good := snapshot(t, root)
	for p, want := range map[string]string{
		"opt/tool":         "urwxr-xr-x 15001:16001",
		"opt/group-tool":   "ugrwxr-xr-x 15001:16002",
		"etc/edge/secret":  "-rw-r----- 15077:16077",
		"etc/edge/nothing": "-rw------- 0:0",
		"etc/edge/new":     "trw-r--r-- 15002:0",
		"srv/spool":        "dtrwxrwxrwx 15001:16001",
		"srv/spool/kept":   "-r--r--r-- 15001:0",
		"srv/new/deep":     "dgrwxrwx--- 15001:16002",
		"srv/new":          "drwxr-xr-x 0:0",
	} {
		if !strings.HasPrefix(good[p], want) {
			t.Errorf("after v1.1.0 %s is %q, want %q", p, good[p], want)
		}
	}

	// A release that changes all of that again and fails: back to v1.1.0.
	bad := strings.NewReplacer("owner: edge", "owner: backup", "group: wheelers", "group: edge", `"4755"`, `"0700"`, `"6755"`, `"2711"`, `"1777"`, `"0700"`).
		Replace(fmt.Sprintf(files, "v1.2.0", "exit 1"))
	f.release("edge", "v1.2.0", bad)
	f.policy("edge", "v1.2.0", 1, 0)
	f.push("edge: v1.2.0")
	round("Failed", 1)
	sameTree(t, "after v1.2.0 was rolled back to v1.1.0", snapshot(t, root), good)

	// Somebody changes owners and bits by hand: the next look repairs them.
	give(t, at("opt/tool"), 0, 0, 0o755)
	give(t, at("srv/spool"), 0, 0, 0o755)
	if code, out := b.run("agent", "--once", "--repo", f.bare, "--device", "d1", "--root", root); code != 0 && code != 1 {
		t.Fatalf("agent --once ended with %d:\n%s", code, out)
	}
	sameTree(t, "after drift was repaired", snapshot(t, root), good)

	// A release that wants none of it: the originals come back.
	f.release("edge", "v1.3.0", "files: {/etc/edge/other: {content: \"only this\\n\"}}\nconfirm: off\n")
	f.policy("edge", "v1.3.0", 1, 0)
	f.push("edge: v1.3.0")
	round("Current", 0)
	sameTree(t, "after v1.3.0, which drops all files", snapshot(t, root), before, append(own, "etc/edge/other")...)
}

// TestSystemOwnersUnknown: an owner that the device does not have is refused
// before anything changes.
func TestSystemOwnersUnknown(t *testing.T) {
	t.Parallel()
	needRoot(t, "give files to others")
	b := newBench(t)
	f := newFleet(b, b.dir)
	root := b.path("root")
	writeFile(t, filepath.Join(root, "etc/passwd"), "root:x:0:0::/:/bin/sh\n", 0o644)
	writeFile(t, filepath.Join(root, "etc/edge/a"), "original\n", 0o644)
	before := snapshot(t, root)
	f.policy("edge", "v1.0.0", 1, 0)
	f.device("d1", "edge")
	f.release("edge", "v1.0.0", "files: {/etc/edge/a: {content: new}, /etc/edge/z: {content: z, owner: nobody-here}}\nconfirm: off\n")
	f.push("edge: v1.0.0")
	f.start("serve", serveArgs(b.path("state"), "--repo", f.bare)...)
	f.start("d1", agentArgs("d1", root, "--repo", f.bare)...)
	f.is("d1", "Refused", "v0.0.0")
	sameTree(t, "after the refusal", snapshot(t, root), before, "var", "var/lib", "run", "run/gitopsd", "run/gitopsd/agent.sock")
	s, err := f.now()
	if err != nil {
		t.Fatal(err)
	}
	if a := s.devices["d1"].Attempts; len(a) != 1 || !strings.Contains(a[0].Message, `"nobody-here"`) {
		t.Errorf("the attempts do not name the user: %+v", a)
	}
}
