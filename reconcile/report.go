package reconcile

import (
	"fmt"
	"slices"

	"github.com/gitopsd/gitopsd/reconcile/internal/checks"
	"github.com/gitopsd/gitopsd/schema"
)

// maxDrift bounds the paths in a report; the rest is as wrong.
const maxDrift = 100

// report says what stands on disk and what the agent does right now.
func (a *Agent) report() *schema.Report {
	st := &a.store.attempts
	cur := a.store.current.ref()
	r := &schema.Report{
		TypeMeta:          schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindReport},
		Metadata:          schema.Metadata{Name: a.cfg.Device},
		InstallID:         a.store.seq.id(),
		AgentVersion:      a.cfg.AgentVersion,
		ProtocolVersion:   ProtocolVersion,
		Capabilities:      a.capabilities(),
		HeartbeatInterval: schema.Duration(a.cfg.Heartbeat),
		BootID:            a.bootID,
		Current:           cur,
		Generation:        st.Generation,
		Busy:              a.live.busy != "",
		BusyReason:        a.live.busy,
		Hold:              a.live.hold,
		Drift:             slices.Clone(a.drift[:min(len(a.drift), maxDrift)]),
		DriftReason:       a.driftReason,
		Applications:      reported(a.applications),
		Units:             slices.Clone(a.unitStates),
		Monitors:          slices.Clone(a.monitors.states),
		Warnings:          a.warnings(),
		Recalled:          a.doc.recalled,
		Assigned:          a.doc.problem,
	}
	last := st.last()
	switch d := a.store.desired; {
	case d != nil:
		w := st.of(d.Attempt)
		ref := d.ref()
		r.Desired = &ref
		r.Attempt, r.Digest, r.Begun, r.Failures = d.Attempt, d.Digest, w.Begun, slices.Clone(w.Failures)
		r.Phase, r.Stage, r.Reason = a.live.phase, a.live.stage, a.live.reason
		if w.Tries > 0 && (r.Phase == "" || (w.Begun && r.Phase == schema.PhaseWaiting)) {
			r.Phase, r.Reason = schema.PhaseDegraded, degradedReason(w)
		}
		if r.Phase == "" {
			r.Phase = schema.PhasePreparing
		}
	case a.live.attempt != 0:
		r.Attempt, r.Phase, r.Reason = a.live.attempt, schema.PhaseWaiting, a.live.reason
	case st.Dropped != 0 && (last == nil || st.Dropped > last.Attempt):
		r.Attempt, r.Phase = st.Dropped, schema.PhaseUpdated
		r.Reason = fmt.Sprintf("attempt %d was recalled before it changed anything", st.Dropped)
	case last != nil:
		r.Attempt, r.Digest, r.Begun, r.Outcome = last.Attempt, last.Digest, last.Begun, last.Outcome
		r.Stage, r.Reason, r.Failures = last.Stage, last.Reason, slices.Clone(last.Failures)
		r.Phase = schema.PhaseError
		if n := st.highest(); n > last.Attempt {
			r.Recalled = max(n, r.Recalled) // whoever numbers attempts anew has to be above it
		}
		switch last.Outcome {
		case schema.OutcomeOK:
			r.Phase = schema.PhaseUpdated
			r.Settled = a.settled()
		case schema.OutcomeObserved:
			r.Phase = schema.PhaseObserving
		}
	default:
		r.Phase = schema.PhaseUpdated
	}
	if st.Observes != 0 {
		r.WouldChange = a.wouldChange
		if r.Phase == schema.PhaseUpdated {
			r.Phase = schema.PhaseObserving
		}
	}
	if st.Direction == back {
		a.reportRollback(r)
	}
	if r.Phase == schema.PhaseUpdated && r.Reason == "" && a.store.current.Unknown {
		r.Reason = "the record of what this device runs was lost; a new assignment is awaited"
	}
	a.discreetly(r)
	return r
}

// maxWarnings bounds those in a report; the log has the rest.
const maxWarnings = 10

func (a *Agent) warnings() []string {
	if a.cfg.Warnings == nil {
		return nil
	}
	list := a.cfg.Warnings()
	var short []string
	for _, w := range list[:min(len(list), maxWarnings)] {
		short = append(short, oneLine(w))
	}
	return short
}

// reportRollback: a device on its way back still changes itself, so how the
// attempt ended is told only after it, or when the way back is blocked.
func (a *Agent) reportRollback(r *schema.Report) {
	if why := a.store.attempts.Incomplete; why != "" {
		if r.Desired == nil || r.Phase == schema.PhaseDegraded {
			r.Phase, r.Stage, r.Reason = schema.PhaseError, string(StageRollback), "rollback incomplete: "+why
		}
		return
	}
	r.Phase, r.Stage, r.Outcome, r.Settled = schema.PhaseRollingBack, string(StageRollback), "", false
	if a.live.stage == string(StageReboot) {
		r.Stage = string(StageReboot)
	}
}

func degradedReason(w work) string {
	if len(w.Failures) == 0 {
		return "a retry is due"
	}
	return "a retry is due after " + oneLine(w.Failures[len(w.Failures)-1].Message)
}

func (a *Agent) freeDisk() int64 { return checks.Free(a.root.Dir()) }

// step is a phase of one try of an attempt.
type step struct {
	attempt int64
	tries   int
	phase   schema.Phase
	stage   Stage
}

// enter says what the agent begins to do.
func (a *Agent) enter(p schema.Phase, s Stage) {
	if a.live.phase == p && a.live.stage == string(s) {
		return
	}
	a.live.phase, a.live.stage, a.live.reason = p, string(s), ""
	w := a.store.attempts.Work
	// what is come to again at each poll, and no further, is told once
	if now := (step{w.Attempt, w.Tries, p, s}); now != a.told {
		a.told = now
		a.log.Info("phase", "phase", p, "stage", s)
	}
	a.changed()
}

// rest says that nothing is being done now.
func (a *Agent) rest() {
	a.live.phase, a.live.stage, a.live.reason, a.live.attempt = "", "", "", 0
}

func (a *Agent) changed() {
	r := a.report()
	a.reports.offer(r)
	a.show(r)
}
