package planner

import (
	"fmt"
	"slices"
	"time"
)

// What a plan counts, counted anew by the words of its rules, for properties.

// open says whether a device has an attempt that has not ended.
func isOpen(d Device) bool {
	return slices.ContainsFunc(d.Attempts, func(a Attempt) bool { return a.Outcome == "" })
}

// hears says whether a device is offline, and whether it is absent.
func hears(in Input, d Device) (offline, absent bool) {
	silence := in.Now.Sub(d.LastSeen)
	if in.NoTimeouts {
		silence = 0
	}
	limit := governs(in, d).OfflineAfter
	offline = !d.Online || silence > limit
	return offline, !d.Seen || offline && silence > DefaultAbsentAfter
}

// counted are devices and how many of them there are.
type counted struct{ n, available, moved int }

func (c *counted) add(in Input, d Device, moved bool) {
	offline, absent := hears(in, d)
	if d.Removed || absent {
		return
	}
	c.n++
	if !offline && !d.AdminHeld && !d.Upgrading && !isOpen(d) {
		c.available++
	}
	if moved {
		c.moved++
	}
}

// groupsOf counts the groups of a budget among the devices that belong.
func groupsOf(in Input, r Result, b Budget, belongs func(Device) bool) map[string]*counted {
	moved := upgrades(r)
	groups := map[string]*counted{}
	for _, d := range in.Devices {
		if !belongs(d) {
			continue
		}
		key := groupKey(b, d)
		if groups[key] == nil {
			groups[key] = &counted{}
		}
		groups[key].add(in, d, moved[d.ID])
	}
	return groups
}

func groupKey(b Budget, d Device) string {
	key := ""
	for _, l := range b.GroupBy {
		v, has := d.Labels[l]
		key += fmt.Sprintf("%v %q,", has, v)
	}
	return key
}

// mayBeAway is how many devices of a group a budget lets be unavailable.
func mayBeAway(b Budget, n int) int {
	switch l := b.MaxUnavailable; {
	case l.Percent > 0:
		return max(1, l.Percent*n/100)
	case l.Count > 0 || l.Set:
		return l.Count
	}
	return 1
}

// everyGroup goes through the groups of all budgets.
func everyGroup(in Input, r Result, do func(where string, b Budget, key string, policy string, c counted)) {
	for _, p := range in.Policies {
		for _, b := range p.Budgets {
			for key, c := range groupsOf(in, r, b, func(d Device) bool { return d.Policy == p.Name }) {
				do("policy "+p.Name, b, key, p.Name, *c)
			}
		}
	}
	for _, b := range in.Fleet.Budgets {
		for key, c := range groupsOf(in, r, b, func(Device) bool { return true }) {
			do("the fleet", b, key, "", *c)
		}
	}
}

// slotsOf says what a policy may have in flight.
func slotsOf(p Policy, n int) int {
	switch {
	case p.MaxInFlightPercent > 0:
		return max(1, p.MaxInFlightPercent*n/100)
	case p.MaxInFlight > 0:
		return p.MaxInFlight
	}
	return 1
}

// fleetSlots says what the whole fleet may have in flight.
func fleetSlots(in Input) int {
	var all counted
	for _, d := range in.Devices {
		all.add(in, d, false)
	}
	if f := in.Fleet; f.MaxInFlightPercent > 0 || f.MaxInFlight > 0 {
		return slotsOf(Policy{MaxInFlight: f.MaxInFlight, MaxInFlightPercent: f.MaxInFlightPercent}, all.n)
	}
	return 1 << 30
}

// taken counts the slots of a policy as they stand after a plan; "*" is those
// of all.
func taken(in Input, policy string) int {
	n := 0
	for _, d := range in.Devices {
		for _, a := range d.Attempts {
			if a.Outcome == "" && (a.Policy == policy || policy == "*") {
				n++
			}
		}
		if !isOpen(d) && d.Upgrading && !d.Removed && (d.Policy == policy || policy == "*") {
			n++
		}
	}
	return n
}

func movedOf(r Result, policy string) int {
	n := 0
	for _, v := range r.Verdicts {
		if v.Upgrade && (v.Device.Policy == policy || policy == "*") {
			n++
		}
	}
	return n
}

// isClosed says whether a freeze is in force or all windows are closed.
func isClosed(in Input, p Policy) bool {
	for _, f := range slices.Concat(p.Freezes, in.Fleet.Freezes) {
		if !in.Now.Before(f.From) && in.Now.Before(f.To) {
			return true
		}
	}
	if len(p.Windows) == 0 {
		return false
	}
	// No clock is changed around the time of these fleets, so that looking for
	// a minute that shows the start is enough.
	for _, w := range p.Windows {
		zone := w.Zone
		if zone == nil {
			zone = time.UTC
		}
		for back := time.Duration(0); back < w.Duration; back += time.Minute {
			t := in.Now.Add(-back).In(zone)
			if t.Hour()*60+t.Minute() == int(w.Start/time.Minute) && slices.Contains(w.Days, t.Weekday()) {
				return false
			}
		}
	}
	return true
}

