package planner

import (
	"fmt"
	"strings"
)

// pilot is the trial of a rollout on a few devices, before everything else.
type pilot struct {
	inside int // in flight, pinned devices aside
	taken  int // pilots that are upgraded in this plan
	soaked soaks
	on     bool // it is not over
	room   int  // devices that may still go as pilots
}

func (p *policy) openPilot() {
	t := &p.pilot
	t.soaked.sort()
	t.on = p.bad == "" && t.soaked.done < p.Pilot.Count
	t.room = max(0, p.Pilot.Count-t.inside-t.soaked.underway())
}

// hold is what those are told who are no pilots.
func (p *policy) pilotHold(pl *plan) finding {
	t := &p.pilot
	v := no(CodePilot, fmt.Sprintf("waits until %d devices are done as pilots", p.Pilot.Count))
	if p.Pilot.Count == 1 {
		v.reason = "waits until one device is done as the pilot"
	}
	if p.Pilot.Soak > 0 {
		v.reason += " and has soaked for " + span(p.Pilot.Soak)
		if p.Pilot.Count > 1 {
			v.reason = strings.Replace(v.reason, " has ", " have ", 1)
		}
	}
	v.field = "pilot.count"
	v.detail = strings.Join(append([]string{fmt.Sprintf("%d of %d done; %d in flight", t.soaked.done, p.Pilot.Count, t.inside+t.taken)}, t.soaked.text()...), "; ")
	if t.inside+t.taken == 0 {
		v.field = "pilot.soak"
		// A place is free once fewer are soaking, or the pilot is over.
		v.notBefore = pl.opensAfter(p, t.soaked.after(min(1+t.soaked.underway()-p.Pilot.Count, p.Pilot.Count-t.soaked.done)))
	}
	return v
}

func (p *policy) pilotSummary() *PilotSummary {
	if p.Pilot.Count <= 0 || p.bad != "" {
		return nil
	}
	t := &p.pilot
	return &PilotSummary{
		Count: p.Pilot.Count, Done: t.soaked.done, Soaking: t.soaked.underway(), InFlight: t.inside, Over: !t.on,
		SoakingUntil: t.soaked.until(),
	}
}
