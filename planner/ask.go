package planner

import "time"

// Limits are the limits of a policy as counts of devices.
type Limits struct {
	Slots    int // maxInFlight
	Keep     int // minAvailable, as far as it can be met
	Failures int // failureLimit
	Refusals int // refusalLimit
}

// LimitsFor says what the limits of a policy come to where it has n devices.
func (p Policy) LimitsFor(n int) Limits {
	e := newPolicy(p, "")
	e.n = n
	e.setLimits()
	return Limits{Slots: e.slots, Keep: e.keep, Failures: e.failures.limit, Refusals: e.refusals.limit}
}

// SlotsFor says what maxInFlight comes to where there are n devices of all
// policies; false = there is no limit.
func (f Fleet) SlotsFor(n int) (int, bool) {
	e := newFleet(f)
	e.n = n
	e.setLimits()
	return e.slots, f.MaxInFlight > 0 || f.MaxInFlightPercent > 0
}

// LimitFor says how many of a group of n devices may be unavailable.
func (b Budget) LimitFor(n int) int {
	g := &group{n: n}
	e := budget{Budget: b, groups: map[string]*group{"": g}}
	e.setLimits()
	return g.limit
}

// NextOpen is the first time from t on at which one of the windows is open,
// or there are none, and no freeze is in force. It looks so many days ahead;
// zero = there is no such time.
func NextOpen(windows []Window, freezes []Freeze, t time.Time, days int) time.Time {
	end := t.Add(time.Duration(days) * day)
	spans := []stretch{{t, end}}
	if len(windows) > 0 {
		spans = openings(windows, t, days)
	}
	f := frozen{freezes: freezes}
	for _, s := range spans {
		if u := f.from(later(s.begin, t)); u.Before(s.end) && u.Before(end) {
			return u
		}
	}
	return time.Time{}
}
