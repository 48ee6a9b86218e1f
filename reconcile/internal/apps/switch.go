package apps

import (
	"context"
	"errors"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/units"
	"github.com/gitopsd/gitopsd/schema"
)

// Check finds what can never work here: what podman's generator and
// podman-compose refuse, and a unit that something else on the device makes.
// Nothing is changed.
func (c *Controller) Check(ctx context.Context, spec *schema.Spec, p Payloads) error {
	all, err := c.plan(ctx, spec, p)
	if err != nil || len(all) == 0 {
		return err
	}
	m, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	r, err := c.load()
	if err != nil {
		return err
	}
	own := unitsOf(spec)
	var errs []error
	for _, w := range all {
		if w.units[0].Kind == composeKind {
			if err := c.dryCompose(ctx, w); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		states, err := m.States(ctx, names(w.units)...)
		if err != nil {
			return speaking(ctx, err)
		}
		for _, s := range states {
			switch f := s.Fragment; {
			case own[s.Name]:
				errs = append(errs, failure.Permanent(component, w.name, "the spec has the unit %s itself, in units or in files; rename one of them", s.Name))
			case f == "":
			case w.units[0].Kind == composeKind && f == unitFolder+s.Name: // as all files, it is kept and comes back
			case f == unitFolder+s.Name && c.Goes(s.Name):
			case !strings.HasPrefix(f, "/run/systemd/generator"):
				errs = append(errs, failure.Permanent(component, w.name, "a unit %s is on the device already: %s", s.Name, f))
			case !r.has(s.Name):
				// Of several files of one name podman reads the first, and none of ours
				// would count.
				if from := c.madeOf(f); from != "" && path.Dir(from) != c.real(w.folder) {
					errs = append(errs, failure.Permanent(component, w.name, "the unit %s is made of %s already; remove that file, or take it over with the folder that it is in", s.Name, from))
				}
			}
		}
	}
	return failure.Join(errs...)
}

// unitsOf are the units that a spec has files of.
func unitsOf(spec *schema.Spec) map[string]bool {
	own := map[string]bool{}
	for name, u := range spec.Units {
		own[name] = u != nil && u.IsSet()
	}
	for p := range spec.Files {
		if name := schema.UnitOfFile(p); name != "" {
			own[name] = true
		}
	}
	return own
}

// real is a folder without symlinks, as podman's generator tells it.
func (c *Controller) real(folder string) string {
	if host, err := c.Root.HostPath(folder); err == nil {
		return host
	}
	return folder
}

// sourceLine is where a generator says what it has made a unit of.
var sourceLine = regexp.MustCompile(`(?m)^SourcePath=(.+)$`)

// madeOf is the file that a generated unit is made of, or "".
func (c *Controller) madeOf(unitFile string) string {
	const most = 1 << 20 // bytes of a unit's file
	data, err := c.Root.ReadFile(unitFile, most)
	if err != nil {
		return "" // it has gone since
	}
	m := sourceLine.FindSubmatch(data)
	if m == nil {
		return ""
	}
	return string(m[1])
}

func (c *Controller) connect(ctx context.Context) (units.Manager, error) {
	m, err := c.Connect(ctx)
	if err != nil {
		return nil, speaking(ctx, err)
	}
	return m, nil
}

func speaking(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return failure.Retryable(component, "", "%w", err)
}

func names(list []unit) []string {
	out := make([]string, len(list))
	for i, u := range list {
		out[i] = u.Name
	}
	return out
}

// active are the units that the agent starts itself.
func active(list []unit) []string {
	return names(slices.DeleteFunc(slices.Clone(list), func(u unit) bool { return u.Passive }))
}

// Prepare writes down what has to be stopped and started, before the files of
// the spec are written. drift lists the paths that will change. What runs from
// files that are as wanted already, and was not ours, is taken over, as are
// containers that podman-compose would make in no other way.
func (c *Controller) Prepare(ctx context.Context, spec *schema.Spec, p Payloads, drift []string) error {
	r, err := c.load()
	if err != nil {
		return err
	}
	if len(r.Apps) == 0 && len(spec.Applications) == 0 {
		return nil
	}
	all, err := c.plan(ctx, spec, p)
	if err != nil {
		return err
	}
	return c.mark(ctx, r, all, func(w *want) bool { return slices.ContainsFunc(drift, w.has) })
}

// mark writes down what Prepare says. changes says whether files of an
// application are not as they are wanted, or were not.
func (c *Controller) mark(ctx context.Context, r *record, all []*want, changes func(*want) bool) error {
	wanted := map[string]bool{}
	for _, w := range all {
		wanted[w.name] = true
		was := r.Apps[w.name]
		switch {
		case was == nil:
			a, reload, err := c.found(ctx, w, changes(w))
			if err != nil {
				return err
			}
			if r.Apps[w.name] = a; !reload {
				continue
			}
		case was.Hash == w.hash:
			continue
		default:
			was.Hash = ""
			was.add(w.units)
		}
		r.Reload = true
	}
	for name, a := range r.Apps {
		switch {
		case wanted[name]:
		case a.Hash != "" && a.Hash == a.Taken: // it is what was there before
			if a.byHand() {
				r.Forget, r.Reload = append(r.Forget, names(a.Units)...), true
			}
			delete(r.Apps, name)
		default:
			a.Hash, r.Reload = "", true
		}
	}
	return c.save(r)
}

// Has says whether an application that may run on the device makes a unit.
func (c *Controller) Has(unit string) bool {
	r, err := c.load()
	if err != nil {
		return false
	}
	for _, a := range r.Apps {
		if slices.Contains(names(a.Units), unit) {
			return true
		}
	}
	return false
}

// Anew says whether [Controller.Switch] will start a unit anew, or has no start
// of it behind it yet.
func (c *Controller) Anew(unit string) bool {
	r, err := c.load()
	if err != nil {
		return false
	}
	for _, a := range r.Apps {
		if a.Hash == "" && slices.Contains(names(a.Units), unit) {
			return true
		}
	}
	return false
}

// Way is where [Controller.Switch] leads to.
type Way int

const (
	Onward     Way = iota // to another spec
	Back                  // to the one that succeeded last
	BackInPart            // the same, and not all files have come back
)

// Switch stops what Prepare found to be stopped, and starts what the spec
// wants and does not run. How well what was started goes is for
// [Controller.Healthy]. An application whose files have not come back is left as
// it is, and is switched the next time.
func (c *Controller) Switch(ctx context.Context, spec *schema.Spec, p Payloads, way Way) error {
	r, err := c.load()
	if err != nil || (len(r.Apps) == 0 && len(r.Forget) == 0 && len(r.Stayed) == 0 && len(spec.Applications) == 0) {
		return err
	}
	all, err := c.plan(ctx, spec, p)
	if err != nil {
		return err
	}
	m, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := c.wake(ctx, m); err != nil {
		return err
	}
	if !r.marks(all) { // Prepare could not, and a rollback goes past that
		if err := c.mark(ctx, r, all, func(*want) bool { return true }); err != nil {
			return err
		}
	}
	next := r.clone()
	next.Apps, next.Reload, next.Forget = map[string]*applied{}, false, nil
	var ready []*want
	for _, w := range all {
		if way == BackInPart && !c.stands(w) {
			r.Apps[w.name].Hash, next.Apps[w.name], next.Reload = "", r.Apps[w.name], true
		} else {
			ready = append(ready, w)
		}
	}
	var stale []unit
	for name, a := range r.Apps {
		if a.Hash == "" && next.Apps[name] == nil {
			stale = append(stale, a.Units...)
		}
	}
	n := &networks{wanted: all, stayed: r.Stayed}
	if err := c.stop(ctx, m, stale, n); err != nil {
		return err
	}
	if err := c.removeStayed(ctx, n); err != nil {
		return err
	}
	next.Stayed = n.stay
	c.began = units.Clock()
	if r.Reload {
		if err := m.Reload(ctx); err != nil {
			return speaking(ctx, err)
		}
	}
	for _, w := range ready {
		was := r.Apps[w.name]
		if way != Onward && was.Hash == "" {
			if err := c.giveTagsBack(ctx, r, w); err != nil {
				return err
			}
		}
		next.Apps[w.name] = &applied{Hash: w.hash, Units: w.units, Before: was.Before, Taken: was.Taken}
	}
	given, err := c.giveBack(ctx, m, r, next)
	if err != nil {
		return err
	}
	if err := c.handOver(ctx, m, r, next, ready); err != nil {
		return err
	}
	if err := c.startAll(ctx, m, ready, given); err != nil {
		return err
	}
	if way == BackInPart { // what is dropped may have its files still, and start with them
		for name, a := range r.Apps {
			if next.Apps[name] == nil {
				next.Apps[name], next.Reload = a, true
			}
		}
	}
	return c.save(next)
}

// giveBack are the starts of what ran before an application was ours and is
// made again, now that it is ours no more and its files have come back.
func (c *Controller) giveBack(ctx context.Context, m units.Manager, r, next *record) ([]units.Job, error) {
	var jobs []units.Job
	for _, name := range slices.Sorted(maps.Keys(r.Apps)) {
		if next.Apps[name] != nil {
			continue
		}
		states, err := m.States(ctx, r.Apps[name].Before...)
		if err != nil {
			return nil, speaking(ctx, err)
		}
		for i := range states {
			if s := &states[i]; !s.Missing() && !next.has(s.Name) {
				jobs = append(jobs, units.Job{Verb: units.Start, Unit: s.Name})
			}
		}
	}
	return jobs, nil
}

// start begins what does not run. A unit that has run and ended as it should
// is left alone. One that lacked another is started once more, and that with it:
// while a device boots, it may be the device's own start that had just failed.
func (c *Controller) start(ctx context.Context, m units.Manager, jobs []units.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	var list []string
	for _, j := range jobs {
		list = append(list, j.Unit)
	}
	states, err := m.States(ctx, list...)
	if err != nil {
		return speaking(ctx, err)
	}
	var due []units.Job
	for i := range states {
		if !asWanted(&states[i]) {
			due = append(due, jobs[i])
		}
	}
	err = m.Do(ctx, due...)
	if again := lacking(err); len(again) > 0 {
		err = m.Do(ctx, again...)
	}
	return begun(ctx, err)
}

// lacking are the jobs that failed because of another unit.
func lacking(err error) (jobs []units.Job) {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range all.Unwrap() {
			jobs = append(jobs, lacking(one)...)
		}
		return jobs
	}
	var job *units.JobError
	if errors.As(err, &job) && job.Result == "dependency" {
		jobs = append(jobs, job.Job)
	}
	return jobs
}

// begun forgives a unit that it did not start, which Healthy tells with the
// unit's own words.
func begun(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var job *units.JobError
	if err != nil && !errors.As(err, &job) {
		return speaking(ctx, err)
	}
	return nil
}
