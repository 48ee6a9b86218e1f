package planner

import "time"

// count finds N, slots and marks of every policy, once the reports are
// judged.
func (pl *plan) count() {
	type key struct {
		device  string
		attempt int64
	}
	holding := map[key]bool{}
	for _, d := range pl.devices {
		// Slots: an open attempt holds one of the policy that made it, also
		// when the device was moved or removed meanwhile.
		for i := range d.attempts {
			a := &d.attempts[i]
			if k := (key{d.ID, a.Number}); a.Outcome == "" && !holding[k] {
				holding[k] = true
				p := pl.rulesOf(d, a)
				p.holders = append(p.holders, d.ID)
				pl.fleet.holders = append(pl.fleet.holders, d.ID)
				if !a.Pinned {
					p.pilot.inside++
				}
			}
		}
		if d.Removed {
			continue
		}
		asked := d.Upgrading && d.open() == nil
		if asked {
			pl.fleet.holders = append(pl.fleet.holders, d.ID)
		}
		there, available := d.bad == "" && !d.absent, d.isAvailable()
		if there {
			pl.fleet.n++
			for _, b := range pl.fleet.budgets {
				b.count(d, available)
			}
		}
		if available {
			pl.fleet.available++
		}
		if d.policy == nil {
			continue
		}
		if asked {
			d.policy.holders = append(d.policy.holders, d.ID)
			if !d.apart() {
				d.policy.pilot.inside++
			}
		}
		if there {
			d.policy.n++
			for _, b := range d.policy.budgets {
				b.count(d, available)
			}
		}
		if available {
			d.policy.available++
		}
		if !d.Pinned {
			d.policy.rollouts[d.Rollout] = true
		}
	}
	for _, d := range pl.devices {
		if d.ID != "" {
			pl.mark(d)
		}
	}
	for _, p := range pl.policies {
		p.inFlight = len(p.holders)
		p.setLimits()
	}
	pl.fleet.setLimits()
}

// isAvailable says whether a device does its work now and nobody has taken
// it: busy ones do.
func (d *device) isAvailable() bool {
	return d.bad == "" && d.Seen && !d.offline && !d.held() && d.open() == nil && !d.Upgrading
}

func (d *device) held() bool { return d.AdminHeld || d.HeldReason != "" }

// mark counts a device as failed or refused: for its policy while its present
// target is one that it failed, in whatever rollout; for a policy whose release
// it was taken out of (removed, moved, pinned, given a spec of its own) while
// that policy goes on with the same release. What a person does about the
// device that failed does not make the release a better one.
func (pl *plan) mark(d *device) {
	if p := d.policy; p != nil && !d.Removed && !d.apart() && !(d.current && d.open() == nil) {
		forget := pl.forget(d)
		present := func(a *Attempt) bool { return matches(a.Target, d.target) && d.target.Version != "" }
		pl.markIf(d, p, present, forget)
	}
	for i := range d.attempts {
		name := d.attempts[i].Policy
		p := pl.byName[name]
		outside := name != d.Policy || d.Removed || d.apart() || d.OwnSpec
		if p == nil || name == "" || !outside || i > 0 && d.attempts[i-1].Policy == name {
			continue
		}
		pl.markIf(d, p, func(a *Attempt) bool {
			return a.Policy == name && !a.Pinned && pl.stillReleases(p, a)
		}, pl.forgetBy(p, d))
	}
}

// markIf looks at the attempts that concern a policy; a success clears what
// was before it.
func (pl *plan) markIf(d *device, p *policy, concerns func(*Attempt) bool, forget time.Time) {
	failed, refused := false, false
	for i := range d.attempts {
		a := &d.attempts[i]
		if a.Outcome == "" || !concerns(a) || a.EndedAt.Before(forget) {
			continue
		}
		if a.Outcome == Lost && d.Duplicate {
			continue // two machines take each other's name away; that says nothing of the release
		}
		switch a.Outcome {
		case OK:
			failed, refused = false, false
		case Failed, Lost:
			failed = true
		case Refused:
			refused = true
		}
	}
	if failed {
		p.failures.ids[d.ID] = true
	}
	if refused {
		p.refusals.ids[d.ID] = true
	}
}

// stillReleases says whether a policy goes on with what an attempt was of.
func (pl *plan) stillReleases(p *policy, a *Attempt) bool {
	if a.Release == ReleaseNone || p.Line != "" && a.Line != "" && p.Line != a.Line {
		return false
	}
	if !pl.versions.same(p.target, a.Target.Version) {
		return false
	}
	if p.Release != "" && a.Release != "" {
		return p.Release == a.Release
	}
	return p.rollouts[a.Rollout]
}

// forget is the time before which attempts of a device are forgotten: the
// later of its policy's and its own. One in the future is not yet.
func (pl *plan) forget(d *device) time.Time { return pl.forgetBy(pl.rules(d), d) }

func (pl *plan) forgetBy(p *policy, d *device) time.Time {
	var t time.Time
	for _, f := range []time.Time{p.ForgetBefore, d.ForgetBefore} {
		if pl.reached(f) && f.After(t) {
			t = f
		}
	}
	return t
}

// history is what a device's own attempts say about its present target.
type history struct {
	failures    int
	lastFailure *Attempt
	refusal     *Attempt
	observed    *Attempt
	retryAt     time.Time // zero = at once
	cause       string    // what it waits after
}

// tries looks at the attempts of this installation at the present target.
func (pl *plan) tries(d *device, p *policy) history {
	var h history
	spaced := 0 // attempts that the backoff grows with
	forget := pl.forget(d)
	for i := range d.attempts {
		a := &d.attempts[i]
		if a.Outcome == "" || !matches(a.Target, d.target) || !sameInstall(d, a) || a.EndedAt.Before(forget) {
			continue
		}
		var wait time.Duration
		switch a.Outcome {
		case Failed, Lost:
			h.failures++
			h.lastFailure = a
			spaced++
			wait = p.backoff(spaced)
		case Exhausted:
			spaced++
			wait = p.backoff(spaced)
		case Refused:
			h.refusal = a
			continue
		case Observed:
			h = history{observed: a}
			continue
		case Deferred, Unreached:
			wait = p.Backoff.Base
		default:
			continue
		}
		if t := a.EndedAt.Add(wait); t.After(h.retryAt) {
			h.retryAt, h.cause = t, a.cause()
		}
	}
	return h
}

// cause says in a few words what became of an attempt.
func (a *Attempt) cause() string {
	why := word(a.Because)
	switch {
	case a.Outcome == Deferred && why != "":
		return "deferred (no failure) because " + why
	case a.Outcome == Deferred:
		return "deferred (no failure)"
	case a.Because == "":
		return string(a.Outcome)
	}
	return a.Because
}

// mayRetry says whether a device passes a halt: it counts among those who
// made it, so that a retry there reaches no new device.
func (pl *plan) mayRetry(d *device, p *policy) bool {
	if pl.tries(d, p).failures >= p.MaxAttempts {
		return false
	}
	if p.failures.halts() {
		return p.failures.ids[d.ID]
	}
	return p.failures.ids[d.ID] || p.refusals.ids[d.ID]
}
