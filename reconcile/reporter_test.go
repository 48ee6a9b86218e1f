package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// A device whose state changes faster than reports are put together is heard
// all the same: it may do so for hours, for example on a full disk.
func TestRestlessDeviceIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, end := reporting(t)
		if err := p.flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, before := c.counts()
		for i := range 100 { // half a minute
			p.offer(&schema.Report{Phase: schema.PhaseDegraded, Reason: fmt.Sprint(i)})
			time.Sleep(300 * time.Millisecond)
		}
		synctest.Wait()
		if _, n := c.counts(); n-before < 3 || n-before > 15 {
			t.Errorf("%d reports of half a minute of changes, want 3 to 15", n-before)
		}
		end()
	})
}

// reporting is a reporter at work with something to tell; end is to be called.
func reporting(t *testing.T) (p *reporter, c *fakeControl, end func()) {
	t.Helper()
	d := bubbleDevice(t)
	d.settle()
	a := d.agent()
	p = newReporter(d.control, a.store.seq, a.clock, slog.New(slog.DiscardHandler), func() float64 { return 0 }, 10*time.Minute, func() int64 { return 0 })
	p.offer(&schema.Report{Phase: schema.PhaseUpdated})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.run(ctx)
	}()
	return p, d.control, func() {
		cancel()
		<-done
		a.Close()
	}
}

// A report that was not accepted, and then went out with the work, delays none
// that comes later, however often that was.
func TestWhatWentOutWithTheWorkDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, end := reporting(t)
		var away atomic.Bool
		c.onReport = func(*schema.Report) error {
			if away.Load() {
				return errors.New("no route")
			}
			return nil
		}
		for i := range 6 {
			away.Store(true)
			p.offer(&schema.Report{Phase: schema.PhasePreparing, Reason: fmt.Sprint(i)})
			time.Sleep(2 * time.Second)
			away.Store(false)
			if err := p.flush(t.Context()); err != nil { // the announcement
				t.Fatal(err)
			}
			time.Sleep(2 * firstResend)
			p.offer(&schema.Report{Phase: schema.PhaseUpdated, Reason: fmt.Sprint(i)})
			time.Sleep(2 * coalesce)
			synctest.Wait()
			if last := c.last(); last.Phase != schema.PhaseUpdated || last.Reason != fmt.Sprint(i) {
				t.Fatalf("round %d: the last report is %s %s", i, last.Phase, last.Reason)
			}
		}
		end()
	})
}
