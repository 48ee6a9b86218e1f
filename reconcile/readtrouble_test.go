package reconcile

import (
	"fmt"
	"path"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/schema"
)

// readTrouble fails what reads.
type readTrouble struct {
	at    int // the operation at which it begins, counted from 1
	last  int // and the one at which it ends
	count int
	hit   string
}

func (r *readTrouble) step(op, p string) error {
	if r.count++; r.count < r.at || r.count > r.last {
		return nil
	}
	if r.hit == "" {
		r.hit = op + " " + p
	}
	return syscall.EIO
}

// A single read fails anywhere in an update: nothing of what the device knows
// is lost by that, and it ends where it should.
func TestReadFailsOnce(t *testing.T) {
	states := map[string]string{}
	states["v1.0.0"], states["v1.1.0"] = stateOf(t, 2, v2(nil))
	for i, way := range ways {
		for n := 1 + i; ; n += 2 {
			r := &readTrouble{at: n, last: n}
			synctest.Test(t, func(t *testing.T) { r.meet(t, way, states) })
			if t.Failed() {
				t.Fatalf("%s: read %d failed (%s)", way.name, n, r.hit)
			}
			if r.hit == "" {
				t.Logf("%s: %d reads", way.name, r.count)
				break
			}
		}
	}
}

// The disk gives nothing any more from some read on, and later it does.
func TestReadsFailForAWhile(t *testing.T) {
	states := map[string]string{}
	states["v1.0.0"], states["v1.1.0"] = stateOf(t, 2, v2(nil))
	for i, way := range ways {
		for n := 1 + i; ; n += 5 {
			r := &readTrouble{at: n, last: 1 << 30}
			synctest.Test(t, func(t *testing.T) { r.meet(t, way, states) })
			if t.Failed() {
				t.Fatalf("%s: reads from %d on failed (%s)", way.name, n, r.hit)
			}
			if r.hit == "" {
				break
			}
		}
	}
}

// meet has an update meet the trouble in one pass, and then the device go on.
// While reads fail, nothing can be renamed either where the trouble lasts.
func (r *readTrouble) meet(t *testing.T, way way, states map[string]string) {
	d := way.device(t)
	id := d.installID()
	d.cfg.ReadStep = r.step
	d.cfg.Step = func(op, _ string) error {
		if op == "rename" && r.hit != "" && r.count < r.last {
			return syscall.EIO
		}
		return nil
	}
	if a, err := New(d.cfg); err == nil {
		_, _ = a.Once(t.Context()) // what comes of it is seen below
		r.last = 0
		for range 5 {
			res, err := a.Once(t.Context())
			if err != nil {
				t.Errorf("when it is over: %v", err)
			}
			if res.idle {
				break
			}
		}
		a.Close()
	}
	d.cfg.ReadStep, d.cfg.Step = nil, nil
	d.settle()
	if v := whole(t, d, states); v != way.want || d.installID() != id {
		t.Errorf("on %s, want %s; installation %s, was %s; last report %+v", v, way.want, d.installID(), id, d.control.last())
	}
	if left := strays(d); len(left) > 0 {
		t.Errorf("%v stayed", left)
	}
}

// A state file that cannot be read any more, for ever, is as good as lost: the
// agent does not stay down, and what was the device's stays so.
func TestStateFileThatCanNeverBeRead(t *testing.T) {
	for _, file := range []string{installFile, attemptsFile, currentFile, desiredFile, pendingFile, managedFile, stateDir + "/managed.copy.json"} {
		for _, running := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, running=%t", path.Base(file), running), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { neverRead(t, file, running) })
			})
		}
	}
}

func neverRead(t *testing.T, file string, running bool) {
	d := onV1(t)
	d.write(busyFile, "")
	d.assign(2, "v1.1.0", v2(nil))
	d.wantOnce(0, "deferred") // desired.json is there
	if file == pendingFile {
		d.write(pendingFile, `{"attempt":1,"image":"x"}`)
	}
	d.remove(busyFile)
	bad := false
	d.cfg.ReadStep = func(op, p string) error {
		if bad && op == "read" && p == file {
			return syscall.EIO
		}
		return nil
	}
	// The bad sectors stay with the file that is set aside.
	d.cfg.Step = func(op, p string) error {
		if op == "rename" && (p == file || strings.HasPrefix(p, file+".")) {
			bad = false
		}
		return nil
	}
	bad = !running
	a := d.agent()
	defer a.Close()
	bad = bad || running
	began := time.Now()
	pass := func() {
		t.Helper()
		if _, err := a.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	pass()
	if passed := time.Since(began); passed > time.Minute {
		t.Errorf("two passes took %s", passed)
	}
	d.assign(9, "v1.2.0", v2(nil))
	pass()
	pass()
	r := d.control.last()
	if r.Current.Version != "v1.2.0" || r.Outcome != schema.OutcomeOK || d.content("/etc/edge/edge.conf") != "version=2\n" {
		t.Errorf("%+v\n%s", r, d.snapshot())
	}
}

// A managed file that cannot be read any more is written again: what it should
// hold is known.
func TestManagedFileThatCanNeverBeRead(t *testing.T) {
	d := onV1(t)
	const file = "/etc/edge/edge.conf"
	bad := true
	d.cfg.ReadStep = func(op, p string) error {
		if bad && op == "read" && p == file {
			return syscall.EIO
		}
		return nil
	}
	d.cfg.Step = func(op, p string) error {
		bad = bad && !(op == "rename" && p == file)
		return nil
	}
	d.wantOnce(0)
	if r := d.control.last(); bad || d.content(file) != "version=1\n" || r.DriftReason != "" || len(r.Drift) != 0 {
		t.Errorf("written again: %t; %q; report: %+v", !bad, d.content(file), r)
	}
}

// What cannot be read and cannot be set aside either is waited for, not
// written over: the installation stays who it is.
func TestStateFileIsNotWrittenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := onV1(t)
		id := d.installID()
		bad := true
		fault := func(op, p string) bool {
			return bad && (op == "read" && p == attemptsFile || op == "rename" && strings.HasPrefix(p, attemptsFile+disk.AsideMark))
		}
		step := func(op, p string) error {
			if fault(op, p) {
				return syscall.EIO
			}
			return nil
		}
		d.cfg.ReadStep, d.cfg.Step = step, step
		if _, err := New(d.cfg); err == nil {
			t.Error("it started without knowing what has ended")
		}
		bad = false
		d.assign(2, "v1.1.0", v2(nil))
		d.wantOnce(0, "updated")
		if d.installID() != id {
			t.Error("it took a new installation id")
		}
	})
}
