package simulate

import (
	"strconv"
	"strings"

	"github.com/gitopsd/gitopsd/planner"
)

// plan is what a sweep does: it asks the planner, records what became of
// attempts, and assigns.
func (r *run) plan() {
	r.in.Now, r.due = r.now, false
	if r.eager && r.plans > 0 {
		for _, d := range r.devices {
			r.hushed(d)
		}
	}
	res := planner.Plan(r.in)
	r.plans++
	if r.watch != nil {
		r.watch(r.in, res)
	}
	for _, dec := range res.Decisions {
		for _, d := range r.byID[dec.Device] {
			if a := d.attempt(dec.Attempt); a != nil {
				r.record(d, a, dec)
			}
		}
	}
	for _, d := range r.devices {
		d.at.Said.Fresh = false // it was decided from
	}
	r.assign(res)
	r.last, r.planAt = res, res.NextChange
	r.tally.peak(r.now)
	r.judge()
}

// record records a decision as a sweep does.
func (r *run) record(d *device, a *planner.Attempt, dec planner.Decision) {
	switch {
	case dec.Started:
		r.startAt(a)
		r.begin(d, a)
	case dec.OnTarget:
		a.OnTargetAt = r.now
		if a.StartedAt.IsZero() {
			r.startAt(a)
		}
		r.deadline(d, a, r.settledBy(d, a))
	case dec.Recall != "":
		a.Recalled, a.RecallDelivered, a.Because = dec.Recall, false, dec.Because
		r.queue.add(event{at: r.now.Add(r.interval()), device: d.index, kind: eventDelivered, about: a.Number})
	case dec.End != "":
		r.endAttempt(d, a, dec)
	}
}

func (r *run) endAttempt(d *device, a *planner.Attempt, dec planner.Decision) {
	wasOpen := a.Outcome == ""
	a.Outcome, a.EndedAt = dec.End, r.now
	if a.Recalled == "" || dec.End != planner.Deferred && dec.End != planner.Unreached {
		a.Because = dec.Because
	}
	if wasOpen {
		r.tally.frees(d)
	}
	for _, soak := range d.policy.soaks(d.at) {
		r.queue.add(event{at: r.now.Add(soak), device: d.index, kind: eventSoaked, about: a.Number})
	}
	rec := &d.record
	switch dec.End {
	case planner.OK:
		if a.Target == d.at.Target && rec.DoneAt.IsZero() {
			rec.DoneAt = r.now
			r.tally.arrived++
		}
	case planner.Failed, planner.Lost:
		rec.Failures++
		rec.FailedAt = r.now
		if dec.End == planner.Lost {
			a.RecallDelivered = false
			r.queue.add(event{at: r.now.Add(r.interval()), device: d.index, kind: eventDelivered, about: a.Number})
		}
	case planner.Refused, planner.Exhausted, planner.Observed, planner.Deferred, planner.Unreached:
	}
}

// assign gives those their next attempt whom the plan lets go.
func (r *run) assign(res planner.Result) {
	moved := map[*policy]bool{}
	for i := range res.Verdicts {
		v, d := &res.Verdicts[i], r.shown[i]
		d.record.Code, d.record.Reason = string(v.Code), v.Reason
		if v.Code == planner.Current && d.record.DoneAt.IsZero() && r.plans > 1 && !d.record.Current {
			d.record.DoneAt = r.now // it came there without an attempt that ended well
			r.tally.arrived++
		}
		if !v.Upgrade {
			continue
		}
		p := d.policy
		a := planner.Attempt{
			Number: d.lastNumber() + 1, Policy: d.at.Policy, Line: p.Line, Target: v.Target, Rollout: d.at.Rollout,
			InstallID: d.at.InstallID, Pinned: d.at.Pinned, Release: p.Release, AssignedAt: r.now,
		}
		switch {
		case d.at.OwnSpec, d.at.Observes:
			a.Release = planner.ReleaseNone
		case d.at.Pinned:
			a.Release = "" // of another version than the policy's
		}
		d.at.Attempts = append(d.at.Attempts, a)
		if !d.silent {
			r.queue.add(event{at: r.ticks(d, poll, r.now.Add(1)), device: d.index, kind: eventPoll, about: a.Number})
		}
		r.deadline(d, &a, r.now.Add(p.PickupTimeout))
		if d.record.Attempts++; d.record.AssignedAt.IsZero() {
			d.record.AssignedAt = r.now
		}
		r.tally.takes(d)
		moved[p] = true
	}
	for p := range moved {
		if p.MinInterval > 0 {
			r.queue.add(event{at: r.now.Add(p.MinInterval), device: -1, kind: eventPace})
		}
	}
}

