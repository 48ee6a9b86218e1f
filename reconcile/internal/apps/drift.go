package apps

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/units"
	"github.com/gitopsd/gitopsd/schema"
)

// State is how an application is, in the words of reports.
type State struct {
	Name   string
	State  string
	Reason string
}

// States tells how the applications of the spec are, by name.
func (c *Controller) States(ctx context.Context, spec *schema.Spec) ([]State, error) {
	r, err := c.load()
	if err != nil || len(r.Apps) == 0 || len(spec.Applications) == 0 {
		return nil, err
	}
	m, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	var all []State
	l := &look{c: c}
	for name := range spec.Applications {
		a := r.Apps[name]
		if a == nil {
			all = append(all, State{Name: name, State: schema.ApplicationStopped, Reason: "it was never started"})
			continue
		}
		states, err := m.States(ctx, names(a.Units)...)
		if err != nil {
			return nil, speaking(ctx, err)
		}
		s := summary(name, a.Units, states)
		if err := withContainers(ctx, l, &s, a.Units); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b State) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all, nil
}

func summary(name string, list []unit, states []units.State) State {
	out := State{Name: name, State: schema.ApplicationRunning}
	for i := range states {
		s := &states[i]
		if asWanted(s) || list[i].Passive && s.Active != "failed" {
			continue
		}
		if out.State != schema.ApplicationFailed {
			out.Reason = fmt.Sprintf("%s is %s", s.Name, s.RunState())
		}
		switch {
		case s.Active == "failed":
			out.State = schema.ApplicationFailed
		case out.State == schema.ApplicationFailed:
		case s.Active == "activating":
			out.State = schema.ApplicationStarting
		case s.Active == "deactivating":
			out.State = schema.ApplicationStopping
		default:
			out.State = schema.ApplicationStopped
		}
	}
	return out
}

// withContainers adds to the state of an application whose units run how its
// containers are. One that runs and is not content is told only: whether an
// application is well is asked in an update.
func withContainers(ctx context.Context, l *look, s *State, list []unit) error {
	if s.State != schema.ApplicationRunning {
		return nil
	}
	_, found, err := l.at(ctx, list)
	if err != nil {
		return err
	}
	for _, t := range found {
		if s.Reason == "" || !t.unwell {
			s.Reason = t.why
		}
		if !t.unwell {
			s.State = schema.ApplicationStopped
			break
		}
	}
	return nil
}

// Known says whether everything that the spec wants, and nothing else, was
// started by us or taken over.
func (c *Controller) Known(spec *schema.Spec, p Payloads) (bool, error) {
	r, err := c.load()
	if err != nil {
		return false, err
	}
	all, err := wants(spec, p)
	if err != nil {
		return false, err
	}
	for _, w := range all {
		if a := r.Apps[w.name]; a == nil || a.Hash != w.hash {
			return false, nil
		}
	}
	return len(all) == len(r.Apps) && !r.Reload, nil
}

// Stopped are the applications of which something does not run, each with what.
func (c *Controller) Stopped(ctx context.Context, spec *schema.Spec) (map[string]string, error) {
	all, err := c.States(ctx, spec)
	out := map[string]string{}
	for _, s := range all {
		if s.State == schema.ApplicationStopped || s.State == schema.ApplicationFailed {
			out[s.Name] = s.Reason
		}
	}
	return out, err
}

// Drift lists the applications of which something does not run, sorted.
func (c *Controller) Drift(ctx context.Context, spec *schema.Spec) ([]string, error) {
	stopped, err := c.Stopped(ctx, spec)
	return slices.Sorted(maps.Keys(stopped)), err
}

// Repair starts what does not run, and has systemd read the files anew where
// some of them were put right. It tells what it has started.
func (c *Controller) Repair(ctx context.Context, spec *schema.Spec, reload bool) ([]string, error) {
	drift, err := c.Drift(ctx, spec)
	if err != nil || (len(drift) == 0 && !reload) {
		return nil, err
	}
	m, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if reload {
		if err := m.Reload(ctx); err != nil {
			return nil, speaking(ctx, err)
		}
	}
	r, err := c.load()
	if err != nil {
		return nil, err
	}
	for _, name := range drift {
		var jobs []units.Job
		if a := r.Apps[name]; a != nil {
			for _, u := range active(a.Units) {
				jobs = append(jobs, units.Job{Verb: units.Start, Unit: u})
			}
			if err := c.raise(ctx, m, a.Units); err != nil {
				return drift, err
			}
		}
		if err := c.start(ctx, m, jobs); err != nil {
			return drift, err
		}
	}
	return drift, nil
}

// Started says what of the spec does not run, without judging how well: a
// rollback has come to its end when everything does.
func (c *Controller) Started(ctx context.Context, spec *schema.Spec) error {
	all, err := c.States(ctx, spec)
	errs := []error{err}
	for _, s := range all {
		if s.State == schema.ApplicationStopped || s.State == schema.ApplicationFailed {
			errs = append(errs, failure.Retryable(component, s.Name, "it did not come back: %s", s.Reason))
		}
	}
	return failure.Join(errs...)
}
