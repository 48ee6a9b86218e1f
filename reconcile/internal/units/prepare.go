package units

import (
	"cmp"
	"context"
	"slices"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// Prepare puts on disk what the units were before and what is due because of
// the files that are about to change, then stops what is to stop: a unit that
// goes still has its file then, with what stops it. ahead are the paths that
// will be different when the files of the spec are in place. On the way back to
// the spec of before it goes past a record that cannot be written: what stops
// there stands on disk since the way forth.
func (c *Controller) Prepare(ctx context.Context, spec *schema.Spec, ahead []string, back bool) error {
	if c.nothing(spec) && !slices.ContainsFunc(ahead, read) {
		return nil
	}
	rec := c.rec.clone()
	c.noteDue(spec, rec, ahead)
	m, err := c.connect(ctx)
	if err == nil {
		defer m.Close()
		err = c.note(ctx, m, spec, rec)
	}
	// Also where systemd does not answer: a rollback goes on with the files, and
	// what comes due by that must not be lost.
	var unsaved error
	if err := c.save(rec); err != nil {
		unsaved = failure.Retryable("state", "units.json", "%w", err)
	}
	if err == nil && (unsaved == nil || back) {
		err = c.clear(ctx, m, spec)
	}
	return failure.Join(unsaved, failed("", err))
}

// note records how units are that were not named before, and what runs with the
// files that are about to change.
func (c *Controller) note(ctx context.Context, m Manager, spec *schema.Spec, rec *record) error {
	var fresh []string
	for name, u := range spec.Units {
		if u == nil {
			continue
		}
		if rec.Before[name] == nil {
			fresh = append(fresh, name)
			continue
		}
		rec.Before[name].set(u)
	}
	states, err := m.States(ctx, fresh...)
	if err != nil {
		return err
	}
	made := c.made(spec)
	for i := range states {
		s := &states[i]
		b := &before{File: s.File, Running: s.Running(), Missing: s.Missing() && !s.Masked() && !made[s.Name]}
		b.set(spec.Units[s.Name])
		rec.Before[s.Name] = b
	}
	for name, u := range spec.Units {
		if b := rec.Before[name]; u != nil && !made[name] && c.had(name) {
			b.File, b.Under, b.Running, b.Missing = "", "", false, true // it is the application that goes
		}
	}
	for name, d := range rec.Due {
		if d.Invocation != unseen || isTemplate(name) {
			continue // it may have started again since
		}
		states, err := m.States(ctx, name)
		if err != nil {
			return err
		}
		d.Invocation = states[0].Invocation
	}
	return nil
}

// unseen is no invocation's id: nobody has looked what runs.
const unseen = "?"

func (b *before) set(u *schema.Unit) {
	b.Enabled = b.Enabled || u.Enabled != nil
	b.State = b.State || u.State != ""
}

// noteDue records which units run with files that are about to change.
func (c *Controller) noteDue(spec *schema.Spec, rec *record, ahead []string) {
	for p, n := range notifyOf(spec) {
		old := rec.Notify[p] // of a spec on the way to which we may have been
		rec.Notify[p] = notify{Restart: union(old.Restart, n.Restart), Reload: union(old.Reload, n.Reload)}
	}
	known := names(c.goals(spec, rec))
	for _, p := range ahead {
		rec.Reload = rec.Reload || read(p)
		if own := unitOf(p); own != "" {
			for _, name := range known {
				if concerns(own, name) && schema.MayRestart(name) {
					rec.mark(name, p, c.onDisk(p)).Own = true
				}
			}
		}
		for _, name := range rec.Notify[p].Reload {
			rec.mark(name, p, c.onDisk(p))
		}
		for _, name := range rec.Notify[p].Restart {
			rec.mark(name, p, c.onDisk(p)).Restart = true
		}
	}
}

// mark says that a unit's file is about to change. What was there before the
// first of several changes counts.
func (r *record) mark(name, p, was string) *due {
	d := r.Due[name]
	if d == nil {
		d = &due{Paths: map[string]string{}, Invocation: unseen}
		r.Due[name] = d
	}
	if _, known := d.Paths[p]; !known {
		d.Paths[p] = was
	}
	return d
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// clear stops what is to stop, and takes away what is in the way of files.
func (c *Controller) clear(ctx context.Context, m Manager, spec *schema.Spec) error {
	gs := c.goals(spec, c.rec)
	states, err := m.States(ctx, names(gs)...)
	if err != nil {
		return failed("", err)
	}
	var errs []error
	var stops []Job
	for i := range gs {
		g, s := &gs[i], &states[i]
		g.meets(s)
		if stops = append(stops, stopOf(g, s)...); g.gone() && !enabledAs(false, s) {
			errs = append(errs, failed(g.name, m.Disable(ctx, g.name)))
		}
		if g.unmasks(s, c.rec.Before[g.name]) {
			errs = append(errs, failed(g.name, m.Unmask(ctx, g.name, s.File == "masked-runtime")))
		}
	}
	errs = append(errs, c.noteUnder(ctx, m))
	errs = append(errs, c.jobs(ctx, m, stops, begun{at: Clock()})...)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return failure.Join(errs...)
}

// noteUnder records how those are enabled that were masked before, now that it
// can be seen and before anything changes it.
func (c *Controller) noteUnder(ctx context.Context, m Manager) error {
	rec := c.rec.clone()
	for _, name := range sortedKeys(rec.Before) {
		b := rec.Before[name]
		if !b.masked() || b.Under != "" {
			continue
		}
		states, err := m.States(ctx, name)
		if err != nil {
			return failed(name, err)
		}
		if !states[0].Masked() {
			b.Under = cmp.Or(states[0].File, "disabled")
		}
	}
	if err := c.save(rec); err != nil {
		return failure.Retryable("state", "units.json", "%w", err)
	}
	return nil
}

// stopOf is the job that makes a unit stop, if it is to and does not.
func stopOf(g *goal, s *State) []Job {
	if g.state != schema.UnitStopped && g.state != schema.UnitMasked {
		return nil
	}
	if s.Active == "inactive" || s.Active == "failed" || s.Active == "" || isTemplate(g.name) {
		return nil
	}
	return []Job{{Stop, g.name}}
}

// jobs does all of them, and gives a failure for each that did not end well,
// with what its unit has said of it.
func (c *Controller) jobs(ctx context.Context, m Manager, jobs []Job, b begun) []error {
	if len(jobs) == 0 {
		return nil
	}
	err := m.Do(ctx, jobs...)
	if err == nil {
		return nil
	}
	var errs []error
	for _, e := range parts(err) {
		errs = append(errs, c.jobFailure(ctx, e, b))
	}
	return errs
}

// parts are the errors that one was joined of.
func parts(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()
	}
	return []error{err}
}
