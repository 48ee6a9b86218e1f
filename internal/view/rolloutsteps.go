package view

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// States of a rollout: nothing holds it back, or its failures do.
const (
	stateRolling = "rolling"
	stateHalted  = "halted"
)

// stuck says whether nobody is on the way, because a limit lets nobody start.
func stuck(r *schema.RolloutStatus) bool {
	return r.State == stateRolling && len(r.InFlight) == 0 && r.Moving == 0 && r.Limit != ""
}

// writeSteps says of each rollout that is under way how far its steps are, and
// what it waits for.
func writeSteps(b *bytes.Buffer, v *FleetView, look Look) {
	for i := range v.Rollouts {
		r := &v.Rollouts[i]
		steps := rolloutSteps(r, v.SweptAt)
		if gone := v.HaltedByGone[r.Policy]; len(gone) > 0 && r.State == stateHalted {
			steps = append([]string{haltedByText(gone, r.Policy)}, steps...)
		}
		if len(steps) > 0 {
			fmt.Fprintln(b, look.hang(Clean(r.Policy+": "+strings.Join(steps, " · ")), gap))
		}
	}
}

// haltedByText tells of devices that no list has.
func haltedByText(gone []string, policy string) string {
	text := "halted by " + fewText(gone)
	if len(gone) == 1 {
		return text + ", which has left the fleet; gitopsd retry " + policy + " forgets it"
	}
	return text + ", which have left the fleet; gitopsd retry " + policy + " forgets them"
}

// rolloutSteps are the parts of a line about a rollout; none = it is done, off,
// or has no steps.
func rolloutSteps(r *schema.RolloutStatus, now time.Time) []string {
	switch r.State {
	case "done", "off":
		return nil
	}
	var parts []string
	if p := r.Pilot; p != nil && !p.Over {
		parts = append(parts, fmt.Sprintf("pilot %d/%d done", p.Done, p.Count)+stepText(p.Moving, p.Soaking, p.SoakingUntil, now))
	}
	parts = append(parts, waveSteps(r.Waves, now)...)
	switch {
	case r.FrozenUntil != nil:
		parts = append(parts, "frozen until "+clock(*r.FrozenUntil, now))
	case r.OpensAt != nil:
		parts = append(parts, "the window opens "+clock(*r.OpensAt, now))
	case stuck(r):
		parts = append(parts, limitText(r.Limit))
	}
	return parts
}

// limitText says which limit lets nobody start.
func limitText(limit string) string {
	switch planner.Code(limit) {
	case planner.FleetGuard:
		return "minAvailable lets nobody go"
	case planner.CodeBudget:
		return "a budget lets nobody go"
	}
	return "no slot is free"
}

// waveSteps speaks of the waves that are under way, and counts the others.
func waveSteps(waves []schema.WaveStatus, now time.Time) []string {
	var parts, done, waiting []string
	for i := range waves {
		w := &waves[i]
		name := or(w.Name, "rest")
		switch {
		case w.Name == "" && w.Members == 0:
		case w.Satisfied:
			done = append(done, name)
		case !w.Open:
			waiting = append(waiting, name)
		default:
			parts = append(parts, fmt.Sprintf("%s %d/%d done", name, w.Done, w.Countable)+stepText(w.Moving, w.Soaking, w.SoakingUntil, now))
		}
	}
	if len(done) > 0 {
		parts = append([]string{fewText(done) + " done"}, parts...)
	}
	switch len(waiting) {
	case 0:
	case 1:
		parts = append(parts, waiting[0]+" waits")
	default:
		parts = append(parts, fewText(waiting)+" wait")
	}
	return parts
}

// fewText names the first of some waves and counts the others.
func fewText(names []string) string {
	const shown = 2 // a line of a terminal
	if more := len(names) - shown; more > 0 {
		return strings.Join(names[:shown], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

// stepText says what a pilot or a wave still waits for.
func stepText(moving, soaking int, until *time.Time, now time.Time) string {
	text := ""
	if moving > 0 {
		text += fmt.Sprintf(", %d moving", moving)
	}
	switch {
	case soaking > 0 && until != nil:
		text += ", soaks until " + clock(*until, now)
	case soaking > 0:
		text += fmt.Sprintf(", %d to report after the soak", soaking)
	}
	return text
}
