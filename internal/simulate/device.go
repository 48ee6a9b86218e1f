package simulate

import (
	"time"

	"github.com/gitopsd/gitopsd/planner"
)

// device is one device with what only itself knows.
type device struct {
	index     int
	at        *planner.Device // as the control plane knows it
	policy    *policy
	chance    chance
	heartbeat time.Duration
	record    Device // what became of it

	// The network: whether it is cut off, since when nothing was heard, until
	// when as far as that is known, and how many times before.
	silent  bool
	heard   time.Time
	returns time.Time
	away    time.Time // what the record says of it, of one that is away at the beginning
	outage  int64
	spoke   time.Time // the last time it said something of its own accord
	idles   time.Time // when it will no longer be busy; zero = nobody knows

	// The work: the attempt it is on or was on last, whether it is over, and
	// whether that is still to be said.
	doing   int64
	working bool
	fails   bool
	settled bool
	unsent  bool
}

// unknownHeartbeat is that of a device of which nobody knows it: the agent's
// over HTTP, as a fleet of any size has.
const unknownHeartbeat = time.Minute

func (r *run) newDevice(i int, at *planner.Device) *device {
	d := &device{
		index: i, at: at, policy: r.policyNamed(at.Policy), chance: newChance(r.cfg.Assume.Seed, at.ID), heartbeat: unknownHeartbeat,
		record: Device{Device: at.ID, Policy: at.Policy, Wave: at.Wave, Site: at.Labels[r.cfg.By], Target: at.Target.Version, Pinned: at.Pinned},
	}
	if at.Heartbeat > 0 {
		d.heartbeat = min(max(at.Heartbeat, planner.MinHeartbeat), planner.MaxHeartbeat)
	}
	return d
}

// open is the newest open attempt, or nil.
func (d *device) open() *planner.Attempt {
	for i := len(d.at.Attempts) - 1; i >= 0; i-- {
		if d.at.Attempts[i].Outcome == "" {
			return &d.at.Attempts[i]
		}
	}
	return nil
}

func (d *device) attempt(number int64) *planner.Attempt {
	for i := len(d.at.Attempts) - 1; i >= 0; i-- {
		if d.at.Attempts[i].Number == number {
			return &d.at.Attempts[i]
		}
	}
	return nil
}

// tried says whether the device had an attempt in its present rollout.
func (d *device) tried() bool {
	for i := range d.at.Attempts {
		if d.at.Attempts[i].Rollout == d.at.Rollout {
			return true
		}
	}
	return false
}

// ticks is the first moment from t on of those that repeat every so often,
// each device having its own.
func (r *run) ticks(d *device, every time.Duration, t time.Time) time.Time {
	offset := time.Duration(d.chance.draw(drawPoll, 0) * float64(every))
	over := (t.Sub(r.start) - offset) % every
	switch {
	case over == 0:
		return t
	case over < 0:
		return t.Add(-over)
	}
	return t.Add(every - over)
}

// wake sets a device going, once the first plan was made from what is really
// known of it.
func (r *run) wake(d *device) {
	at := d.at
	if !at.Seen {
		return // it has never reported, and nobody knows whether it will
	}
	back := time.Duration(r.cfg.Assume.BackAfter)
	if at.Busy && back > 0 {
		d.idles = r.start.Add(back)
		r.queue.add(event{at: d.idles, device: d.index, kind: eventIdle})
	}
	away := !at.Online || !at.LastSeen.IsZero() && r.start.Sub(at.LastSeen) > d.policy.offlineAfter(at.Heartbeat)
	switch {
	case away:
		r.leaveAway(d, back)
	case r.cfg.Unknown && d.chance.hits(r.cfg.Assume.Offline, drawAway, 0):
		at.LastSeen = time.Time{}
		r.fallSilent(d, event{at: r.start})
	default:
		shown := at.LastSeen
		at.LastSeen = time.Time{} // heard all the time
		if d.isLost() || d.soaked(shown, r.start) {
			r.awaitReport(d)
			r.planAt = r.start.Add(1) // it may have been heard meanwhile
		}
		r.nextOutage(d, r.start)
	}
	r.resume(d)
	for _, soak := range d.policy.soaks(at) {
		if end := d.onTargetSince().Add(soak); end.After(r.start) {
			r.queue.add(event{at: end, device: d.index, kind: eventSoaked, about: d.lastNumber()})
		}
	}
}

