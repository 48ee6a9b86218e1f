package protocoltest

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/internal/memremote"
	"github.com/gitopsd/gitopsd/schema"
)

const (
	mainRef  = "refs/heads/main"
	brakeRef = "refs/heads/" + schema.BrakeBranch
)

// view is what a daemon knows of the operators in its present pass: the heads
// that its listing showed.
type view struct{ main, brake string }

// viewer notes what a daemon is shown.
type viewer struct {
	*memremote.Client
	d *daemon
}

func (v *viewer) Refs(ctx context.Context, prefixes ...string) (map[string]string, error) {
	refs, err := v.Client.Refs(ctx, prefixes...)
	if err == nil && slices.Contains(prefixes, brakeRef) {
		v.d.read = view{refs[mainRef], refs[brakeRef]}
	}
	return refs, err
}

// brakeModel is what a brake holds back.
type brakeModel struct {
	all               bool
	policies, devices []string
}

// plans are what operators want, and wanted at each commit. They judge every
// commit of the status branch by the restraints that hold for it, which they
// work out from the documents alone.
type plans struct {
	w      *world
	now    *fleetModel
	past   map[string]*fleetModel // by commit of main
	brakes map[string]brakeModel  // by commit of the brake branch; "" = off
	bumped [2]policyModel         // each policy before its target was changed last

	fresh    []fresh        // assigned by the commit that is looked at
	recalled []fresh        // taken back by it
	editions map[string]int // overlay of a device's newest attempt
	// For the reach of a release that always fails, by policy.
	mostSlots, mostFailures map[string]int
	reached                 map[string]map[string]bool // by policy and rollout: devices
}

type fresh struct {
	id string
	attempt
}

func newPlans(w *world, first *fleetModel) *plans {
	return &plans{w: w, now: first, past: map[string]*fleetModel{}, brakes: map[string]brakeModel{"": {}}, editions: map[string]int{},
		mostSlots: map[string]int{}, mostFailures: map[string]int{}, reached: map[string]map[string]bool{}}
}

// noted remembers what a commit of main says.
func (p *plans) noted(commit string, m *fleetModel) {
	p.past[commit], p.now = m, m
	for i := range m.policies {
		q := &m.policies[i]
		p.mostSlots[q.name] = max(p.mostSlots[q.name], q.max.of(len(m.devices)))
		p.mostFailures[q.name] = max(p.mostFailures[q.name], q.failureLimit)
	}
}

func (p *plans) assigned(id string, a attempt) { p.fresh = append(p.fresh, fresh{id, a}) }

// begun is I6 with whatever limits the operators set meanwhile: the highest
// ones count. Pinned devices stand outside of it.
func (p *plans) begun(id string, number int64) {
	k := p.w.uncertain
	if k != fails && k != failsAgain {
		return
	}
	st := p.w.ghost.status[id]
	if st == nil {
		return
	}
	i := slices.IndexFunc(st.Attempts, func(a attempt) bool { return a.Attempt == number })
	if i < 0 || st.Attempts[i].Version != versions[1] || st.Attempts[i].Pinned {
		return
	}
	a := &st.Attempts[i]
	key := a.Policy + " " + a.Rollout
	if p.reached[key] == nil {
		p.reached[key] = map[string]bool{}
	}
	p.reached[key][id] = true
	if most := p.mostFailures[a.Policy] + p.mostSlots[a.Policy]; len(p.reached[key]) > most {
		p.w.ghost.violate("I6: %d devices of policy %s began a release that always fails, want at most %d", len(p.reached[key]), a.Policy, most)
	}
}

// sweptCommit finds what a status branch was planned by: decoding the whole
// document would cost as much as all other checks.
var sweptCommit = regexp.MustCompile(`(?m)^sourceCommit: "?([0-9a-f]+)`)

// commit is one commit of the status branch, and what its daemon went by.
type commit struct {
	*plans
	g     *ghost
	m     *fleetModel // that was swept
	head  *fleetModel // that stood on main; nil = nobody knows
	brake brakeModel
}

