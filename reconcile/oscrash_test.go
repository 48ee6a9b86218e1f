package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// slots is the driver that withOS has programs for, without the programs:
// those are most of what a crash costs. The power may go on either side of
// everything that it does.
type slots struct {
	d     *device
	blind *bool // what is booted cannot be told
}

func (s slots) Name() string { return "command" }

func (s slots) Booted(context.Context) (string, error) {
	if s.blind != nil && *s.blind {
		return "", errors.New("the boot loader does not answer")
	}
	return strings.TrimSpace(s.d.content(osBooted)), nil
}

func (s slots) Staged(context.Context) (string, error) {
	return strings.TrimSpace(s.d.content(osStaged)), nil
}

func (s slots) Has(context.Context, string) (bool, error) { return true, nil }

func (s slots) Stage(_ context.Context, image string) error {
	return s.do("stage "+image, func() { s.d.write(osStaged, image+"\n") })
}

func (s slots) Fetch(_ context.Context, image string) (string, error) { return image, nil }

func (s slots) Undo(context.Context, string) error {
	return s.do("undo", func() { s.d.write(osStaged, "") })
}

func (s slots) Reboot(context.Context) error {
	return s.do("reboot", func() { s.d.write(osAsked, "x\n") })
}

func (s slots) BootID() (string, error) { return strings.TrimSpace(s.d.content(osBootID)), nil }

func (s slots) do(what string, work func()) error {
	step := s.d.cfg.Step
	if step == nil {
		step = func(string, string) error { return nil }
	}
	if err := step("os", what); err != nil {
		return err
	}
	work()
	return step("os", what+" done")
}

// osEnd is an OS update and what it must come to, wherever the power goes.
type osEnd struct {
	name    string
	spec    tree
	into    string // what every boot leads to; "" = what is staged
	cutOff  bool   // control does not answer on the new system
	open    bool   // only staging tells the version of the image
	version string
	booted  string
}

func osEnds() []osEnd {
	brief := tree{"confirm": tree{"within": "1ms"}}
	return []osEnd{
		{name: "good", spec: osSpec(nil), version: "v1.1.0", booted: "os-2"},
		{name: "bad after the boot", spec: osSpec(hook("afterRebooting", "/bin/false")), version: "v1.0.0", booted: "os-1"},
		{name: "comes back old", spec: osSpec(nil), into: "os-1\n", version: "v1.0.0", booted: "os-1"},
		{name: "good, told by staging", spec: osSpec(nil), open: true, version: "v1.1.0", booted: "os-2"},
		{name: "comes back old, told by staging", spec: osSpec(nil), into: "os-1\n", open: true, version: "v1.0.0", booted: "os-1"},
		{name: "cut off by the new system", spec: osSpec(brief), cutOff: true, version: "v1.0.0", booted: "os-1"},
	}
}

// osStates are the files of the two versions.
func osStates(t *testing.T) map[string]string {
	t.Helper()
	d := osDevice(t)
	states := map[string]string{"v1.0.0": d.snapshot()}
	d.assign(2, "v1.1.0", osSpec(nil))
	d.wantOnce(0, "reboot")
	d.boot(false, "")
	d.wantOnce(0, "updated")
	states["v1.1.0"] = d.snapshot()
	return states
}

// device has the update assigned. With programs the driver runs real ones.
func (e osEnd) device(t *testing.T, programs bool) *device {
	t.Helper()
	d := osDevice(t)
	switch {
	case e.open:
		d.cfg.Driver = &moving{slots: slots{d: d}, tip: "os-2", open: true}
	case !programs:
		d.cfg.Driver = slots{d: d}
	}
	if e.cutOff {
		d.control.answers = func() error {
			if d.content(osBooted) == "os-2\n" {
				return errors.New("cut")
			}
			return nil
		}
	}
	d.assign(2, "v1.1.0", e.spec)
	return d
}

