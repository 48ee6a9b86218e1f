package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

const state = "/var/lib/gitopsd"

func str(s string) *string { return &s }

func file(content, mode string) *schema.File { return &schema.File{Content: str(content), Mode: mode} }

// device is a root with a controller on it.
type device struct {
	t     *testing.T
	dir   string
	ctl   *Controller
	warns []string

	identities []string
}

func newDevice(t *testing.T) *device {
	d := &device{t: t, dir: tempDir(t), identities: []string{newIdentity(t)}}
	d.start(nil)
	return d
}

// tempDir lies in memory where it can: these tests sync thousands of files,
// and that power is gone is told by the steps, not by the disk.
func tempDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "gitopsd-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// start is a start of the agent: everything is read from disk again.
func (d *device) start(step func(op, path string) error) {
	d.t.Helper()
	root, err := disk.Open(d.dir, disk.Options{Step: step})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = root.Close() })
	d.ctl, err = New(Config{Root: root, State: state, Identities: d.identities, Warn: func(err error) { d.warns = append(d.warns, err.Error()) }})
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *device) put(path, content string, mode fs.FileMode) {
	d.t.Helper()
	p := filepath.Join(d.dir, path)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Chmod(p, mode); err != nil {
		d.t.Fatal(err)
	}
}

// apply is an update that succeeds.
func (d *device) apply(spec *schema.Spec) []string {
	d.t.Helper()
	changed, err := d.ctl.Apply(context.Background(), spec, nil, Onward)
	if err == nil {
		err = d.ctl.Settle(context.Background(), spec)
	}
	if err != nil {
		d.t.Fatalf("apply: %v", err)
	}
	return changed
}

func (d *device) content(path string) string {
	data, err := os.ReadFile(filepath.Join(d.dir, path))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "missing"
		}
		return err.Error()
	}
	return string(data)
}

func (d *device) mode(path string) string {
	info, err := os.Lstat(filepath.Join(d.dir, path))
	if err != nil {
		return "missing"
	}
	return octal(info.Mode())
}