// resume goes on with what is in flight at the beginning.
func (r *run) resume(d *device) {
	a := d.underway()
	if a == nil || a.AssignedAt.Equal(r.start) {
		return // none, or one of this simulation
	}
	switch {
	case a.Outcome != "":
	case a.Recalled != "":
		r.queue.add(event{at: r.start.Add(r.interval()), device: d.index, kind: eventDelivered, about: a.Number})
		if a.StartedAt.IsZero() {
			return
		}
	case a.StartedAt.IsZero() && a.OnTargetAt.IsZero():
		r.queue.add(event{at: r.ticks(d, poll, r.start.Add(1)), device: d.index, kind: eventPoll, about: a.Number})
		return
	}
	if d.doing == a.Number {
		return // its start was only just recorded
	}
	if !a.OnTargetAt.IsZero() {
		d.doing = a.Number
		r.deadline(d, a, r.settledBy(d, a))
		r.queue.add(event{at: later(a.OnTargetAt.Add(r.policyNamed(a.Policy).Settle), r.start), device: d.index, kind: eventSettled, about: a.Number})
		return
	}
	r.begin(d, a)
}

// underway is the open attempt of a device, or one that was given up although
// the device has not; nil = neither.
func (d *device) underway() *planner.Attempt {
	if a := d.open(); a != nil || len(d.at.Attempts) == 0 {
		return a
	}
	a := &d.at.Attempts[len(d.at.Attempts)-1]
	said := d.at.Said
	if a.Outcome != planner.Lost || said.Attempt != a.Number || !said.Begun || said.Outcome == string(planner.Failed) || a.StartedAt.IsZero() {
		return nil
	}
	return a
}

// onTargetSince is since when somebody waits for the device to soak; zero =
// nobody does.
func (d *device) onTargetSince() time.Time {
	if n := len(d.at.Attempts); n > 0 {
		if a := &d.at.Attempts[n-1]; a.Rollout == d.at.Rollout && a.Outcome == planner.OK {
			return a.EndedAt
		} else if a.Rollout == d.at.Rollout && a.Outcome != "" {
			return later(a.EndedAt, d.at.Since)
		}
	}
	return d.at.Since
}

func (d *device) lastNumber() int64 {
	var n int64
	for i := range d.at.Attempts {
		n = max(n, d.at.Attempts[i].Number)
	}
	return n
}

// look is a device's look for an assignment. What it announces is seen by the
// sweep under way, and it begins behind that.
func (r *run) look(d *device, e event) {
	a := d.open()
	switch {
	case a == nil || a.Number != e.about || a.Recalled != "" || !a.StartedAt.IsZero():
		return
	case d.silent || d.at.Busy || d.at.AdminHeld || d.at.HeldReason != "":
		return // it looks again when it is back; the planner recalls the others
	}
	said := planner.Said{Fresh: true, Sequence: d.at.Said.Sequence + 1, Attempt: a.Number}
	switch {
	case d.chance.hits(r.cfg.Assume.Refusals, drawRefusal, 0):
		said.Phase, said.Outcome, said.Message = "Updated", string(planner.Refused), "assumed"
		r.due = true
	case d.at.Observes:
		said.Phase, said.Outcome, said.Message = "Observing", string(planner.Observed), "assumed"
		r.due = true
	case r.eager:
		said.Phase, said.Starting = "Starting", true
		r.due = true
	default:
		// All that a plan could say of it is that it has started.
		said.Fresh = false
		r.startAt(a)
		r.starting = append(r.starting, d)
	}
	d.at.Said = said
	d.speak(e.at)
}

