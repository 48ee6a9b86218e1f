package reconcile

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// wall is a wall clock that can be set apart from the time that passes.
type wall struct{ off atomic.Int64 }

func (w *wall) now() time.Time { return time.Now().Add(time.Duration(w.off.Load())) }

func (w *wall) jump(d time.Duration) { w.off.Add(int64(d)) }

// set has the clock show t now.
func (w *wall) set(t time.Time) { w.off.Store(int64(time.Until(t))) }

// jumpingDevice is a device in a bubble on v1.0.0 whose wall clock can be set.
func jumpingDevice(t *testing.T) (*device, *wall) {
	t.Helper()
	d := bubbleDevice(t).withOS() // for its boot id
	w := &wall{}
	w.set(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	began := time.Now()
	d.cfg.Now = w.now
	d.cfg.Uptime = func() time.Duration { return time.Hour + time.Since(began) }
	d.wantOnce(0)
	d.assign(1, "v1.0.0", v1)
	d.wantOnce(0, "updated")
	return d, w
}

const year = 365 * 24 * time.Hour

// jumps are what wall clocks do.
var jumps = map[string]func(w *wall){
	"not at all":       func(*wall) {},
	"a year ahead":     func(w *wall) { w.jump(year) },
	"a year back":      func(w *wall) { w.jump(-year) },
	"three hours back": func(w *wall) { w.jump(-3 * time.Hour) },
	"two hours ahead":  func(w *wall) { w.jump(2 * time.Hour) },
	"to 1970":          func(w *wall) { w.set(time.Date(1970, 1, 1, 0, 0, 7, 0, time.UTC)) },
}

// eachJump runs a test for each jump: while the agent runs, and while it is
// down for a moment.
func eachJump(t *testing.T, test func(t *testing.T, d *device, w *wall, jump func(r *running) *running)) {
	for name, jump := range jumps {
		for _, down := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, down=%t", name, down), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d, w := jumpingDevice(t)
					d.cfg.Interval = 10 * time.Minute // what is due does not wait for polls
					test(t, d, w, func(r *running) *running {
						if down {
							r.end(t)
						}
						jump(w)
						if down {
							r = d.start()
						}
						return r
					})
				})
			})
		}
	}
}

// A confirmation takes as long as its spec says, whatever the clock does.
func TestClockJumpsWhileConfirming(t *testing.T) {
	eachJump(t, func(t *testing.T, d *device, _ *wall, jump func(*running) *running) {
		d.control.answers = func() error { return errors.New("cut") }
		d.assign(2, "v1.1.0", v2(tree{"confirm": tree{"within": "10m"}}))
		r := d.start()
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		r = jump(r)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if d.content("/etc/edge/edge.conf") != "version=2\n" {
			t.Error("taken back before its time")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if d.content("/etc/edge/edge.conf") != "version=1\n" {
			t.Error("not taken back in time")
		}
		r.end(t)
	})
}

// A device that boots in the middle, in 1970 or after some hours, asks for as
// long as any other: an answer that comes in time counts.
func TestBootWhileConfirming(t *testing.T) {
	for name, after := range jumps {
		t.Run(name, func(t *testing.T) { bootWhileConfirming(t, after) })
	}
}

func bootWhileConfirming(t *testing.T, after func(*wall)) {
	synctest.Test(t, func(t *testing.T) {
		d, w := jumpingDevice(t)
		var up atomic.Bool
		d.control.answers = func() error {
			if !up.Load() {
				return errors.New("cut")
			}
			return nil
		}
		d.assign(2, "v1.1.0", v2(tree{"confirm": tree{"within": "10m"}}))
		r := d.start()
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		r.end(t)
		after(w) // another boot has its time anew
		d.boot(true, "")
		r = d.start()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		w.set(time.Date(2026, 11, 29, 12, 30, 0, 0, time.UTC))
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		up.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if rep := d.control.last(); rep.Outcome != schema.OutcomeOK || rep.Current.Version != "v1.1.0" {
			t.Errorf("report: %+v", rep)
		}
		r.end(t)
	})
}

// An update after which a device without a clock of its own gets no time any
// more would cut it off: nothing is polled without. It is taken back.
func TestClockIsNeverSetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := jumpingDevice(t)
		var up atomic.Bool
		d.control.answers = func() error {
			if !up.Load() {
				return errors.New("cut")
			}
			return nil
		}
		d.assign(2, "v1.1.0", v2(tree{"confirm": tree{"within": "10m"}}))
		r := d.start()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		r.end(t)
		w.set(time.Unix(7, 0))
		d.boot(true, "")
		up.Store(true)
		r = d.start()
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		if d.content("/etc/edge/edge.conf") != "version=2\n" {
			t.Error("taken back before its time")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if d.content("/etc/edge/edge.conf") != "version=1\n" {
			t.Error("not taken back")
		}
		r.end(t)
	})
}

