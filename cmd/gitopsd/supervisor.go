package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// supervisor is whoever started this process as a service and wants to know
// how it is: systemd, by the socket that NOTIFY_SOCKET names, or nobody.
type supervisor struct {
	log *slog.Logger

	mu    sync.Mutex
	until time.Time // when the work must have been heard of again, on the monotonic clock
}

// working tells the supervisor that the work goes on, and for how long it need
// not be heard of again.
func (s *supervisor) working(within time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = time.Now().Add(within)
}

// beginsWithin gives work that was not heard of yet some time to begin.
func (s *supervisor) beginsWithin(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until.IsZero() {
		s.until = time.Now().Add(d)
	}
}

// late says since when the work should have been heard of again; 0: it is in
// time.
func (s *supervisor) late() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(time.Since(s.until), 0)
}

// ready says that the service is up. Where systemd watches it, it hears from
// then on that the work goes on, for as long as it does: when the work hangs,
// the silence has systemd end the process and start another one. When another
// program goes on in the place of this process, systemd is told of no end.
func (s *supervisor) ready(ctx context.Context) (stop func(goesOn bool)) {
	s.tell(daemon.SdNotifyReady)
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		s.log.Warn("the watchdog's time cannot be read; it is not fed", "error", err.Error())
	}
	if every > 0 {
		s.beginsWithin(every)
		wg.Go(func() { s.watch(ctx, every) })
	}
	return func(goesOn bool) {
		if !goesOn {
			s.tell(daemon.SdNotifyStopping)
		}
		cancel()
		wg.Wait()
	}
}

// fed is how many times the watchdog is fed within its time, so that a late
// timer ends nothing.
const fed = 3

func (s *supervisor) watch(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every / fed)
	defer tick.Stop()
	hung := false
	for {
		if late := s.late(); late == 0 {
			hung = false
			s.tell(daemon.SdNotifyWatchdog)
		} else if !hung {
			hung = true
			s.log.Error("the work does not go on; the watchdog is not fed any more", "late", late.Round(time.Second))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tell reaches nobody where nobody asked to be told.
func (s *supervisor) tell(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.log.Warn("the supervisor could not be told", "state", state, "error", err.Error())
	}
}
