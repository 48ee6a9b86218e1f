package planner

import (
	"slices"
	"time"
)

// judgeReports decides what became of every attempt that is open, or whose
// outcome a late report corrects. It also ends recalls.
func (pl *plan) judgeReports() {
	for _, d := range pl.devices {
		if d.bad != "" {
			continue // whose report would it be?
		}
		for i := range d.attempts {
			if dec, ok := pl.judge(d, &d.attempts[i], i == len(d.attempts)-1); ok {
				pl.decide(d, i, dec)
			}
		}
	}
}

func (pl *plan) judge(d *device, a *Attempt, last bool) (Decision, bool) {
	switch {
	case a.Outcome == "":
		return pl.judgeOpen(d, a)
	case a.Outcome == Lost:
		return pl.correctLost(d, a)
	case a.Outcome == OK && last:
		return pl.rolledBack(d, a)
	}
	return Decision{}, false
}

// judgeOpen is the life of an attempt. What a device says of it is looked at
// before any clock, so that a late success is a success.
func (pl *plan) judgeOpen(d *device, a *Attempt) (Decision, bool) {
	rules := pl.rulesOf(d, a)
	said := d.Said
	if d.Seen && said.Fresh && !sameInstall(d, a) {
		// Its announcement may have been overwritten by the new report, so it
		// has to count as started.
		return end(Lost, "another installation reports")
	}
	if speaksOf(d, a) && said.Fresh {
		switch onIt := pl.runs(d, a.Target); {
		case said.Outcome == string(OK) && onIt:
			if said.Settled || rules.Settle == 0 {
				return end(OK, "on target")
			}
			if a.OnTargetAt.IsZero() {
				return Decision{OnTarget: true, Because: "on target, settles until " + at(pl.Now.Add(rules.Settle))}, true
			}
		case said.Outcome == string(Failed):
			return failed(said, "the device reports that it failed")
		case said.Outcome == string(Refused) || said.Outcome == string(Exhausted):
			if said.Begun {
				return failed(said, "the device gave up after it had begun")
			}
			dec, ok := end(Outcome(said.Outcome), because("the device reports it", said.Message))
			dec.Stage = word(said.Stage)
			return dec, ok
		case !a.OnTargetAt.IsZero() && !onIt && d.Version != "":
			return failed(said, "it left the target before it had settled: it reports "+word(d.Version))
		}
		if a.StartedAt.IsZero() && (said.Starting || said.Begun) {
			return Decision{Started: true, Because: "the device announces its start"}, true
		}
	}
	switch {
	case !a.OnTargetAt.IsZero():
		if rules.Settle == 0 {
			return end(OK, "on target") // it had to settle when it was assigned
		}
		limit := sum(rules.Settle, rules.offlineAfter(d.Heartbeat))
		if pl.passed(d, a.OnTargetAt, limit) {
			return end(Lost, "it did not show that it settled within "+span(limit))
		}
	case a.Recalled != "" && a.RecallDelivered && !begins(d, a):
		return end(recallOutcome(a.Recalled), "recalled, and it had not begun")
	case !a.StartedAt.IsZero() && pl.passed(d, a.StartedAt, rules.UpdateTimeout):
		return end(Lost, "not on target within updateTimeout "+span(rules.UpdateTimeout))
	}
	return Decision{}, false
}

// correctLost listens to a device that was given up: it may come back on the
// target, or with a failure, or not having begun at all.
func (pl *plan) correctLost(d *device, a *Attempt) (Decision, bool) {
	said := d.Said
	if !d.Seen || !said.Fresh || !sameInstall(d, a) {
		return Decision{}, false
	}
	if speaksOf(d, a) {
		given := said.Outcome == string(Refused) || said.Outcome == string(Exhausted)
		switch {
		case said.Outcome == string(OK) && pl.runs(d, a.Target):
			if said.Settled || pl.rulesOf(d, a).Settle == 0 {
				return end(OK, "it came back on the target")
			}
			return Decision{}, false
		case said.Outcome == string(Failed), given && said.Begun:
			return failed(said, "it came back and reports that it failed")
		}
	}
	if a.RecallDelivered && gaveUp(d, a) {
		return end(Unreached, "it came back, and it had not begun")
	}
	return Decision{}, false
}

// rolledBack finds a device that was done and is not on its target any more,
// though nobody sent it elsewhere.
func (pl *plan) rolledBack(d *device, a *Attempt) (Decision, bool) {
	if !d.Seen || !d.Said.Fresh || d.Version == "" || !sameInstall(d, a) || a.Target != d.target {
		return Decision{}, false
	}
	if pl.runs(d, a.Target) || a.EndedAt.Before(pl.forget(d)) {
		return Decision{}, false
	}
	return failed(d.Said, "it was done, and now reports "+word(d.Version))
}

// judgeRecalls takes back what has not started and should not any more, and
// what has started but was deferred by its device before it began.
func (pl *plan) judgeRecalls() {
	for _, d := range pl.devices {
		if d.bad != "" {
			continue
		}
		for i := range d.attempts {
			a := &d.attempts[i]
			if _, done := d.decided[a.Number]; done || a.Outcome != "" || a.Recalled != "" || !a.OnTargetAt.IsZero() {
				continue
			}
			if what, why := pl.recall(d, a); what != "" {
				pl.decide(d, i, Decision{Recall: what, Because: why})
			}
		}
	}
}

