//go:build system

package systemtest

import (
	"context"
	"os"
	"time"

	"github.com/gitopsd/gitopsd/internal/gitserver"
)

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (s *soak) between(least, most time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return least + time.Duration(s.random.Int64N(int64(most-least)))
}

// kills kills the local daemon, and agents, as power cuts do, and starts them
// again.
func (s *soak) kills(ctx context.Context) {
	for n := 0; pause(ctx, s.between(time.Second, 4*time.Second)); n++ {
		if n%5 == 0 {
			s.mu.Lock()
			p := s.procs["serve-local"]
			s.mu.Unlock()
			p.kill()
			s.count("daemon kills")
			pause(ctx, s.between(0, 3*time.Second))
			s.startDaemon("serve-local")
			continue
		}
		var d *soaked
		for d == nil || !d.mortal {
			d = s.devices[int(s.between(0, time.Duration(len(s.devices))))]
		}
		d.proc.kill()
		s.count("agent kills")
		pause(ctx, s.between(0, 2*time.Second))
		p, err := s.launch(d.id, s.exe, d.args...)
		if err != nil {
			s.problem("%v", err)
			return
		}
		d.proc = p
	}
}

// pressure fills small disks for a while, of bytes or of inodes.
func (s *soak) pressure(ctx context.Context) {
	for n := 0; pause(ctx, s.between(3*time.Second, 10*time.Second)); n++ {
		var d *soaked
		for d == nil || !d.small {
			d = s.devices[int(s.between(0, time.Duration(len(s.devices))))]
		}
		var taken string
		if n%2 == 0 {
			taken = fill(s.bench, d.root)
		} else {
			taken = fillInodes(s.bench, d.root)
		}
		s.count("full disks")
		pause(ctx, s.between(3*time.Second, 12*time.Second))
		if err := os.RemoveAll(taken); err != nil {
			s.problem("%v", err)
		}
	}
}

// outages are the git server's: errors, silence, cut answers; and its
// housekeeping.
func (s *soak) outages(ctx context.Context) {
	for n := 0; pause(ctx, s.between(8*time.Second, 20*time.Second)); n++ {
		switch n % 4 {
		case 0:
			s.server.Fail(500+n/4%4, -1)
			pause(ctx, s.between(time.Second, 6*time.Second))
			s.server.Fail(0, 0)
		case 1:
			s.server.Hang()
			pause(ctx, s.between(time.Second, 13*time.Second))
			s.server.Resume()
		case 2:
			s.server.Truncate(int64(s.between(1, 4000)))
			pause(ctx, s.between(time.Second, 6*time.Second))
			s.server.Truncate(0)
		case 3:
			s.tidyRepository()
			continue
		}
		s.count("server outages")
	}
}

// tidyRepository is the housekeeping of whoever hosts the repository.
func (s *soak) tidyRepository() {
	if out, err := gitserver.TryGit(s.bare, "-c", "gc.pruneExpire=2.minutes.ago", "-c", "gc.packRefs=true", "gc", "-q"); err != nil {
		// Beside writers it may find a ref locked; the next one is as good.
		s.Logf("git gc: %v: %s", err, out)
		return
	}
	s.count("git gc")
}
