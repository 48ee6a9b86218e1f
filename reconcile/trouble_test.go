package reconcile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/schema"
)

// trouble is a disk that fails from one operation on, or at one only.
type trouble struct {
	d *device
	// fault is the error of an operation while it lasts, nil where that works.
	fault   func(op, path string) error
	at      int  // the operation at which it begins, counted from 1
	lasting bool // until over is set
	over    bool
	count   int
	hit     string // the first operation that failed

	// lost are changes that a power cut may take back: no sync made them last.
	lost []change
}

// change is what stood at a path before it was changed.
type change struct {
	path, meta string // meta = only mode and owner were changed
	mode       fs.FileMode
	data       []byte
	absent     bool
}

func (w *trouble) step(op, p string) error {
	w.count++
	if !w.over && (w.count == w.at || (w.lasting && w.count > w.at)) {
		if err := w.fault(op, p); err != nil {
			if w.hit == "" {
				w.hit = op + " " + p
			}
			return err
		}
	}
	w.note(op, p)
	return nil
}

// note keeps what is not yet on the platter, as a file system without any
// order of its own would have it.
func (w *trouble) note(op, p string) {
	switch op {
	case "rename", "remove", "chmod", "chown":
		if disk.IsTemp(path.Base(p)) {
			return
		}
		c := change{path: p}
		info, err := os.Lstat(w.d.host(p))
		if c.absent = err != nil; !c.absent {
			c.mode = info.Mode()
		}
		if op == "chmod" || op == "chown" {
			c.meta = op
		} else if !c.absent && info.Mode().IsRegular() {
			c.data = []byte(w.d.content(p))
		}
		w.lost = append(w.lost, c)
	case "sync", "syncdir": // of a folder, both are the same
		w.lost = slices.DeleteFunc(w.lost, func(c change) bool {
			return c.meta == "" && path.Dir(c.path) == p || c.meta != "" && c.path == p
		})
	}
}

// cut is the power going: what was not synced is as it was.
func (w *trouble) cut(t *testing.T) {
	t.Helper()
	for _, c := range slices.Backward(w.lost) {
		host := w.d.host(c.path)
		if _, err := os.Lstat(path.Dir(host)); err != nil {
			continue // its folder is gone for good
		}
		var err error
		switch {
		case c.absent:
			err = os.RemoveAll(host)
		case c.meta != "":
			if err = os.Chmod(host, c.mode); errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		case c.mode.IsDir():
			if err = os.Mkdir(host, c.mode.Perm()); errors.Is(err, fs.ErrExist) {
				err = nil
			}
		default:
			if err = os.WriteFile(host, c.data, c.mode.Perm()); err == nil {
				err = os.Chmod(host, c.mode)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.lost = nil
}

// noInodes is a file system on which there are none for new files; what goes
// gives one back.
func noInodes(d *device) func(op, p string) error {
	free := 0
	return func(op, p string) error {
		switch op {
		case "create", "mkdir":
			if free == 0 {
				return syscall.ENOSPC
			}
			free--
		case "remove":
			free++
		case "rename":
			if _, err := os.Lstat(d.host(p)); err == nil {
				free++
			}
		}
		return nil
	}
}

// troubles are what disks do. EIO is also the answer of a sync that could not
// write: what it was for is not there then, whatever it looks like.
var troubles = map[string]func(d *device) func(op, p string) error{
	"no space": func(*device) func(op, p string) error {
		return func(op, p string) error {
			if op == "remove" {
				return nil // frees room
			}
			return syscall.ENOSPC
		}
	},
	"no inodes": noInodes,
	"read-only": func(*device) func(op, p string) error { return func(string, string) error { return syscall.EROFS } },
	"EIO":       func(*device) func(op, p string) error { return func(string, string) error { return syscall.EIO } },
}

// way is where an update leads.
type way struct {
	name string
	want string
}

// ways are an update that is good, and one that cuts the device off and is
// taken back when nothing confirms it.
var ways = []way{{"update", "v1.1.0"}, {"rollback", "v1.0.0"}}

// device has the update assigned.
func (w way) device(t *testing.T) *device {
	t.Helper()
	d := onV1(t)
	if w.name == "rollback" {
		d.control.answers = func() error {
			if d.content("/etc/edge/only-2") != "" {
				return errors.New("cut")
			}
			return nil
		}
	}
	d.assign(2, "v1.1.0", v2(tree{"confirm": tree{"within": "1ms"}}))
	return d
}

// The disk fails at one operation of an update or of a rollback, or from it
// on: the running agent recovers by itself when that is over, and so does the
// next one after a power cut. Here it is every sixth operation of an update with
// trouble that lasts, and every eleventh otherwise; the system test does all.
func TestTroubleWithTheDisk(t *testing.T) {
	eachTrouble(t, func(way string, lasting bool, i int) (first, stride int) {
		if way == "update" && lasting {
			return 1 + i/4%6, 6
		}
		return 1 + i%11, 11
	})
}

// eachTrouble runs all kinds of trouble, at the operations that which says for the
// i-th of them.
func eachTrouble(t *testing.T, which func(way string, lasting bool, i int) (first, stride int)) {
	states := map[string]string{}
	states["v1.0.0"], states["v1.1.0"] = stateOf(t, 2, v2(nil))
	i := 0
	for _, name := range slices.Sorted(maps.Keys(troubles)) {
		for _, way := range ways {
			for _, lasting := range []bool{false, true} {
				first, stride := which(way.name, lasting, i)
				i++
				t.Run(fmt.Sprintf("%s, %s, lasting=%t", name, way.name, lasting), func(t *testing.T) {
					for n := first; ; n += stride {
						d := way.device(t)
						w := &trouble{d: d, fault: troubles[name](d), at: n, lasting: lasting}
						if !w.meet(t, states, way.want) {
							t.Logf("%d operations", w.count)
							return
						}
					}
				})
			}
		}
	}
}

// eachKind runs all kinds of trouble, each at the operations of a stride for as
// long as there are more: at other ones for each.
func eachKind(t *testing.T, stride int, meet func(t *testing.T, kind string, lasting bool, n int) (more bool)) {
	for i, kind := range slices.Sorted(maps.Keys(troubles)) {
		for j, lasting := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, lasting=%t", kind, lasting), func(t *testing.T) {
				for n := 1 + (2*i+j)*stride/(2*len(troubles)); meet(t, kind, lasting, n) && !t.Failed(); n += stride {
				}
			})
		}
	}
}