// committed judges what stands on the status branch now.
func (p *plans) committed(by *daemon) {
	defer func() { p.fresh, p.recalled = p.fresh[:0], p.recalled[:0] }()
	c := commit{plans: p, g: p.w.ghost}
	if m := sweptCommit.FindStringSubmatch(c.g.fleet); m != nil {
		c.m = p.past[m[1]]
	}
	if c.m == nil {
		if len(p.fresh) > 0 {
			c.g.violate("restraints: somebody is assigned something by no commit of main")
		}
		return
	}
	for _, d := range p.w.daemons {
		if d == by {
			c.brake = p.brakes[d.read.brake]
			head := p.past[d.read.main]
			c.head = head
			if head != nil && !head.invalid && strings.Contains(c.g.fleet, "type: Invalid\n") {
				c.g.violate("the test writes documents that are not valid: %s", c.g.fleet)
			}
			if len(p.fresh) > 0 && head != nil && head.invalid {
				c.g.violate("restraints: %s is assigned something, and the head is not valid", p.fresh[0].id)
			}
		}
	}
	c.recalls()
	for _, f := range p.recalled {
		c.mayRecall(f)
	}
	for _, f := range p.fresh {
		p.editions[f.id] = c.m.overlay
	}
	if len(p.fresh) == 0 {
		return
	}
	for _, f := range p.fresh {
		c.mayGo(f)
	}
	for i := range c.m.policies {
		c.limits(&c.m.policies[i])
	}
	c.fleetLimits()
}

func openOf(s *recorded) *attempt {
	for i := range s.Attempts {
		if s.Attempts[i].Outcome == "" {
			return &s.Attempts[i]
		}
	}
	return nil
}

func (c *commit) isFresh(id string, number int64) bool {
	return slices.ContainsFunc(c.fresh, func(f fresh) bool { return f.id == id && f.Attempt == number })
}

// stopped says what keeps everybody of a policy from going.
func (c *commit) stopped(policy string) string {
	switch {
	case c.m.paused:
		return "the fleet is paused"
	case c.brake.all:
		return "the brake is on for all"
	case slices.Contains(c.brake.policies, policy):
		return "the brake is on for its policy"
	}
	if p := c.m.policy(policy); p != nil && p.paused {
		return "its policy is paused"
	}
	return ""
}

func (c *commit) heldBack(id string) bool {
	d := c.m.device(id)
	return d != nil && d.hold || slices.Contains(c.brake.devices, id)
}

// recalls holds that whatever has not begun is taken back at once.
func (c *commit) recalls() {
	for _, d := range c.m.devices {
		s := c.g.status[d.id]
		if s == nil {
			continue
		}
		a := openOf(s)
		if a == nil || a.StartedAt != nil || a.OnTargetAt != nil || a.Recall != nil {
			continue
		}
		why := c.stopped(a.Policy)
		switch {
		case d.gone:
			why = "it left the fleet"
		case c.heldBack(d.id):
			why = "it is held"
		}
		if why != "" {
			c.g.violate("restraints: attempt %d of %s is not recalled, and %s", a.Attempt, d.id, why)
		}
	}
}

// mayRecall holds that nothing is taken back but for what its device or its
// operators say: a slot, wave or window that an edit takes away cancels nothing.
func (c *commit) mayRecall(f fresh) {
	d, s := c.m.device(f.id), c.g.status[f.id]
	if h := c.head; h != nil && h.invalid { // what it holds back counts all the same
		strict := *c
		if strict.m, strict.head = h, nil; strict.stopped(f.Policy) != "" || strict.heldBack(f.id) {
			return
		}
	}
	switch {
	case f.Recall.Outcome == schema.OutcomeUnreached: // that is judged by its time
	case d == nil, d.policy != f.Policy, c.m.target(d) != f.Version:
	case c.m.overlay != c.editions[f.id]:
	case c.stopped(f.Policy) != "", c.heldBack(f.id):
	case s.Observed == nil, s.Observed.Held != "", s.Observed.Busy, s.Observed.Phase == schema.PhaseWaiting:
	case c.harmed(f.Policy):
	default:
		c.g.violate("restraints: attempt %d of %s is taken back, and nothing of that is wanted: %s", f.Attempt, f.id, f.Recall.Because)
	}
}

// harmed says whether anything of a policy went wrong, by which it may be halted.
func (c *commit) harmed(policy string) bool {
	for _, s := range c.g.status {
		for i := range s.Attempts {
			switch a := &s.Attempts[i]; a.Outcome {
			case schema.OutcomeFailed, schema.OutcomeLost, schema.OutcomeRefused:
				if a.Policy == policy {
					return true
				}
			}
		}
	}
	return false
}