// A confirmation that no boot ever lets end does end.
func TestBootsWhileConfirmingAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := jumpingDevice(t)
		d.control.answers = func() error { return errors.New("cut") }
		d.assign(2, "v1.1.0", v2(tree{"confirm": tree{"within": "10m"}}))
		for range maxResumes + 2 {
			dead := &atomic.Bool{}
			d.cfg.Step = func(string, string) error {
				if dead.Load() {
					return errDead
				}
				return nil
			}
			r := d.start()
			time.Sleep(9 * time.Minute)
			synctest.Wait()
			dead.Store(true)
			r.end(t)
			d.boot(true, "")
		}
		if d.content("/etc/edge/edge.conf") != "version=1\n" {
			t.Error("it was never taken back")
		}
	})
}

func TestClockJumpsBetweenTwoTries(t *testing.T) {
	need := tree{"resources": tree{"disk": tree{"minFree": "8000000000Gi"}},
		"onDevice": tree{"retries": 5, "backoff": tree{"base": "4h", "factor": 1}}}
	eachJump(t, func(t *testing.T, d *device, w *wall, jump func(*running) *running) {
		d.assign(2, "v1.1.0", v2(need))
		r := d.start()
		time.Sleep(time.Hour)
		synctest.Wait()
		r = jump(r)
		time.Sleep(118 * time.Minute) // three hours are less than the shortest wait with its jitter
		synctest.Wait()
		if n := d.work().Tries; n != 1 {
			t.Errorf("%d tries in three hours with a backoff of four", n)
		}
		if w.now().Year() < sanestYear {
			w.jump(56 * year) // without a clock nothing is tried at all
		}
		time.Sleep(122 * time.Minute) // five hours are the longest
		synctest.Wait()
		if n := d.work().Tries; n != 2 {
			t.Errorf("%d tries in five hours with a backoff of four", n)
		}
		r.end(t)
	})
}

func TestClockJumpsWhileSettling(t *testing.T) {
	eachJump(t, func(t *testing.T, d *device, _ *wall, jump func(*running) *running) {
		settle := schema.Duration(time.Hour)
		d.publish(func(a *schema.Assignment) { a.Attempt, a.Version, a.Spec, a.Settle = 2, "v1.1.0", v2(nil), &settle }, nil)
		r := d.start()
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		r = jump(r)
		time.Sleep(29 * time.Minute)
		synctest.Wait()
		if d.control.last().Settled {
			t.Error("settled too early")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if !d.control.last().Settled {
			t.Error("not settled in time")
		}
		r.end(t)
	})
}

// An idle agent keeps its pace and writes nothing while the clock goes mad.
func TestClockJumpsWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := jumpingDevice(t)
		var writes atomic.Int64
		d.cfg.Step = func(string, string) error { writes.Add(1); return nil }
		r := d.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		writes.Store(0)
		d.control.forget()
		for i := range 120 {
			w.jump([]time.Duration{year, -2 * time.Hour, -year, time.Hour, -24 * time.Hour, 24 * time.Hour, time.Hour}[i%7])
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		looks, reports := d.control.counts()
		if looks < 108 || looks > 134 || reports < 12 || reports > 15 || writes.Load() != 0 {
			t.Errorf("in two hours %d polls at one a minute, %d reports at one in ten minutes, %d writes", looks, reports, writes.Load())
		}
		r.end(t)
	})
}

// A device that starts in 1970 does nothing until its clock is set, and then
// all in its time.
func TestClockIsSetLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := jumpingDevice(t)
		w.set(time.Date(1970, 1, 1, 0, 0, 7, 0, time.UTC))
		d.boot(true, "")
		settle := schema.Duration(10 * time.Minute)
		d.publish(func(a *schema.Assignment) { a.Attempt, a.Version, a.Spec, a.Settle = 2, "v1.1.0", v2(nil), &settle }, nil)
		d.control.forget()
		r := d.start()
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if n, _ := d.control.counts(); n != 0 || d.content("/etc/edge/edge.conf") != "version=1\n" {
			t.Errorf("%d looks without a clock", n)
		}
		w.set(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
		time.Sleep(8 * time.Minute)
		synctest.Wait()
		if rep := d.control.last(); rep.Current.Version != "v1.1.0" || rep.Settled {
			t.Errorf("report: %+v", rep)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if !d.control.last().Settled {
			t.Error("not settled")
		}
		r.end(t)
	})
}

