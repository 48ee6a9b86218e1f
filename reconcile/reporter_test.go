package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// A device whose state changes faster than reports are put together is heard
// all the same: it may do so for hours, for example on a full disk.
func TestRestlessDeviceIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		d.settle()
		a := d.agent()
		defer a.Close()
		c := d.control
		p := newReporter(c, a.store.seq, a.clock, slog.New(slog.DiscardHandler), func() float64 { return 0 }, 10*time.Minute, func() int64 { return 0 })
		p.offer(&schema.Report{Phase: schema.PhaseUpdated})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.run(ctx)
		}()
		if err := p.flush(ctx); err != nil {
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
		cancel()
		<-done
	})
}
