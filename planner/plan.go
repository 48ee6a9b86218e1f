package planner

import (
	"maps"
	"slices"
	"time"
)

// Plan judges the attempts of a fleet and decides who may be upgraded now.
func Plan(in Input) Result {
	pl := prepare(in)

	// Attempts first: what ends here frees its slot for this very plan.
	pl.judgeReports()
	pl.findCurrent()
	pl.count()
	pl.judgeRecalls()

	// Then what holds back many: how far each rollout is, and the calendar.
	pl.setPace()
	pl.countWaves()
	pl.closeGates()

	for _, d := range pl.devices {
		if d.Removed {
			continue
		}
		d.verdict = pl.check(d)
		if d.verdict.code == "" {
			d.verdict = pl.gate(d)
		}
	}
	pl.allocate()
	return pl.result()
}

// plan is one planning under way.
type plan struct {
	Input
	versions versions
	fleet    fleetWide
	policies []*policy
	byName   map[string]*policy
	none     *policy // the defaults, for devices and attempts whose policy is gone
	devices  []*device
	next     time.Time // see [Result.NextChange]
}

// device is a [Device] with what this plan found out about it.
type device struct {
	*Device
	policy   *policy // nil: none, or one that is not known
	bad      string  // why it cannot be told apart; "" = it can
	target   Target
	attempts []Attempt // with the decisions of this plan applied
	decided  map[int64]Decision
	current  bool // on its target
	offline  bool
	absent   bool
	heard    bool // a soak is over by its LastSeen alone
	verdict  finding
}

// finding is a verdict in the making; without a code nothing was found yet.
type finding struct {
	code           Code
	reason, detail string
	position       int
	notBefore      time.Time
	field          string // where it is not the one of the code
	in             Place
}

func prepare(in Input) *plan {
	pl := &plan{Input: in, versions: versions{}, fleet: newFleet(in.Fleet), byName: map[string]*policy{}, none: newPolicy(Policy{}, "")}
	for _, p := range in.Policies {
		e := newPolicy(p, in.OwnVersion)
		if other := pl.byName[p.Name]; other != nil {
			e.bad, e.badField = "two policies have this name", "metadata.name"
			other.bad, other.badField = e.bad, e.badField
		} else {
			pl.byName[p.Name] = e
		}
		pl.policies = append(pl.policies, e)
	}
	pl.addDevices()
	return pl
}

func (pl *plan) addDevices() {
	in := pl.Input
	twice, leftOver := twice(in.Devices), map[string]bool{}
	for i := range in.Devices {
		if d := &in.Devices[i]; d.Removed {
			leftOver[d.ID] = true
		}
	}
	present := map[string][]Attempt{} // of devices that are there, but left something over
	for i := range in.Devices {
		if d := &in.Devices[i]; !d.Removed && leftOver[d.ID] {
			present[d.ID] = append(present[d.ID], d.Attempts...)
		}
	}
	pl.devices = make([]*device, len(in.Devices))
	store := make([]device, len(in.Devices))
	for i := range in.Devices {
		d := &store[i]
		pl.devices[i] = d
		d.Device = &in.Devices[i]
		switch {
		case d.ID == "":
			d.bad = "its id is empty"
		case twice[d.ID]:
			d.bad = "two devices have the id " + word(d.ID)
		}
		d.policy = pl.byName[d.Policy]
		if d.Policy == "" {
			d.policy = nil // also where a policy has no name
		}
		d.attempts = d.Attempts
		if d.Removed {
			// A device that moved may be there twice, as itself and as what is
			// left over from its old policy.
			d.attempts = without(d.attempts, present[d.ID])
		}
		d.target = d.Target
		if d.policy != nil && d.target.Version == "" && d.NoTarget == "" {
			d.target.Version = d.policy.target
		}
		pl.listen(d)
	}
}

// twice are the ids that more than one device has which is not removed.
func twice(devices []Device) map[string]bool {
	var ids map[string]struct{} // needed only where they do not rise
	again, last := map[string]bool{}, ""
	for i := range devices {
		d := &devices[i]
		if d.Removed {
			continue
		}
		if ids == nil && d.ID <= last && last != "" {
			ids = make(map[string]struct{}, len(devices))
			for j := range devices[:i] {
				if !devices[j].Removed {
					ids[devices[j].ID] = struct{}{}
				}
			}
		}
		if last = d.ID; ids == nil {
			continue
		}
		before := len(ids)
		if ids[d.ID] = struct{}{}; len(ids) == before {
			again[d.ID] = true
		}
	}
	return again
}