// tree describes everything below the root but the state.
func (d *device) tree() string {
	var b strings.Builder
	err := filepath.WalkDir(d.dir, func(p string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(d.dir, p)
		if err != nil {
			return err
		}
		if strings.HasPrefix(e.Name(), disk.TempPrefix) {
			d.t.Errorf("temporary file stayed: %s", rel)
		}
		if rel == "." || rel == "var" || strings.HasPrefix(rel, "var/") {
			return nil
		}
		info, _ := e.Info()
		uid, gid := disk.Owner(info)
		fmt.Fprintf(&b, "%s %v %d:%d", rel, info.Mode(), uid, gid)
		if info.Mode().IsRegular() {
			fmt.Fprintf(&b, " %q", d.content(rel))
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		d.t.Error(err)
	}
	return b.String()
}

func class(err error) schema.FailureClass {
	if err == nil {
		return ""
	}
	return failure.From(err).Class
}

func TestApply_RepairsOnlyWhatDiffers(t *testing.T) {
	d := newDevice(t)
	d.put("etc/taken", "as wanted", 0o644)
	before, _ := os.Stat(filepath.Join(d.dir, "etc/taken"))
	spec := &schema.Spec{
		Files:       map[string]*schema.File{"/etc/taken": file("as wanted", ""), "/opt/app/bin": file("#!", "4755"), "/opt/app/conf": {ContentBase64: str("AAEC")}},
		Directories: map[string]*schema.Directory{"/opt/data": {Mode: "0700"}},
	}
	if got := d.apply(spec); strings.Join(got, " ") != "/opt/app/bin /opt/app/conf /opt/data" {
		t.Errorf("changed %v", got)
	}
	after, _ := os.Stat(filepath.Join(d.dir, "etc/taken"))
	if !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Error("a file that was as wanted has been touched")
	}
	if d.mode("opt/app/bin") != "4755" || d.content("opt/app/conf") != "\x00\x01\x02" || d.mode("opt/data") != "0700" {
		t.Errorf("not as wanted:\n%s", d.tree())
	}
	steps := 0
	d.start(func(string, string) error { steps++; return nil })
	if got := d.apply(spec); len(got) != 0 || steps != 0 {
		t.Errorf("nothing new: changed %v in %d steps", got, steps)
	}
	if got, err := d.ctl.Drift(spec, nil); len(got) != 0 || err != nil {
		t.Errorf("drift %v, %v", got, err)
	}
}

func TestB88_OnlyModeOrOwnerChanged(t *testing.T) {
	d := newDevice(t)
	spec := func(mode, owner string) *schema.Spec {
		return &schema.Spec{Files: map[string]*schema.File{"/etc/x": {Content: str("x"), Mode: mode, Owner: owner}}}
	}
	d.apply(spec("0644", ""))
	before, _ := os.Stat(filepath.Join(d.dir, "etc/x"))
	var ops []string
	d.start(func(op, _ string) error { ops = append(ops, op); return nil })
	if got := d.apply(spec("0600", "")); len(got) != 1 {
		t.Errorf("changed %v", got)
	}
	after, _ := os.Stat(filepath.Join(d.dir, "etc/x"))
	if !os.SameFile(before, after) || d.mode("etc/x") != "0600" {
		t.Errorf("mode %s, same file %v, steps %v", d.mode("etc/x"), os.SameFile(before, after), ops)
	}
	if err := os.Chmod(filepath.Join(d.dir, "etc/x"), 0o777); err != nil {
		t.Fatal(err)
	}
	if got, err := d.ctl.Drift(spec("0600", ""), nil); strings.Join(got, "") != "/etc/x" || err != nil {
		t.Errorf("drift %v, %v", got, err)
	}
	d.apply(spec("0600", ""))
	if d.mode("etc/x") != "0600" {
		t.Errorf("drift not repaired: %s", d.mode("etc/x"))
	}
	// Setuid survives a change of owner, which takes it away first.
	d.put("etc/passwd", "root:x:0:0::/:\nedge:x:1234:1234::/:\n", 0o644)
	err := func() error {
		_, err := d.ctl.Apply(context.Background(), spec("4750", "edge"), nil, Onward)
		return err
	}()
	if os.Geteuid() != 0 {
		if class(err) != schema.ClassPermanent {
			t.Errorf("another owner without root: %v", err)
		}
		return
	}
	info, _ := os.Stat(filepath.Join(d.dir, "etc/x"))
	if uid, _ := disk.Owner(info); err != nil || uid != 1234 || d.mode("etc/x") != "4750" {
		t.Errorf("owner %d mode %s: %v", uid, d.mode("etc/x"), err)
	}
	if !os.SameFile(before, info) {
		t.Error("the content has been written again for a change of owner")
	}
}

func TestB90_DroppedFilesGoAndOriginalsComeBack(t *testing.T) {
	d := newDevice(t)
	d.put("etc/had", "of the user", 0o640)
	d.put("etc/bin", "setuid", 0o755|fs.ModeSetuid)
	if os.Geteuid() == 0 {
		if err := os.Chown(filepath.Join(d.dir, "etc/had"), 4321, 4322); err != nil {
			t.Fatal(err)
		}
	}
	before := d.tree()
	both := &schema.Spec{Files: map[string]*schema.File{"/etc/had": file("ours", "0600"), "/etc/new": file("ours", ""), "/etc/bin": file("ours", "")}}
	d.apply(both)
	d.apply(&schema.Spec{Files: map[string]*schema.File{"/etc/had": file("ours, second", "0600"), "/etc/bin": file("ours", "")}})
	if d.content("etc/new") != "missing" || d.content("etc/had") != "ours, second" {
		t.Errorf("after dropping one:\n%s", d.tree())
	}
	for name, spec := range map[string]*schema.Spec{
		"empty map": {Files: map[string]*schema.File{}}, "no key": {}, "no spec": nil,
	} {
		d.apply(both)
		d.start(nil)
		d.apply(spec)
		if got := d.tree(); got != before {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, before)
		}
		if list, _ := os.ReadDir(filepath.Join(d.dir, state, "original")); len(list) != 0 {
			t.Errorf("%s: copies that nobody needs stay: %v", name, list)
		}
	}
}