func (pl *plan) recall(d *device, a *Attempt) (Outcome, string) {
	rules := pl.rulesOf(d, a)
	blocked, why := d.blocked()
	if !a.StartedAt.IsZero() {
		if d.Said.Fresh && blocked && speaksOf(d, a) && gaveUp(d, a) {
			return Deferred, why
		}
		return "", ""
	}
	from := a.PickupFrom
	if from.IsZero() {
		from = a.AssignedAt
	}
	switch {
	case d.Removed:
		return Deferred, "the device does not belong to the policy any more"
	case d.Policy == "":
		return Deferred, "no policy selects the device any more"
	case blocked:
		return Deferred, why
	case rules.Paused != "":
		return Deferred, because("the policy is paused", rules.Paused)
	case d.NoTarget == "" && d.target.Version != "" && !matches(a.Target, d.target):
		if a.Target.Version != d.target.Version {
			return Deferred, "the target is " + word(d.target.Version) + " now"
		}
		return Deferred, "the content of " + word(d.target.Version) + " changed"
	case rules.halted() && !a.Pinned && !pl.mayRetry(d, rules):
		return Deferred, "the policy is halted"
	case pl.passed(d, from, rules.PickupTimeout):
		return Unreached, "not started within pickupTimeout " + span(rules.PickupTimeout)
	}
	return "", ""
}

// decide records a decision and lets it stand for the rest of the plan.
func (pl *plan) decide(d *device, i int, dec Decision) {
	dec.Device, dec.Attempt = d.ID, d.attempts[i].Number
	if d.decided == nil {
		d.decided = map[int64]Decision{}
		d.attempts = slices.Clone(d.attempts) // the input stays as it is
	}
	a := &d.attempts[i]
	d.decided[a.Number] = dec
	switch {
	case dec.Started:
		a.StartedAt = pl.Now
	case dec.OnTarget:
		a.OnTargetAt = pl.Now
	case dec.Recall != "":
		a.Recalled = dec.Recall
	case dec.End != "":
		a.Outcome, a.EndedAt = dec.End, pl.Now
	}
}

func end(o Outcome, why string) (Decision, bool) { return Decision{End: o, Because: why}, true }

func failed(said Said, why string) (Decision, bool) {
	return Decision{End: Failed, Because: because(why, said.Message), Stage: word(said.Stage)}, true
}

// passed says whether a time limit is over. A device that was heard from
// after the limit was not silent; of one that is silent only the time counts
// in which this daemon has listened.
func (pl *plan) passed(d *device, from time.Time, limit time.Duration) bool {
	if pl.NoTimeouts {
		return false
	}
	if d.LastSeen.Sub(from) < limit && pl.Watching.After(from) {
		from = pl.Watching
	}
	return pl.Now.Sub(from) >= limit
}

// speaksOf says whether the last report is of this attempt.
func speaksOf(d *device, a *Attempt) bool {
	return d.Seen && a.Number > 0 && d.Said.Attempt == a.Number && sameInstall(d, a)
}

// begins says whether the last report leaves it possible that the device
// acts on the attempt: of one that has not started, because it shows a start;
// of one that has, because it does not show that it was given up.
func begins(d *device, a *Attempt) bool {
	if !a.StartedAt.IsZero() {
		return !gaveUp(d, a)
	}
	return speaksOf(d, a) && d.Said.showsStart()
}

// gaveUp says whether the last report shows that the device has not begun
// the attempt and, unless it announces it again, is not about to.
func gaveUp(d *device, a *Attempt) bool {
	if !speaksOf(d, a) {
		return d.Seen && a.Number > 0 && d.Said.Recalled == a.Number && sameInstall(d, a)
	}
	return !d.Said.showsStart()
}

// beforeStart are the phases in which nothing has begun. An agent may be
// Degraded before it began, too, but a record of that does not say so.
var beforeStart = []string{"", phaseUpdated, phasePreparing, phaseWaiting}

// showsStart says whether the attempt that a report names may have begun. The
// phase is looked at as well, because a record of a report has nothing else.
func (s Said) showsStart() bool {
	if s.Outcome == string(Refused) || s.Outcome == string(Exhausted) {
		return s.Begun
	}
	return s.Begun || s.Starting || s.Outcome != "" || !slices.Contains(beforeStart, s.Phase)
}

// sameInstall says whether the report and the attempt are of one
// installation. Where one of them does not tell, they are.
func sameInstall(d *device, a *Attempt) bool {
	return d.InstallID == "" || a.InstallID == "" || d.InstallID == a.InstallID
}

// matches says whether two targets are one as far as both tell.
func matches(a, b Target) bool {
	return a.Version == b.Version && (a.Digest == "" || b.Digest == "" || a.Digest == b.Digest)
}

func recallOutcome(o Outcome) Outcome {
	if o == Unreached {
		return Unreached
	}
	return Deferred
}
