package planner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// budget is a [Budget] and its groups.
type budget struct {
	Budget
	field  string // where it is written
	fleet  bool
	groups map[string]*group
	key    []byte // of the group last looked for
}

// group is the devices that have equal labels.
type group struct {
	budget  *budget
	sample  *device // one of them, for its labels
	n       int     // that are not absent
	limit   int
	away    []*device // that are unavailable
	taken   int       // of those, upgraded in this plan
	waiting int
	hold    finding // made when it is needed first
}

func newBudgets(list []Budget, fleet bool) []*budget {
	budgets := make([]*budget, 0, len(list))
	for i, b := range list {
		budgets = append(budgets, &budget{Budget: b, field: fmt.Sprintf("budgets[%d].maxUnavailable", i), fleet: fleet, groups: map[string]*group{}})
	}
	return budgets
}

// group finds the group of a device. Lengths keep values apart whatever is in
// them.
func (b *budget) group(d *device) *group {
	key := b.key[:0]
	for _, label := range b.GroupBy {
		value, has := d.Labels[label]
		if !has {
			key = append(key, '-')
			continue
		}
		n := len(value)
		key = append(key, '+', byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
		key = append(key, value...)
	}
	b.key = key
	g := b.groups[string(key)]
	if g == nil {
		g = &group{budget: b, sample: d}
		b.groups[string(key)] = g
	}
	return g
}

// count counts a device that is not absent.
func (b *budget) count(d *device, available bool) {
	g := b.group(d)
	g.n++
	if g.sample.ID > d.ID {
		g.sample = d // whoever comes first
	}
	if !available {
		g.away = append(g.away, d)
	}
}

// setLimits turns what is written into counts, once the groups are known.
func (b *budget) setLimits() {
	for _, g := range b.groups {
		g.limit = limit(b.MaxUnavailable, DefaultMaxUnavailable, g.n)
		if b.MaxUnavailable.Percent > 0 {
			g.limit = max(1, g.limit)
		}
	}
}

// full says whether no more of the group may become unavailable.
func (g *group) full() bool { return len(g.away) >= g.limit }

// text is the group by its labels.
func (g *group) text() string {
	parts := make([]string, 0, len(g.budget.GroupBy))
	for _, label := range g.budget.GroupBy {
		if value, has := g.sample.Labels[label]; has {
			parts = append(parts, label+"="+value)
		} else {
			parts = append(parts, "no "+label)
		}
	}
	return few(parts)
}

func (g *group) labels() map[string]string {
	m := make(map[string]string, len(g.budget.GroupBy))
	for _, label := range g.budget.GroupBy {
		if value, has := g.sample.Labels[label]; has {
			m[label] = value
		}
	}
	return m
}

// why says what keeps the others away, and the knob.
func (g *group) why() string {
	what := "its policy"
	if g.budget.fleet {
		what = "the fleet"
	}
	text := fmt.Sprintf("maxUnavailable of %s is %d of %s", what, g.limit, devices(g.n))
	if len(g.budget.GroupBy) > 0 {
		text += " with " + g.text()
	}
	if len(g.away) > 0 {
		away := make([]string, 0, len(g.away))
		for _, d := range g.away {
			away = append(away, d.ID+" "+d.away())
		}
		slices.Sort(away)
		text += "; away: " + few(away)
	}
	return text
}

// summary lists the groups that are in use.
func (b *budget) summary() BudgetSummary {
	s := BudgetSummary{GroupBy: b.GroupBy, Groups: len(b.groups)}
	for _, key := range slices.Sorted(maps.Keys(b.groups)) {
		if g := b.groups[key]; len(g.away) > g.taken || g.waiting > 0 {
			s.Used = append(s.Used, GroupSummary{Labels: g.labels(), N: g.n, Limit: g.limit, Unavailable: len(g.away) - g.taken, Waiting: g.waiting})
		}
	}
	slices.SortStableFunc(s.Used, func(x, y GroupSummary) int {
		for _, label := range b.GroupBy {
			if c := strings.Compare(x.Labels[label], y.Labels[label]); c != 0 {
				return c
			}
		}
		return cmp.Compare(y.Unavailable, x.Unavailable)
	})
	return s
}

func budgetSummaries(budgets []*budget) []BudgetSummary {
	var list []BudgetSummary
	for _, b := range budgets {
		list = append(list, b.summary())
	}
	return list
}

// eachGroup goes through the groups that count a device, until told to stop.
func (pl *plan) eachGroup(d *device, do func(*group) bool) {
	for _, budgets := range [][]*budget{d.policy.budgets, pl.fleet.budgets} {
		for _, b := range budgets {
			if !do(b.group(d)) {
				return
			}
		}
	}
}

// fullGroup is the first group of a device that is used up; nil = none is.
func (pl *plan) fullGroup(d *device) *group {
	var full *group
	pl.eachGroup(d, func(g *group) bool {
		if g.full() {
			full = g
		}
		return full == nil
	})
	return full
}

// finding is what the devices are told that wait for the group.
func (g *group) finding() finding {
	if g.hold.code == "" {
		g.hold = no(CodeBudget, "")
		g.hold.detail, g.hold.field = g.why(), g.budget.field
		if g.budget.fleet {
			g.hold = g.hold.fleetWide()
		}
	}
	return g.hold
}
