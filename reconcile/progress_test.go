package reconcile

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Progress is told before the time is over that it was told to come within,
// through polls, updates and long rests; and not any more when the agent hangs.
func TestProgressIsToldInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		var mu sync.Mutex
		var until time.Time
		told, late := 0, 0
		d.cfg.Progress = func(within time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			if told++; told > 1 && time.Now().After(until) {
				late++
			}
			until = time.Now().Add(within)
		}
		d.cfg.Interval = 3 * time.Hour // longer than any step may take
		r := d.start()
		synctest.Wait()
		d.assign(1, "v1.0.0", v1)
		hang := make(chan struct{})
		d.control.onLook = func(n int) {
			if n >= 10 {
				<-hang
			}
		}
		time.Sleep(20 * time.Hour)
		synctest.Wait()
		mu.Lock()
		if told < 10 || late != 0 || time.Now().After(until) {
			t.Errorf("in 20 hours it was told %d times, %d of them late, and must come until %v", told, late, until)
		}
		mu.Unlock()
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		if looks, _ := d.control.counts(); looks != 10 {
			t.Errorf("control was looked at %d times and hangs in the tenth", looks)
		}
		mu.Lock()
		if !time.Now().After(until) {
			t.Errorf("the agent hangs, and is still said to go on")
		}
		mu.Unlock()
		close(hang)
		r.end(t)
	})
}
