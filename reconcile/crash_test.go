package reconcile

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/schema"
)

// crashEverywhere runs prepare and then one pass, once for every operation on
// the disk of that pass, killing the agent at it. check then looks at the
// device after the restart that follows.
func crashEverywhere(t *testing.T, prepare func(t *testing.T) *device, check func(t *testing.T, d *device, where string)) {
	t.Helper()
	for n := 1; ; n++ {
		d := prepare(t)
		c := &crasher{at: n}
		d.cfg.Step = c.step
		d.control.dead = func() bool { return c.crashed }
		if a, err := New(d.cfg); err == nil {
			_, _ = a.Once(t.Context()) // it is dead: what it says does not matter
			a.Close()
		}
		d.cfg.Step, d.control.dead = nil, nil
		if !c.crashed {
			if n < 10 {
				t.Fatalf("only %d operations: nothing was tested", n)
			}
			t.Logf("%d operations", n-1)
			return
		}
		check(t, d, c.where)
		if t.Failed() {
			t.Fatalf("killed at operation %d: %s", n, c.where)
		}
	}
}

// settle runs passes until the device rests.
func (d *device) settle() Result {
	d.t.Helper()
	var res Result
	for range 4 {
		if res = d.once(); strings.HasPrefix(res.Summary, "nothing to do") || strings.Contains(res.Summary, " ended as failed") {
			return res
		}
	}
	d.t.Fatalf("the device does not come to rest: %s", res.Summary)
	return res
}

// whole checks that what current.json says is what the device is.
func whole(t *testing.T, d *device, states map[string]string) string {
	t.Helper()
	var cur record
	if !d.readState(currentFile, &cur) {
		t.Fatal("no current.json")
	}
	var att attempts
	d.readState(attemptsFile, &att)
	got := d.snapshot()
	if want, ok := states[cur.Version]; !ok || got != want {
		t.Errorf("current is %s (direction %q), but the device is\n%s\nwant\n%s", cur.Version, att.Direction, got, want)
	}
	if att.Direction != steady || d.content(pendingFile) != "" || d.content(desiredFile) != "" {
		t.Errorf("not at rest: %+v, pending %s", att, d.content(pendingFile))
	}
	return cur.Version
}

func stateOf(t *testing.T, attempt int64, spec tree) (before, after string) {
	t.Helper()
	d := onV1(t)
	before = d.snapshot()
	d.assign(attempt, "v1.1.0", spec)
	d.wantOnce(0, "updated")
	return before, d.snapshot()
}

func TestCrashAtEveryStepOfAnUpdate(t *testing.T) {
	spec := v2(hook("afterUpdating", "/bin/true"))
	before, after := stateOf(t, 2, spec)
	states := map[string]string{"v1.0.0": before, "v1.1.0": after}
	crashEverywhere(t, func(t *testing.T) *device {
		d := onV1(t)
		d.assign(2, "v1.1.0", spec)
		return d
	}, func(t *testing.T, d *device, where string) {
		id := d.installID()
		d.settle()
		if v := whole(t, d, states); v != "v1.1.0" {
			t.Errorf("the device ended on %s", v)
		}
		if d.installID() != id {
			t.Error("it took a new installation id")
		}
		if r := d.control.last(); r.Outcome != schema.OutcomeOK || r.Attempt != 2 || r.Phase != schema.PhaseUpdated {
			t.Errorf("last report: %+v", r)
		}
	})
}

// Without control after the restart, the device must still become whole.
func TestCrashAndNoNetworkAfterwards(t *testing.T) {
	before, after := stateOf(t, 2, v2(nil))
	states := map[string]string{"v1.0.0": before, "v1.1.0": after}
	crashEverywhere(t, func(t *testing.T) *device {
		d := onV1(t)
		d.assign(2, "v1.1.0", v2(tree{"confirm": tree{"within": "1ms"}}))
		return d
	}, func(t *testing.T, d *device, where string) {
		d.control.lookErr = errDead
		d.control.answers = func() error { return errDead }
		d.once()
		var cur record
		d.readState(currentFile, &cur)
		if got := d.snapshot(); got != states[cur.Version] {
			t.Errorf("current is %s, but the device is\n%s\nwant\n%s", cur.Version, got, states[cur.Version])
		}
	})
}

func TestCrashAtEveryStepOfARollback(t *testing.T) {
	before, _ := stateOf(t, 2, v2(nil))
	crashEverywhere(t, way{name: "rollback"}.device, func(t *testing.T, d *device, where string) {
		d.settle()
		whole(t, d, map[string]string{"v1.0.0": before})
		r := d.control.last()
		if r.Outcome != schema.OutcomeFailed || r.Attempt != 2 || !r.Begun || r.Phase != schema.PhaseError {
			t.Errorf("last report: %+v", r)
		}
	})
}

func TestCrashAtEveryStepOfTheFirstRelease(t *testing.T) {
	first := func(t *testing.T) *device {
		d := newDevice(t)
		d.write("/etc/edge/edge.conf", "from the factory\n")
		d.wantOnce(0)
		d.assign(1, "v1.0.0", v1)
		return d
	}
	d := first(t)
	d.wantOnce(0, "updated")
	states := map[string]string{"v1.0.0": d.snapshot()}
	crashEverywhere(t, first, func(t *testing.T, d *device, where string) {
		d.settle()
		whole(t, d, states)
	})
}