// mayGo is what keeps one device back.
func (c *commit) mayGo(f fresh) {
	d := c.m.device(f.id)
	no := func(why string) {
		c.g.violate("restraints: %s is assigned attempt %d (%s) at %s, and %s", f.id, f.Attempt, f.Version, f.AssignedAt.Format(time.RFC3339), why)
	}
	if d == nil {
		no("it left the fleet")
		return
	}
	p := c.m.policy(d.policy)
	switch {
	case f.Policy != d.policy:
		no("policy " + f.Policy + " does not govern it")
	case f.Version != c.m.target(d):
		no("its target is " + c.m.target(d))
	case c.stopped(d.policy) != "":
		no(c.stopped(d.policy))
	case c.heldBack(f.id):
		no("it is held")
	case frozen(c.m.freezes, f.AssignedAt):
		no("the fleet is frozen")
	case frozen(p.freezes, f.AssignedAt):
		no("its policy is frozen")
	case !p.open(f.AssignedAt):
		no("it is outside of its windows")
	}
	if d.pin == "" && c.w.kind(f.Version) != observes { // that harms nothing
		if i := c.waits(p, p.wave(d), &f); i >= 0 {
			no("wave " + p.waves[i].name + " is not done")
		}
	}
}

// limits are the restraints of one policy of which somebody is to go.
func (c *commit) limits(p *policyModel) {
	var sample *fresh // of those that are not pinned
	var first, last time.Time
	n := 0
	for i := range c.fresh {
		f := &c.fresh[i]
		if f.Policy != p.name {
			continue
		}
		n++
		last = f.AssignedAt
		if !f.Pinned && c.w.kind(f.Version) != observes {
			sample = f
		}
	}
	if n == 0 {
		return
	}
	devices, slots, available := 0, 0, 0
	for id, s := range c.g.status {
		for _, a := range s.Attempts {
			if a.Policy != p.name || strings.HasPrefix(c.g.places[id], retiredDir) {
				continue
			}
			if a.Outcome == "" {
				slots++
			}
			if !c.isFresh(id, a.Attempt) && a.AssignedAt.After(first) {
				first = a.AssignedAt
			}
		}
	}
	for _, d := range c.m.present() {
		if s := c.g.status[d.id]; s != nil && d.policy == p.name && s.Observed != nil {
			devices++
			if !c.away(d.id) {
				available++
			}
		}
	}
	if limit := p.max.of(devices); slots > limit {
		c.g.violate("slots: policy %s has %d of %d slots", p.name, slots, limit)
	}
	if keep := min(p.minAvailable, max(0, devices-1)); available < keep {
		c.g.violate("guard: policy %s leaves %d available, minAvailable is %d", p.name, available, keep)
	}
	if p.minInterval > 0 && (n > 1 || !first.IsZero() && last.Before(first.Add(p.minInterval))) {
		c.g.violate("pace: policy %s assigns %d at %s, after %s, minInterval is %s", p.name, n, last.Format(time.RFC3339), first.Format(time.RFC3339), p.minInterval)
	}
	for _, b := range p.budgets {
		c.budget(b, p.name)
	}
	if sample != nil && p.pilot > 0 {
		c.pilotBound(p, sample)
	}
}

func (c *commit) fleetLimits() {
	devices, slots := 0, 0
	for id, s := range c.g.status {
		if openOf(s) != nil {
			slots++
		}
		if c.m.device(id) != nil && s.Observed != nil {
			devices++
		}
	}
	if c.m.max.n > 0 && slots > c.m.max.of(devices) {
		c.g.violate("slots: the fleet has %d of %d slots", slots, c.m.max.of(devices))
	}
	for _, b := range c.m.budgets {
		c.budget(b, "")
	}
}

// away says whether a device is unavailable.
func (c *commit) away(id string) bool {
	s := c.g.status[id]
	return !s.Observed.Online || s.Observed.Held != "" || c.heldBack(id) || openOf(s) != nil
}

