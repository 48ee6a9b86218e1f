package protocoltest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// may are the outcomes that an attempt of one outcome may get later.
var may = map[schema.Outcome][]schema.Outcome{
	schema.OutcomeLost: {schema.OutcomeOK, schema.OutcomeFailed, schema.OutcomeUnreached},
	schema.OutcomeOK:   {schema.OutcomeFailed},
}

// byReport are the outcomes that only a report can give.
var byReport = []schema.Outcome{schema.OutcomeOK, schema.OutcomeFailed, schema.OutcomeRefused, schema.OutcomeExhausted, schema.OutcomeObserved}

// judge compares two records of one device, the newer of which a daemon has
// just written; nil = nobody knows which.
func (g *ghost) judge(old, now *recorded, by *daemon) {
	id := now.Metadata.Name
	before := map[int64]attempt{}
	if old != nil {
		for _, a := range old.Attempts {
			before[a.Attempt] = a
		}
	}
	g.goesOn(old, now)
	for _, a := range now.Attempts {
		was, known := before[a.Attempt]
		if !known {
			if a.Attempt <= g.numbers[id] {
				g.violate("attempt %d of %s is handed out, after %d was", a.Attempt, id, g.numbers[id])
			}
			g.numbers[id] = a.Attempt
			g.w.logf("## status: %s is assigned attempt %d (%s)", id, a.Attempt, a.Version)
			if g.w.plans != nil {
				g.w.plans.assigned(id, a)
			}
		}
		if was.StartedAt == nil && a.StartedAt != nil {
			g.w.logf("## status: %s started attempt %d", id, a.Attempt)
			g.byNewReport(old, now, a, "started")
		}
		if was.OnTargetAt == nil && a.OnTargetAt != nil {
			g.byNewReport(old, now, a, "on target")
		}
		if was.Recall == nil && a.Recall != nil {
			g.w.logf("## status: attempt %d of %s is recalled: %s", a.Attempt, id, a.Recall.Because)
			if g.w.plans != nil {
				g.w.plans.recalled = append(g.w.plans.recalled, fresh{id, a})
			}
			if a.Recall.Outcome == schema.OutcomeUnreached {
				g.patient(by, id, a.AssignedAt, a.Recall.At, pickupTimeout, fmt.Sprintf("attempt %d of %s is taken back as unreached", a.Attempt, id))
			}
		}
		if known && was.Outcome != a.Outcome {
			g.w.logf("## status: attempt %d of %s: %q → %q %s", a.Attempt, id, was.Outcome, a.Outcome, a.Message)
			if was.Outcome != "" && !slices.Contains(may[was.Outcome], a.Outcome) {
				g.violate("attempt %d of %s goes from %q to %q", a.Attempt, id, was.Outcome, a.Outcome)
			}
			g.ended(id, a)
			if slices.Contains(byReport, a.Outcome) || was.Outcome == schema.OutcomeLost {
				g.byNewReport(old, now, a, string(a.Outcome))
			}
			if a.Outcome == schema.OutcomeLost {
				g.lost(by, now, a)
			}
		}
	}
}

// ended is I5, and the other half of I3: what ended without having begun has
// not begun.
func (g *ghost) ended(id string, a attempt) {
	d := g.device(id)
	switch a.Outcome {
	case schema.OutcomeOK:
		if !d.done[a.Attempt] {
			g.violate("I5: attempt %d of %s is ok, and the device did not do it", a.Attempt, id)
		}
	case schema.OutcomeFailed:
		if !d.acted[a.Attempt] && !d.done[a.Attempt] {
			g.violate("I5: attempt %d of %s is failed, and the device never began it", a.Attempt, id)
		}
	case schema.OutcomeObserved:
		if !d.comparedBy[a.Attempt] || d.acted[a.Attempt] {
			g.violate("observes: attempt %d of %s is observed, and the device has not only compared itself by it", a.Attempt, id)
		}
	case schema.OutcomeDeferred, schema.OutcomeUnreached, schema.OutcomeRefused, schema.OutcomeExhausted:
		if d.acted[a.Attempt] {
			g.violate("I3: attempt %d of %s is %s, and the device has begun it", a.Attempt, id, a.Outcome)
		}
	}
}

// goesOn holds that what is on record of an installation never gets older.
func (g *ghost) goesOn(old, now *recorded) {
	if old == nil || old.Observed == nil || now.Observed == nil || old.Observed.InstallID != now.Observed.InstallID {
		return
	}
	if now.Observed.Sequence < old.Observed.Sequence {
		g.violate("sequence: what is observed of %s goes back from report %d to %d", now.Metadata.Name, old.Observed.Sequence, now.Observed.Sequence)
	}
}

