package planner

import (
	"bytes"
	"cmp"
	"container/heap"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"
)

// queue is the devices of a policy that only wait for their turn.
type queue struct {
	policy          *policy
	waiting         []candidate
	free, position  int
	available       int
	moved           bool    // it upgrades somebody in this plan
	queued, guarded finding // what binds is the same for all that are left
	version, reason string  // see turn
}

// allocate gives the free slots to those who are left, in order of priority.
// The blocked are skipped, so that nobody waits behind them. Policies take
// turns, so that one does not use up what they share: the next slot is that of
// the policy with the fewest in flight, and among equals of the first device.
func (pl *plan) allocate() {
	byPolicy := map[*policy]*queue{}
	for _, d := range pl.devices {
		if d.Removed || d.verdict.code != "" {
			continue
		}
		q := byPolicy[d.policy]
		if q == nil {
			q = &queue{policy: d.policy, free: max(0, d.policy.slots-d.policy.inFlight), available: d.policy.available}
			byPolicy[d.policy] = q
		}
		q.waiting = append(q.waiting, pl.candidate(d))
	}
	next := make(turns, 0, len(byPolicy))
	for _, p := range pl.policies {
		if q := byPolicy[p]; q != nil {
			slices.SortFunc(q.waiting, candidate.compare)
			next = append(next, q)
		}
	}
	heap.Init(&next)
	for len(next) > 0 {
		q := next[0]
		for moved := false; !moved && len(q.waiting) > 0; q.waiting = q.waiting[1:] {
			moved = pl.offer(q, q.waiting[0].device)
		}
		if len(q.waiting) == 0 {
			heap.Pop(&next)
		} else {
			heap.Fix(&next, 0)
		}
	}
}

// turns are the policies of which somebody waits, the next one first.
type turns []*queue

func (t turns) Len() int { return len(t) }

func (t turns) Less(i, j int) bool {
	a, b := t[i], t[j]
	if x, y := len(a.policy.holders), len(b.policy.holders); x != y {
		return x < y
	}
	return a.waiting[0].compare(b.waiting[0]) < 0
}

func (t turns) Swap(i, j int) { t[i], t[j] = t[j], t[i] }

func (t *turns) Push(q any) { *t = append(*t, q.(*queue)) }

func (t *turns) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

// offer upgrades a device, if that breaks no limit.
func (pl *plan) offer(q *queue, d *device) bool {
	p := q.policy
	if !d.apart() && p.pilot.on && p.pilot.room == 0 {
		if p.gates.pilot.code == "" {
			p.gates.pilot = p.pilotHold(pl)
		}
		d.verdict = p.gates.pilot
		return false
	}
	switch {
	case q.free == 0 || len(pl.fleet.holders) >= pl.fleet.slots || p.waits(q.moved):
		d.verdict = pl.queued(q)
	case q.available-1 < p.keep:
		if q.guarded.code == "" {
			q.guarded = no(FleetGuard, "")
			q.guarded.detail = pl.guardText(p, q.available)
		}
		d.verdict = q.guarded
	default:
		full := pl.fullGroup(d)
		if full == nil {
			pl.take(q, d)
			return true
		}
		full.waiting++
		d.verdict = full.finding()
	}
	q.position++
	d.verdict.position = q.position
	d.verdict.reason = q.turn(d.target.Version)
	if d.verdict.code == Queued {
		d.verdict.notBefore = p.paceAt(q.position)
	}
	return false
}

// turn is the reason of all that are left. It is the same whatever limit
// binds, because that changes for everybody at once; and it is made once,
// because nearly all of them go to one version.
func (q *queue) turn(version string) string {
	if q.reason == "" || q.version != version {
		q.version, q.reason = version, "waits for its turn to go to "+word(version)
	}
	return q.reason
}

// take gives a device its slot.
func (pl *plan) take(q *queue, d *device) {
	p := q.policy
	q.free--
	q.moved = true
	q.available--
	p.holders = append(p.holders, d.ID)
	pl.fleet.holders = append(pl.fleet.holders, d.ID)
	if !d.Pinned {
		p.pilot.taken++
		p.pilot.room = max(0, p.pilot.room-1)
	}
	pl.eachGroup(d, func(g *group) bool {
		g.away = append(g.away, d)
		g.taken++
		g.hold = finding{}
		return true
	})
	d.verdict = pl.upgrade(d)
}

// queued names what keeps all that are left from a slot.
func (pl *plan) queued(q *queue) finding {
	if q.queued.code != "" {
		return q.queued
	}
	p, v := q.policy, no(Queued, "")
	switch {
	case q.free == 0:
		v.field, v.detail = fieldInFlight, p.queueText()
	case len(pl.fleet.holders) >= pl.fleet.slots:
		v.field, v.detail, v.in = fieldInFlight, pl.fleet.queueText(), InFleet
	case q.moved:
		v.field, v.detail = fieldInterval, "one at a time, minInterval "+span(p.MinInterval)+" apart"
	default:
		v.field, v.detail = fieldInterval, "minInterval "+span(p.MinInterval)+" after the upgrade of "+at(p.pace.last)
	}
	q.queued = v
	return v
}

func (pl *plan) upgrade(d *device) finding {
	v := no(Upgrade, "")
	if d.Observes {
		v.reason = "compares itself with " + word(d.target.Version) + ", and changes nothing"
		return v
	}
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
	wave         int
	failedBefore bool      // it failed this version with other content: a fix is tried where it failed
	recalledAt   time.Time // the last time in this rollout; zero = never, which goes first
	shuffle      [sha256.Size]byte
}

func (pl *plan) candidate(d *device) candidate {
	c := candidate{device: d, wave: d.policy.wave(d)}
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
func (c candidate) compare(o candidate) int {
	if c.wave != o.wave {
		return cmp.Compare(c.wave, o.wave)
	}
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
