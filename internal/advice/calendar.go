package advice

import (
	"fmt"
	"slices"
	"time"

	"github.com/gitopsd/gitopsd/planner"
)

// ahead is how many days are looked at for an opening: more than a year, so
// that a window that a yearly freeze spares once counts.
const ahead = 400

// windows looks whether a policy ever opens.
func (c *check) windows(p *planner.Policy) {
	if c.now.IsZero() || len(p.Windows) == 0 && len(p.Freezes) == 0 {
		return
	}
	freezes := slices.Concat(p.Freezes, c.input.Fleet.Freezes)
	if !planner.NextOpen(p.Windows, freezes, c.now, ahead).IsZero() {
		return
	}
	if len(p.Windows) == 0 {
		c.warn("/spec/freezes", ruleWindow, fmt.Sprintf("the policy is frozen for the next %d days", ahead), "if that is meant, enabled: false says it more plainly")
		return
	}
	c.warn("/spec/windows", ruleWindow, fmt.Sprintf("no window opens within %d days: each falls into a freeze", ahead), "end a freeze earlier, or add a window")
}

// freezes looks for those that are over.
func (c *check) freezes(freezes []planner.Freeze) {
	if c.now.IsZero() {
		return
	}
	for i := range freezes {
		if f := &freezes[i]; !f.To.After(c.now) {
			c.warn(fmt.Sprintf("/spec/freezes/%d", i), ruleFreeze, fmt.Sprintf("the freeze was over %s", f.To.UTC().Format(time.RFC3339)), "remove it, or write the next one")
		}
	}
}
