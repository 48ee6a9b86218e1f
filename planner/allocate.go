package planner

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"
)

// gate holds a device back with its whole rollout; no code means that it may
// go as soon as there is a slot.
func (pl *plan) gate(d *device) finding {
	p := d.policy
	switch {
	case pl.Stopped != "":
		return no(Stopped, because("stopped", pl.Stopped))
	case p.Paused != "":
		return no(Paused, because("policy "+word(p.Name)+" is paused", p.Paused))
	case p.halted() && !d.Pinned && !pl.mayRetry(d, p):
		v := no(Halted, fmt.Sprintf("more devices failed or refused %s than policy %s allows; until that changes or they are forgotten", word(p.target), word(p.Name)))
		v.detail = p.haltText
		return v
	}
	return finding{}
}

// allocate gives the free slots to those who are left, in order of priority.
// The blocked are skipped, so that nobody waits behind them.
func (pl *plan) allocate() {
	waiting := map[*policy][]*candidate{}
	for _, d := range pl.devices {
		if !d.Removed && d.verdict.code == "" {
			waiting[d.policy] = append(waiting[d.policy], pl.candidate(d))
		}
	}
	for _, p := range pl.policies {
		queue := waiting[p]
		slices.SortFunc(queue, (*candidate).compare)
		free := max(0, p.slots-p.inFlight)
		available, position := p.available, 0
		queued, guarded := "", ""
		for _, c := range queue {
			d := c.device
			if free > 0 && available-1 >= p.keep {
				free--
				available--
				d.verdict = pl.upgrade(d)
				p.holders = append(p.holders, d.ID)
				continue
			}
			position++
			d.verdict = no(Queued, "waits for its turn to go to "+word(d.target.Version))
			d.verdict.position = position
			// What binds is the same for all that are left.
			if free > 0 {
				if guarded == "" {
					guarded = pl.guardText(p, available)
				}
				d.verdict.code, d.verdict.detail = FleetGuard, guarded
				continue
			}
			if queued == "" {
				queued = p.queueText()
			}
			d.verdict.detail = queued
		}
	}
}

func (pl *plan) upgrade(d *device) finding {
	v := no(Upgrade, "")
	from, to := word(d.Version), word(d.target.Version)
	switch {
	case pl.versions.same(d.Version, d.target.Version):
		v.reason = to + ": same version, new configuration"
	case pl.versions.parse(d.Version).GreaterThan(pl.versions.parse(d.target.Version)):
		v.reason = fmt.Sprintf("from %s down to %s: rollbackFrom names it", from, to)
	default:
		v.reason = fmt.Sprintf("from %s to %s", from, to)
	}
	if d.policy.n == 1 {
		v.reason += " (the only device)"
	}
	return v
}

// candidate is a device with its place in the queue.
type candidate struct {
	*device
	failedBefore bool      // it failed this version with other content: a fix is tried where it failed
	recalledAt   time.Time // the last time in this rollout; zero = never, which goes first
	shuffle      [sha256.Size]byte
}

func (pl *plan) candidate(d *device) *candidate {
	c := &candidate{device: d}
	for i := range d.attempts {
		a := &d.attempts[i]
		switch a.Outcome {
		case Failed, Lost:
			if pl.versions.same(a.Target.Version, d.target.Version) && !matches(a.Target, d.target) {
				c.failedBefore = true
			}
		case Deferred, Unreached:
			if a.Rollout == d.Rollout && a.EndedAt.After(c.recalledAt) {
				c.recalledAt = a.EndedAt
			}
		}
	}
	key := make([]byte, 0, len(d.Rollout)+1+len(d.ID))
	key = append(append(append(key, d.Rollout...), 0), d.ID...)
	c.shuffle = sha256.Sum256(key)
	return c
}

// compare is the order in which devices go: stable within a rollout, and
// another one in the next, so that not always the same device goes first.
func (c *candidate) compare(o *candidate) int {
	if c.failedBefore != o.failedBefore {
		if c.failedBefore {
			return -1
		}
		return 1
	}
	return cmp.Or(
		c.recalledAt.Compare(o.recalledAt),
		bytes.Compare(c.shuffle[:], o.shuffle[:]),
		cmp.Compare(c.ID, o.ID),
	)
}
