package units

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/disktest"
	"github.com/gitopsd/gitopsd/reconcile/internal/files"
	"github.com/gitopsd/gitopsd/schema"
)

// process is one that runs on: what it remembers is not read anew.
type process struct {
	*device
	root  *disk.Root
	files *files.Controller
	units *Controller
}

func (d *device) process() *process {
	p := &process{device: d}
	p.root, p.files, p.units = d.open()
	d.t.Cleanup(func() { p.root.Close() })
	return p
}

func (p *process) update(spec *schema.Spec) error {
	spec = whole(spec)
	if err := p.units.Prepare(p.t.Context(), spec, p.files.Ahead(spec, nil), false); err != nil {
		return err
	}
	if _, err := p.files.Apply(p.t.Context(), spec, nil, files.Onward); err != nil {
		return err
	}
	_, err := p.units.Finish(p.t.Context(), spec, false)
	return err
}

// rollBack goes past every error.
func (p *process) rollBack(spec *schema.Spec) error {
	spec = whole(spec)
	errs := []error{p.units.Prepare(p.t.Context(), spec, p.files.Ahead(spec, nil), true)}
	_, err := p.files.Apply(p.t.Context(), spec, nil, files.Back)
	errs = append(errs, err)
	_, err = p.units.Finish(p.t.Context(), spec, false)
	return errors.Join(append(errs, err)...)
}

// The disk fails in an update that comes to nothing and on the way back from it.
// When it works again, the way back comes to its end, in the same process or in
// the one after a boot, and an update succeeds. It is here and there; the system
// test does all.
func TestTroubleWithTheDisk(t *testing.T) {
	eachTrouble(t, func(i int) (first, stride int) { return 1 + 19*i, 101 })
}

// Where only the record of what is due cannot be written on the way back, units
// that go are stopped all the same while they have their files.
func TestWayBackWithoutARecord(t *testing.T) {
	failed := false
	w := newEnds(t).meet(t, false, func(back bool, op, p string) error {
		if back && !failed && op == "rename" && filepath.Base(p) == "units.json" {
			failed = true
			return syscall.EIO
		}
		return nil
	})
	if !failed || t.Failed() {
		t.Errorf("the record was not written on the way back; what is left is\n%s", w.is())
	}
}

func eachTrouble(t *testing.T, which func(i int) (first, stride int)) {
	ends := newEnds(t)
	disktest.Each(t, which, func(t *testing.T, d *disktest.Disk, cut bool) {
		ends.meet(t, cut, func(_ bool, op, p string) error { return d.Step(op, p) })
	})
}

// ends are how a device is without a spec, on the old and on the new one.
type ends struct{ bare, onOld, onNew string }

func newEnds(t *testing.T) ends {
	d, e := base(t), ends{}
	e.bare = d.is()
	d.must(oldSpec())
	e.onOld = d.is()
	d.must(newSpec())
	e.onNew = d.is()
	return e
}

// meet has a device meet a fault in a bad update and on the way back from it,
// and then go on without.
func (e ends) meet(t *testing.T, power bool, fault func(back bool, op, p string) error) *device {
	d := base(t)
	d.must(oldSpec())
	back := false
	d.disk = func(op, p string) error { return fault(back, op, p) }
	p := d.process()
	bad := newSpec()
	bad.Units["bad.service"] = unit("[Service]\nExecStart=/bin/false\n"+wanted, true, "started")
	if err := p.update(bad); err == nil {
		t.Fatal("the bad update was good")
	}
	back = true
	_ = p.rollBack(oldSpec())
	fault = func(bool, string, string) error { return nil }
	if power {
		d.systemd.boot()
		p = d.process()
	}
	must := func(what string, err error, want string) {
		t.Helper()
		if got := d.is(); err != nil || got != want {
			t.Errorf("%s: %v\n%s\n\nwant\n%s", what, err, got, want)
		}
	}
	must("the way back when it is over", p.rollBack(oldSpec()), e.onOld)
	if next := d.process(); !reflect.DeepEqual(next.units.rec, p.units.rec) {
		t.Errorf("the disk says %+v, and memory %+v", next.units.rec, p.units.rec)
	}
	must("the update when it is over", p.update(newSpec()), e.onNew)
	err := p.update(&schema.Spec{})
	if power {
		e.bare = d.is() // what ran before without being enabled does not any more
	}
	must("all is dropped", err, e.bare)
	if left := d.strays(); len(left) > 0 {
		t.Errorf("there is left %v", left)
	}
	return d
}

// strays are what nobody needs any more.
func (d *device) strays() []string {
	var left []string
	err := filepath.WalkDir(d.dir, func(p string, e os.DirEntry, err error) error {
		if disk.IsTemp(e.Name()) || strings.HasPrefix(e.Name(), "units.json") {
			left = append(left, p)
		}
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return left
}
