package reconcile

import (
	"crypto/rand"
	"time"
)

// clock has both times of a device. The wall clock is written down for people
// and may be set by anybody to anything. Whatever is waited for is counted on
// the time since boot, which only the next boot moves.
type clock struct {
	now  func() time.Time
	up   func() time.Duration
	boot string // names the running boot
}

// instant is a point in time as it stands on disk.
type instant struct {
	Boot string        `json:"boot,omitempty"`
	Up   time.Duration `json:"up,omitempty"` // since that boot, in nanoseconds
}

func (c clock) instant() instant { return instant{Boot: c.boot, Up: c.up()} }

// since is how long ago an instant of this boot was.
func (c clock) since(t instant) time.Duration { return c.up() - t.Up }

// adopt gives an instant that was read from disk as one of this boot; wall is
// what the wall clock said then. Where that is all there is to go by, because
// another boot has come, and it was not set or has been put back, the time
// begins again now: too late is better than before anything could happen.
func (c clock) adopt(t instant, wall time.Time) instant {
	here := c.instant()
	if t.Boot == c.boot && t.Up <= here.Up {
		return t
	}
	if passed := c.now().Sub(wall); wall.Year() >= sanestYear && passed > 0 {
		here.Up -= passed
	}
	return here
}

// processBoot stands for a boot without a name: what such a process wrote says
// nothing to the next one.
func processBoot() string { return "process-" + rand.Text() }