// budget judges the groups in which somebody is to go; policy "" is all.
func (c *commit) budget(b budgetModel, policy string) {
	devices, away, going := map[string]int{}, map[string]int{}, map[string]bool{}
	for _, d := range c.m.present() {
		s := c.g.status[d.id]
		if s == nil || s.Observed == nil || policy != "" && d.policy != policy {
			continue
		}
		group := d.label(b.label)
		devices[group]++
		if c.away(d.id) {
			away[group]++
		}
		if slices.ContainsFunc(c.fresh, func(f fresh) bool { return f.id == d.id }) {
			going[group] = true
		}
	}
	for group := range going {
		if limit := b.max.of(devices[group]); away[group] > limit {
			c.g.violate("budget: %d of %d devices with %s=%s are away, maxUnavailable is %s (policy %q)", away[group], devices[group], b.label, group, b.max, policy)
		}
	}
}

// progress is what a device did in a rollout before this commit gave it
// something.
type progress struct {
	tried, inside, current bool
	okAt                   time.Time // of its last attempt there; zero = that is not how it came there
}

// soaked says whether a soak is over; none is over at once, also where the
// clock of the daemon that saw the end is ahead.
func (h progress) soaked(soak time.Duration, now time.Time) bool {
	return soak == 0 || !h.okAt.Add(soak).After(now)
}

func (c *commit) progress(id, rollout string) progress {
	var h progress
	s := c.g.status[id]
	if s == nil {
		return h
	}
	for _, a := range s.Attempts {
		if c.isFresh(id, a.Attempt) {
			continue
		}
		h.inside = h.inside || a.Outcome == ""
		if a.Rollout == rollout {
			h.tried = true
			h.okAt = time.Time{}
			if a.Outcome == schema.OutcomeOK && s.Observed != nil && a.InstallID == s.Observed.InstallID {
				h.okAt = *a.EndedAt
			}
		}
	}
	h.current = s.Verdict.Code == "Current"
	return h
}

// waits is the first earlier wave that a device of a later one would have to
// wait for; -1 = there is none. Where the documents leave it open whether a
// device counts, it is taken as the planner may.
func (c *commit) waits(p *policyModel, wave int, f *fresh) int {
	type count struct{ inside, done, countable int }
	counts := make([]count, len(p.waves)+1)
	for _, d := range c.m.present() {
		if d.policy != p.name || d.pin != "" {
			continue
		}
		k := p.wave(d)
		h := c.progress(d.id, f.Rollout)
		if h.tried && k >= wave {
			return -1 // waves never close again
		}
		n := &counts[k]
		switch s := c.g.status[d.id]; {
		case h.inside:
			n.inside++
			n.countable++
		case h.current && (h.okAt.IsZero() || k < len(p.waves) && h.soaked(p.waves[k].soak, f.AssignedAt)):
			n.done++
			n.countable++
		case h.tried:
			n.countable++
		case s == nil || s.Observed == nil || c.away(d.id) && !c.isGoing(d.id):
		case s.Verdict.Code == "Newer" || s.Verdict.Code == "UnknownVersion" || s.Verdict.Code == "ByHand":
		default:
			n.countable++
		}
	}
	for i := range wave {
		w, n := &p.waves[i], counts[i]
		needs := max(w.minSuccess, (w.threshold*n.countable+99)/100)
		if n.inside > 0 || n.done < needs && !(w.optional && n.countable == 0) {
			return i
		}
	}
	return -1
}

func (c *commit) isGoing(id string) bool {
	return slices.ContainsFunc(c.fresh, func(f fresh) bool { return f.id == id })
}

// pilotBound holds as long as the pilot is not over.
func (c *commit) pilotBound(p *policyModel, f *fresh) {
	done, underway := 0, 0
	for _, s := range c.g.status {
		if a := openOf(s); a != nil && a.Policy == p.name && !a.Pinned {
			underway++
		}
	}
	for _, d := range c.m.present() {
		if d.policy != p.name || d.pin != "" {
			continue
		}
		switch h := c.progress(d.id, f.Rollout); {
		case h.okAt.IsZero() || h.inside || !h.current:
		case h.soaked(p.pilotSoak, f.AssignedAt):
			done++
		default:
			underway++
		}
	}
	if done < p.pilot && underway > p.pilot {
		c.g.violate("pilot: %d devices of policy %s are on their way or soak, %d have done so, pilot.count is %d", underway, p.name, done, p.pilot)
	}
}
