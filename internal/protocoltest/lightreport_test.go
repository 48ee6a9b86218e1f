package protocoltest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// report says what stands on disk and what is done right now.
func (a *lightAgent) report() *schema.Report {
	d := &a.m.disk
	r := &schema.Report{
		TypeMeta:  schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindReport},
		Metadata:  schema.Metadata{Name: a.m.dev.id},
		InstallID: d.install, AgentVersion: "v0.1.0", ProtocolVersion: 1,
		Capabilities:      []string{"confirm", "files", "hooks", "onDevice", "onDevice.observe", "os", "os.command", "requires"},
		HeartbeatInterval: schema.Duration(heartbeat), BootID: a.m.bootID(),
		Current: d.current, Generation: d.generation, Busy: a.busy, Recalled: a.recalled, Assigned: a.problem,
	}
	if a.hold {
		r.Hold = &schema.Reason{Reason: "on the device"}
	}
	switch des := d.desired; {
	case des != nil:
		r.Desired = &schema.SpecRef{Generation: des.Generation, Attempt: des.Attempt, Version: des.Version, Digest: des.Digest}
		r.Attempt, r.Digest, r.Begun = des.Attempt, des.Digest, d.begun == des.Attempt
		r.Phase, r.Reason = a.phase, a.reason
		if d.tries > 0 && (r.Phase == "" || (r.Begun && r.Phase == schema.PhaseWaiting)) {
			r.Phase = schema.PhaseDegraded
		}
		if r.Phase == "" {
			r.Phase = schema.PhasePreparing
		}
	case a.waiting != 0:
		r.Attempt, r.Phase, r.Reason = a.waiting, schema.PhaseWaiting, a.reason
	case d.dropped > d.ended():
		r.Attempt, r.Phase = d.dropped, schema.PhaseUpdated
	case d.last.attempt != d.current.Attempt && d.again == d.last.attempt:
		r.Attempt, r.Digest, r.Begun, r.Outcome, r.Phase = d.current.Attempt, d.current.Digest, true, schema.OutcomeOK, schema.PhaseUpdated
		r.Settled, r.Recalled = a.m.w.now.Sub(d.okAt) >= a.settle, d.ended()
	case d.last.attempt != 0:
		r.Attempt, r.Digest, r.Begun, r.Outcome, r.Stage = d.last.attempt, d.last.digest, d.last.begun, d.last.outcome, d.last.stage
		if d.taken > d.last.attempt {
			r.Recalled = max(d.taken, r.Recalled)
		}
		r.Phase = schema.PhaseError
		switch d.last.outcome {
		case schema.OutcomeOK:
			r.Phase = schema.PhaseUpdated
			r.Settled = a.m.w.now.Sub(d.okAt) >= a.settle
		case schema.OutcomeObserved:
			r.Phase, r.Reason = schema.PhaseObserving, "2 things would change"
		}
	default:
		r.Phase = schema.PhaseUpdated
	}
	if d.observes != 0 && r.Phase == schema.PhaseUpdated {
		r.Phase = schema.PhaseObserving
	}
	if d.direction == back {
		if d.unknown {
			if r.Desired == nil {
				r.Phase = schema.PhaseError
			}
		} else {
			r.Phase, r.Outcome, r.Settled = schema.PhaseRollingBack, "", false
		}
	}
	return r
}

// content is what of a report is worth sending by itself.
func (a *lightAgent) content() string {
	r := a.report()
	r.Busy = false
	b, _ := json.Marshal(r) // a report always encodes
	return string(b)
}

func (a *lightAgent) tell(ctx context.Context) error {
	r, content := a.report(), a.content()
	a.m.disk.sequence++
	r.Sequence, r.ReportedAt = a.m.disk.sequence, a.m.w.now.UTC().Truncate(time.Second)
	if err := a.ctl.Report(ctx, r); err != nil {
		return err
	}
	a.sent, a.sentAt = content, a.m.w.now
	return nil
}
