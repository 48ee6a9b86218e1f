package planner

import (
	"fmt"
	"math"
	"time"
)

// policy is a [Policy] with its defaults filled in, and what was counted.
type policy struct {
	Policy
	bad      string // why it is invalid; "" = it is fine
	badField string // the field that is
	target   string // version that it converges on

	n, slots, inFlight, available, keep int
	holders                             []string // ids of those that hold a slot
	failures, refusals                  marks
	rollouts                            map[string]bool // present ones of its devices, pinned ones aside
	counts                              map[Code]int

	pilot    pilot
	waves    []*wave // with the last, unwritten one; nil = the policy has none
	waveOf   map[string]int
	budgets  []*budget
	calendar calendar
	frozen   frozen
	pace     pace
	gates    gates
}

// marks are the devices that count as failed, or as refused, by id.
type marks struct {
	ids   map[string]bool
	limit int
}

func (m marks) halts() bool { return len(m.ids) > m.limit }

func (p *policy) halted() bool { return p.failures.halts() || p.refusals.halts() }

func newPolicy(p Policy, own string) *policy {
	bad := p.problem()
	e := &policy{
		Policy: p, bad: bad.text, badField: bad.field, target: p.TargetVersion,
		rollouts: map[string]bool{}, counts: map[Code]int{}, frozen: frozen{by: -1},
	}
	if e.bad == "" {
		e.budgets = newBudgets(p.Budgets, false)
	}
	e.failures.ids, e.refusals.ids = map[string]bool{}, map[string]bool{}
	if e.target == "" {
		e.target = own
	}
	// A policy that is invalid lets nobody go, but what is in flight goes on,
	// so its times have to be usable.
	e.PickupTimeout = orDuration(p.PickupTimeout, DefaultPickupTimeout)
	e.UpdateTimeout = orDuration(p.UpdateTimeout, DefaultUpdateTimeout)
	e.Settle = max(p.Settle, 0)
	e.AbsentAfter = orDuration(p.AbsentAfter, DefaultAbsentAfter)
	e.OfflineGrace = orDuration(p.OfflineGrace, DefaultOfflineGrace)
	e.Backoff.Base = orDuration(p.Backoff.Base, DefaultBackoffBase)
	e.Backoff.Cap = orDuration(p.Backoff.Cap, DefaultBackoffCap)
	if !(p.Backoff.Factor >= 1) {
		e.Backoff.Factor = DefaultBackoffFactor
	}
	if p.MaxAttempts <= 0 {
		e.MaxAttempts = DefaultMaxAttempts
	}
	if p.MinProtocol <= 0 {
		e.MinProtocol = DefaultMinProtocol
	}
	return e
}

func orDuration(d, def time.Duration) time.Duration {
	if d <= 0 {
		return def
	}
	return d
}

// setLimits turns the policy's limits into counts, once N is known.
func (p *policy) setLimits() {
	if p.bad != "" {
		// Nobody goes by it; what is in flight goes on, and is not halted.
		p.failures.limit, p.refusals.limit = math.MaxInt, math.MaxInt
		return
	}
	p.slots = DefaultMaxInFlight
	switch {
	case p.MaxInFlight > 0:
		p.slots = p.MaxInFlight
	case p.MaxInFlightPercent > 0:
		p.slots = max(1, percentDown(p.MaxInFlightPercent, p.n))
	}
	p.keep = DefaultMinAvailable
	if l := p.MinAvailable; l.Percent > 0 {
		p.keep = percentUp(l.Percent, p.n)
	} else if l.isSet() {
		p.keep = l.Count
	}
	p.keep = min(p.keep, max(0, p.n-1))
	p.failures.limit = limit(p.FailureLimit, DefaultFailureLimit, p.n)
	p.refusals.limit = limit(p.RefusalLimit, max(MinRefusals, percentDown(DefaultRefusalPercent, p.n)), p.n)
	for _, b := range p.budgets {
		b.setLimits()
	}
}

func (l Limit) isSet() bool { return l.Set || l.Count != 0 || l.Percent != 0 }

func limit(l Limit, def, n int) int {
	switch {
	case l.Percent > 0:
		return percentDown(l.Percent, n)
	case l.isSet():
		return l.Count
	}
	return def
}

// percentDown and percentUp keep to integers: 34 % of 3 is 1 or 2, always.
func percentDown(percent, n int) int { return percent * n / 100 }

func percentUp(percent, n int) int { return (percent*n + 99) / 100 }

// backoff is the wait after the n-th attempt, n counting from 1.
func (p *policy) backoff(n int) time.Duration {
	wait := float64(p.Backoff.Base) * math.Pow(p.Backoff.Factor, float64(n-1))
	if !(wait < float64(p.Backoff.Cap)) {
		return p.Backoff.Cap
	}
	return time.Duration(wait)
}

// offlineAfter is the silence after which a device counts as offline.
func (p *policy) offlineAfter(heartbeat time.Duration) time.Duration {
	if p.OfflineAfter > 0 {
		return p.OfflineAfter
	}
	return max(MinOfflineAfter, OfflineHeartbeats*min(max(heartbeat, MinHeartbeat), MaxHeartbeat))
}

// sum adds durations without wrapping around.
func sum(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// slotsText names the policy's limit as it was written.
func (p *policy) slotsText() string {
	if p.MaxInFlightPercent > 0 {
		return fmt.Sprintf("maxInFlight %d%% of %d", p.MaxInFlightPercent, p.n)
	}
	return fmt.Sprintf("maxInFlight %d", p.slots)
}
