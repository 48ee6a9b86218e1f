package simulate

import (
	"context"
	"slices"
	"time"

	"github.com/gitopsd/gitopsd/planner"
)

// Run lets the planner run forward over the fleet of the configuration. The
// error is for assumptions that make no sense, or comes from Step or the
// context.
func Run(ctx context.Context, cfg Config) (*Simulation, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	if err := cfg.Assume.CheckFor(len(cfg.Input.Devices)); err != nil {
		return nil, err
	}
	r := newRun(cfg)
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	s := r.simulation()
	if !cfg.BadRelease {
		return s, nil
	}
	bad := cfg
	bad.Assume.Failures, bad.Assume.Refusals = 1, 0
	b := newRun(bad)
	if err := b.run(ctx); err != nil {
		return nil, err
	}
	s.BadRelease = b.simulation().reached()
	return s, nil
}

// eventsBetweenLooks is how many events happen until it is looked again whether
// the simulation is to end: a millisecond's.
const eventsBetweenLooks = 1024

// run is one simulation under way.
type run struct {
	cfg      Config
	in       planner.Input // the fleet as it is at the moment
	devices  []*device
	shown    []*device // those that get a verdict, in its order
	byID     map[string][]*device
	policies map[string]*policy
	none     *policy // for devices and attempts whose policy is gone
	queue    queue
	starting []*device // that announced their start to the sweep under way
	tally    tally

	start, end time.Time
	now        time.Time // of the sweep under way
	planAt     time.Time // when time alone may change the plan; zero = never
	due        bool      // something happened that may change it
	last       planner.Result
	blocked    map[string]int // groups of budgets that somebody waits for: see block
	guarded    map[string]int // policies of which somebody waits for availability, alike
	plans      int
	events     int  // that happened
	over       bool // nothing will happen any more
	forget     time.Time

	// eager asks the planner in every sweep, tells it all that is known of who
	// was heard when, and leaves to it what is otherwise known without asking.
	// Tests compare both ways.
	eager bool
	// watch sees every plan, for tests.
	watch func(planner.Input, planner.Result)
}

func newRun(cfg Config) *run {
	r := &run{
		cfg: cfg, in: cfg.Input, byID: map[string][]*device{}, policies: map[string]*policy{},
		none: newPolicy(planner.Policy{}), start: cfg.Input.Now, now: cfg.Input.Now,
	}
	r.end = r.start.Add(time.Duration(cfg.Assume.Until))
	for i := range r.in.Policies {
		p := &r.in.Policies[i]
		if _, twice := r.policies[p.Name]; !twice && p.Name != "" {
			r.policies[p.Name] = newPolicy(*p)
		}
		r.forgets(p.ForgetBefore)
	}
	r.in.Devices = slices.Clone(r.in.Devices)
	r.devices = make([]*device, len(r.in.Devices))
	for i := range r.in.Devices {
		at := &r.in.Devices[i]
		at.Attempts = slices.Clone(at.Attempts)
		r.devices[i] = r.newDevice(i, at)
		if !at.Removed {
			r.shown = append(r.shown, r.devices[i])
		}
		r.byID[at.ID] = append(r.byID[at.ID], r.devices[i])
		r.forgets(at.ForgetBefore)
	}
	r.tally = newTally(r)
	return r
}

// forgets remembers the last time from which on a failure will be forgotten.
func (r *run) forgets(t time.Time) {
	if t.After(r.forget) {
		r.forget = t
	}
}

// run goes from sweep to sweep until nothing happens any more.
func (r *run) run(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.plan()
	for _, d := range r.shown {
		d.record.Current = d.record.Code == string(planner.Current)
		if code := planner.Code(d.record.Code); moves(code) {
			r.tally.pending++
		}
	}
	for _, d := range r.devices {
		r.wake(d)
	}
	r.over = r.isOver()
	for !r.over {
		t := r.nextSweep()
		if t.IsZero() || t.After(r.end) {
			break
		}
		r.now = t
		for e, ok := r.queue.until(t); ok; e, ok = r.queue.until(t) {
			if r.events++; r.events%eventsBetweenLooks == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			r.happen(e)
		}
		r.beginAll()
		if !r.due && !r.eager && (r.planAt.IsZero() || r.planAt.After(t)) {
			continue
		}
		r.plan()
		if r.cfg.Step != nil {
			if err := r.cfg.Step(Step{Now: r.now, Plans: r.plans, Arrived: r.tally.arrived, Pending: r.tally.pending}); err != nil {
				return err
			}
		}
	}
	r.conclude()
	return nil
}

// nextSweep is the first sweep in which something is to be done; zero = there
// is none.
func (r *run) nextSweep() time.Time {
	if r.eager {
		return r.now.Add(r.interval())
	}
	t := r.planAt
	if len(r.queue) > 0 && (t.IsZero() || r.queue[0].at.Before(t)) {
		t = r.queue[0].at
	}
	if t.IsZero() {
		return t
	}
	return r.sweepAt(t)
}

func (r *run) interval() time.Duration { return time.Duration(r.cfg.Assume.Interval) }

// sweepAt is the first sweep that sees what happens at a time, and comes after
// the present one.
func (r *run) sweepAt(t time.Time) time.Time {
	n := t.Sub(r.start)
	if over := n % r.interval(); over > 0 {
		n += r.interval() - over
	}
	return later(r.start.Add(n), r.now.Add(r.interval()))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// policyNamed is a policy by its name, or the defaults; an attempt goes by the
// one that made it.
func (r *run) policyNamed(name string) *policy {
	if p := r.policies[name]; p != nil {
		return p
	}
	return r.none
}

// happen lets an event happen.
func (r *run) happen(e event) {
	if e.device < 0 {
		r.due = true // the pace of a policy
		return
	}
	d := r.devices[e.device]
	switch e.kind {
	case eventSilent:
		r.fallSilent(d, e)
	case eventOffline:
		r.goOffline(d, e)
	case eventGrace:
		r.passGrace(d, e)
	case eventAbsent:
		r.due = r.due || d.isAway(e)
	case eventBack:
		r.comeBack(d, e)
	case eventIdle:
		d.at.Busy, d.at.BusyReason, r.due = false, "", true
		d.idles = time.Time{}
	case eventPoll:
		r.look(d, e)
	case eventFinished:
		r.finish(d, e)
	case eventSettled:
		r.settle(d, e)
	case eventSoaked:
		r.soak(d, e)
	case eventHeard:
		r.hearAgain(d, e)
	case eventDelivered:
		r.deliver(d, e)
	case eventDeadline:
		r.expire(d, e)
	case eventPace:
	}
}

// expire is when a limit of an attempt may be over. What a device said before
// it is given up does not speak for it.
func (r *run) expire(d *device, e event) {
	if !r.isLate(d.attempt(e.about)) {
		return
	}
	r.due = true
	r.awaitReport(d)
}

// isLate says whether a limit of an attempt is over.
func (r *run) isLate(a *planner.Attempt) bool {
	if a == nil || a.Outcome != "" {
		return false
	}
	rules := r.policyNamed(a.Policy)
	switch {
	case !a.OnTargetAt.IsZero():
		return true
	case !a.StartedAt.IsZero():
		return !r.now.Before(a.StartedAt.Add(rules.UpdateTimeout))
	}
	return a.Recalled == ""
}
