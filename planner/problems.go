package planner

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// problem is what is wrong with a document, so that nobody goes by it; the
// zero problem is none.
type problem struct {
	field string // as in the YAML
	text  string // begins with the field
}

func wrong(field, what string) problem { return problem{field, field + " " + what} }

// problem says what is wrong with a policy.
func (p Policy) problem() problem {
	if bad := wrongInFlight(p.MaxInFlight, p.MaxInFlightPercent); bad.text != "" {
		return bad
	}
	switch {
	case p.MaxAttempts < 0:
		return wrong("maxAttempts", "is negative")
	case p.MinProtocol < 0:
		return wrong("minProtocol", "is negative")
	case p.Backoff.Factor != 0 && !(p.Backoff.Factor >= 1 && p.Backoff.Factor <= math.MaxFloat32):
		return wrong("backoff.factor", "is less than 1")
	case p.Pilot.Count < 0:
		return wrong("pilot.count", "is negative")
	}
	for _, l := range []struct {
		name string
		Limit
	}{{"minAvailable", p.MinAvailable}, {"failureLimit", p.FailureLimit}, {"refusalLimit", p.RefusalLimit}} {
		if bad := l.wrong(l.name); bad.text != "" {
			return bad
		}
	}
	for _, d := range []struct {
		name string
		time.Duration
	}{
		{"pickupTimeout", p.PickupTimeout}, {"updateTimeout", p.UpdateTimeout}, {"settle", p.Settle},
		{"backoff.base", p.Backoff.Base}, {"backoff.cap", p.Backoff.Cap},
		{"offlineAfter", p.OfflineAfter}, {"offlineGrace", p.OfflineGrace}, {"absentAfter", p.AbsentAfter},
		{"minInterval", p.MinInterval}, {"pilot.soak", p.Pilot.Soak},
	} {
		if d.Duration < 0 {
			return wrong(d.name, "is negative")
		}
	}
	for _, find := range []func() problem{
		func() problem { return wrongWaves(p.Waves) },
		func() problem { return wrongBudgets(p.Budgets) },
		func() problem { return wrongWindows(p.Windows) },
		func() problem { return wrongFreezes(p.Freezes) },
	} {
		if bad := find(); bad.text != "" {
			return bad
		}
	}
	return problem{}
}

// problem says what is wrong with what holds over all policies.
func (f Fleet) problem() problem {
	if bad := wrongInFlight(f.MaxInFlight, f.MaxInFlightPercent); bad.text != "" {
		return bad
	}
	if bad := wrongBudgets(f.Budgets); bad.text != "" {
		return bad
	}
	return wrongFreezes(f.Freezes)
}

func wrongInFlight(count, percent int) problem {
	switch {
	case count < 0 || percent < 0 || percent > 100:
		return wrong("maxInFlight", "is a count of devices, or 1% to 100%")
	case count > 0 && percent > 0:
		return wrong("maxInFlight", "is a count or a percentage, not both")
	}
	return problem{}
}

func (l Limit) wrong(name string) problem {
	switch {
	case l.Count < 0 || l.Percent < 0 || l.Percent > 100:
		return wrong(name, "is a count of devices, or 0% to 100%")
	case l.Count > 0 && l.Percent > 0:
		return wrong(name, "is a count or a percentage, not both")
	}
	return problem{}
}

func wrongWaves(waves []Wave) problem {
	names := make(map[string]bool, len(waves))
	for i, w := range waves {
		at := fmt.Sprintf("waves[%d].", i)
		switch {
		case w.Name == "":
			return wrong(at+"name", "is empty")
		case names[w.Name]:
			return wrong(at+"name", "is that of another wave, "+word(w.Name))
		case w.SuccessThreshold < 0 || w.SuccessThreshold > 100:
			return wrong(at+"successThreshold", "is not 1% to 100%")
		case w.MinSuccess < 0:
			return wrong(at+"minSuccess", "is negative")
		case w.Soak < 0:
			return wrong(at+"soak", "is negative")
		}
		names[w.Name] = true
	}
	return problem{}
}

func wrongBudgets(budgets []Budget) problem {
	if len(budgets) > MaxBudgets {
		return wrong("budgets", fmt.Sprintf("are more than %d", MaxBudgets))
	}
	for i, b := range budgets {
		at := fmt.Sprintf("budgets[%d].", i)
		if slices.Contains(b.GroupBy, "") {
			return wrong(at+"groupBy", "has an empty label")
		}
		if bad := b.MaxUnavailable.wrong(at + "maxUnavailable"); bad.text != "" {
			return bad
		}
	}
	return problem{}
}

func wrongWindows(windows []Window) problem {
	if len(windows) > MaxWindows {
		return wrong("windows", fmt.Sprintf("are more than %d", MaxWindows))
	}
	for i, w := range windows {
		at := fmt.Sprintf("windows[%d].", i)
		noDay := func(d time.Weekday) bool { return d < time.Sunday || d > time.Saturday }
		switch {
		case len(w.Days) == 0:
			return wrong(at+"days", "are none")
		case slices.ContainsFunc(w.Days, noDay):
			return wrong(at+"days", "has one that is no day of the week")
		case w.Start < 0 || w.Start >= day:
			return wrong(at+"start", "is not within a day")
		case w.Duration < MinWindow || w.Duration > MaxWindow:
			return wrong(at+"duration", "is not between 1m and 24h")
		}
	}
	return problem{}
}

func wrongFreezes(freezes []Freeze) problem {
	if len(freezes) > MaxFreezes {
		return wrong("freezes", fmt.Sprintf("are more than %d", MaxFreezes))
	}
	for i, f := range freezes {
		if !f.From.Before(f.To) {
			return wrong(fmt.Sprintf("freezes[%d].to", i), "is not after from")
		}
	}
	return problem{}
}