// judge finds out what may happen before the planner has to be asked again.
func (r *run) judge() {
	upgrades := map[string]int{}
	for i := range r.last.Verdicts {
		if v := &r.last.Verdicts[i]; v.Upgrade {
			upgrades[v.Device.Policy]++
			upgrades["*"]++
		}
	}
	f := &r.last.Fleet
	fleet := f.Problem == "" && f.Paused == "" && f.Freeze == nil && r.in.Stopped == "" && (f.Slots == 0 || f.InFlight+upgrades["*"] < f.Slots)
	r.blocked, r.guarded = map[string]int{}, map[string]int{}
	r.block("", f.Budgets)
	for i := range r.last.Policies {
		s := &r.last.Policies[i]
		p := r.policies[s.Policy]
		if p == nil {
			continue
		}
		p.summary = s
		clear(p.left)
		p.room = fleet && p.Enabled && p.Paused == "" && s.Freeze == nil && (s.Windows == nil || s.Windows.Open) && s.NextUpgrade.IsZero() &&
			s.InFlight+upgrades[s.Policy] < s.Slots && (p.MinInterval <= 0 || upgrades[s.Policy] == 0)
		if s.Counts[planner.FleetGuard] > 0 {
			r.guarded[s.Policy] = p.LimitsFor(s.N).Keep + 1 - s.Available + upgrades[s.Policy]
		}
		r.block(s.Policy, s.Budgets)
	}
	r.over = r.isOver()
}

// block notes the groups of budgets that somebody waits for, and how many of
// their devices have to come back at least before another one may go.
func (r *run) block(policy string, budgets []planner.BudgetSummary) {
	for i, b := range budgets {
		for _, g := range b.Used {
			if g.Waiting > 0 {
				r.blocked[groupKey(policy, i, b.GroupBy, g.Labels)] = g.Unavailable + 1 - g.Limit
			}
		}
	}
}

// frees says whether the return of a device may have let another one go that
// waits for one to come back, and whether it has to wait itself for more of
// them.
func (r *run) frees(d *device) (free, waits bool) {
	count := func(missing map[string]int, key string) {
		n, has := missing[key]
		if !has {
			return
		}
		missing[key] = n - 1
		free, waits = free || n <= 1, waits || n > 1
	}
	count(r.guarded, d.at.Policy)
	if len(r.blocked) == 0 {
		return free, waits
	}
	for i, b := range d.policy.Budgets {
		count(r.blocked, groupKey(d.at.Policy, i, b.GroupBy, d.at.Labels))
	}
	for i, b := range r.in.Fleet.Budgets {
		count(r.blocked, groupKey("", i, b.GroupBy, d.at.Labels))
	}
	return free, waits
}

// groupKey tells groups of budgets apart.
func groupKey(policy string, budget int, by []string, labels map[string]string) string {
	var b strings.Builder
	b.WriteString(strconv.Quote(policy) + strconv.Itoa(budget))
	for _, label := range by {
		value, has := labels[label]
		b.WriteString(strconv.FormatBool(has) + strconv.Quote(value))
	}
	return b.String()
}

// isOver says whether nothing will change any more by itself.
func (r *run) isOver() bool {
	if r.tally.open > 0 || r.now.Before(r.forget) {
		return false
	}
	for _, d := range r.devices {
		if d.working || d.unsent || !d.at.Removed && !d.isFinal() {
			return false
		}
	}
	return true
}

// isFinal says whether a device's verdict stays what it is while nothing is in
// flight and no device has something to say.
func (d *device) isFinal() bool {
	switch planner.Code(d.record.Code) {
	case planner.CodeBackoff, planner.Frozen, planner.CodeWindow, planner.CodePilot, planner.CodeWave,
		planner.Queued, planner.FleetGuard, planner.CodeBudget, planner.Upgrade:
		return false
	case planner.Offline, planner.Absent:
		return d.returns.IsZero()
	case planner.Busy:
		return d.idles.IsZero()
	}
	return true
}

// conclude makes the last plan, over all that is known of those who are away.
func (r *run) conclude() {
	if !r.over && r.nextSweepExists() {
		r.now = later(r.now, r.start.Add(r.end.Sub(r.start)/r.interval()*r.interval()))
	}
	for _, d := range r.devices {
		if d.silent && !d.at.Online {
			r.hushed(d)
		}
	}
	r.in.Now = r.now
	r.last = planner.Plan(r.in)
	r.plans++
}

func (r *run) nextSweepExists() bool { return !r.planAt.IsZero() || len(r.queue) > 0 }
