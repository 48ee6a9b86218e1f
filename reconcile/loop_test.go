package reconcile

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// bubbleDevice is a device whose clock is the bubble's, moved to our years.
func bubbleDevice(t *testing.T) *device {
	t.Helper()
	d := newDevice(t)
	d.cfg.Now = func() time.Time { return time.Now().AddDate(26, 0, 0) }
	return d
}

// running is an agent in its loop.
type running struct {
	agent *Agent
	stop  context.CancelFunc
	done  chan error
}

func (d *device) start() *running {
	d.t.Helper()
	a := d.agent()
	a.unwatched = true // its events come from outside the bubble
	ctx, cancel := context.WithCancel(d.t.Context())
	r := &running{agent: a, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- a.Run(ctx) }()
	return r
}

func (r *running) end(t *testing.T) {
	t.Helper()
	r.stop()
	if err := <-r.done; err != nil {
		t.Errorf("Run: %v", err)
	}
	if err := r.agent.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestIdleLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		d.wantOnce(0)
		d.assign(1, "v1.0.0", v1)
		d.wantOnce(0, "updated")
		var writes atomic.Int64
		d.cfg.Step = func(string, string) error { writes.Add(1); return nil }
		r := d.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		writes.Store(0)
		d.control.forget()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if n := writes.Load(); n != 0 {
			t.Errorf("an idle agent changed the disk %d times", n)
		}
		looks, reports := d.control.counts()
		if looks < 108 || looks > 134 {
			t.Errorf("%d polls in two hours at one a minute", looks)
		}
		if reports < 12 || reports > 15 {
			t.Errorf("%d reports in two hours at one in ten minutes", reports)
		}
		r.end(t)
	})
}

func TestLoopUpdatesAndTellsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		r := d.start()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		settle := schema.Duration(10 * time.Minute)
		d.publish(func(a *schema.Assignment) { a.Attempt, a.Version, a.Spec, a.Settle = 1, "v1.0.0", v1, &settle }, nil)
		d.control.forget()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := d.control.phases(); got != "Starting Updated" {
			t.Errorf("phases reported: %s", got)
		}
		ok := d.control.last()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		var settled *schema.Report
		d.control.mu.Lock()
		for _, rep := range d.control.reports {
			if rep.Settled {
				settled = &rep
				break
			}
		}
		d.control.mu.Unlock()
		if settled == nil || ok.Settled {
			t.Fatalf("settling was not reported: %+v", d.control.last())
		}
		if after := settled.ReportedAt.Sub(ok.ReportedAt); after < 10*time.Minute || after > 10*time.Minute+5*time.Second {
			t.Errorf("settled was reported %s after ok", after)
		}
		r.end(t)
	})
}

func TestBusyAloneWaitsForTheHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		r := d.start()
		time.Sleep(90 * time.Second)
		synctest.Wait()
		_, n := d.control.counts()
		d.write(busyFile, "milling\n")
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		if _, now := d.control.counts(); now != n {
			t.Errorf("busy was reported at once")
		}
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		if rep := d.control.last(); !rep.Busy || rep.BusyReason != "milling" {
			t.Errorf("heartbeat: %+v", rep)
		}
		d.write(holdFile, "mine\n")
		time.Sleep(75 * time.Second)
		synctest.Wait()
		if rep := d.control.last(); rep.Hold == nil || rep.Hold.Reason != "mine" {
			t.Errorf("a hold was not reported at once: %+v", rep)
		}
		r.end(t)
	})
}

func TestRetriesWaitButThePollDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		d.wantOnce(0)
		need := tree{"resources": tree{"disk": tree{"minFree": "8000000000Gi"}},
			"onDevice": tree{"retries": 3, "backoff": tree{"base": "1h", "factor": 2, "cap": "24h"}}}
		d.assign(1, "v1.0.0", v2(need))
		r := d.start()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if w := d.work(); w.Tries != 1 {
			t.Errorf("%d tries in ten minutes with a backoff of an hour", w.Tries)
		}
		time.Sleep(75 * time.Minute)
		synctest.Wait()
		if w := d.work(); w.Tries != 2 {
			t.Errorf("%d tries after the first wait", w.Tries)
		}
		// the latest wins, at the next poll
		d.assign(2, "v1.0.1", v1)
		time.Sleep(70 * time.Second)
		synctest.Wait()
		if got := d.control.last().Current.Version; got != "v1.0.1" {
			t.Errorf("on %q while an older attempt waits", got)
		}
		r.end(t)
	})
}

func TestRetriesRunOutInTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		d.wantOnce(0)
		d.cfg.Interval = time.Hour // retries do not wait for polls
		d.assign(1, "v1.0.0", v2(tree{"resources": tree{"disk": tree{"minFree": "8000000000Gi"}}}))
		r := d.start()
		time.Sleep(3 * time.Minute) // 10s + 20s + 40s, with jitter
		synctest.Wait()
		if rep := d.control.last(); rep.Outcome != schema.OutcomeExhausted || rep.Failures[0].Tries != 4 {
			t.Errorf("last report: %+v", rep)
		}
		r.end(t)
	})
}

func TestB69_ReportsThatFailUndoNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		d.wantOnce(0)
		d.assign(1, "v1.0.0", v1)
		var tries atomic.Int64
		d.control.onReport = func(rep *schema.Report) error {
			if rep.Outcome == schema.OutcomeOK {
				tries.Add(1)
				return errors.New("endpoint down")
			}
			return nil
		}
		r := d.start()
		time.Sleep(9 * time.Hour)
		synctest.Wait()
		if n := tries.Load(); n < 100 {
			t.Errorf("the report was tried %d times", n)
		}
		if d.content("/etc/edge/edge.conf") != "version=1\n" || d.work().Begun {
			t.Error("the update was undone")
		}
		d.control.mu.Lock()
		d.control.onReport = nil
		d.control.mu.Unlock()
		time.Sleep(lastResend + time.Second)
		synctest.Wait()
		if rep := d.control.last(); rep.Outcome != schema.OutcomeOK || rep.Current.Version != "v1.0.0" {
			t.Errorf("last report: %+v", rep)
		}
		r.end(t)
	})
}

// A report that was waiting for a long resend goes out soon after control is
// back.
func TestReportsGoOutWhenControlIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		var away atomic.Bool
		away.Store(true)
		no := errors.New("no route")
		d.control.onReport = func(*schema.Report) error {
			if away.Load() {
				return no
			}
			return nil
		}
		d.control.lookErr = no
		r := d.start()
		time.Sleep(time.Hour)
		synctest.Wait()
		d.control.mu.Lock()
		d.control.lookErr = nil
		d.control.mu.Unlock()
		away.Store(false)
		time.Sleep(70 * time.Second) // a poll, and the time to gather changes
		synctest.Wait()
		if _, n := d.control.counts(); n == 0 {
			t.Error("no report went out")
		}
		r.end(t)
	})
}

func TestControlAwayIsAskedAtTheUsualPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		d.control.lookErr = errors.New("no route")
		r := d.start()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n, _ := d.control.counts(); n < 50 || n > 70 {
			t.Errorf("%d polls in an hour", n)
		}
		r.end(t)
	})
}

// A stop in the middle is no failure; the next start asks on.
func TestStopWhileConfirming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		d.wantOnce(0)
		var whole atomic.Bool
		d.control.answers = func() error {
			if !whole.Load() {
				return errors.New("cut")
			}
			return nil
		}
		d.assign(1, "v1.0.0", v1)
		for range maxResumes + 3 { // more stops than starts that may be counted
			r := d.start()
			time.Sleep(20 * time.Second)
			synctest.Wait()
			r.end(t)
		}
		whole.Store(true)
		r := d.start()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if rep := d.control.last(); rep.Outcome != schema.OutcomeOK || len(rep.Failures) != 0 {
			t.Errorf("last report: %+v", rep)
		}
		r.end(t)
	})
}

// While it waits for an answer the agent says what it is doing, where that
// can be told.
func TestSlowPartsAreReportedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		d.wantOnce(0)
		d.control.answers = func() error { return errors.New("cut") }
		d.control.reports = nil
		d.assign(1, "v1.0.0", v1)
		r := d.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := d.control.phases(); !strings.HasSuffix(got, "Starting Verifying") {
			t.Errorf("phases reported: %s", got)
		}
		if rep := d.control.last(); !rep.Begun || rep.Attempt != 1 {
			t.Errorf("report: %+v", rep)
		}
		r.end(t)
	})
}

