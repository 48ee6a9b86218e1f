package preview

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// reach says how many devices a bad release of each policy would get to: one
// that fails on every device. No attempt begins once more devices have failed
// than failureLimit allows, so the last ones are those that were on their way;
// and no wave opens for such a release that is not open yet.
func (c *comparer) reach() []Reach {
	list := []Reach{}
	pending := map[string]*waiting{}
	for i := range c.Head.Plan.Verdicts {
		v := &c.Head.Plan.Verdicts[i]
		d := &v.Device
		if d.Policy == "" {
			continue
		}
		w := pending[d.Policy]
		if w == nil {
			w = &waiting{byWave: map[string]int{}}
			pending[d.Policy] = w
		}
		w.all = append(w.all, d)
		if !d.Pinned && !d.Observes && v.Target.Version != "" && !left(v.Code) {
			w.pending = append(w.pending, d)
			if v.Code == planner.NeverSeen {
				w.silent++
			}
			w.byWave[d.Wave]++
		}
	}
	for i := range c.Head.Plan.Policies {
		s := &c.Head.Plan.Policies[i]
		policy := c.Head.Fleet.Policy(s.Policy)
		if w := pending[s.Policy]; w != nil && len(w.pending) > 0 && policy != nil && policy.Spec.Enabled {
			list = append(list, w.reach(s, &policy.Spec, c.Head))
		}
	}
	return list
}

// waiting are the devices of a policy, and those that are still to get its
// target.
type waiting struct {
	all, pending []*planner.Device
	byWave       map[string]int
	silent       int // of those pending, who has never reported
}

// bound is how many devices may be on their way at one time, and why.
type bound struct {
	n   int
	why string
}

func (w *waiting) reach(s *planner.Summary, spec *schema.PolicySpec, head Revision) Reach {
	r := Reach{Policy: s.Policy, Target: s.Target, Of: len(w.pending), NeverSeen: w.silent}
	reported := *s
	if w.silent > 0 {
		reported.N += w.silent
		reported.Slots = slotsOf(spec, reported.N)
	}
	s = &reported
	failures := count(spec.FailureLimit, planner.DefaultFailureLimit, s.N, false)
	at := slices.MinFunc(w.bounds(s, spec, head), func(a, b bound) int { return a.n - b.n })
	r.Devices = failures + at.n
	r.Words = append(r.Words, fmt.Sprintf("failureLimit %d + %d at one time (%s) = %d", failures, at.n, at.why, r.Devices))
	if n, why := w.open(s); n < r.Devices {
		r.Devices = n
		r.Words = append(r.Words, fmt.Sprintf("%s: %d", why, n))
	}
	if r.Of < r.Devices {
		r.Devices = r.Of
		r.Words = append(r.Words, fmt.Sprintf("no more than %s to get it", are(r.Of)))
	}
	return r
}

// slotsOf is maxInFlight of a policy that has n devices.
func slotsOf(spec *schema.PolicySpec, n int) int {
	p := planner.Policy{Enabled: true}
	if m := spec.MaxInFlight; m != nil && m.Percent {
		p.MaxInFlightPercent = m.Value
	} else if m != nil {
		p.MaxInFlight = m.Value
	}
	return p.LimitsFor(n).Slots
}

// bounds lists what limits how many devices are on their way at one time.
func (w *waiting) bounds(s *planner.Summary, spec *schema.PolicySpec, head Revision) []bound {
	slots := "maxInFlight"
	if m := spec.MaxInFlight; m != nil && m.Percent {
		slots = fmt.Sprintf("maxInFlight %s of %d", m, s.N)
	}
	keep := min(count(spec.MinAvailable, planner.DefaultMinAvailable, s.N, true), max(0, s.N-1))
	list := []bound{{s.Slots, slots}, {max(s.N-keep, 0), fmt.Sprintf("minAvailable keeps %d of %d", keep, s.N)}}
	if p := s.Pilot; p != nil && !p.Over {
		list = append(list, bound{p.Count, "the pilot"})
	}
	for i := range spec.Budgets {
		list = append(list, w.budget(&spec.Budgets[i], w.all, "the budget"))
	}
	if n := head.Plan.Fleet.Slots; n > 0 {
		list = append(list, bound{n, "maxInFlight of the whole fleet"})
	}
	if doc := head.Fleet.Document; doc != nil && len(doc.Spec.Budgets) > 0 {
		all := make([]*planner.Device, len(head.Plan.Verdicts))
		for i := range head.Plan.Verdicts {
			all[i] = &head.Plan.Verdicts[i].Device
		}
		for i := range doc.Spec.Budgets {
			list = append(list, w.budget(&doc.Spec.Budgets[i], all, "the fleet's budget"))
		}
	}
	return list
}

// budget adds up what the groups of a budget allow, each of which has some of
// the devices that are to get the release.
func (w *waiting) budget(b *schema.Budget, all []*planner.Device, what string) bound {
	sizes, pending := map[string]int{}, map[string]int{}
	for _, d := range all {
		sizes[groupOf(d, b.GroupBy)]++
	}
	for _, d := range w.pending {
		pending[groupOf(d, b.GroupBy)]++
	}
	of := bound{why: fmt.Sprintf("%s of %s by %s, %d groups", what, b.MaxUnavailable, strings.Join(b.GroupBy, ", "), len(pending))}
	if len(pending) == 1 {
		of.why = strings.TrimSuffix(of.why, "s")
	}
	for group, n := range pending {
		limit := count(&b.MaxUnavailable, 0, sizes[group], false)
		if b.MaxUnavailable.Percent && b.MaxUnavailable.Value > 0 {
			limit = max(limit, 1)
		}
		of.n += min(limit, n)
	}
	return of
}

// groupOf tells groups of a budget apart; a label that is not there is a value
// like any other.
func groupOf(d *planner.Device, by []string) string {
	var b strings.Builder
	for _, label := range by {
		value, has := d.Labels[label]
		b.WriteString(strconv.FormatBool(has) + strconv.Quote(value))
	}
	return b.String()
}

// open counts the devices in waves that such a release can get to: those that
// are open, and those that open without one more success. why names the one
// that ends it.
func (w *waiting) open(s *planner.Summary) (n int, why string) {
	for i := range s.Waves {
		wave := &s.Waves[i]
		n += w.byWave[wave.Name]
		last := i == len(s.Waves)-1
		if last || s.Waves[i+1].Open || wave.Satisfied || wave.Needed > 0 && wave.Successes+wave.Soaking >= wave.Needed {
			continue
		}
		if wave.Members == 0 {
			return n, fmt.Sprintf("wave %s matches nobody, so no later one opens", wave.Name)
		}
		if wave.Needed == 0 { // nobody is there yet who could be done
			return n, fmt.Sprintf("no wave opens after %s before it is done", wave.Name)
		}
		return n, fmt.Sprintf("no wave opens after %s, which needs %s to be done", wave.Name, devices(wave.Needed))
	}
	return len(w.pending), ""
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