// With the disk full of other things there is still room for the record of
// what went wrong, and for the report.
func TestB67_BallastMakesRoomForTheRecord(t *testing.T) {
	d := onV1(t)
	for n := 1; n <= ballastPieces; n++ {
		if info, err := os.Stat(d.host(ballastPiece(n))); err != nil || info.Size() != ballastSize {
			t.Fatalf("ballast: %v, %v", info, err)
		}
	}
	gone := false
	d.cfg.Step = func(op, path string) error {
		if op == "remove" && path == ballastPiece(1) {
			gone = true
		}
		if op == "write" && !(gone && strings.HasPrefix(path, stateDir)) {
			return syscall.ENOSPC
		}
		return nil
	}
	d.assign(2, "v1.1.0", v2(nil))
	d.wantOnce(1, "rollback incomplete", "no space left")
	if r := d.control.last(); r.Phase != schema.PhaseError || r.Attempt != 2 || r.Outcome != "" || r.Failures[0].Class != schema.ClassRetryable {
		t.Errorf("report: %+v", r)
	}
	d.cfg.Step = nil
	d.wantOnce(1, "a retry is due", "back on v1.0.0")
	d.wantOnce(0, "updated")
	if _, err := os.Stat(d.host(ballastPiece(1))); err != nil {
		t.Error("the ballast did not come back")
	}
}

// Without inodes a file that goes makes room for one, and whatever is written
// next takes it: of the payload and the records, the records must not be those
// that go without.
func TestB67_BallastOfInodes(t *testing.T) {
	d := onV1(t)
	var inodes int // that are free
	d.cfg.Step = func(op, path string) error {
		switch {
		case op == "remove" && strings.HasPrefix(path, ballastFile):
			inodes++
		case (op == "create" || op == "mkdir") && inodes <= 0:
			return syscall.ENOSPC
		case op == "create" || op == "mkdir":
			inodes--
		case op == "rename" && path != desiredFile && strings.HasSuffix(path, ".json"):
			inodes++ // what stood there before
		}
		return nil
	}
	payload := []byte("payload\n")
	digest := schema.PayloadDigest(payload)
	spec := v2(nil)
	spec["files"].(tree)["/etc/payload"] = tree{"payload": digest}
	d.publish(func(a *schema.Assignment) { a.Attempt, a.Version, a.Spec = 2, "v1.1.0", spec }, map[string][]byte{digest: payload})
	d.wantOnce(1, "no space left")
	if r := d.control.last(); r.Attempt != 2 || len(r.Failures) == 0 || r.Failures[0].Class != schema.ClassRetryable {
		t.Errorf("report: %+v", r)
	}
	d.cfg.Step = nil
	d.settle()
	if got := d.content("/etc/edge/edge.conf") + d.content("/etc/payload"); got != "version=2\npayload\n" {
		t.Errorf("when there is room again the files hold %q", got)
	}
}

func TestB65_DamagedState(t *testing.T) {
	for _, c := range []struct {
		file        string
		newInstall  bool
		stillOn     string
		afterAssign string
	}{
		{installFile, true, "v1.0.0", "updated from v1.0.0 to v1.1.0"},
		{attemptsFile, true, "v1.0.0", "updated from v1.0.0 to v1.1.0"},
		{currentFile, true, "v0.0.0", "updated from v0.0.0 to v1.1.0"},
		{desiredFile, false, "v1.0.0", "updated from v1.0.0 to v1.1.0"},
		{pendingFile, false, "v1.0.0", "updated from v1.0.0 to v1.1.0"},
	} {
		for kind, damage := range map[string]func(b []byte) []byte{
			"empty":   func([]byte) []byte { return nil },
			"half":    func(b []byte) []byte { return b[:len(b)/2] },
			"garbage": func(b []byte) []byte { return []byte("\x00\xff{{{") },
			"null":    func([]byte) []byte { return []byte("null") },
			"lost":    nil,
		} {
			t.Run(c.file+"/"+kind, func(t *testing.T) {
				d := onV1(t)
				d.write(busyFile, "")
				d.assign(2, "v1.1.0", v2(nil))
				d.wantOnce(0, "deferred") // so that desired.json is there
				d.remove(busyFile)
				before, id := d.snapshot(), d.installID()
				if damage == nil {
					d.remove(c.file)
				} else {
					d.write(c.file, string(damage([]byte(d.content(c.file)+"{}"))))
				}
				res := d.once()
				if got := d.installID(); (got != id) != c.newInstall {
					t.Errorf("installation id %s, before %s", got, id)
				}
				if c.newInstall {
					if d.snapshot() != before {
						t.Error("something of before was acted on")
					}
					if r := d.control.last(); r.Current.Version != c.stillOn || r.InstallID == id {
						t.Errorf("report: %+v", r)
					}
					d.assign(3, "v1.1.0", v2(nil))
					res = d.once()
				}
				if !strings.Contains(res.Summary, c.afterAssign) {
					t.Errorf("result: %+v", res)
				}
				if damage != nil && !asideOf(d, c.file) {
					t.Error("the damaged file was not kept")
				}
				if d.content("/etc/edge/edge.conf") != "version=2\n" || d.content("/etc/edge/only-1") != "" {
					t.Errorf("the device is\n%s", d.snapshot())
				}
			})
		}
	}
}

