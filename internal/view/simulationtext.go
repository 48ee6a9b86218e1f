package view

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/internal/simulate"
)

// Bounds of what the text shows of a simulation; the JSON has all of it.
const (
	shownSites     = 12 // of one wave
	shownObstacles = 20 // kinds of them
	shownPeaks     = 5  // sites with the most devices away
)

// WriteSimulation writes how a rollout unfolds: a timeline for each policy,
// who is away at most, who never gets there, and how far a bad release would.
func WriteSimulation(w io.Writer, s *simulate.Simulation, look Look) error {
	var b bytes.Buffer
	t := simulationText{planText{b: &b, look: look}, s}
	t.outcome()
	for i := range s.Policies {
		if p := &s.Policies[i]; p.Devices > 0 {
			t.policy(p)
		}
	}
	t.legend()
	t.away()
	t.never()
	t.badRelease()
	_, err := w.Write(b.Bytes())
	return err
}

// simulationText writes the parts of a simulation.
type simulationText struct {
	planText
	s *simulate.Simulation
}

// outcome says in a line or two what comes out.
func (t *simulationText) outcome() {
	s := t.s
	move := s.Arrived + s.Remaining
	switch {
	case s.Total == 0:
		t.line(0, "there are no devices")
		return
	case move == 0:
		t.line(0, fmt.Sprintf("nothing to do: %d of %s on target", s.Current, counted(s.Total, "device")))
		return
	}
	text := fmt.Sprintf("%d of %s will be on target", s.Arrived, counted(move, "device"))
	if s.Arrived > 0 {
		text += fmt.Sprintf(" in %s, by %s", lengthText(s.DoneAt.Sub(s.Start)), Stamp(s.DoneAt))
	}
	if s.Remaining > 0 {
		text += fmt.Sprintf("; %d will not", s.Remaining)
	}
	t.line(0, text)
	if s.State == simulate.Unfinished {
		t.line(0, "and it is not over: this looks no further ahead than "+Stamp(s.End))
	}
}

// policy writes the timeline of a policy.
func (t *simulationText) policy(p *simulate.Policy) {
	t.section(t.look.hang(fmt.Sprintf("%s → %s", Clean(p.Policy), Clean(or(p.Target, "no target"))), gap))
	var words []string
	if p.Current > 0 {
		words = append(words, fmt.Sprintf("%d there already", p.Current))
	}
	words = append(words, fmt.Sprintf("%d of %d arrived", p.Arrived, p.Devices-p.Current))
	if p.Failed > 0 {
		words = append(words, fmt.Sprintf("%d failed", p.Failed))
	}
	if p.Refused > 0 {
		words = append(words, fmt.Sprintf("%d refused", p.Refused))
	}
	if p.Halted {
		words = append(words, "HALTED")
	}
	t.line(0, strings.Join(words, " · "))
	if p.FirstAt.IsZero() {
		return
	}
	t.timeline(p)
}

// legend says how bars are to be read, once.
func (t *simulationText) legend() {
	moved := slices.ContainsFunc(t.s.Policies, func(p simulate.Policy) bool { return !p.FirstAt.IsZero() })
	if moved {
		t.b.WriteByte('\n')
		t.line(0, "bars: · on the way, ▁▄▇ the share that is done, █ all, × a failure")
	}
}

// away says how many devices are unavailable because of updates.
func (t *simulationText) away() {
	s := t.s
	if s.InFlight.Devices == 0 {
		return
	}
	t.section("AWAY AT MOST")
	text := fmt.Sprintf("%s at one time (first at %s)", counted(s.InFlight.Devices, "device"), clock(s.InFlight.At, s.Start))
	if s.Working.Devices != s.InFlight.Devices {
		text += fmt.Sprintf(", %d of them really at work", s.Working.Devices)
	}
	t.line(0, text)
	if len(s.Sites) < 2 {
		return
	}
	sites := slices.Clone(s.Sites)
	slices.SortStableFunc(sites, func(a, b simulate.SitePeak) int { return b.Devices - a.Devices })
	sites = slices.DeleteFunc(sites, func(p simulate.SitePeak) bool { return p.Devices == 0 })
	var words []string
	for i, p := range sites {
		if i == shownPeaks {
			words = append(words, fmt.Sprintf("and %d more", len(sites)-i))
			break
		}
		words = append(words, fmt.Sprintf("%s %d of %d", or(Clean(p.Site), "no "+Clean(s.By)), p.Devices, p.Of))
	}
	t.line(0, "by "+Clean(s.By)+": "+strings.Join(words, " · "))
}

// never lists who does not get there, and why.
func (t *simulationText) never() {
	list := t.s.Never
	if len(list) == 0 {
		return
	}
	name := "NEVER THERE"
	if t.s.State == simulate.Unfinished {
		name = "NOT THERE BY THEN"
	}
	t.section(name)
	for i := range list {
		if i == shownObstacles {
			t.line(0, "and "+counted(len(list)-i, "more reason")+": -o json has them")
			return
		}
		o := &list[i]
		t.line(0, fmt.Sprintf("%s  %s  %s  %s", Clean(o.Code), Clean(or(o.Policy, "no policy")), counted(len(o.Devices), "device"), namesText(o.Devices)))
		t.line(2, Clean(or(o.Detail, o.Reason)))
	}
}

// badRelease says how far a release would get of which every update fails.
func (t *simulationText) badRelease() {
	bad := t.s.BadRelease
	if bad == nil || len(bad.Policies) == 0 {
		return
	}
	t.section("IF EVERY UPDATE FAILED")
	for _, p := range bad.Policies {
		text := fmt.Sprintf("%s  %s starts on %d of %s", Clean(p.Policy), Clean(or(p.Target, "it")), p.Started, counted(p.Of, "device"))
		switch {
		case p.Halted:
			text += fmt.Sprintf(", the last at %s; then the policy halts", clock(p.LastAt, t.s.Start))
		case p.Started > 0:
			text += fmt.Sprintf(", the last at %s; the policy does not halt", clock(p.LastAt, t.s.Start))
		}
		t.line(0, text)
	}
}

// lengthText is a length of time to two units: "2d 3h", "1h 5m", "40s".
func lengthText(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= day:
		return strings.TrimSuffix(fmt.Sprintf("%dd %dh", d/day, d%day/time.Hour), " 0h")
	case d >= time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%dh %dm", d/time.Hour, d%time.Hour/time.Minute), " 0m")
	case d >= time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}
