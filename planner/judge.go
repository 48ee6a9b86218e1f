package planner

import "slices"

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
		case said.endsWell() && onIt:
			if said.Settled || rules.Settle == 0 {
				return end(OK, "on target")
			}
			if a.OnTargetAt.IsZero() {
				return Decision{OnTarget: true, Because: "on target, settles until " + at(pl.Now.Add(rules.Settle))}, true
			}
		case said.fails():
			return failed(said, "the device reports that it failed")
		case said.givesUp():
			if said.Begun {
				return failed(said, "the device gave up after it had begun")
			}
			why := because("the device reports it", said.Message)
			if said.Outcome == string(Observed) && said.Message != "" {
				why = word(said.Message) // what it found
			}
			dec, ok := end(Outcome(said.Outcome), why)
			dec.Stage = word(said.Stage)
			return dec, ok
		case !a.OnTargetAt.IsZero() && !onIt && d.Version != "":
			return failed(said, "it left the target before it had settled: it reports "+word(d.Version))
		}
		if a.StartedAt.IsZero() && a.OnTargetAt.IsZero() && (said.Starting || said.Begun) {
			return Decision{Started: true, Because: "the device announces its start"}, true
		}
	}
	switch {
	case !a.OnTargetAt.IsZero():
		if rules.Settle == 0 {
			return end(OK, "on target") // it had to settle when it was assigned
		}
		within := sum(rules.Settle, rules.offlineAfter(d.Heartbeat))
		if pl.passed(d, a.OnTargetAt, within) {
			return end(Lost, "it did not show that it settled within "+span(within))
		}
	case a.Recalled != "" && a.RecallDelivered && !begins(d, a):
		return end(recallOutcome(a.Recalled), "recalled before it changed anything")
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
		switch {
		case said.endsWell() && pl.runs(d, a.Target):
			if said.Settled || pl.rulesOf(d, a).Settle == 0 {
				return end(OK, "it came back on the target")
			}
			return Decision{}, false
		case said.fails(), said.givesUp() && said.Begun:
			return failed(said, "it came back and reports that it failed")
		}
	}
	if a.RecallDelivered && gaveUp(d, a) {
		return end(Unreached, "it came back, and it had changed nothing")
	}
	return Decision{}, false
}

// rolledBack finds a device that was done and is not on its target any more,
// though nobody sent it elsewhere.
func (pl *plan) rolledBack(d *device, a *Attempt) (Decision, bool) {
	if !d.Said.Fresh || !pl.vouches(d, a) || pl.runs(d, a.Target) {
		return Decision{}, false
	}
	return failed(d.Said, "it was done, and now reports "+word(d.Version))
}

// vouches says whether a success speaks for a device as it reports now: a new
// report that it is elsewhere makes a failure of it, and any other is older.
func (pl *plan) vouches(d *device, a *Attempt) bool {
	return a.Outcome == OK && d.Seen && d.Version != "" && sameInstall(d, a) && matches(a.Target, d.target) && !a.EndedAt.Before(pl.forget(d))
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
		a.Recalled, a.Because = dec.Recall, dec.Because
	case dec.End != "":
		a.Outcome, a.EndedAt = dec.End, pl.Now
		if a.Recalled == "" || (dec.End != Deferred && dec.End != Unreached) {
			a.Because = dec.Because
		}
	}
}

func end(o Outcome, why string) (Decision, bool) { return Decision{End: o, Because: why}, true }

func failed(said Said, why string) (Decision, bool) {
	return Decision{End: Failed, Because: because(why, said.Message), Stage: word(said.Stage)}, true
}