// beginAll lets those begin whose start the sweep under way has seen.
func (r *run) beginAll() {
	for _, d := range r.starting {
		r.begin(d, d.open())
	}
	r.starting = r.starting[:0]
}

// startAt records a start in the sweep under way.
func (r *run) startAt(a *planner.Attempt) { a.StartedAt = r.now }

// begin lets a device work on an attempt whose start was recorded.
func (r *run) begin(d *device, a *planner.Attempt) {
	d.doing, d.working, d.settled, d.unsent = a.Number, true, false, false
	d.fails = d.chance.hits(r.cfg.Assume.Failures, drawFailure, a.Number)
	d.at.Said = planner.Said{Sequence: d.at.Said.Sequence, Attempt: a.Number, Begun: true, Phase: "Applying"}
	mean := time.Duration(r.cfg.Assume.UpdateTime)
	takes := time.Duration(float64(mean) * (1 - spread + 2*spread*d.chance.draw(drawPace, a.Number)))
	r.queue.add(event{at: later(a.StartedAt.Add(takes), r.now), device: d.index, kind: eventFinished, about: a.Number})
	r.deadline(d, a, a.StartedAt.Add(r.policyNamed(a.Policy).UpdateTimeout))
	r.tally.begins(r.now, d, a)
}

// deadline makes sure that the planner is asked when a limit of an attempt is
// over.
func (r *run) deadline(d *device, a *planner.Attempt, at time.Time) {
	r.queue.add(event{at: at, device: d.index, kind: eventDeadline, about: a.Number})
}

// settledBy is when a device must have shown that it settled.
func (r *run) settledBy(d *device, a *planner.Attempt) time.Time {
	rules := r.policyNamed(a.Policy)
	return a.OnTargetAt.Add(rules.Settle + rules.offlineAfter(d.at.Heartbeat))
}

// finish ends a device's work, whether anybody hears of it or not.
func (r *run) finish(d *device, e event) {
	if d.doing != e.about || !d.working {
		return
	}
	d.working = false
	r.tally.ends()
	if a := d.attempt(e.about); a != nil && !d.fails {
		if settle := r.policyNamed(a.Policy).Settle; settle > 0 {
			r.queue.add(event{at: e.at.Add(settle), device: d.index, kind: eventSettled, about: e.about})
		} else {
			d.settled = true
		}
	}
	r.report(d, e.at)
}

// settle is when a device has been on its target for as long as it was asked.
func (r *run) settle(d *device, e event) {
	if d.doing != e.about || d.working {
		return
	}
	d.settled = true
	r.report(d, e.at)
}

// report lets a device say what became of its work, or makes it remember to.
func (r *run) report(d *device, at time.Time) {
	if d.silent {
		d.unsent = true
		return
	}
	d.unsent = false
	d.speak(at)
	said := planner.Said{Fresh: true, Sequence: d.at.Said.Sequence + 1, Attempt: d.doing, Begun: true, Phase: "Error", Outcome: string(planner.Failed)}
	if a := d.attempt(d.doing); a != nil && !d.fails {
		said.Phase, said.Outcome, said.Settled = "Updated", string(planner.OK), d.settled
		d.at.Version, d.at.Digest = a.Target.Version, a.Target.Digest
	}
	d.at.Said = said
	r.due = true
}

// speak is when a device says something of its own accord.
func (d *device) speak(at time.Time) { d.spoke, d.at.LastSeen = at, time.Time{} }

// deliver makes known that a device's document no longer carries an attempt.
func (r *run) deliver(d *device, e event) {
	a := d.attempt(e.about)
	if a == nil || a.RecallDelivered || a.Outcome != "" && a.Outcome != planner.Lost {
		return
	}
	a.RecallDelivered = true
	r.due = r.due || a.Outcome == ""
}
