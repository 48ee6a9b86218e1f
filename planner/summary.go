package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// summary is what a plan says of one policy.
func (pl *plan) summary(p *policy) Summary {
	s := Summary{
		Policy: p.Name, Target: p.target, N: p.n, Slots: p.slots, InFlight: p.inFlight, Available: p.available,
		Failed: len(p.failures.ids), Refused: len(p.refusals.ids), Halted: p.halted(), HaltedBy: p.haltedBy(),
		Counts: p.counts,
	}
	s.Pilot, s.Waves, s.Budgets = p.pilotSummary(), p.waveSummaries(), budgetSummaries(p.budgets)
	s.Windows, s.Freeze, s.NextUpgrade = p.calendar.summary(), p.frozen.summary(), p.pace.next
	if p.bad != "" {
		s.Warnings = append(s.Warnings, p.bad)
	}
	if own, target := pl.versions.parse(pl.OwnVersion), pl.versions.parse(p.TargetVersion); own != nil && target != nil && target.GreaterThan(own) {
		s.Warnings = append(s.Warnings, fmt.Sprintf("target %s is newer than the control plane's own build %s", word(p.TargetVersion), word(pl.OwnVersion)))
	}
	if l := p.MinAvailable; p.n > 1 && l.Percent == 0 && l.Count >= p.n {
		s.Warnings = append(s.Warnings, fmt.Sprintf("minAvailable %d of %d devices would let nobody go: %d is used", l.Count, p.n, p.keep))
	}
	if len(p.counts) == 0 {
		s.Warnings = append(s.Warnings, "selects no device")
	}
	s.Warnings = append(s.Warnings, p.hopeless()...)
	return s
}

// hopeless says which parts of a policy keep devices from going for as long as
// nobody changes them.
func (p *policy) hopeless() []string {
	var list []string
	for i, w := range p.waves[:max(0, len(p.waves)-1)] {
		switch {
		case w.satisfied || w.Optional && w.members == 0:
		case w.members == 0:
			list = append(list, fmt.Sprintf("waves[%d]: %s matches no device, so that no later wave opens", i, word(w.Name)))
		case w.MinSuccess > w.members:
			list = append(list, fmt.Sprintf("waves[%d]: %s needs %d devices and has %d, so that no later wave opens", i, word(w.Name), w.MinSuccess, w.members))
		}
	}
	for i, b := range p.budgets {
		if l := b.MaxUnavailable; l.isSet() && l.Count == 0 && l.Percent == 0 {
			list = append(list, fmt.Sprintf("budgets[%d]: maxUnavailable 0 lets nobody go", i))
		}
	}
	return list
}

func (p *policy) haltedBy() []string {
	ids := map[string]bool{}
	for _, m := range []marks{p.failures, p.refusals} {
		if m.halts() {
			for id := range m.ids {
				ids[id] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// haltedText names who halted the policy, for plans.
func (p *policy) haltedText() string {
	var parts []string
	for _, m := range []struct {
		marks
		knob, did string
	}{{p.failures, "failureLimit", "failed"}, {p.refusals, "refusalLimit", "refused"}} {
		if m.halts() {
			parts = append(parts, fmt.Sprintf("%s: %s; %s is %d", m.did, few(slices.Sorted(maps.Keys(m.ids))), m.knob, m.limit))
		}
	}
	return strings.Join(parts, "; ")
}

// queueText names what takes the slots.
func (p *policy) queueText() string {
	return fmt.Sprintf("no slot is free: %s, taken by %s", p.slotsText(), few(slices.Sorted(slices.Values(p.holders))))
}

// guardText names what keeps the others away, and the knob.
func (pl *plan) guardText(p *policy, available int) string {
	var away []string
	for _, d := range pl.devices {
		if d.policy != p || d.Removed || d.bad != "" || d.absent {
			continue
		}
		if why := d.away(); why != "" {
			away = append(away, d.ID+" "+why)
		}
	}
	slices.Sort(away)
	text := fmt.Sprintf("would leave %d of %d devices available, minAvailable keeps %d", available-1, p.n, p.keep)
	if len(away) > 0 {
		text += "; away: " + few(away)
	}
	return text
}

// away says why a device is not available, as the plan stands; "" = it is.
func (d *device) away() string {
	switch {
	case d.open() != nil || d.Upgrading || d.verdict.code == Upgrade:
		return "in flight"
	case d.held():
		return "held"
	case d.offline:
		return "offline"
	}
	return ""
}
