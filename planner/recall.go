package planner

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
	case pl.fleet.Paused != "":
		return Deferred, because("the fleet is paused", pl.fleet.Paused)
	case rules.Paused != "":
		return Deferred, because("the policy is paused", rules.Paused)
	case d.NoTarget == "" && d.target.Version != "" && !matches(a.Target, d.target):
		if a.Target.Version != d.target.Version {
			return Deferred, "the target is " + word(d.target.Version) + " now"
		}
		return Deferred, "the content of " + word(d.target.Version) + " changed"
	case rules.halted() && !a.Pinned && !d.Observes && !pl.mayRetry(d, rules):
		return Deferred, "the policy is halted"
	case pl.passed(d, from, rules.PickupTimeout):
		return Unreached, "not started within pickupTimeout " + span(rules.PickupTimeout)
	}
	return "", ""
}

// recallOutcome is what a recalled attempt ends as; a record that says
// something else was deferred.
func recallOutcome(o Outcome) Outcome {
	if o == Unreached {
		return Unreached
	}
	return Deferred
}
