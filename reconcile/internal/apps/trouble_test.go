package apps

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/disktest"
	"github.com/gitopsd/gitopsd/reconcile/internal/units"
)

// The disk fails in an update and on the way back from it, which goes past
// every error. When it works again, the way back comes to its end, and an update
// succeeds. It is here and there; the system test does all.
func TestTroubleWithTheDisk(t *testing.T) {
	eachTrouble(t, func(i int) (first, stride int) { return 1 + 23*i, 199 })
}

// What goes wrong on the way back only, with the record or with the files, makes
// it incomplete: what ran, and what a boot starts meanwhile, stays known, and goes
// with the next try.
func TestWayBackInPart(t *testing.T) {
	for _, fails := range []string{"rename apps.json", "rename managed.json", "remove compose-new.service"} {
		for _, boot := range []bool{false, true} {
			w := stocked(t)
			w.must(mixedOne)
			failed := false
			w.meet(&disktest.Disk{}, boot, func() {
				w.disk = func(op, p string) error {
					if !failed && op+" "+filepath.Base(p) == fails {
						failed = true
						return syscall.EIO
					}
					return nil
				}
			})
			if !failed || t.Failed() {
				t.Errorf("%s failed: %t, boot: %t", fails, failed, boot)
			}
		}
	}
}

func eachTrouble(t *testing.T, which func(i int) (first, stride int)) {
	first := stocked(t)
	first.must(mixedOne)
	disktest.Each(t, which, func(t *testing.T, d *disktest.Disk, cut bool) {
		w := first.copy()
		w.t = t
		w.disk = d.Step
		w.meet(d, cut, func() {})
	})
}

// mixedBad is mixedTwo with a service that does not work.
var mixedBad = both(mixedTwo, composeSpec(map[string]string{"shop": services("reg/BROKEN:1")}))

// boot starts everything of which there are files.
func (w *world) boot() {
	w.t.Helper()
	disk := w.disk
	w.disk = nil
	m := &manager{w: w}
	clear(w.running)
	clear(w.projects)
	err := m.Reload(w.t.Context())
	for unit := range w.loaded {
		err = errors.Join(err, m.Do(w.t.Context(), units.Job{Verb: units.Start, Unit: unit}))
	}
	if w.disk = disk; err != nil {
		w.t.Fatal(err)
	}
}

// meet has the device meet the trouble in an update that comes to nothing and
// on the way back, before which back is called, and then go on, with the same
// process or after a boot.
func (w *world) meet(d *disktest.Disk, anew bool, back func()) {
	t := w.t
	w.registry["reg/BROKEN:1"] = "b1"
	before := w.record()
	a := w.agent()
	if err := a.update(mixedBad); err == nil {
		t.Fatal("the bad update was good")
	}
	back()
	if err := a.rollBack(mixedOne); err == nil && !d.Begun() {
		return
	}
	d.Over = true
	if anew {
		w.boot()
		a = w.agent()
	}
	if err := a.rollBack(mixedOne); err != nil {
		t.Errorf("the way back when it is over: %v", err)
	}
	if err := w.runs(mixedOne); err != nil {
		t.Errorf("back: %v", err)
	}
	if got := w.record(); got != before {
		t.Errorf("back, the record is\n%s\nwant\n%s", got, before)
	}
	if err := a.update(mixedTwo); err != nil {
		t.Errorf("the same update when it is over: %v", err)
	}
	if err := w.runs(mixedTwo); err != nil {
		t.Error(err)
	}
	if w.starts["compose-keep.service"] != 1 && !anew {
		t.Errorf("what did not change was started again: %v", w.starts)
	}
	if left := w.strays(); len(left) > 0 {
		t.Errorf("there is left %v", left)
	}
}

// record is what apps.json says of what runs.
func (w *world) record() string {
	w.t.Helper()
	r, err := w.agent().load()
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for name, a := range r.Apps {
		all = append(all, fmt.Sprintf("%s %s %v %v", name, a.Hash, names(a.Units), a.Before))
	}
	slices.Sort(all)
	return fmt.Sprintf("%s\nreload=%t", strings.Join(all, "\n"), r.Reload)
}

// strays are what nobody needs any more.
func (w *world) strays() []string {
	var left []string
	err := filepath.WalkDir(w.dir, func(p string, e os.DirEntry, err error) error {
		if strings.HasPrefix(e.Name(), ".gitopsd-tmp-") || e.Name() == "apps-check" || strings.Contains(e.Name(), ".damaged") {
			left = append(left, p)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return left
}
