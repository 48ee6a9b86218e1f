package advice

import (
	"fmt"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// surprise is how many times a share may be what its percentage says before
// somebody will be surprised: one of nine for 10% is 11%, and nobody minds; one
// of five is 20%.
const surprise = 1.5

// limits looks at what the limits of a policy come to for its n devices.
func (c *check) limits(p *planner.Policy, spec *schema.PolicySpec, n int) {
	l := p.LimitsFor(n)
	if m := spec.MaxInFlight; m != nil && m.Percent {
		c.slots(m.Value, n, l.Slots, fmt.Sprintf("; minAvailable keeps %d of them", l.Keep))
	}
	if m := spec.MinAvailable; m != nil && m.Percent && m.Value < wholePercent && l.Keep > 0 && l.Keep*wholePercent < m.Value*n {
		c.warn("/spec/minAvailable", ruleLimit, fmt.Sprintf("minAvailable %s of %s rounds up to all of them, which cannot be met while one moves; %d is what holds", m, devices(n), l.Keep), "")
	}
	if m := spec.MaxInFlight; m != nil && spec.MinAvailable != nil && l.Slots < n && l.Slots > n-l.Keep {
		c.warn("/spec/maxInFlight", ruleLimit, fmt.Sprintf("maxInFlight %s is never reached: minAvailable %s of %s leaves %d that may move at a time", m, spec.MinAvailable, devices(n), n-l.Keep), "")
	} else if slots, limited := c.input.Fleet.SlotsFor(len(c.fleet.Devices)); m != nil && limited && l.Slots > slots && slots < n {
		c.warn("/spec/maxInFlight", ruleLimit, fmt.Sprintf("maxInFlight %s is never reached: fleet.yaml lets %s of all policies move at a time", m, devices(slots)), "")
	}
	const year = 365 * 24 * time.Hour
	if m := spec.MinInterval; m != nil && n > 1 && time.Duration(*m) > year/time.Duration(n-1) {
		c.warn("/spec/minInterval", ruleLimit, fmt.Sprintf("minInterval %s lets the last of %s begin after %.0f days: no rollout is done within a year", m, devices(n), time.Duration(*m).Hours()/24*float64(n-1)), "")
	}
	if s := spec.Pilot; s != nil && n > 1 && s.Count >= n {
		c.warn("/spec/pilot/count", ruleLimit, fmt.Sprintf("pilot.count %d makes pilots of all %s: nobody is left to go after them", s.Count, devices(n)), "a small count, such as 1, shows a bad release before everybody has it")
	}
	c.roundsToNone("failureLimit", spec.FailureLimit, n, l.Failures, "failure")
	c.roundsToNone("refusalLimit", spec.RefusalLimit, n, l.Refusals, "refusal")
}

const wholePercent = 100

// slots looks at maxInFlight as a percentage.
func (c *check) slots(percent, n, slots int, kept string) {
	switch {
	case percent == wholePercent && n > 1:
		c.warn("/spec/maxInFlight", ruleLimit, fmt.Sprintf("maxInFlight 100%% lets all %s move at one time%s", devices(n), kept), "a small share, such as 10%, shows a bad release before everybody has it")
	case exceeds(percent, n, slots):
		c.warn("/spec/maxInFlight", ruleLimit, fmt.Sprintf("maxInFlight %d%% of %s is less than one, and rounds up: %s, or %d%%, may move at a time", percent, devices(n), devices(slots), share(slots, n)), "a count says the same more plainly: maxInFlight: 1")
	}
}

// exceeds says whether a percentage that was rounded up to one device is
// surprisingly much.
func exceeds(percent, n, limit int) bool {
	return n > 1 && percent > 0 && percent*n < wholePercent && float64(limit*wholePercent) > surprise*float64(percent*n)
}

func share(part, n int) int { return (part*wholePercent + n/2) / n }

func (c *check) roundsToNone(field string, l *schema.IntOrPercent, n, limit int, event string) {
	if l == nil || !l.Percent || l.Value == 0 || limit > 0 {
		return
	}
	c.warn("/spec/"+field, ruleLimit, fmt.Sprintf("%s %s of %s is less than one, and rounds down to 0: the first %s halts the policy", field, l, devices(n), event),
		fmt.Sprintf("write %s: 0 if that is meant, or a count", field))
}

// budgets looks at what budgets come to in the groups that there are.
func (c *check) budgets(budgets []planner.Budget, crew []*schema.Member) {
	if len(crew) == 0 {
		return
	}
	for i := range budgets {
		b := &budgets[i]
		at := fmt.Sprintf("/spec/budgets/%d/maxUnavailable", i)
		groups := map[string]int{}
		for _, d := range crew {
			groups[groupName(b.GroupBy, d.Labels())]++
		}
		if b.MaxUnavailable.Percent > 0 {
			c.budgetShare(b, at, groups)
			continue
		}
		name, largest := pick(groups, func(n, best int) bool { return n > best })
		switch limit := b.LimitFor(largest); {
		case limit == 0:
			c.warn(at, ruleLimit, "maxUnavailable 0 lets no device of any group start", "if that is meant, paused says it with a reason; else write 1")
		case limit >= largest && largest > 1:
			c.warn(at, ruleLimit, fmt.Sprintf("maxUnavailable %d holds nobody back: the largest group, %s, has %s", limit, name, devices(largest)), "")
		}
	}
}

// budgetShare looks at a budget that is a percentage. A group of one is left
// alone: there is no smaller number than its one device.
func (c *check) budgetShare(b *planner.Budget, at string, groups map[string]int) {
	odd := map[string]int{}
	for name, n := range groups {
		if exceeds(b.MaxUnavailable.Percent, n, b.LimitFor(n)) {
			odd[name] = n
		}
	}
	if len(odd) == 0 {
		return
	}
	name, n := pick(odd, func(n, best int) bool { return n < best })
	limit := b.LimitFor(n)
	more := ""
	if rest := len(odd) - 1; rest > 0 {
		more = fmt.Sprintf("; %d of the %d groups are like that", len(odd), len(groups))
	}
	c.warn(at, ruleLimit, fmt.Sprintf("%d%% of %s in the group %s is less than one, and rounds up: %d, or %d%%, may be unavailable%s",
		b.MaxUnavailable.Percent, devices(n), name, limit, share(limit, n), more), "a count says the same more plainly: maxUnavailable: 1")
}

// pick gives the group that is better than all others, and the first by name
// of those that are equal.
func pick(groups map[string]int, better func(n, best int) bool) (name string, n int) {
	first := true
	for k, v := range groups {
		if first || better(v, n) || v == n && k < name {
			name, n, first = k, v, false
		}
	}
	return name, n
}

// groupName is a group by its labels.
func groupName(groupBy []string, labels map[string]string) string {
	parts := make([]string, 0, len(groupBy))
	for _, label := range groupBy {
		if value, has := labels[label]; has {
			parts = append(parts, label+"="+value)
		} else {
			parts = append(parts, "no "+label)
		}
	}
	return strings.Join(parts, ", ")
}

func devices(n int) string {
	if n == 1 {
		return "1 device"
	}
	return fmt.Sprintf("%d devices", n)
}
