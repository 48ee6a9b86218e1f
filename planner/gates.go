package planner

import (
	"fmt"
	"time"
)

// gates are the verdicts of those whom a policy holds back as a whole. They
// are the same for all of them, and so are made once.
type gates struct {
	stop   finding // the sweep's guards, a pause
	halt   finding
	closed finding // freezes and windows
	pilot  finding
}

// closeGates finds out what holds each policy back, once its rollout is
// counted.
func (pl *plan) closeGates() {
	if pl.fleet.bad.text == "" {
		pl.fleet.frozen = pl.frozen(pl.fleet.Freezes)
	}
	for _, p := range pl.policies {
		if p.bad != "" {
			continue
		}
		g := &p.gates
		switch {
		case pl.Stopped != "":
			g.stop = no(Stopped, because("stopped", pl.Stopped))
		case pl.fleet.Paused != "":
			g.stop = no(Paused, because("the fleet is paused", pl.fleet.Paused)).fleetWide()
		case p.Paused != "":
			g.stop = no(Paused, because("policy "+word(p.Name)+" is paused", p.Paused))
		}
		if p.halted() {
			g.halt = no(Halted, fmt.Sprintf("more devices failed or refused %s than policy %s allows; until that changes or they are forgotten", word(p.target), word(p.Name)))
			g.halt.detail = p.haltedText()
			if !p.failures.halts() {
				g.halt.field = fieldRefusals
			}
		}
		p.calendar, p.frozen = pl.calendar(p.Windows), pl.frozen(p.Freezes)
		switch {
		case pl.fleet.frozen.by >= 0:
			g.closed = pl.fleet.frozen.hold("the fleet is frozen until").fleetWide()
		case p.frozen.by >= 0:
			g.closed = p.frozen.hold("frozen until")
		case !p.calendar.open:
			g.closed = no(CodeWindow, "outside its windows")
			if next := p.calendar.next; !next.IsZero() {
				g.closed.reason += " until " + at(next)
			}
			g.closed.field = "windows"
		}
		if g.closed.code != "" {
			g.closed.notBefore = pl.opens(p, pl.Now)
		}
		if p.pilot.on && p.pilot.room == 0 {
			g.pilot = p.pilotHold(pl)
		}
		for _, w := range p.waves {
			if !w.open {
				w.hold = p.waveHold(pl, w)
			}
		}
	}
}

// gate holds a device back with its whole rollout; no code means that it may
// go as soon as there is a slot. Those that stand apart pass all that judges a
// rollout.
func (pl *plan) gate(d *device) finding {
	p := d.policy
	g := &p.gates
	switch {
	case g.stop.code != "":
		return g.stop
	case g.halt.code != "" && !d.apart() && !pl.mayRetry(d, p):
		return g.halt
	case g.closed.code != "":
		return g.closed
	case d.apart():
		return finding{}
	case g.pilot.code != "":
		return g.pilot
	case len(p.waves) > 0:
		return p.waves[p.wave(d)].hold
	}
	return finding{}
}

// maxAlternations bounds how often freezes and windows are asked in turn.
const maxAlternations = 100

// opens is the first time from t on at which neither windows nor freezes keep
// a policy from going; zero = none in sight.
func (pl *plan) opens(p *policy, t time.Time) time.Time {
	for range maxAlternations {
		u := p.calendar.from(pl.fleet.frozen.from(p.frozen.from(t)))
		if u.IsZero() || u.Equal(t) {
			return u
		}
		t = u
	}
	return time.Time{}
}

// opensAfter is opens for a time that may not be known.
func (pl *plan) opensAfter(p *policy, t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return pl.opens(p, t)
}
