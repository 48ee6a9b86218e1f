package planner

import (
	"fmt"
	"slices"
)

// Check is one that a device came past.
type Check struct {
	Code Code   // what it would be, had it not
	Text string // what it is instead, in a few words
}

// Passed lists the checks that a device of this plan came past before the one
// that gave it its verdict, in their order. Those that every device passes,
// and those that its policy does not ask for, are left out.
func (r Result) Passed(v Verdict) []Check {
	list := []Check{}
	var s Summary
	if i := slices.IndexFunc(r.Policies, func(s Summary) bool { return s.Policy == v.Device.Policy }); i >= 0 {
		s = r.Policies[i]
	}
	for _, c := range Codes() {
		if c.Code == v.Code {
			break
		}
		if text := s.passed(c.Code, v); text != "" {
			list = append(list, Check{c.Code, text})
		}
	}
	return list
}

// passed is what a device is that came past a check; "" has nothing to say.
func (s *Summary) passed(c Code, v Verdict) string {
	switch c {
	case Excluded:
		return "selected by policy " + word(s.Policy)
	case Disabled:
		return "enabled"
	case NeverSeen:
		return "seen"
	case Newer:
		return "version " + word(v.Device.Version)
	case ByHand:
		return "protocol"
	case NeedsAgent:
		return "capabilities"
	case Held:
		return "not held"
	case CodeFailed:
		return "not failed"
	case Absent:
		return "online"
	case Busy:
		return "idle"
	case Stopped:
		return "not stopped"
	case Paused:
		return "not paused"
	case Halted:
		switch {
		case v.Device.Pinned:
			return "pinned, so no halt concerns it"
		case v.Device.Observes:
			return "it changes nothing, so no halt concerns it"
		case s.Halted:
			return "halted, but it has tries left"
		}
		return "not halted"
	case Frozen:
		return "not frozen"
	case CodeWindow:
		return s.inWindow()
	case CodePilot, CodeWave:
		if v.Device.Pinned || v.Device.Observes {
			return ""
		}
		return s.inRollout(c, v)
	case Queued:
		return fmt.Sprintf("a slot is free: %d of %d are taken", s.InFlight, s.Slots)
	}
	return ""
}

func (s *Summary) inWindow() string {
	switch {
	case s.Windows == nil:
		return ""
	case s.Windows.Until.IsZero():
		return "its windows are open"
	}
	return "its windows are open until " + at(s.Windows.Until)
}

func (s *Summary) inRollout(c Code, v Verdict) string {
	switch {
	case c == CodePilot && s.Pilot == nil, c == CodeWave && len(s.Waves) == 0:
		return ""
	case c == CodePilot && s.Pilot.Over:
		return fmt.Sprintf("the pilot is over: %d of %d done", s.Pilot.Done, s.Pilot.Count)
	case c == CodePilot:
		return "a place in the pilot is free"
	}
	if slices.ContainsFunc(s.Waves, func(w WaveSummary) bool { return w.Name != "" && w.Name == v.Device.Wave }) {
		return "wave " + word(v.Device.Wave) + " is open"
	}
	return "the last wave is open"
}
