package units

import (
	"fmt"
	"maps"
	"os"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

const (
	wanted  = "[Install]\nWantedBy=multi-user.target\n"
	service = "[Service]\nExecStart=/opt/run %s\n" + wanted
)

// base is a device with units of its own: one that runs and is enabled, one
// that the administrator has masked, one that lies still, and one that no spec
// names and that reads a file which one writes.
func base(t *testing.T) *device {
	d := newDevice(t)
	lib := "usr/lib/systemd/system/"
	d.put(lib+"admin.service", fmt.Sprintf(service, "admin"))
	d.put(lib+"quiet.service", fmt.Sprintf(service, "quiet"))
	d.put(lib+"hidden.service", fmt.Sprintf(service, "hidden"))
	d.put(lib+"still.service", fmt.Sprintf(service, "still"))
	d.put(lib+"user.service", "Environment=CONFIG=/etc/shared.conf\n"+wanted)
	d.put("etc/shared.conf", "the user's")
	d.put("etc/systemd/system/own.service", fmt.Sprintf(service, "own"))
	if err := os.Symlink("/dev/null", d.dir+"/etc/systemd/system/hidden.service"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"admin.service", "quiet.service", "user.service", "own.service"} {
		d.systemd.links[name] = true
	}
	d.systemd.boot()
	return d
}

func oldSpec() *schema.Spec {
	off := false
	return &schema.Spec{
		Units: map[string]*schema.Unit{
			"edge.service":     unit(fmt.Sprintf(service, "1")+"Environment=CONFIG=/etc/edge.conf\n", true, "started"),
			"gone.service":     unit(fmt.Sprintf(service, "gone"), true, "started"),
			"admin.service":    {Enabled: &off, State: "stopped"},
			"hidden.service":   unit(fmt.Sprintf(service, "seen"), true, "started"),
			"own.service":      unit(fmt.Sprintf(service, "ours"), true, "started"),
			"once.service":     unit("Type=oneshot\nExecStart=/opt/one\n", false, "started"),
			"inst@.service":    unit(fmt.Sprintf(service, "%i"), false, ""),
			"inst@a.service":   unit("", true, "started"),
			"socketed.service": unit("ExecStart=/opt/s\n", false, ""),
		},
		Files: map[string]*schema.File{
			"/etc/edge.conf":   file("one", nil, []string{"edge.service"}),
			"/etc/shared.conf": file("ours 1", []string{"user.service"}, nil),
		},
	}
}

func newSpec() *schema.Spec {
	s := oldSpec()
	delete(s.Units, "gone.service")
	delete(s.Units, "admin.service")
	delete(s.Units, "hidden.service")
	s.Units["edge.service"].DropIns = map[string]*schema.Body{"10-more": body("[Service]\nMemoryMax=1G\n")}
	s.Units["new.service"] = unit(fmt.Sprintf(service, "new"), true, "started")
	s.Units["quiet.service"] = &schema.Unit{State: "masked"}
	s.Units["still.service"] = unit("", true, "started")
	s.Units["once.service"] = unit("Type=oneshot\nExecStart=/opt/two\n", false, "started")
	s.Units["inst@.service"] = unit(fmt.Sprintf(service, "%i more"), false, "")
	s.Files["/etc/edge.conf"] = file("two", nil, []string{"edge.service"})
	delete(s.Files, "/etc/shared.conf")
	return s
}

// TestCrashAtEveryStep: the agent dies, or the power goes, at every operation
// of an update. Whichever spec is applied next, the device ends on it: its
// files, its links, and every unit running with what is on the disk; and
// without any it is what it was before the agent came.
func TestCrashAtEveryStep(t *testing.T) {
	d := base(t)
	bare := d.is()
	d.must(oldSpec())
	onOld := d.is()
	d.must(newSpec())
	onNew := d.is()
	if onOld == onNew {
		t.Fatal("the two specs are one")
	}
	steps := 0
	for n := 1; ; n++ {
		// Every step is in one of the four ways; the next one is in another.
		back, power := n%2 == 0, n/2%2 == 0
		d := base(t)
		d.must(oldSpec())
		left, dead := n, false
		step := func() error {
			if left--; left <= 0 {
				dead = true
				return errCut
			}
			return nil
		}
		d.systemd.step = step
		d.disk = func(op, p string) error {
			if !dead && op != "rename" && op != "remove" { // between those, package files has tests of its own
				return nil
			}
			return step()
		}
		_ = d.apply(newSpec()) // it is dead: what it says does not matter
		if !dead {
			break
		}
		steps++
		d.disk = nil
		d.systemd.step = func() error { return nil }
		if power {
			d.systemd.boot()
		}
		to, want := newSpec, onNew
		if back {
			to, want = oldSpec, onOld
		}
		what := fmt.Sprintf("power cut %t, back %t", power, back)
		d.must(to())
		same(t, n, what, d.is(), want)
		runs := d.invocations()
		d.logged()
		d.must(to())
		if log := d.logged(); log != "" || !maps.Equal(runs, d.invocations()) {
			t.Errorf("%s at step %d: what was as wanted was touched: %s", what, n, log)
		}
		if d.must(&schema.Spec{}); !power {
			same(t, n, what+", and all is dropped", d.is(), bare)
		}
		if data, err := os.ReadFile(d.dir + "/var/lib/gitopsd/units.json"); err == nil {
			t.Errorf("%s at step %d: what was before is still remembered: %s", what, n, data)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	if steps < 30 {
		t.Errorf("only %d operations: nothing was tested", steps)
	}
	t.Logf("%d operations", steps)
}

func same(t *testing.T, n int, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("step %d, %s:\n%s\n\nwant\n%s", n, what, got, want)
	}
}
