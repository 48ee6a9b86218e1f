package simulate

import (
	"time"

	"github.com/gitopsd/gitopsd/planner"
)

// A device that is heard has no last-seen time here: it is heard at any time
// that a plan asks about. One that is away has the true one only where the
// plan's answer may depend on it. Every time that a plan is told is one at
// which it may answer otherwise, and most devices of a large fleet are nobody
// to wait for.

// isAway says whether a device is still in the outage that an event is of.
func (d *device) isAway(e event) bool { return d.silent && d.outage == e.about }

// nextOutage schedules when a device is cut off the next time.
func (r *run) nextOutage(d *device, from time.Time) {
	rate := r.cfg.Assume.Offline
	if rate <= 0 {
		return
	}
	mean := float64(r.cfg.Assume.OfflineFor) * (1 - rate) / rate
	up := d.chance.lasts(time.Duration(min(mean, float64(r.cfg.Assume.Until))), drawUp, d.outage)
	r.queue.add(event{at: from.Add(up), device: d.index, kind: eventSilent, about: d.outage})
}

// leaveAway keeps away who is so at the beginning. What is known of when it
// became so stays as it is known.
func (r *run) leaveAway(d *device, back time.Duration) {
	d.silent, d.heard, d.away = true, d.at.LastSeen, d.at.OfflineSince
	absent := !d.heard.IsZero() && r.start.Sub(d.heard) > d.policy.AbsentAfter
	if back <= 0 && r.cfg.Assume.Offline > 0 && !absent {
		back = d.chance.lasts(time.Duration(r.cfg.Assume.OfflineFor), drawDown, 0)
	}
	if back > 0 {
		d.returns = r.start.Add(back)
		r.queue.add(event{at: d.returns, device: d.index, kind: eventBack, about: d.outage})
	}
}

// fallSilent cuts a device off. Nobody notices at once.
func (r *run) fallSilent(d *device, e event) {
	if d.silent || d.outage != e.about {
		return
	}
	d.silent = true
	d.heard = later(r.ticks(d, d.heartbeat, e.at.Add(1-d.heartbeat)), d.spoke)
	if d.isLost() || d.soaked(d.heard, e.at) {
		r.hushed(d)
	}
	d.returns = e.at.Add(d.chance.lasts(time.Duration(r.cfg.Assume.OfflineFor), drawDown, d.outage))
	r.queue.add(event{at: d.returns, device: d.index, kind: eventBack, about: d.outage})
	if off := d.offlineSince().Add(1); off.Before(d.returns) {
		r.queue.add(event{at: off, device: d.index, kind: eventOffline, about: d.outage})
	}
}

// isLost says whether the device was given up last: what it said before does
// not undo that.
func (d *device) isLost() bool {
	n := len(d.at.Attempts)
	return n > 0 && d.at.Attempts[n-1].Outcome == planner.Lost
}

// soaked says whether a soak of the device was over after one time, and by
// another one.
func (d *device) soaked(after, by time.Time) bool {
	since := d.onTargetSince()
	if since.IsZero() {
		return false
	}
	for _, soak := range d.policy.soaks(d.at) {
		if end := since.Add(soak); end.After(after) && !end.After(by) {
			return true
		}
	}
	return false
}

// offlineSince is since when the silence of a device counts.
func (d *device) offlineSince() time.Time {
	if !d.away.IsZero() {
		return d.away
	}
	return d.heard.Add(d.policy.offlineAfter(d.at.Heartbeat))
}

// goOffline is when a device's silence is noticed.
func (r *run) goOffline(d *device, e event) {
	if !d.isAway(e) {
		return
	}
	d.at.Online = false
	if !d.at.LastSeen.IsZero() {
		d.tell() // a soak or an attempt of it ended meanwhile
	}
	for _, limit := range []struct {
		at   time.Time
		kind kind
	}{{d.offlineSince().Add(d.policy.OfflineGrace + 1), eventGrace}, {d.heard.Add(d.policy.AbsentAfter + 1), eventAbsent}} {
		if limit.at.Before(d.returns) {
			r.queue.add(event{at: limit.at, device: d.index, kind: limit.kind, about: d.outage})
		}
	}
}