// byNewReport holds that what only a report can say was said by one that is
// newer than the one that something was decided from before.
func (g *ghost) byNewReport(old, now *recorded, a attempt, what string) {
	if old == nil || old.Observed == nil || now.Observed == nil || old.Observed.InstallID != now.Observed.InstallID {
		return
	}
	if now.Observed.Sequence <= old.Observed.Sequence && now.Verdict.Code != "Duplicate" {
		g.violate("sequence: attempt %d of %s is %s by report %d, and the one decided from before is %d",
			a.Attempt, now.Metadata.Name, what, now.Observed.Sequence, old.Observed.Sequence)
	}
}

// lost judges the silence after which a device was given up.
func (g *ghost) lost(by *daemon, now *recorded, a attempt) {
	id := now.Metadata.Name
	what := fmt.Sprintf("attempt %d of %s is given up as lost", a.Attempt, id)
	switch {
	case a.Message == "another installation reports":
	case a.OnTargetAt != nil:
		g.patient(by, id, *a.OnTargetAt, *a.EndedAt, settleTime+silence, what)
	case a.StartedAt != nil:
		g.patient(by, id, *a.StartedAt, *a.EndedAt, updateTimeout, what)
	default:
		g.violate("%s, and it had not started", what)
	}
}

// patient holds that a daemon lets a time limit pass only by what it has
// listened to: its unbroken series of passes lasts for so long, or it heard
// the device after that time.
func (g *ghost) patient(by *daemon, id string, from, at time.Time, limit time.Duration, what string) {
	if by == nil || g.w.plans != nil { // whose clocks jump
		return
	}
	if at.Before(from.Add(limit)) {
		g.violate("watching: %s after %s", what, at.Sub(from))
	}
	watched := from
	if by.series.After(watched) {
		watched = by.series
	}
	heard, known := by.heard(id)
	if at.Before(watched.Add(limit)) && known && heard.Before(from.Add(limit)) {
		g.violate("watching: %s after %s by %s, which has listened without a break only since %s and heard of it last at %s",
			what, at.Sub(from), by.name, by.series.Format(time.TimeOnly), heard.Format(time.TimeOnly))
	}
}

// atRest says whether the fleet has come to where it should be (I4); why says
// what is missing.
func (g *ghost) atRest() (why string) {
	w := g.w
	for i, dev := range w.devices {
		s, a := g.status[dev.id], g.assigned[dev.id]
		if d := g.devices[dev.id]; d != nil && d.acting != 0 {
			return dev.id + " is still acting"
		}
		delivered := w.repo.Ref(w.deliveryRefs + dev.id)
		if w.places[i].gone {
			if p := g.places[dev.id]; strings.HasPrefix(p, devicesDir) {
				return dev.id + " left the fleet, and is still in it"
			}
			if delivered != "" {
				return dev.id + " left the fleet, and its delivery is still there"
			}
			continue
		}
		if g.places[dev.id] != w.places[i].path(i) {
			return dev.id + " is not on the status branch, where it belongs"
		}
		for _, at := range s.Attempts {
			if at.Outcome == "" {
				return fmt.Sprintf("attempt %d of %s is open", at.Attempt, dev.id)
			}
		}
		here, there := g.blobs[assignedDir+strings.TrimPrefix(g.places[dev.id], devicesDir)], w.repo.Files(delivered)[assignmentFile]
		if here != there {
			return "the delivery of " + dev.id + " is not what the status branch says"
		}
		switch s.Verdict.Code {
		case "Current":
			if d := g.devices[dev.id]; d != nil && d.observing {
				return dev.id + " is said to be current, and only observes"
			}
			if s.Observed == nil || s.Observed.Version != w.targetOf(dev.id) {
				return dev.id + " is said to be current, and is not on the target"
			}
			if s.Observed.Phase == schema.PhaseError {
				return dev.id + " runs what is wanted of it, and is in Error"
			}
			if n := len(s.Attempts); n > 0 && s.Attempts[n-1].Outcome == schema.OutcomeOK && (a == nil || a.Spec == nil || a.Attempt != s.Attempts[n-1].Attempt) {
				return "what " + dev.id + " runs is not what its document says"
			}
		case "Failed", "Halted", "Held":
			if w.plans != nil {
				return fmt.Sprintf("%s is %s: %s", dev.id, s.Verdict.Code, s.Verdict.Reason)
			}
		case "Excluded":
			if w.places[i].role != spare {
				return dev.id + " belongs to no policy any more"
			}
		default:
			return fmt.Sprintf("%s is %s: %s", dev.id, s.Verdict.Code, s.Verdict.Reason)
		}
	}
	return ""
}
