package preview

import (
	"fmt"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// reach says how many devices a bad release of each policy would get to: one
// that fails on every device. No attempt begins once more devices have failed
// than failureLimit allows, so the last ones are those that were on their way.
func (c *comparer) reach() []Reach {
	list := []Reach{}
	pending := map[string]*waiting{}
	for i := range c.Head.Plan.Verdicts {
		v := &c.Head.Plan.Verdicts[i]
		if v.Device.Pinned || v.Target.Version == "" || left(v.Code) {
			continue
		}
		w := pending[v.Device.Policy]
		if w == nil {
			w = &waiting{byWave: map[string]int{}}
			pending[v.Device.Policy] = w
		}
		w.all++
		w.byWave[v.Device.Wave]++
	}
	for _, s := range c.Head.Plan.Policies {
		policy := c.Head.Fleet.Policy(s.Policy)
		if w := pending[s.Policy]; w != nil && policy != nil && policy.Spec.Enabled {
			list = append(list, w.reach(s, &policy.Spec))
		}
	}
	return list
}

// waiting are the devices of a policy that are still to get its target.
type waiting struct {
	all    int
	byWave map[string]int
}

func (w *waiting) reach(s planner.Summary, spec *schema.PolicySpec) Reach {
	r := Reach{Policy: s.Policy, Target: s.Target, Of: w.all}
	limit := count(spec.FailureLimit, planner.DefaultFailureLimit, s.N, false)
	slots, by := s.Slots, "maxInFlight"
	keep := min(count(spec.MinAvailable, planner.DefaultMinAvailable, s.N, true), max(0, s.N-1))
	if guarded := max(s.N-keep, 0); guarded < slots {
		slots, by = guarded, fmt.Sprintf("minAvailable keeps %d of %d", keep, s.N)
	}
	r.Devices = slots + limit
	r.Words = append(r.Words, fmt.Sprintf("failureLimit %d + %d at one time (%s) = %d", limit, slots, by, r.Devices))
	if w.all < r.Devices {
		r.Devices = w.all
		r.Words = append(r.Words, fmt.Sprintf("no more than %s to get it", are(w.all)))
	}
	return r
}

// count is a limit as a number of devices; a percentage is rounded as the
// planner does.
func count(v *schema.IntOrPercent, absent, n int, up bool) int {
	switch {
	case v == nil:
		return absent
	case v.Percent && up:
		return (v.Value*n + 99) / 100
	case v.Percent:
		return v.Value * n / 100
	}
	return v.Value
}

// left says whether a device is not on its way to anything: a bad release
// does not get there.
func left(code planner.Code) bool {
	switch code {
	case planner.Current, planner.Newer, planner.Excluded, planner.NoTarget, planner.BadInput, planner.BadPolicy, planner.UnknownVersion:
		return true
	}
	return false
}

func devices(n int) string {
	if n == 1 {
		return "1 device"
	}
	return fmt.Sprintf("%d devices", n)
}

func are(n int) string {
	if n == 1 {
		return "1 device is"
	}
	return fmt.Sprintf("%d devices are", n)
}