// meet has the device meet the trouble in one pass, and then looks what it
// comes to. It gives false where there was no such operation.
func (w *trouble) meet(t *testing.T, states map[string]string, want string) bool {
	t.Helper()
	d := w.d
	d.cfg.Step = w.step
	a, err := New(d.cfg)
	if err == nil {
		_, err := a.Once(t.Context())
		w.over = true
		for i := 0; i < 5 && (i == 0 || err == nil); i++ {
			var res Result
			if res, err = a.Once(t.Context()); res.idle {
				break
			}
		}
		a.Close()
		if err != nil {
			t.Fatalf("trouble at operation %d (%s): when it is over: %v", w.at, w.hit, err)
		}
	}
	if w.over = true; w.count < w.at {
		return false
	}
	d.cfg.Step = nil
	if err == nil {
		w.check(t, states, want, "running on")
		w.cut(t)
	}
	d.settle()
	w.check(t, states, want, "after a power cut")
	return true
}

func (w *trouble) check(t *testing.T, states map[string]string, want, when string) {
	t.Helper()
	v := whole(t, w.d, states)
	if t.Failed() || v != want {
		t.Fatalf("trouble at operation %d (%s), %s: on %s, want %s, last report %+v", w.at, w.hit, when, v, want, w.d.control.last())
	}
	if left := strays(w.d); len(left) > 0 {
		t.Fatalf("trouble at operation %d (%s), %s: %v stayed", w.at, w.hit, when, left)
	}
}

// strays are files in the agent's own folders that nothing needs.
func strays(d *device) []string {
	var left []string
	for _, dir := range []string{stateDir, payloadDir, stateDir + "/original", "/run/gitopsd"} {
		entries, _ := os.ReadDir(d.host(dir))
		for _, e := range entries {
			if disk.IsTemp(e.Name()) || strings.Contains(e.Name(), disk.AsideMark) {
				left = append(left, dir+"/"+e.Name())
			}
		}
	}
	originals, _ := os.ReadDir(d.host(stateDir + "/original"))
	if len(originals) > 1 { // what v1 and v2 replace is one file
		left = append(left, "originals")
	}
	return left
}

// That the device is about to change itself stands on the platter before it
// does, also where the sync of that record failed, and where the agent died
// before it: by what the next one reads, it looks written.
func TestRecordIsSyncedBeforeItIsReliedOn(t *testing.T) {
	for _, dies := range []bool{false, true} {
		d := onV1(t)
		d.assign(2, "v1.1.0", v2(nil))
		w := &trouble{d: d}
		recorded, failed, dead := false, false, false
		d.cfg.Step = func(op, p string) error {
			switch {
			case dead:
				return errDead
			case op == "rename" && p == attemptsFile && strings.Contains(d.newest(), `"forward"`):
				recorded = true
			case recorded && !failed && op == "syncdir":
				failed, dead = true, dies
				return syscall.EIO
			case failed && !strings.HasPrefix(p, path.Dir(stateDir)):
				dead = true // the first change of the device itself
				return errDead
			}
			w.note(op, p)
			return nil
		}
		d.control.dead = func() bool { return dead }
		a := d.agent()
		_, _ = a.Once(t.Context())
		if dead {
			a.Close()
			dead = false
			a = d.agent()
		}
		_, _ = a.Once(t.Context())
		a.Close()
		if !failed || !dead {
			t.Fatalf("dies=%t: failed %t, then came to a change of the device %t", dies, failed, dead)
		}
		w.cut(t)
		var att attempts
		if d.readState(attemptsFile, &att); att.Direction != forward {
			t.Errorf("dies=%t: the device changed itself, and the record says %q", dies, att.Direction)
		}
	}
}

// A payload that could not be synced is written again before it counts as
// there.
func TestPayloadThatCouldNotBeSynced(t *testing.T) {
	d := onV1(t)
	payload := []byte("payload\n")
	digest := schema.PayloadDigest(payload)
	spec := filesSpec(nil, tree{"files": tree{"/etc/payload": tree{"payload": digest}}})
	d.publish(func(a *schema.Assignment) { a.Attempt, a.Version, a.Spec = 2, "v1.1.0", spec }, map[string][]byte{digest: payload})
	failed, written := false, 0
	d.cfg.Step = func(op, p string) error {
		if op == "rename" && path.Dir(p) == payloadDir {
			written++
		}
		if op == "syncdir" && p == payloadDir && !failed {
			failed = true
			return syscall.EIO
		}
		return nil
	}
	a := d.agent()
	defer a.Close()
	for range 2 {
		_, _ = a.Once(t.Context())
	}
	if written != 2 || d.content("/etc/payload") != string(payload) {
		t.Errorf("written %d times, %q", written, d.content("/etc/payload"))
	}
}

// newest is what the newest temporary file of the state holds.
func (d *device) newest() string {
	entries, _ := os.ReadDir(d.host(stateDir))
	for _, e := range entries {
		if disk.IsTemp(e.Name()) {
			return d.content(stateDir + "/" + e.Name())
		}
	}
	return ""
}