// crash has the power go at the n-th step of an OS update, or only the agent,
// and looks at what the device comes to. It gives false where there are not so
// many steps.
func (e osEnd) crash(t *testing.T, states map[string]string, n int, programs, down bool) bool {
	t.Helper()
	d := e.device(t, programs)
	c := &crasher{at: n}
	d.cfg.Step = c.step
	d.control.dead = func() bool { return c.crashed }
	d.runOS(t, e.into, func() bool { return c.crashed })
	d.cfg.Step, d.control.dead = nil, nil
	if !c.crashed {
		t.Logf("%d steps", c.count)
		return false
	}
	if down {
		d.boot(true, e.into)
	}
	d.runOS(t, e.into, func() bool { return false })
	e.check(t, d, states, fmt.Sprintf("killed at step %d (%s), down=%t", n, c.where, down))
	return true
}

func (e osEnd) check(t *testing.T, d *device, states map[string]string, what string) {
	t.Helper()
	v := whole(t, d, states)
	booted := strings.TrimSpace(d.content(osBooted))
	if staged := d.content(osStaged); v != e.version || booted != e.booted || staged != "" || t.Failed() {
		t.Fatalf("%s: on %s, booted %s, staged %q; last report %+v", what, v, booted, staged, d.control.last())
	}
	if left := strays(d); len(left) > 0 {
		t.Fatalf("%s: %v stayed", what, left)
	}
}

// meet has an OS update meet trouble with the disk, which is over when a run of
// the agent has met it. It gives false where there were not so many operations.
func (e osEnd) meet(t *testing.T, states map[string]string, w *trouble) bool {
	t.Helper()
	d := w.d
	d.cfg.Step = w.step
	for rest := false; !rest; {
		var res Result
		a, err := New(d.cfg)
		if err == nil {
			res, err = a.Once(t.Context())
			a.Close()
		}
		switch {
		case err != nil && w.over, d.control.looks > 100:
			t.Fatalf("trouble at operation %d (%s): %v, %+v", w.at, w.hit, err, res)
		case d.content(osAsked) != "":
			d.boot(false, e.into)
		default:
			rest = res.idle && (w.hit == "" || w.over)
		}
		w.over = w.hit != ""
	}
	e.check(t, d, states, fmt.Sprintf("trouble at operation %d (%s)", w.at, w.hit))
	return w.count >= w.at
}

// Trouble with the disk on either side of the boots. It is here and there; the
// system test has all kinds of it at each operation.
func TestTroubleWithTheDiskInAnOSUpdate(t *testing.T) {
	states := osStates(t)
	for i, kind := range slices.Sorted(maps.Keys(troubles)) {
		for j, e := range osEnds() {
			if (i+j)%2 == 0 {
				e.meetAll(t, states, kind, i%2 == 0, 1+5*j, 21)
			}
		}
	}
}

// meetAll has every operation from first on, by the stride, meet the trouble.
func (e osEnd) meetAll(t *testing.T, states map[string]string, kind string, lasting bool, first, stride int) {
	t.Run(fmt.Sprintf("%s, %s, lasting=%t", e.name, kind, lasting), func(t *testing.T) {
		for n := first; ; n += stride {
			d := e.device(t, false)
			fault := troubles[kind](d)
			w := &trouble{d: d, at: n, lasting: lasting, fault: func(op, p string) error {
				if op == "os" {
					return nil // of the driver
				}
				return fault(op, p)
			}}
			if !e.meet(t, states, w) {
				return
			}
		}
	})
}

// The power goes all along an OS update, on either side of the boots: of the
// device, or of the agent alone. It is every fifth step here; the system test
// does both at each of them, also with real programs.
func TestCrashAllAlongAnOSUpdate(t *testing.T) {
	states := osStates(t)
	for i, e := range osEnds() {
		t.Run(e.name, func(t *testing.T) {
			for n := 1 + i%5; e.crash(t, states, n, false, n%2 == 0); n += 5 {
			}
		})
	}
}

// runOS lets the device run and boot until it rests or is dead. into is what
// the boots lead to, "" what is staged.
func (d *device) runOS(t *testing.T, into string, dead func() bool) {
	t.Helper()
	for range 12 {
		a, err := New(d.cfg)
		if err != nil {
			if dead() {
				return
			}
			t.Fatal(err)
		}
		res, err := a.Once(t.Context())
		a.Close()
		switch {
		case dead():
			return
		case err != nil:
			t.Fatal(err)
		case d.content(osAsked) != "":
			d.boot(false, into)
		case res.idle:
			return
		}
	}
	if !dead() {
		t.Fatalf("the device does not come to rest; last report %+v", d.control.last())
	}
}