// rollout is what waves and pilots are judged by, after the decisions of a
// plan.
type rolloutOf struct {
	in      Input
	policy  Policy
	current map[string]bool
}

func recountRollout(in Input, r Result, p Policy) rolloutOf {
	// What is wrong elsewhere hides who is on the target.
	alone := in
	alone.Fleet, alone.Policies, alone.Devices = Fleet{}, slices.Clone(in.Policies), slices.Clone(in.Devices)
	for i := range alone.Policies {
		alone.Policies[i].Enabled = true
	}
	for i := range alone.Devices {
		alone.Devices[i].Duplicate = false
	}
	o := rolloutOf{in: apply(in, Result{Decisions: r.Decisions}), policy: p, current: map[string]bool{}}
	for id, c := range codes(Plan(alone)) {
		o.current[id] = c == Current
	}
	return o
}

func (o rolloutOf) index(d Device) int {
	i := slices.IndexFunc(o.policy.Waves, func(w Wave) bool { return w.Name == d.Wave })
	if i < 0 {
		return len(o.policy.Waves)
	}
	return i
}

func (o rolloutOf) member(d Device) bool {
	return d.Policy == o.policy.Name && !d.Removed && !d.Pinned && !d.Observes
}

func tried(d Device) bool {
	return slices.ContainsFunc(d.Attempts, func(a Attempt) bool { return a.Rollout == d.Rollout })
}

// soaked says whether a device that is on its target has soaked there, and
// whether it got there by an attempt that ended ok in this rollout.
func (o rolloutOf) soaked(d Device, soak time.Duration) (done, ok bool) {
	since := d.Since
	for _, a := range d.Attempts {
		if a.Rollout == d.Rollout && a.Target == d.Target && (a.InstallID == "" || a.InstallID == d.InstallID) {
			since, ok = a.EndedAt, a.Outcome == OK
			if !ok && d.Since.After(since) {
				since = d.Since
			}
		}
	}
	if soak == 0 || since.IsZero() {
		return true, ok
	}
	end := since.Add(soak)
	return !o.in.Now.Before(end) && (!d.LastSeen.Before(end) || !d.HeardAt.Before(end)), ok
}

// satisfied says whether a wave is.
func (o rolloutOf) satisfied(index int) bool {
	w := o.policy.Waves[index]
	countable, successes := 0, 0
	for _, d := range o.in.Devices {
		if !o.member(d) || o.index(d) != index {
			continue
		}
		if isOpen(d) || d.Upgrading {
			return false
		}
		success := false
		if o.current[d.ID] {
			success, _ = o.soaked(d, w.Soak)
		}
		if success {
			successes++
		}
		if success || tried(d) || !o.leftOut(d) {
			countable++
		}
	}
	threshold := w.SuccessThreshold
	if threshold == 0 {
		threshold = 100
	}
	if w.Optional && countable == 0 {
		return true
	}
	return successes >= max(max(1, w.MinSuccess), (threshold*countable+99)/100)
}

func (o rolloutOf) leftOut(d Device) bool {
	offline, absent := hears(o.in, d)
	grace := o.policy.OfflineGrace
	if grace == 0 {
		grace = DefaultOfflineGrace
	}
	since := d.LastSeen.Add(o.policy.OfflineAfter)
	if !d.OfflineSince.IsZero() {
		since = d.OfflineSince
	}
	long := offline && !o.in.NoTimeouts && o.in.Now.Sub(since) > grace
	have, want := parseVersion(d.Version), parseVersion(d.Target.Version)
	unknown := have == nil && d.NoTarget == ""
	newer := have != nil && d.NoTarget == "" && have.GreaterThan(want) && !slices.Contains(o.policy.RollbackFrom, d.Version)
	if o.current[d.ID] {
		unknown, newer = false, false
	}
	return absent || long || d.AdminHeld || unknown || newer || d.ProtocolVersion < 1
}

// open says whether a wave is.
func (o rolloutOf) open(index int) bool {
	moved := slices.ContainsFunc(o.in.Devices, func(d Device) bool { return o.member(d) && o.index(d) >= index && tried(d) })
	for i := range index {
		if !moved && !o.satisfied(i) {
			return false
		}
	}
	return true
}

// pilots says how many pilots are done, and how many are under way or soak.
func (o rolloutOf) pilots() (done, underway int) {
	for _, d := range o.in.Devices {
		for _, a := range d.Attempts {
			if a.Outcome == "" && a.Policy == o.policy.Name && !a.Pinned {
				underway++
			}
		}
		if !o.member(d) {
			continue
		}
		_, absent := hears(o.in, d)
		soaked, ok := o.soaked(d, o.policy.Pilot.Soak)
		switch {
		case isOpen(d):
		case d.Upgrading:
			underway++
		case !o.current[d.ID] || !ok || absent:
		case soaked:
			done++
		default:
			underway++
		}
	}
	return done, underway
}
