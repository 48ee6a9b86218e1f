package units

import (
	"context"
	"fmt"
	"path"
	"slices"
	"sort"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// Finish makes the units be what the spec says, now that its files are in
// place: links, then unit files read anew where that is needed, then jobs.
// What a spec has dropped is forgotten when it is as it was. It goes past
// single errors and joins them. changed are the units that differ now, sorted.
// With a reboot due, no unit is started or judged: the system that comes up
// starts them, and Finish is called again there.
func (c *Controller) Finish(ctx context.Context, spec *schema.Spec, rebootDue bool) (changed []string, err error) {
	if c.nothing(spec) {
		return nil, nil
	}
	err = c.with(ctx, func(m Manager) error {
		f := &finishing{Controller: c, ctx: ctx, m: m, spec: spec, rebootDue: rebootDue, rec: c.rec.clone(), changed: map[string]bool{}}
		err := f.run()
		for name := range f.changed {
			changed = append(changed, name)
		}
		return err
	})
	sort.Strings(changed)
	return changed, err
}

// finishing is one run of Finish.
type finishing struct {
	*Controller
	ctx       context.Context
	m         Manager
	spec      *schema.Spec
	rec       *record // as it will be
	rebootDue bool
	all       []goal
	goals     []goal // the same, fitted to the states
	states    []State
	changed   map[string]bool
	errs      []error
}

func (f *finishing) run() error {
	for _, g := range f.Controller.goals(f.spec, f.rec) {
		if f.rec.Before[g.name] == nil {
			f.errs = append(f.errs, failure.Retryable(component, g.name, "what it was before is not known yet"))
			continue
		}
		f.all = append(f.all, g)
	}
	if err := f.look(); err != nil {
		return err
	}
	links := f.links()
	stale := slices.ContainsFunc(f.states, func(s State) bool { return s.NeedsReload })
	if f.rec.Reload || links || stale {
		if err := f.m.Reload(f.ctx); err != nil {
			return failed("", err)
		}
		f.rec.Reload = false
		if err := f.look(); err != nil {
			return err
		}
		f.linked()
	}
	if f.rebootDue {
		f.rec.Due = map[string]*due{} // what starts after the boot has its files
	} else if err := f.act(); err != nil {
		return err
	}
	if err := f.ctx.Err(); err != nil {
		return err
	}
	if failure.Join(f.errs...) == nil && !f.rebootDue {
		f.forget()
	}
	if err := f.save(f.rec); err != nil {
		f.errs = append(f.errs, failure.Retryable("state", "units.json", "%w", err))
	}
	return failure.Join(f.errs...)
}

// linked tells of units that could not be enabled, although nobody refused it.
func (f *finishing) linked() {
	for i := range f.goals {
		g, s := &f.goals[i], &f.states[i]
		if g.wanted && !(f.rebootDue && s.Missing()) && g.enabled != nil && *g.enabled && !enabledAs(true, s) {
			f.errs = append(f.errs, failure.Permanent(component, g.name, "it cannot be enabled (%s): %s", s.File, noInstall))
		}
	}
}

// maskedForGood is why a unit cannot be started or enabled, with the file's path.
const maskedForGood = "%s masks it, which comes with the device; give the unit content of its own"

// noInstall is why a unit cannot be enabled.
const noInstall = "nothing in an [Install] section of its file says what starts it"

func (f *finishing) look() error {
	states, err := f.m.States(f.ctx, names(f.all)...)
	if err != nil {
		return failed("", err)
	}
	f.goals, f.states = slices.Clone(f.all), states
	for i := range f.goals {
		g := &f.goals[i]
		g.meets(&states[i])
		if d := f.rec.Due[g.name]; g.lost && d != nil && d.Paths[filePath(g.name)] != "" {
			g.state = schema.UnitStopped // what runs has come with our file
		}
	}
	return nil
}

// links makes what says how units start with the device. It gives true where
// something was changed.
func (f *finishing) links() (did bool) {
	for i := range f.goals {
		g, s := &f.goals[i], &f.states[i]
		do := func(err error) {
			did = true
			f.changed[g.name] = true
			f.errs = append(f.errs, failed(g.name, err))
		}
		switch {
		case f.rebootDue && g.wanted && !g.content && s.Missing():
			// It comes with the system that will be booted.
		case g.state == schema.UnitMasked:
			if s.Masked() {
				continue
			}
			if g.enabled != nil && !*g.enabled && !enabledAs(false, s) {
				do(f.m.Disable(f.ctx, g.name))
			}
			do(f.m.Mask(f.ctx, g.name))
		case g.unmasks(s, f.rec.Before[g.name]): // somebody has masked it since
			do(f.m.Unmask(f.ctx, g.name, s.File == "masked-runtime"))
			if g.enabled != nil && *g.enabled { // behind the mask it cannot be seen
				do(f.m.Enable(f.ctx, g.name))
			}
		case g.enabled == nil || g.gone():
		case *g.enabled:
			d := f.rec.Due[g.name]
			if anew := d != nil && d.Own && f.differs(d); anew && s.File == "enabled" {
				// Its file may ask for other links now.
				do(f.m.Disable(f.ctx, g.name))
				do(f.m.Enable(f.ctx, g.name))
			} else if !enabledAs(true, s) {
				do(f.m.Enable(f.ctx, g.name))
			}
		case !enabledAs(false, s):
			do(f.m.Disable(f.ctx, g.name))
		}
	}
	return did
}

// differs says whether one of the files that a unit was due for is not as it
// was before.
func (f *finishing) differs(d *due) bool {
	for p, was := range d.Paths {
		if f.onDisk(p) != was {
			return true
		}
	}
	return false
}

// act stops, starts, restarts and reloads, and proves what it has started.
func (f *finishing) act() error {
	var stops, jobs []Job
	for i := range f.goals {
		g, s := &f.goals[i], &f.states[i]
		if isTemplate(g.name) {
			delete(f.rec.Due, g.name)
			continue
		}
		if g.wanted && g.state == schema.UnitStarted && s.maskedForGood() {
			f.errs = append(f.errs, failure.Permanent(component, g.name, maskedForGood, s.Fragment))
		}
		if g.gone() && s.Active == "failed" {
			f.errs = append(f.errs, failed(g.name, f.m.ResetFailed(f.ctx, g.name)))
		}
		stops = append(stops, stopOf(g, s)...)
		if j := f.jobOf(g, s); j != nil {
			jobs = append(jobs, *j)
		}
	}
	more, err := f.others()
	if err != nil {
		return err
	}
	jobs = append(jobs, more...)
	if jobs, err = f.sockets(jobs, &stops); err != nil {
		return err
	}
	for _, j := range slices.Concat(stops, jobs) {
		f.changed[j.Unit] = true
	}
	f.errs = append(f.errs, f.jobs(f.ctx, f.m, stops, begun{at: Clock()})...)
	b, err := f.begin(jobs)
	if err != nil {
		return err
	}
	bad := f.jobs(f.ctx, f.m, jobs, b)
	if len(jobs) > 0 && f.ctx.Err() == nil {
		bad = append(bad, f.prove(jobs, bad, b)...)
	}
	f.errs = append(f.errs, bad...)
	f.settle(jobs, bad)
	return nil
}

// jobOf is what one of the spec's units needs, or nil.
func (f *finishing) jobOf(g *goal, s *State) *Job {
	d := f.rec.Due[g.name]
	needed := d != nil && (f.differs(d) || d.Invocation != s.Invocation)
	switch {
	case g.gone(), g.lost, g.state == schema.UnitStopped, g.state == schema.UnitMasked, s.Masked(), f.anew(g.name):
		delete(f.rec.Due, g.name)
		return nil
	case needed && d.restarts() && g.state == schema.UnitStarted:
		return &Job{Restart, g.name}
	case needed && d.restarts() && (s.Running() || s.Active == "activating"):
		return &Job{TryRestart, g.name}
	case g.state == schema.UnitStarted && !runs(s, f.rec.Before[g.name]):
		return &Job{Start, g.name}
	case needed && s.Running():
		return &Job{TryReload, g.name}
	}
	delete(f.rec.Due, g.name)
	return nil
}

func (d *due) restarts() bool { return d.Own || d.Restart }

// others are the jobs of units that only files speak of: where they run.
func (f *finishing) others() ([]Job, error) {
	var jobs []Job
	for _, name := range sortedKeys(f.rec.Due) {
		if slices.ContainsFunc(f.goals, func(g goal) bool { return g.name == name }) {
			continue
		}
		states, err := f.m.States(f.ctx, name)
		if err != nil {
			return nil, failed("", err)
		}
		d, s := f.rec.Due[name], &states[0]
		switch needed := f.differs(d) || d.Invocation != s.Invocation; {
		case !needed || (!s.Running() && s.Active != "activating") || f.anew(name):
			if s.Missing() && !f.anew(name) {
				f.warn(fmt.Errorf("%s: no such unit is here, so it is not told of changed files", name))
			}
			delete(f.rec.Due, name)
		case d.restarts():
			jobs = append(jobs, Job{TryRestart, name})
		default:
			jobs = append(jobs, Job{TryReload, name})
		}
	}
	return jobs, nil
}

// sockets makes room for sockets that are to be started while what they start
// runs already: systemd refuses that. What was stopped for it starts again.
func (f *finishing) sockets(jobs []Job, stops *[]Job) ([]Job, error) {
	for _, j := range slices.Clone(jobs) {
		if path.Ext(j.Unit) != ".socket" || j.Verb == TryReload {
			continue
		}
		states, err := f.m.States(f.ctx, j.Unit)
		if err != nil {
			return nil, failed("", err)
		}
		if j.Verb == Start && states[0].Running() {
			continue
		}
		behind, err := f.m.States(f.ctx, states[0].Triggers...)
		if err != nil {
			return nil, failed("", err)
		}
		for i := range behind {
			if name := behind[i].Name; behind[i].Running() {
				*stops = append(*stops, Job{Stop, name})
				jobs = slices.DeleteFunc(jobs, func(o Job) bool { return o.Unit == name })
				jobs = append(jobs, Job{Start, name})
			}
		}
	}
	return jobs, nil
}

// settle takes from the record what is done.
func (f *finishing) settle(jobs []Job, bad []error) {
	var failedUnits []string
	for _, err := range bad {
		failedUnits = append(failedUnits, failure.From(err).Element)
	}
	for _, j := range jobs {
		if slices.Contains(failedUnits, j.Unit) {
			continue
		}
		delete(f.rec.Due, j.Unit)
		if b := f.rec.Before[j.Unit]; b != nil && (j.Verb == Start || j.Verb == Restart) {
			b.Ran = true
		}
	}
}

// forget drops from the record what is as it was before, and what the spec
// does not say any more.
func (f *finishing) forget() {
	f.rec.Notify = notifyOf(f.spec)
	for _, g := range f.goals {
		u, b := f.spec.Units[g.name], f.rec.Before[g.name]
		switch {
		case u == nil:
			if g.lost && (b.Enabled || b.State) {
				f.warn(fmt.Errorf("%s: its file has gone since a spec named it, so it is not made as it was before", g.name))
			}
			delete(f.rec.Before, g.name)
		case b != nil:
			b.Enabled, b.State = u.Enabled != nil, u.State != ""
			b.Ran = b.Ran && u.State == schema.UnitStarted
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
