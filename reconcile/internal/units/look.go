package units

import (
	"context"
	"fmt"

	"github.com/gitopsd/gitopsd/schema"
)

// Difference is a unit that is not as the spec says.
type Difference struct {
	Unit string
	Why  string // what it is, and what it should be
}

// Look gives how the units of a spec are, in the order of their names, and
// which of them are not as it says.
func (c *Controller) Look(ctx context.Context, spec *schema.Spec) (states []schema.UnitState, drift []Difference, err error) {
	if len(spec.Units) == 0 {
		return nil, nil, nil
	}
	err = c.with(ctx, func(m Manager) error {
		gs := goals(spec, c.rec)
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
				drift = append(drift, Difference{g.name, why})
			}
		}
		return nil
	})
	return states, drift, err
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
		return fmt.Sprintf("it is %s, enabled should be %t", s.File, *g.enabled)
	case isTemplate(g.name):
	case g.state == schema.UnitStarted && !runs(s, b):
		return fmt.Sprintf("it is %s instead of started", s.RunState())
	case len(stopOf(g, s)) > 0:
		return fmt.Sprintf("it is %s instead of %s", s.RunState(), g.state)
	}
	return ""
}
