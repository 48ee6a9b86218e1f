package reconcile

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// others are what may stand in the place of a file, in the words of a shell; the
// file named x in it, if any, is somebody's.
var others = map[string]string{
	"empty folder": "mkdir $f",
	"folder":       "mkdir $f && echo theirs >$f/x",
	"pipe":         "mkfifo $f",
}

// put puts something else in the place of files of the device.
func (d *device) put(kind string, paths ...string) string {
	script := ""
	for _, p := range paths {
		script += `f="$GITOPSD_ROOT` + p + `"; rm -rf "$f"; ` + others[kind] + "; "
	}
	return script
}

func (d *device) shell(script string) {
	d.t.Helper()
	c := exec.Command("/bin/sh", "-ec", script)
	c.Env = append(os.Environ(), "GITOPSD_ROOT="+d.root)
	if out, err := c.CombinedOutput(); err != nil {
		d.t.Fatalf("%v: %s", err, out)
	}
}

// aside checks that what stood in the place of n files was set aside, but for
// empty folders.
func (d *device) aside(kind string, n int) {
	d.t.Helper()
	found, _ := filepath.Glob(d.host(stateDir) + "/set-aside/*")
	if kind == "empty folder" {
		n = 0
	}
	if len(found) != n {
		d.t.Errorf("set aside: %v, want %d", found, n)
	}
	for _, p := range found {
		if data, err := os.ReadFile(p + "/x"); kind == "folder" && (err != nil || string(data) != "theirs\n") {
			d.t.Errorf("%s: %q, %v", p, data, err)
		}
	}
}

// What came up in the place of a managed file goes out of the way, as drift, in
// an update and in a rollback; podman-compose makes such folders.
func TestSomethingElseInPlaceOfAManagedFile(t *testing.T) {
	const p, only = "/etc/edge/edge.conf", "/etc/edge/only-1"
	for kind := range others {
		t.Run(kind, func(t *testing.T) {
			d := onV1(t)
			before := d.snapshot()
			d.shell(d.put(kind, p, only))
			d.wantOnce(0)
			if after := d.snapshot(); after != before || d.control.last().Reason != "" {
				t.Errorf("drift: before\n%s\nafter\n%s\n%s", before, after, d.control.last().Reason)
			}
			d.aside(kind, 2)

			d.assign(2, "v1.1.0", v2(hook("afterUpdating", "/bin/sh", "-c", d.put(kind, p, only)+"exit 1")))
			d.wantOnce(1, "back on v1.0.0")
			if after := d.snapshot(); after != before {
				t.Errorf("back: before\n%s\nafter\n%s", before, after)
			}
			d.aside(kind, 4)

			d.shell(d.put(kind, p))
			d.assign(3, "v1.1.0", v2(nil))
			d.wantOnce(0, "updated")
			if d.content(p) != "version=2\n" {
				t.Errorf("update:\n%s", d.snapshot())
			}
			d.aside(kind, 5)
		})
	}
}

// What was there first is nobody's to move.
func TestSomethingElseThatWasThereFirst(t *testing.T) {
	for kind := range others {
		d := onV1(t)
		d.shell(d.put(kind, "/etc/edge/foreign"))
		before := d.snapshot()
		d.assign(2, "v1.1.0", filesSpec(map[string]string{"/etc/edge/foreign": "ours\n"}, nil))
		d.wantOnce(1, "refused", "/etc/edge/foreign")
		if after := d.snapshot(); after != before {
			t.Errorf("before\n%s\nafter\n%s", before, after)
		}
	}
}

// A folder of the failed release in which something was left is no dead end.
func TestFileFolderAndBack(t *testing.T) {
	d := newDevice(t)
	d.wantOnce(0)
	d.assign(1, "v1.0.0", filesSpec(map[string]string{"/opt/a": "file\n"}, nil))
	d.wantOnce(0, "updated")
	before := d.snapshot()
	d.assign(2, "v2.0.0", filesSpec(map[string]string{"/opt/a/b": "x\n"}, hook("afterUpdating", "/bin/sh", "-c", `echo theirs >"$GITOPSD_ROOT/opt/a/x"; exit 1`)))
	d.wantOnce(1, "back on v1.0.0")
	if after := d.snapshot(); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	d.aside("folder", 1)
}

// The file of before the first release comes back, too.
func TestSomethingElseInPlaceOfWhatWasThereBefore(t *testing.T) {
	for kind := range others {
		d := newDevice(t)
		d.write("/etc/edge/edge.conf", "from the factory\n")
		d.wantOnce(0)
		before := d.snapshot()
		d.assign(1, "v1.0.0", filesSpec(map[string]string{"/etc/edge/edge.conf": "1\n"}, hook("afterUpdating", "/bin/sh", "-c", d.put(kind, "/etc/edge/edge.conf")+"exit 1")))
		if res := d.wantOnce(1, "failed"); strings.Contains(res.Summary, "incomplete") {
			t.Errorf("%s: %s", kind, res.Summary)
		}
		if after := d.snapshot(); after != before {
			t.Errorf("%s: before\n%s\nafter\n%s", kind, before, after)
		}
		d.aside(kind, 1)
	}
}