// tell tells since when a device is away.
func (d *device) tell() { d.at.LastSeen, d.at.OfflineSince = d.heard, d.offlineSince() }

// hushed tells when a device was heard last.
func (r *run) hushed(d *device) {
	switch {
	case !d.at.Seen || d.silent && d.heard.IsZero():
	case !d.silent:
		d.at.LastSeen = later(r.ticks(d, d.heartbeat, r.now.Add(1-d.heartbeat)), d.spoke)
	case d.at.Online:
		d.at.LastSeen = d.heard
	default:
		d.tell()
	}
}

// passGrace is when a wave stops waiting for a device.
func (r *run) passGrace(d *device, e event) {
	if !d.isAway(e) {
		return
	}
	d.tell()
	if !d.tried() {
		r.nearer(d)
	}
}

// comeBack lets a device be heard again. It says at once what there is to say.
func (r *run) comeBack(d *device, e event) {
	if !d.isAway(e) {
		return
	}
	noticed := !d.at.Online || !d.at.LastSeen.IsZero() || r.eager
	shows := d.soaked(d.heard, e.at) || e.at.Sub(d.heard) > d.policy.AbsentAfter
	d.silent, d.returns, d.away = false, time.Time{}, time.Time{}
	d.outage++
	d.spoke = e.at
	d.at.Online, d.at.LastSeen, d.at.OfflineSince = true, time.Time{}, time.Time{}
	r.nextOutage(d, e.at)
	if d.unsent {
		r.report(d, e.at)
	}
	if a := d.open(); a != nil {
		if a.StartedAt.IsZero() {
			r.queue.add(event{at: r.ticks(d, poll, e.at), device: d.index, kind: eventPoll, about: a.Number})
		}
		return
	}
	r.due = r.due || shows || noticed && r.mayMove(d)
}

// soak is when a soak is over: a report after it has to show that the device
// still is where it was.
func (r *run) soak(d *device, e event) {
	if d.lastNumber() != e.about || d.open() != nil {
		return
	}
	if d.silent {
		r.hushed(d)
		return
	}
	next := r.ticks(d, d.heartbeat, e.at)
	if !next.After(r.now) || !d.spoke.Before(e.at) {
		return
	}
	d.at.LastSeen = next.Add(-d.heartbeat)
	r.queue.add(event{at: next, device: d.index, kind: eventHeard, about: d.outage})
}

// awaitReport tells when a device was heard last, until it is again.
func (r *run) awaitReport(d *device) {
	if r.hushed(d); d.at.Seen && !d.silent {
		r.queue.add(event{at: r.ticks(d, d.heartbeat, r.now.Add(1)), device: d.index, kind: eventHeard, about: d.outage})
	}
}

// hearAgain is the report that was waited for.
func (r *run) hearAgain(d *device, e event) {
	if !d.silent && d.outage == e.about {
		d.at.LastSeen = time.Time{}
		r.due = true
	}
}

// mayMove says whether a device that has become available may go at once, or
// let another one go. Going away never lets anybody go: it only restricts.
func (r *run) mayMove(d *device) bool {
	if free, waits := r.frees(d); free || waits {
		return free
	}
	p := d.policy
	if d.record.Code == string(planner.Current) || p.summary == nil || !p.room {
		return false
	}
	if d.at.Pinned || d.at.Observes {
		return true
	}
	if p.summary.Halted && len(d.at.Attempts) == 0 {
		return false
	}
	if t := p.summary.Pilot; t != nil && !t.Over && t.InFlight+t.Soaking >= t.Count {
		return false
	}
	w := p.wave(d.at.Wave)
	return w >= len(p.summary.Waves) || p.summary.Waves[w].Open
}

// nearer counts that a wave may be nearer to being satisfied, and plans when
// it can be: each device that a wave stops waiting for makes it need at most
// one less.
func (r *run) nearer(d *device) {
	p := d.policy
	w := p.wave(d.at.Wave)
	if p.summary == nil || w >= len(p.summary.Waves)-1 || d.at.Pinned || d.at.Observes {
		return
	}
	s := &p.summary.Waves[w]
	if s.Satisfied || s.InFlight > 0 {
		return
	}
	p.left[w]++
	if p.left[w] >= s.Needed-s.Successes || p.left[w] >= s.Countable {
		r.due = true
	}
}
