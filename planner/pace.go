package planner

import (
	"math"
	"time"
)

// pace keeps a policy's upgrades apart.
type pace struct {
	last time.Time // of its newest assignment; zero = none
	next time.Time // when the next one may go; zero = at once
}

// setPace finds when each policy may upgrade its next device. An assignment
// counts for the policy that made it, however it ended.
func (pl *plan) setPace() {
	asked := false
	for _, p := range pl.policies {
		asked = asked || p.MinInterval > 0 && p.bad == ""
	}
	if !asked {
		return
	}
	for _, d := range pl.devices {
		for i := range d.attempts {
			a := &d.attempts[i]
			p := d.policy
			if p == nil || a.Policy != p.Name {
				p = pl.byName[a.Policy]
			}
			if p != nil && a.Policy != "" {
				p.pace.last = later(p.pace.last, a.AssignedAt)
			}
		}
	}
	for _, p := range pl.policies {
		if p.MinInterval <= 0 || p.bad != "" || p.pace.last.IsZero() {
			continue
		}
		if next := p.pace.last.Add(p.MinInterval); !pl.reached(next) {
			p.pace.next = next
		}
	}
}

// paceAt is when the device at a position of the queue may go at the
// earliest; zero = that is not known, or at once.
func (p *policy) paceAt(position int) time.Time {
	ahead := time.Duration(position - 1)
	if p.pace.next.IsZero() || ahead > math.MaxInt64/p.MinInterval {
		return time.Time{}
	}
	return p.pace.next.Add(ahead * p.MinInterval)
}

// waits says whether the pace lets nobody go now.
func (p *policy) waits(moved bool) bool {
	return p.MinInterval > 0 && (moved || !p.pace.next.IsZero())
}