func TestB91_OnlyOurEmptyFoldersGo(t *testing.T) {
	d := newDevice(t)
	d.put("opt/user/keep", "mine", 0o644)
	if err := os.Mkdir(filepath.Join(d.dir, "opt/empty"), 0o750); err != nil {
		t.Fatal(err)
	}
	spec := &schema.Spec{
		Files: map[string]*schema.File{
			"/media/x": file("", ""), "/opt/app/conf/a": file("", ""), "/opt/app/deep/er/b": file("", ""), "/opt/empty/c": file("", ""),
		},
		Directories: map[string]*schema.Directory{"/opt/empty": {Mode: "0711"}, "/opt/made": {}, "/opt/user": {Mode: "0700"}},
	}
	d.apply(spec)
	d.put("opt/app/conf/user", "mine too", 0o644)
	if err := os.MkdirAll(filepath.Join(d.dir, "elsewhere/er"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.put("elsewhere/er/b", "not ours", 0o644)
	if err := os.RemoveAll(filepath.Join(d.dir, "opt/app/deep")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../elsewhere", filepath.Join(d.dir, "opt/app/deep")); err != nil {
		t.Fatal(err)
	}
	d.apply(nil)
	for path, want := range map[string]string{
		"media": "0755", "media/x": "missing", "opt/app/conf/a": "missing", "opt/app/conf/user": "0644", "opt/app/conf": "0755",
		"opt/made": "missing", "opt/empty": "0750", "opt/user": "0755", "opt/user/keep": "0644", "elsewhere/er/b": "0644",
	} {
		if got := d.mode(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestB93_SymlinkInPlaceOfAManagedFile(t *testing.T) {
	d := newDevice(t)
	d.put("real/c", "real", 0o644)
	for link, to := range map[string]string{"l1": "real/c", "l2": "nowhere", "l3": "l3", "l4": "real"} {
		if err := os.Symlink(to, filepath.Join(d.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	before := d.tree()
	for _, p := range []string{"/l1", "/l2", "/l3", "/l4", "/l3/x"} {
		spec := &schema.Spec{Files: map[string]*schema.File{p: file("new", "")}}
		check := d.ctl.Check(spec, nil)
		_, apply := d.ctl.Apply(context.Background(), spec, nil, Onward)
		for _, err := range []error{check, apply} {
			if class(err) != schema.ClassPermanent || !strings.Contains(err.Error(), p) || !strings.Contains(err.Error(), "symlink") && p != "/l3/x" {
				t.Errorf("%s: %v, want a permanent failure that speaks of the symlink", p, err)
			}
		}
	}
	if got := d.tree(); got != before {
		t.Errorf("something changed:\n%s", got)
	}
	// A folder's link is followed, inside the root, and the file is recorded
	// where it really is.
	spec := &schema.Spec{Files: map[string]*schema.File{"/l4/c": file("new", "")}}
	d.apply(spec)
	if d.content("real/c") != "new" {
		t.Errorf("through a folder's link: %q", d.content("real/c"))
	}
	if err := d.ctl.Check(&schema.Spec{Files: map[string]*schema.File{"/l4/c": file("1", ""), "/real/c": file("2", "")}}, nil); class(err) != schema.ClassPermanent {
		t.Errorf("one file by two names: %v", err)
	}
	if err := os.Remove(filepath.Join(d.dir, "l4")); err != nil {
		t.Fatal(err)
	}
	d.apply(nil)
	if d.content("real/c") != "real" {
		t.Errorf("the original is not back: %q", d.content("real/c"))
	}
}

func TestB95_PathsThatNoSpecMayName(t *testing.T) {
	d := newDevice(t)
	for _, dir := range []string{"etc", "run", "usr"} {
		if err := os.Mkdir(filepath.Join(d.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/var/lib", filepath.Join(d.dir, "etc/alias")); err != nil {
		t.Fatal(err)
	}
	paths := []string{
		"", "/", "//", "etc/x", "../x", "/../x", "/etc/../x", "/etc//x", "/etc/./x", "/etc/x/", `C:\x`, "/a\x00b", "/a\nb", "/a\xffb",
		"/" + strings.Repeat("x", 256), strings.Repeat("/xxxxxxx", 600), "/etc/.gitopsd-tmp-0123456789abcdef",
		"/proc/sys/kernel/core_pattern", "/sys/x", "/dev/null", "/run/gitopsd/busy", "/run/gitopsd", "/etc/gitopsd/agent.yaml",
		"/var/lib/gitopsd/managed.json", "/var/lib/gitopsd", "/etc/alias/gitopsd/managed.json", "/etc/systemd/system/gitopsd.service",
		"/etc/systemd/system/gitopsd-agent.service.d/x.conf", "/etc/systemd/system/multi-user.target.wants/gitopsd.service", "/var", "/run",
		"/usr/local/lib/systemd/system/gitopsd-agent.service.d/x.conf", "/etc/systemd/system.control/gitopsd-agent.service.d/x.conf",
		"/run/systemd/transient/gitopsd-agent.service", "/etc/systemd/system/service.d/x.conf", "/etc/systemd/system/dbus.service",
		"/etc/systemd/system/var-lib.mount", "/etc/systemd/system/opt-agent.mount",
	}
	d.ctl.protected = []string{"/opt/agent/bin/gitopsd"}
	for _, p := range paths {
		spec := &schema.Spec{Files: map[string]*schema.File{p: file("x", "")}}
		if err := d.ctl.Check(spec, nil); class(err) != schema.ClassPermanent {
			t.Errorf("Check(%q): %v, want a permanent failure", p, err)
		}
		if changed, err := d.ctl.Apply(context.Background(), spec, nil, Back); class(err) != schema.ClassPermanent || len(changed) > 0 {
			t.Errorf("Apply(%q): %v %v, want a permanent failure", p, changed, err)
		}
	}
	if err := d.ctl.Check(&schema.Spec{Files: map[string]*schema.File{"/usr/x": file("", ""), "/etc/systemd/system/edge.service": file("", ""),
		"/etc/systemd/system/opt-data.mount": file("", ""), "/srv/var.mount": file("", ""), "/etc/systemd/system/dbus.service.d/x.conf": file("", "")}}, nil); err != nil {
		t.Errorf("a system that is no image: %v", err)
	}
	d.put("run/ostree-booted", "", 0o644)
	if err := d.ctl.Check(&schema.Spec{Files: map[string]*schema.File{"/usr/x": file("", "")}}, nil); class(err) != schema.ClassPermanent {
		t.Errorf("/usr of an image: %v", err)
	}
}

// A unit that would stop the agent or take its place is refused by its text,
// before it is written.
func TestCheck_UnitsThatTakeTheAgentAway(t *testing.T) {
	d := newDevice(t)
	const text = "[Unit]\nConflicts=gitopsd-agent.service\n"
	for p, refused := range map[string]bool{
		"/etc/systemd/system/a.service": true, "/etc/systemd/system/a.service.d/x.conf": true, "/etc/systemd/system/target.d/x.conf": true,
		"/etc/containers/systemd/a/a.container": true, "/etc/edge.conf": false,
	} {
		err := d.ctl.Check(&schema.Spec{Files: map[string]*schema.File{p: file(text, "")}}, nil)
		if is := class(err) == schema.ClassPermanent && strings.Contains(err.Error(), "line 2: gitopsd-agent.service is protected"); is != refused || err != nil != refused {
			t.Errorf("%s: %v, refused %t", p, err, refused)
		}
	}
}

func TestCheck_TellsAllThatCannotWork(t *testing.T) {
	d := newDevice(t)
	d.put("a/folder/x", "", 0o644)
	d.put("a/file", "", 0o644)
	d.put("etc/passwd", "root:x:0:0::/:\nown:x:"+fmt.Sprint(os.Geteuid())+":0::/:\n", 0o644)
	if err := syscall.Mkfifo(filepath.Join(d.dir, "a/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := "sha256:" + strings.Repeat("0", 64)
	spec := &schema.Spec{
		Files: map[string]*schema.File{
			"/a/folder": file("", ""), "/a/file/below": file("", ""), "/a/pipe": file("", ""), "/nil": nil, "/none": {},
			"/two": {Content: str(""), Payload: sum}, "/b64": {ContentBase64: str("*")}, "/digest": {Payload: "sha256:xyz"},
			"/mode1": file("", "422x"), "/mode2": file("", "888"), "/mode3": file("", "-1"), "/mode4": file("", "8"),
			"/who": {Content: str(""), Owner: "nobody-here"}, "/grp": {Content: str(""), Group: "nobody-here"},
			"/both": file("", ""), "/both/x": file("", ""), "/ok": {Content: str(""), Mode: "0o644", Owner: "own"},
			"/huge": {Content: str(""), Owner: "4294967295"},
		},
		Directories: map[string]*schema.Directory{"/a/file": {}, "/two": {}},
	}
	before := d.tree()
	err := d.ctl.Check(spec, nil)
	if class(err) != schema.ClassPermanent {
		t.Fatalf("%v", err)
	}
	for _, p := range []string{"/a/folder", "/a/file/below", "/a/pipe", "/nil", "/none", "/two", "/b64", "/digest", "/mode1", "/mode2",
		"/mode3", "/mode4", "/who", "/grp", "/both/x", "/huge", "directories /a/file"} {
		if !strings.Contains(err.Error(), p+":") {
			t.Errorf("%s is not told: %v", p, err)
		}
	}
	if strings.Contains(err.Error(), "/ok") {
		t.Errorf("/ok is refused: %v", err)
	}
	if d.tree() != before {
		t.Error("a check has changed something")
	}
	missing := &schema.Spec{Files: map[string]*schema.File{"/p": {Payload: sum}}}
	err = d.ctl.Check(missing, func(string) ([]byte, error) { return nil, errors.New("no network") })
	if class(err) != schema.ClassRetryable {
		t.Errorf("a payload that cannot be had: %v", err)
	}
	_, err = d.ctl.Apply(context.Background(), missing, func(string) ([]byte, error) { return []byte("other"), nil }, Onward)
	if class(err) != schema.ClassRetryable || d.mode("p") != "missing" {
		t.Errorf("a payload with another sum: %v, %s", err, d.mode("p"))
	}
}

func TestApply_FileBecomesFolderAndBack(t *testing.T) {
	d := newDevice(t)
	asFile := &schema.Spec{Files: map[string]*schema.File{"/opt/k": file("file", "")}}
	asDir := &schema.Spec{Files: map[string]*schema.File{"/opt/k/f": file("below", "")}, Directories: map[string]*schema.Directory{"/opt/k": {Mode: "0700"}}}
	for range 2 {
		for _, spec := range []*schema.Spec{asFile, asDir} {
			if err := d.ctl.Check(spec, nil); err != nil {
				t.Fatal(err)
			}
			d.apply(spec)
			if drift, err := d.ctl.Drift(spec, nil); len(drift) > 0 || err != nil {
				t.Fatalf("drift %v, %v", drift, err)
			}
		}
	}
	d.put("opt/k/user", "mine", 0o644)
	if err := d.ctl.Check(asFile, nil); class(err) != schema.ClassPermanent {
		t.Errorf("with a user's file in the folder: %v", err)
	}
	if _, err := d.ctl.Apply(context.Background(), asFile, nil, Onward); class(err) != schema.ClassPermanent || d.content("opt/k/user") != "mine" {
		t.Errorf("with a user's file in the folder: %v, %q", err, d.content("opt/k/user"))
	}
	d.apply(asDir)
	if d.content("opt/k/f") != "below" || d.mode("opt/k") != "0700" {
		t.Errorf("not back:\n%s", d.tree())
	}
}

func TestApply_KeepGoing(t *testing.T) {
	d := newDevice(t)
	d.apply(&schema.Spec{Files: map[string]*schema.File{"/b": file("1", "")}})
	if err := os.Mkdir(filepath.Join(d.dir, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	spec := &schema.Spec{Files: map[string]*schema.File{"/a": file("2", ""), "/b": file("2", ""), "/c": file("2", "")}}
	if _, err := d.ctl.Apply(context.Background(), spec, nil, Onward); err == nil || d.content("b") != "1" {
		t.Errorf("without keepGoing: %v, b = %q", err, d.content("b"))
	}
	changed, err := d.ctl.Apply(context.Background(), spec, nil, Repair)
	if err == nil || !strings.Contains(err.Error(), "/a") || strings.Join(changed, " ") != "/b /c" {
		t.Errorf("with keepGoing: %v, changed %v", err, changed)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if changed, err := d.ctl.Apply(ctx, nil, nil, Back); !errors.Is(err, context.Canceled) || len(changed) > 0 {
		t.Errorf("cancelled: %v, %v", changed, err)
	}
}

func TestOwners(t *testing.T) {
	d := newDevice(t)
	d.put("etc/passwd", "root:x:0:0::/:\n:x:9:9::\nbroken\n12:x:77:0::/:\nbig:x:99999999999:0::/\n", 0o644)
	d.put("usr/lib/passwd", "root:x:5:5::/:\nimage:x:88:0::/:\n", 0o644)
	d.ctl.ids.reset()
	for name, want := range map[string]int{"root": 0, "12": 77, "image": 88, "13": 13} {
		id, err := d.ctl.ids.lookup("passwd", "user", name)
		if err != nil || id != want {
			t.Errorf("user %q is %d, %v; want %d", name, id, err, want)
		}
	}
	for _, name := range []string{"big", "broken", "-1", "4294967295", "4294967296", "x y", "1e3"} {
		if id, err := d.ctl.ids.lookup("passwd", "user", name); err == nil {
			t.Errorf("user %q is %d, want an error", name, id)
		}
	}
}
