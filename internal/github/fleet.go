package github

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// fleetEvery is between two statuses of one commit that say the same in
	// other numbers. GitHub keeps no more than a thousand of a commit and a
	// name: this is enough for three days of one rollout.
	fleetEvery = 5 * time.Minute
	// maxFleet is how many are written of one commit at all.
	maxFleet = 900
)

// fleetShown is what sweeps told, and what of it was written.
type fleetShown struct {
	mu      sync.Mutex
	latest  *FleetState // to be written; nil = nothing new
	ready   time.Time   // latest is not written before
	tries   int
	newest  string // the newest commit of the branch, as far as it was told
	left    string // the one before, which no sweep has left yet; "" = none
	shown   FleetState
	at      time.Time
	written int
	marked  string // the commit for which older comments were marked
}

// Swept takes what a sweep came to. It never waits; only what has changed is
// written.
func (s *Service) Swept(f FleetState) {
	if !isHash(f.Commit) {
		return
	}
	f.Words = clip(clean(f.Words), maxWords)
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	// A sweep that began before a look may end after it.
	if f.Commit != s.fleet.left {
		s.fleet.newest, s.fleet.left = f.Commit, ""
	}
	if f == s.fleet.shown {
		s.fleet.latest = nil
		return
	}
	if s.fleet.latest == nil || *s.fleet.latest != f {
		s.fleet.latest = &f
		s.queue.signal()
	}
}

// head is the commit of the branch that was told of last; "" = none yet.
func (f *fleetShown) head() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest
}

// saw takes the commit at which the branch was found just now.
func (f *fleetShown) saw(head string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if head != "" && head != f.newest {
		f.newest, f.left = head, f.newest
	}
}

// next is when there is something to be written; zero = nothing is waiting.
func (f *fleetShown) next() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.latest == nil {
		return time.Time{}
	}
	return f.due()
}

func (f *fleetShown) due() time.Time {
	at := f.ready
	if f.latest.Commit == f.shown.Commit && f.latest.State == f.shown.State {
		if calm := f.at.Add(fleetEvery); calm.After(at) {
			at = calm
		}
	}
	return at
}

// showFleet writes the state of the fleet, if it is due, and says whether it
// was. Where the branch has moved, older comments are marked from then on.
func (s *Service) showFleet(ctx context.Context) bool {
	f := &s.fleet
	f.mu.Lock()
	if f.newest != f.marked {
		f.marked = f.newest
		f.mu.Unlock()
		for number, k := range s.known {
			s.judge(number, k)
		}
		return true
	}
	if f.latest == nil || time.Now().Before(f.due()) {
		f.mu.Unlock()
		return false
	}
	want, written := *f.latest, f.written
	if want.Commit != f.shown.Commit {
		written = 0
	}
	f.mu.Unlock()

	err := s.try(ctx, featureStatus, "the fleet", func() error {
		if written >= maxFleet {
			return nil
		}
		status := Status{Context: contextFleet, State: want.State, Description: want.Words, URL: s.cfg.StatusURL}
		// Another daemon may have written it.
		there, err := s.forge.statuses(ctx, want.Commit)
		if err != nil || there[contextFleet] == status {
			return err
		}
		written++
		return s.forge.setStatus(ctx, want.Commit, status)
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			s.trouble("fleet", fmt.Errorf("show the fleet's state: %w", err))
		}
		f.ready = time.Now().Add(backoff(f.tries))
		f.tries++
		return true
	}
	s.well("fleet")
	f.shown, f.written, f.at, f.ready, f.tries = want, written, time.Now(), time.Time{}, 0
	if f.latest != nil && *f.latest == want {
		f.latest = nil
	}
	return true
}
