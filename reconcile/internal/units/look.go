package units

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/gitopsd/gitopsd/schema"
)

// Difference is a unit that is not as the spec says.
type Difference struct {
	Unit string
	Why  string // what it is, and what it should be
	// Comes and Goes say that it is there only with a spec; Dropped that this
	// one does not name it, and it becomes what it was before.
	Comes, Goes, Dropped bool
}

// Look gives how the units of a spec are, in the order of their names, and
// which of them are not as it says.
func (c *Controller) Look(ctx context.Context, spec *schema.Spec) (states []schema.UnitState, drift []Difference, err error) {
	if len(spec.Units) == 0 {
		return nil, nil, nil
	}
	err = c.with(ctx, func(m Manager) error {
		gs := c.goals(spec, c.rec)
		found, err := m.States(ctx, names(gs)...)
		if err != nil {
			return failed("", err)
		}
		for i := range gs {
			g, s := &gs[i], &found[i]
			if !g.wanted {
				continue
			}
			states = append(states, schema.UnitState{Name: g.name, State: s.RunState(), Enabled: s.File == "enabled"})
			if why := unlike(g, s, c.rec.Before[g.name]); why != "" {
				drift = append(drift, Difference{Unit: g.name, Why: why})
			}
		}
		return nil
	})
	return states, drift, err
}

// Compare lists the units, by name, that an update to the spec would do
// something about beside their files.
func (c *Controller) Compare(ctx context.Context, spec *schema.Spec) (list []Difference, err error) {
	gs := c.goals(spec, c.rec)
	if len(gs) == 0 {
		return nil, nil
	}
	err = c.with(ctx, func(m Manager) error {
		found, err := m.States(ctx, names(gs)...)
		if err != nil {
			return failed("", err)
		}
		for i := range gs {
			g, s := &gs[i], &found[i]
			g.meets(s)
			why := unlike(g, s, c.rec.Before[g.name])
			d := Difference{Unit: g.name, Goes: g.gone(), Dropped: !g.wanted}
			switch missing := s.Missing() && !s.Masked(); {
			case d.Goes && !missing:
			case why == "":
				continue
			case missing:
				d.Comes = true
			default:
				d.Why = why
			}
			list = append(list, d)
		}
		return nil
	})
	return list, err
}

// Affected lists what would be done to units that run, by name, because files
// that they have or read are not as a spec wants them; ahead are those.
func (c *Controller) Affected(ctx context.Context, spec *schema.Spec, ahead []string) (list []Job, err error) {
	rec := c.rec.clone()
	c.noteDue(spec, rec, ahead)
	if len(rec.Due) == 0 {
		return nil, nil
	}
	gs := c.goals(spec, rec)
	err = c.with(ctx, func(m Manager) error {
		for _, name := range sortedKeys(rec.Due) {
			if i := slices.IndexFunc(gs, func(g goal) bool { return g.name == name }); isTemplate(name) || i >= 0 && gs[i].ends() {
				continue
			}
			states, err := m.States(ctx, name)
			if err != nil {
				return failed("", err)
			}
			switch s := &states[0]; {
			case !s.Running() && s.Active != "activating":
			case rec.Due[name].restarts():
				list = append(list, Job{TryRestart, name})
			default:
				list = append(list, Job{TryReload, name})
			}
		}
		return nil
	})
	return list, err
}

// ends: the unit is not to run.
func (g *goal) ends() bool {
	return g.gone() || g.state == schema.UnitStopped || g.state == schema.UnitMasked
}

// unlike says in what a unit is not as it should be, or "".
func unlike(g *goal, s *State, b *before) string {
	switch {
	case g.state == schema.UnitMasked:
		if !s.Masked() {
			return "it is not masked"
		}
	case g.unmasks(s, b):
		return "it is masked"
	case g.enabled != nil && !enabledAs(*g.enabled, s):
		return fmt.Sprintf("it is %s, enabled should be %t", cmp.Or(s.File, s.RunState()), *g.enabled)
	case isTemplate(g.name):
	case g.state == schema.UnitStarted && !runs(s, b):
		return fmt.Sprintf("it is %s instead of started", s.RunState())
	case len(stopOf(g, s)) > 0:
		return fmt.Sprintf("it is %s instead of %s", s.RunState(), g.state)
	}
	return ""
}