// without gives the attempts that are not among others.
func without(attempts, others []Attempt) []Attempt {
	if len(others) == 0 {
		return attempts
	}
	return slices.DeleteFunc(slices.Clone(attempts), func(a Attempt) bool {
		return slices.ContainsFunc(others, func(o Attempt) bool { return o.Number == a.Number })
	})
}

// open is the newest open attempt of a device, or nil.
func (d *device) open() *Attempt {
	for i := len(d.attempts) - 1; i >= 0; i-- {
		if d.attempts[i].Outcome == "" {
			return &d.attempts[i]
		}
	}
	return nil
}

// runs says whether a device runs a target, by its last report. Where either
// tells no digest, the version alone says it.
func (pl *plan) runs(d *device, t Target) bool {
	if !pl.versions.same(d.Version, t.Version) {
		return false
	}
	return d.Digest == "" || t.Digest == "" || d.Digest == t.Digest
}

// findCurrent finds the devices that are on their target, once the reports
// are judged.
func (pl *plan) findCurrent() {
	for _, d := range pl.devices {
		d.current = pl.runs(d, d.target) && !d.observing()
		if len(d.attempts) == 0 {
			continue
		}
		switch last := &d.attempts[len(d.attempts)-1]; {
		case !matches(last.Target, d.target):
		case !d.Said.Fresh && d.Said.Phase != phaseObserving && pl.vouches(d, last):
			// The record is newer than the report that we happen to have.
			d.current = true
		case last.Outcome == Lost || last.Outcome == Failed:
			// What it reported before that does not undo it, nor does a look
			// into the middle of its work.
			later := d.LastSeen.IsZero() || d.LastSeen.After(last.EndedAt)
			if d.current = d.current && !d.atWork(); d.current && !later && !d.LastSeen.Before(pl.Now) {
				// It is heard at any time that is asked about, and so later.
				pl.reached(last.EndedAt.Add(1))
			}
			d.current = d.current && later
		}
	}
}

// listen finds out how long a device has been silent. With a clock that
// cannot be trusted only what is recorded counts.
func (pl *plan) listen(d *device) {
	rules := pl.rules(d)
	silent := func(limit time.Duration) bool {
		return !d.LastSeen.IsZero() && !pl.NoTimeouts && pl.reached(d.LastSeen.Add(sum(limit, 1)))
	}
	d.offline = !d.Online || silent(rules.offlineAfter(d.Heartbeat))
	d.absent = !d.Seen || d.offline && silent(rules.AbsentAfter)
}

// rules are the times that a device goes by.
func (pl *plan) rules(d *device) *policy {
	if d.policy != nil {
		return d.policy
	}
	return pl.none
}

// rulesOf are the times that an attempt goes by: it belongs to the policy
// that made it until it has ended.
func (pl *plan) rulesOf(d *device, a *Attempt) *policy {
	if p := pl.byName[a.Policy]; p != nil && a.Policy != "" {
		return p
	}
	return pl.rules(d)
}

// result collects what was found.
func (pl *plan) result() Result {
	var r Result
	r.Verdicts = make([]Verdict, 0, len(pl.devices))
	type key struct {
		device  string
		attempt int64
	}
	said := map[key]bool{}
	for _, d := range pl.devices {
		if !d.Removed {
			f := d.located()
			r.Verdicts = append(r.Verdicts, Verdict{
				Device: *d.Device, Upgrade: f.code == Upgrade, Code: f.code, Reason: f.reason,
				Heard: d.heard, Target: d.target, Field: f.field, FieldIn: f.in, Detail: f.detail, Position: f.position, NotBefore: f.notBefore,
			})
			pl.rules(d).counts[f.code]++
		}
		if d.decided == nil {
			continue
		}
		for _, number := range slices.Sorted(maps.Keys(d.decided)) {
			// What was removed may be left over from several policies.
			if k := (key{d.ID, number}); !said[k] {
				said[k] = true
				r.Decisions = append(r.Decisions, d.decided[number])
			}
		}
	}
	for _, p := range pl.policies {
		r.Policies = append(r.Policies, pl.summary(p))
	}
	r.Fleet = pl.fleetSummary()
	r.NextChange = pl.next
	return r
}