// An instant of another boot is as old as the wall clock can tell, and begins
// again where it cannot.
func TestInstantOfAnotherBoot(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	c := clock{now: func() time.Time { return now }, up: func() time.Duration { return time.Hour }, boot: "b2"}
	for name, test := range map[string]struct {
		t    instant
		wall time.Time
		ago  time.Duration
	}{
		"this boot, whatever the clock says": {instant{"b2", 20 * time.Minute}, now.AddDate(1, 0, 0), 40 * time.Minute},
		"another boot":                       {instant{"b1", 20 * time.Minute}, now.Add(-3 * time.Hour), 3 * time.Hour},
		"another boot, put back since":       {instant{"b1", 20 * time.Minute}, now.Add(3 * time.Hour), 0},
		"another boot, not set then":         {instant{"b1", 20 * time.Minute}, time.Unix(9, 0), 0},
		"a name that came twice":             {instant{"b2", 2 * time.Hour}, now.Add(-time.Minute), time.Minute},
		"an older agent":                     {instant{}, now.Add(-time.Minute), time.Minute},
	} {
		if got := c.since(c.adopt(test.t, test.wall)); got != test.ago {
			t.Errorf("%s: %s ago, want %s", name, got, test.ago)
		}
	}
	// what an older agent wrote while its clock was far ahead
	w := work{NextTry: now.AddDate(1, 0, 0)}
	if w.adopt(c); w.Wait != longestWait || c.since(w.Failed) != 0 {
		t.Errorf("waits %s from %s ago", w.Wait, c.since(w.Failed))
	}
}

// A boot is proved within its time and a reboot is waited for as long as it
// may take, whatever the clock says before and after.
func TestClockJumpsAroundAReboot(t *testing.T) {
	for name, jump := range jumps {
		t.Run(name, func(t *testing.T) {
			d := osDevice(t)
			up, blind := time.Hour, true
			w := &wall{}
			reset := func() { w.set(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)) }
			reset()
			d.cfg.Now, d.cfg.Uptime = w.now, func() time.Duration { return up }
			d.cfg.Driver = slots{d: d, blind: &blind}
			pass := func(after time.Duration, exit int, words ...string) {
				t.Helper()
				jump(w)
				up += after
				d.wantOnce(exit, words...)
				reset()
			}
			blind = false
			d.assign(2, "v1.1.0", osSpec(nil))
			d.wantOnce(0, "reboot into os-2")
			// It does not come. A clock that is not set is no reason not to ask.
			pass(DefaultBootTimeout/2, 0, "reboot into os-2")
			up += DefaultBootTimeout / 2
			d.wantOnce(1, "has not happened", "back on v1.0.0")

			d.wantOnce(0, "reboot into os-2")
			up, blind = time.Minute, true
			d.boot(false, "")
			pass(0, 1, "cannot be told yet")
			up += DefaultBootTimeout / 2
			d.wantOnce(1, "cannot be told yet")
			pass(DefaultBootTimeout/4, 1, "cannot be told yet")
			blind = false
			up += DefaultBootTimeout / 8
			d.wantOnce(0, "updated")

			d.assign(3, "v1.2.0", filesSpec(nil, tree{"os": tree{"image": "os-3"}}))
			d.wantOnce(0, "reboot into os-3")
			up, blind = time.Minute, true
			d.boot(false, "")
			d.wantOnce(1, "cannot be told yet")
			pass(DefaultBootTimeout, 1, "rollback incomplete")
		})
	}
}

// Another boot goes on settling by the wall clock, and from its start where
// that was not set.
func TestBootWhileSettling(t *testing.T) {
	for _, unset := range []bool{false, true} {
		d := onV1(t).withOS()
		up := time.Hour
		d.cfg.Uptime = func() time.Duration { return up }
		settle := schema.Duration(time.Hour)
		d.publish(func(a *schema.Assignment) { a.Attempt, a.Version, a.Spec, a.Settle = 2, "v1.1.0", v2(nil), &settle }, nil)
		d.wantOnce(0, "updated")
		day := d.clock
		up = 0
		d.boot(true, "")
		want := 30 * time.Minute
		d.clock = day.Add(want)
		if unset {
			want, d.clock = time.Hour, time.Unix(7, 0)
		}
		a := d.agent()
		at := func(passed time.Duration, settled bool) {
			t.Helper()
			up, d.clock = passed, day.Add(time.Hour+passed)
			if a.settled() != settled {
				t.Errorf("clock unset: %t; %s after the boot settled is %t", unset, passed, !settled)
			}
		}
		at(want-time.Minute, false)
		at(want, true)
		a.Close()
	}
}