// What a newer agent wrote besides is left out of account; a record that says
// that an older one would misread it is not read at all.
func TestB65_StateOfANewerAgent(t *testing.T) {
	d := onV1(t)
	d.write(busyFile, "")
	d.assign(2, "v1.1.0", v2(nil))
	d.wantOnce(0, "deferred")
	d.remove(busyFile)
	id := d.installID()
	for _, file := range []string{installFile, attemptsFile, currentFile, desiredFile} {
		d.write(file, strings.Replace(d.content(file), "{", `{"later":{"x":[1]},`, 1))
	}
	d.wantOnce(0, "updated from v1.0.0 to v1.1.0")
	if d.installID() != id {
		t.Error("it took a new installation id")
	}
	d.write(attemptsFile, strings.Replace(d.content(attemptsFile), `"format":1`, `"format":2`, 1))
	d.wantOnce(0)
	if d.installID() == id || !asideOf(d, attemptsFile) {
		t.Errorf("a record of another format was read: %s", d.content(attemptsFile))
	}
	if got := d.content("/etc/edge/edge.conf"); got != "version=2\n" {
		t.Errorf("the device runs %q", got)
	}
}

func asideOf(d *device, file string) bool {
	a := d.agent()
	defer a.Close()
	entries, err := a.root.List(stateDir)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(stateDir+"/"+e.Name(), file+disk.AsideMark) {
			return true
		}
	}
	return false
}

// State is lost in the middle of a change: the half is taken back.
func TestStateLostInTheMiddle(t *testing.T) {
	before, _ := stateOf(t, 2, v2(nil))
	for _, file := range []string{installFile, attemptsFile, desiredFile} {
		t.Run(file, func(t *testing.T) {
			d := onV1(t)
			d.assign(2, "v1.1.0", v2(nil))
			dead := false
			d.cfg.Step = func(op, path string) error {
				dead = dead || (op == "rename" && path == "/opt/new/deep/file")
				if dead {
					return errDead
				}
				return nil
			}
			d.control.dead = func() bool { return dead }
			d.once()
			if d.content("/etc/edge/edge.conf") != "version=2\n" {
				t.Fatal("not in the middle")
			}
			d.cfg.Step, d.control.dead = nil, nil
			d.remove(file)
			d.control.lookErr = errDead
			d.once()
			if got := d.snapshot(); got != before {
				t.Errorf("the device is\n%s\nwant\n%s", got, before)
			}
		})
	}
}

func TestB64_StateRemovedWhileRunning(t *testing.T) {
	d := onV1(t)
	a := d.agent()
	defer a.Close()
	id := d.installID()
	d.remove(stateDir)
	if _, err := a.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := d.installID(); got == id || got == "" {
		t.Errorf("installation id %q, before %q", got, id)
	}
	if d.content("/etc/edge/edge.conf") != "version=1\n" {
		t.Error("the device lost what it ran")
	}
	d.assign(2, "v1.1.0", v2(nil))
	res, err := a.Once(t.Context())
	if err != nil || !strings.Contains(res.Summary, "updated") {
		t.Fatalf("%+v, %v", res, err)
	}
	if _, err := New(d.cfg); err == nil {
		t.Error("the lock was lost with the folder")
	}
}

func TestB71_AndResumesAreBounded(t *testing.T) {
	d := onV1(t)
	before := d.snapshot()
	d.assign(2, "v1.1.0", v2(nil))
	// an update that kills the device in the middle, every time
	dead := false
	kill := func(op, path string) error {
		dead = dead || (op == "rename" && path == "/opt/new/deep/file")
		if dead {
			return errDead
		}
		return nil
	}
	d.control.dead = func() bool { return dead }
	d.cfg.Step = kill
	for range maxResumes + 2 {
		dead = false
		d.once()
	}
	dead = false
	d.cfg.Step = nil
	d.once()
	if got := d.snapshot(); got != before {
		t.Errorf("the device is\n%s\nwant\n%s", got, before)
	}
	if r := d.control.last(); r.Outcome != schema.OutcomeFailed || !strings.Contains(r.Reason, "stopped") {
		t.Errorf("report: %+v", r)
	}
}

func TestAttemptsFileStaysSmall(t *testing.T) {
	var a attempts
	for i := range int64(100) {
		a.end(ended{Attempt: i + 1, Outcome: schema.OutcomeFailed, Failures: []schema.Failure{{Message: strings.Repeat("x", messageLimit)}}})
	}
	b, err := json.Marshal(a)
	if err != nil || len(b) > 2*messageLimit || a.highest() != 100 {
		t.Errorf("%d bytes, highest %d, %v", len(b), a.highest(), err)
	}
}