func TestIncompleteRollbackIsTriedAgainInTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		d.wantOnce(0)
		d.assign(1, "v1.0.0", v1)
		d.wantOnce(0)
		full := &fullDisk{path: "/etc/edge/only-1"}
		d.cfg.Step = full.step
		d.control.answers = func() error { return errors.New("cut") }
		d.assign(2, "v1.1.0", v2(tree{"confirm": tree{"within": "10s"}}))
		r := d.start()
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		rep := d.control.last()
		if rep.Phase != schema.PhaseError || !strings.HasPrefix(rep.Reason, "rollback incomplete: ") || !strings.Contains(rep.Reason, "only-1") {
			t.Errorf("report: %+v", rep)
		}
		full.empty.Store(true)
		time.Sleep(lastRollbackWait + time.Minute)
		synctest.Wait()
		if d.content("/etc/edge/only-1") != "one\n" || d.content("/etc/edge/only-2") != "" {
			t.Errorf("the device is\n%s", d.snapshot())
		}
		if rep := d.control.last(); rep.Outcome != schema.OutcomeFailed || strings.Contains(rep.Reason, "incomplete") {
			t.Errorf("report: %+v", rep)
		}
		r.end(t)
	})
}

func TestStateRemovedInTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		r := d.start()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		id := d.installID()
		d.remove(stateDir)
		time.Sleep(70 * time.Second)
		synctest.Wait()
		if got := d.installID(); got == "" || got == id || d.control.last().InstallID != got {
			t.Errorf("installation %q, before %q, reported %q", got, id, d.control.last().InstallID)
		}
		r.end(t)
	})
}

func TestRunEndsWithARebootThatWasStarted(t *testing.T) {
	d := osDevice(t)
	d.assign(2, "v1.1.0", osSpec(nil))
	a := d.agent()
	defer a.Close()
	if err := a.Run(t.Context()); !errors.Is(err, ErrRebooting) {
		t.Errorf("Run: %v", err)
	}
}

// Files in watched folders are repaired as they change, long before the full
// comparison.
func TestDriftIsNoticedAtOnce(t *testing.T) {
	d := onV1(t)
	d.cfg.Now = time.Now
	d.control.looks = 0
	a := d.agent()
	defer a.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	deadline := time.Now().Add(20 * time.Second)
	wait := func(what string, ok func() bool) {
		for !ok() {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	wait("never polled", func() bool { n, _ := d.control.counts(); return n > 0 })
	time.Sleep(300 * time.Millisecond) // until the folders are watched
	d.write("/etc/edge/edge.conf", "by hand\n")
	wait("not repaired", func() bool { return d.content("/etc/edge/edge.conf") == "version=1\n" })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func (d *device) work() work {
	var a attempts
	d.readState(attemptsFile, &a)
	return a.Work
}

func TestSpacingOfRepairs(t *testing.T) {
	w := &watcher{spacing: firstSpacing}
	now := time.Hour
	w.saw(now)
	if got := w.dueIn(now); got != watchDelay {
		t.Errorf("first repair in %s", got)
	}
	for range 20 { // another program changes it back at once, for ever
		now = w.dueAt
		w.repaired(now, true)
		w.saw(now)
	}
	if got := w.dueIn(now); got != driftEvery {
		t.Errorf("after a long fight the next repair is in %s", got)
	}
	now += 3 * driftEvery
	w.repaired(now, false)
	w.saw(now)
	if got := w.dueIn(now); got != watchDelay {
		t.Errorf("after a quiet time the next repair is in %s", got)
	}
}

// What came apart while no agent ran is found when one starts, and until it has
// looked it does not say that nothing did.
func TestDriftIsLookedForAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		d.wantOnce(0)
		d.assign(1, "v1.0.0", v1)
		d.wantOnce(0, "updated")
		d.write("/etc/edge/edge.conf", "by hand\n")
		d.write(holdFile, "mine\n")
		a := d.agent()
		if a.Standing().Looked {
			t.Error("it says that it has looked")
		}
		a.Close()
		r := d.start()
		time.Sleep(time.Second)
		synctest.Wait()
		if s := r.agent.Standing(); !s.Looked || len(s.Report.Drift) != 1 {
			t.Errorf("after the start it stands %+v", s)
		}
		r.end(t)
		d.remove(holdFile)
		r = d.start()
		time.Sleep(time.Second)
		synctest.Wait()
		if got := d.content("/etc/edge/edge.conf"); got != "version=1\n" {
			t.Errorf("after the start the file is %q", got)
		}
		r.end(t)
	})
}
