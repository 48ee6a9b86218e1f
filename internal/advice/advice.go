package advice

import (
	"time"

	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// Rule names; they are a contract with whoever filters by them.
const (
	ruleLimit  = "surprising-limit"
	ruleWindow = "window-never-opens"
	ruleFreeze = "freeze-in-the-past"
)

// Check gives the problems of a fleet together with what is to be said to a
// person at this time, in the order of problems. Where now is zero, nothing
// that depends on it is looked at.
func Check(fleet *schema.Fleet, now time.Time) []schema.Problem {
	c := &check{fleet: fleet, now: now, input: sweep.PlannerRules(sweep.Scene{Fleet: fleet, Now: now})}
	c.crews()
	c.wholeFleet()
	for i := range c.input.Policies {
		c.policy(&c.input.Policies[i])
	}
	return fleet.Advised(c.found)
}

// check is one run.
type check struct {
	fleet *schema.Fleet
	now   time.Time
	input planner.Input
	crew  map[string][]*schema.Member // by policy; of those that some policy selects
	found []schema.Problem
	file  string // that findings are of
}

func (c *check) crews() {
	c.crew = map[string][]*schema.Member{}
	for _, m := range c.fleet.Devices {
		c.crew[m.Policy] = append(c.crew[m.Policy], m)
	}
}

func (c *check) warn(pointer, rule, msg, hint string) {
	c.found = append(c.found, schema.Problem{File: c.file, Pointer: pointer, Rule: rule, Severity: schema.SeverityWarning, Message: msg, Hint: hint})
}

// wholeFleet looks at what holds over all policies.
func (c *check) wholeFleet() {
	const file = "fleet.yaml"
	if !c.fleet.Unbroken(file) {
		return
	}
	c.file = file
	spec := &c.fleet.Document.Spec
	n := len(c.fleet.Devices)
	if slots, limited := c.input.Fleet.SlotsFor(n); limited && spec.MaxInFlight.Percent {
		c.slots(spec.MaxInFlight.Value, n, slots, "")
	}
	c.budgets(c.input.Fleet.Budgets, c.fleet.Devices)
	c.freezes(c.input.Fleet.Freezes)
}

// policy looks at one policy.
func (c *check) policy(p *planner.Policy) {
	c.file = "policies/" + p.Name + ".yaml"
	if !c.fleet.Unbroken(c.file) {
		return
	}
	spec := &c.fleet.Policy(p.Name).Spec
	crew := c.crew[p.Name]
	if n := len(crew); n > 0 {
		c.limits(p, spec, n)
		c.budgets(p.Budgets, crew)
	}
	if spec.Windows != nil && len(spec.Windows) == 0 {
		c.warn("/spec/windows", ruleLimit, "windows is an empty list, and without a window the policy is always open", "leave it out if that is meant; paused stops a policy")
	}
	c.windows(p)
	c.freezes(p.Freezes)
}
