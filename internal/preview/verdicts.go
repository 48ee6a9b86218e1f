package preview

import "github.com/gitopsd/gitopsd/planner"

// verdicts takes over what the next sweep would decide.
func (p *Plan) verdicts(in Input) {
	result := in.Head.Plan
	p.Verdicts = make([]Verdict, 0, len(result.Verdicts))
	p.Recalls = []Recall{}
	s := &p.Summary
	*s = Summary{Assumed: in.Present == nil, Counts: map[string]int{}, Policies: []PolicyState{}, Warnings: []string{}}
	for i := range result.Verdicts {
		v := &result.Verdicts[i]
		one := Verdict{
			Device: v.Device.ID, Policy: v.Device.Policy, Upgrade: v.Upgrade, Code: string(v.Code), Reason: v.Reason,
			Version: v.Device.Version, Target: v.Target.Version, Wave: v.Device.Wave, Detail: v.Detail, Position: v.Position,
		}
		if !v.NotBefore.IsZero() {
			at := v.NotBefore.UTC()
			one.NotBefore = &at
		}
		if v.Upgrade {
			s.Upgrades++
		}
		s.Counts[one.Code]++
		p.Verdicts = append(p.Verdicts, one)
	}
	for _, d := range result.Decisions {
		if d.Recall != "" {
			p.Recalls = append(p.Recalls, Recall{Device: d.Device, Attempt: d.Attempt, Because: d.Because})
		}
	}
	s.Recalls = len(p.Recalls)
	for _, of := range result.Policies {
		s.Policies = append(s.Policies, stateOf(of))
	}
}

// countGroups says of the devices that change alike which of them go now.
func (p *Plan) countGroups() {
	groupOf := map[string]*Group{}
	for i := range p.Changes {
		g := &p.Changes[i]
		g.Counts = map[string]int{}
		for _, id := range g.Devices {
			groupOf[id] = g
		}
	}
	for i := range p.Verdicts {
		if g := groupOf[p.Verdicts[i].Device]; g != nil {
			g.Counts[p.Verdicts[i].Code]++
		}
	}
}

func stateOf(s planner.Summary) PolicyState {
	waves := make([]string, 0, len(s.Waves))
	for _, w := range s.Waves {
		waves = append(waves, w.Name)
	}
	return PolicyState{
		Policy: s.Policy, Target: s.Target, Devices: s.N, Slots: s.Slots, InFlight: s.InFlight, Available: s.Available,
		Failed: s.Failed, Refused: s.Refused, Halted: s.Halted, HaltedBy: append([]string{}, s.HaltedBy...),
		Waves: waves,
	}
}
