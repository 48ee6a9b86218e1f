package apps

import (
	"context"
	"fmt"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/progress"
	"github.com/gitopsd/gitopsd/reconcile/internal/units"
	"github.com/gitopsd/gitopsd/schema"
)

const (
	// healthTimeout is for an application that says nothing of it: starting a
	// container on a slow card takes a minute.
	healthTimeout = 2 * time.Minute
	// healthStable is longer than systemd waits before it restarts a unit, by
	// far.
	healthStable = 10 * time.Second
	// healthEvery is how often an application is asked.
	healthEvery = time.Second
	// checkLimit is for one answer of a health check, in seconds.
	checkLimit = 10
	// afterCheck is when the work goes on at the latest, after a check.
	afterCheck = time.Minute
)

// Healthy waits until all applications of the spec are healthy and stay so for
// their time, without a restart. One that is not in time is a permanent
// failure. All of them are watched at the same time.
func (c *Controller) Healthy(ctx context.Context, spec *schema.Spec) error {
	r, err := c.load()
	if err != nil {
		return err
	}
	var watched []*patient
	for name, app := range spec.Applications {
		if a := r.Apps[name]; a != nil && app != nil {
			watched = append(watched, newPatient(name, app.Health, a.Units))
		}
	}
	if len(watched) == 0 {
		return nil
	}
	m, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	begun := c.Uptime()
	for {
		progress.Within(ctx, time.Duration(len(watched))*checkLimit*time.Second+afterCheck)
		waiting := false
		var errs []error
		l := &look{c: c}
		for _, w := range watched {
			if w.done {
				continue
			}
			why, hopeless, err := c.ask(ctx, m, l, w)
			if err != nil {
				return err
			}
			switch now := c.Uptime(); {
			case why == "":
				if w.since < 0 {
					w.since = now
				}
				w.done = now-w.since >= w.stableFor
			case hopeless || now-begun >= w.timeout:
				f := failure.From(failure.Permanent(component, w.name, "it is not healthy: %s", w.restartedToo(why)))
				f.Output, f.Beside = c.words(ctx, w), w.sick == ""
				errs = append(errs, f)
			default:
				w.since = -1
			}
			waiting = waiting || !w.done
		}
		if len(errs) > 0 || !waiting {
			return failure.Join(errs...)
		}
		if err := c.Wait(ctx, healthEvery); err != nil {
			return err
		}
	}
}

// patient is an application whose health is watched.
type patient struct {
	name               string
	health             schema.Health
	units              []unit
	timeout, stableFor time.Duration
	since              time.Duration // it is healthy; -1 = it is not
	done               bool
	seen               map[string]units.State // by unit
	restarts           map[string]int         // by container
	looping            map[string]loop        // by container
	restarted          string                 // the last restart that was seen
	sick               string                 // the unit that was named last; "" = it is none alone
	sickContainer      string                 // and its container
	containers         []string               // that there are, by name
}

func newPatient(name string, h *schema.Health, list []unit) *patient {
	p := &patient{name: name, units: list, timeout: healthTimeout, stableFor: healthStable, since: -1, seen: map[string]units.State{}, restarts: map[string]int{}, looping: map[string]loop{}}
	if h != nil {
		p.health = *h
		if h.Timeout != nil {
			p.timeout = time.Duration(*h.Timeout)
		}
		if h.StableFor != nil {
			p.stableFor = time.Duration(*h.StableFor)
		}
	}
	return p
}

// restartedToo adds to why an application is not healthy that it was restarted:
// between two restarts it is something else that is wrong.
func (p *patient) restartedToo(why string) string {
	if p.restarted == "" || p.restarted == why {
		return why
	}
	return why + "; " + p.restarted
}

// ask says why an application is not healthy now, or "". hopeless: waiting
// does not help.
func (c *Controller) ask(ctx context.Context, m units.Manager, l *look, p *patient) (why string, hopeless bool, err error) {
	list := names(p.units)
	if p.health.Unit != "" {
		list = append(list, p.health.Unit)
	}
	states, err := m.States(ctx, list...)
	if err != nil {
		return "", false, speaking(ctx, err)
	}
	restarted := ""
	for i := range states {
		s := &states[i]
		before, known := p.seen[s.Name]
		p.seen[s.Name] = *s
		if known && s.Restarts > before.Restarts {
			restarted, p.sick = fmt.Sprintf("%s was restarted, %d times so far", s.Name, s.Restarts), s.Name
			p.restarted = restarted
		}
	}
	for i := range states {
		s := &states[i]
		needed := i >= len(p.units) || !p.units[i].Passive
		switch {
		case asWanted(s):
		case s.Active == "failed":
			p.sick = s.Name
			return fmt.Sprintf("%s has failed (%s)", s.Name, s.Result), true, nil
		case needed:
			p.sick = s.Name
			if s.Restarts > 0 {
				return fmt.Sprintf("%s is %s, and was restarted %d times so far", s.Name, s.RunState(), s.Restarts), false, nil
			}
			return fmt.Sprintf("%s is %s", s.Name, s.RunState()), false, nil
		}
	}
	if restarted != "" {
		return restarted, false, nil
	}
	if why, hopeless, err := c.askContainers(ctx, l, p); err != nil || why != "" {
		return why, hopeless, err
	}
	if p.restarted == "" {
		p.sick, p.sickContainer = "", "" // all of it runs, and none was restarted
	}
	return c.check(ctx, p)
}

// asWanted says whether a unit runs, or has run and ended as it should.
func asWanted(s *units.State) bool {
	return s.Running() || s.Oneshot && s.Ran && s.Active == "inactive" && s.Result == "success"
}

func (c *Controller) check(ctx context.Context, p *patient) (why string, hopeless bool, err error) {
	switch {
	case len(p.health.Command) > 0:
		_, err := c.Run(ctx, p.health.Command, "/", []string{"GITOPSD_APPLICATION=" + p.name}, checkLimit, maxListed)
		if ctx.Err() != nil {
			return "", false, ctx.Err()
		}
		if err != nil {
			return said(err), false, nil
		}
	case p.health.HTTP != nil:
		why = answer(ctx, p.health.HTTP)
		if ctx.Err() != nil {
			return "", false, ctx.Err()
		}
	}
	return why, false, nil
}
