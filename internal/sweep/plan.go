package sweep

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// plan takes a snapshot of every device, lets the planner decide and applies
// that to drafts. Where an attempt moved it plans once more, over the drafts:
// the verdicts that are committed are those of the status that is committed.
func (p *pass) plan(ctx context.Context) error {
	p.noticeBrake(ctx)
	if p.fleet == nil {
		p.keepStrangers()
		return nil // only the stop is written
	}
	p.decide(ctx)
	p.noticeStrangers(ctx)
	if p.encodeAll(ctx) == nil {
		return nil
	}
	// Once more, without what the devices in question say.
	p.result.Assigned, p.result.Ended, p.result.Recalled, p.started = nil, nil, nil, nil
	p.decide(ctx)
	err := p.encodeAll(ctx)
	if s, ok := p.asStop(err); ok {
		p.stopMute(s)
		return nil
	}
	return err
}

// encodeAll writes what is to be kept of every device before anything is
// published. A device of which that is not possible is no longer listened to:
// one document that nobody can read again would stop all of them.
func (p *pass) encodeAll(ctx context.Context) error {
	var first error
	for _, dr := range p.drafts {
		err := dr.encode()
		if err == nil {
			continue
		}
		if first == nil {
			first = fmt.Errorf("write what is known of %s: %w", dr.id, err)
		}
		if p.unheard == nil {
			p.unheard = map[string]string{}
		}
		p.unheard[dr.id] = oneLine("what is known of it cannot be recorded: " + err.Error())
		if d := p.d; d.news("record "+dr.id, err.Error()) {
			d.log.WarnContext(ctx, "what is known of a device cannot be recorded; it is not listened to", keyDevice, dr.id, keyError, err.Error())
		}
	}
	return first
}

// decide plans and drafts what is to be written.
func (p *pass) decide(ctx context.Context) {
	scene := p.scene()
	in := p.d.memory.input(&scene)
	p.due = time.Time{}
	gap := time.Duration(0)
	for i := range p.d.memory.entries {
		e := &p.d.memory.entries[i]
		p.due = earlier(p.due, e.until)
		if e.silence > 0 && (gap == 0 || e.silence < gap) {
			gap = e.silence
		}
		if e.isNew && e.known.member != nil {
			p.sayDuplicate(ctx, e.known.member.ID, e.facts)
		}
	}
	// The silence between two passes that would hide a device's: the shortest
	// after which one counts as offline.
	p.d.state.watch.Gap = max(gap, minOfflineAfter)

	p.final = planner.Plan(in)
	p.makeDrafts(p.final)
	if p.applyAll(ctx, p.final) {
		p.final = p.replan(in)
	}
	p.writeVerdicts()
	p.dropPickups()
}

// scene is what this pass knows.
func (p *pass) scene() Scene {
	s := Scene{
		Fleet: p.fleet.fleet, Status: p.status, Heard: p.heardOf,
		Now: p.now, OwnVersion: p.d.cfg.OwnVersion, Watching: p.watching, NoTimeouts: p.clockStops,
		Restrict: p.restrict, Delivered: p.confirmed, Pickup: p.pickups(),
	}
	if len(p.stops) > 0 {
		s.Stopped = p.stops[0].reason
	}
	return s
}

// pickups are the restarted pickup clocks. An attempt whose delivery a server
// refuses is not late: its device cannot see it.
func (p *pass) pickups() map[string]Pickup {
	all := p.d.state.watch.Pickup
	for ref := range p.d.refused {
		id := ref[len(p.d.cfg.DeviceRefs):]
		if rec := p.status.Devices[id]; rec != nil {
			p.d.restartPickup(rec, p.now)
			all = p.d.state.watch.Pickup
		}
	}
	return all
}

// makeDrafts gives a draft to every device of which the plan, or what is new,
// may change something; devices that left the fleet have one until they are
// forgotten.
func (p *pass) makeDrafts(res planner.Result) {
	entries := p.d.memory.entries
	p.drafts = make([]*draft, len(entries))
	for i := range entries {
		switch e := &entries[i]; {
		case e.known.member == nil:
			if e.stands {
				p.draft(i)
			}
		case !e.idle || res.Verdicts[i].Upgrade || res.Verdicts[i].Heard:
			p.draft(i)
		}
	}
	for _, dec := range res.Decisions {
		if i, ok := p.d.memory.find(dec.Device); ok && p.drafts[i] == nil {
			p.draft(i)
		}
	}
}

func (p *pass) draft(i int) *draft {
	dr := newDraft(&p.d.memory.entries[i], &p.d.memory.devices[i])
	if dr.member != nil {
		dr.heard, dr.onIt = p.final.Verdicts[i].Heard, p.final.Verdicts[i].Code == planner.Current
	}
	if p.rebuilt {
		dr.complete(p.fleet.fleet)
	}
	p.drafts[i] = dr
	return dr
}

// applyAll applies a plan to the drafts and says whether an attempt moved;
// nothing else can change what the same plan would say again.
// Outcomes come first: they free the slots that the upgrades take.
func (p *pass) applyAll(ctx context.Context, res planner.Result) bool {
	for _, dec := range res.Decisions {
		if i, ok := p.d.memory.find(dec.Device); ok && p.drafts[i].apply(dec, p.now) {
			p.note(p.drafts[i], dec)
		}
	}
	upgrades := func(i int) bool {
		dr := p.drafts[i]
		return dr != nil && dr.member != nil && dr.member.Rendered != nil && res.Verdicts[i].Upgrade
	}
	var upgraded []*draft
	for i, dr := range p.drafts {
		if upgrades(i) {
			upgraded = append(upgraded, dr)
		}
	}
	causes := p.causes(ctx, upgraded)
	moved := false
	for i, dr := range p.drafts {
		if dr == nil {
			continue
		}
		if upgrades(i) {
			p.assign(dr, &res.Verdicts[i], causes[dr.id])
		}
		dr.conclude(p.now)
		moved = moved || dr.moved
	}
	return moved
}

// replan plans once more, with the attempts as they are in the drafts.
func (p *pass) replan(in planner.Input) planner.Result {
	before := map[int]planner.Device{}
	for i, dr := range p.drafts {
		if dr == nil || !dr.moved && !dr.force {
			continue
		}
		k := dr.entry.known
		k.record = &Record{ID: dr.id, Path: dr.path, Status: dr.status, Assignment: dr.doc}
		k.delivered = false // nothing of what is new is
		before[i] = in.Devices[i]
		in.Devices[i], _ = k.lookBy(dr.facts, p.d.memory.clock)
	}
	res := planner.Plan(in)
	for i, d := range before {
		in.Devices[i] = d
	}
	return res
}

// assign gives a device its next attempt.
func (p *pass) assign(dr *draft, v *planner.Verdict, because *schema.Because) {
	m := dr.member
	var settle *schema.Duration
	if policy := p.fleet.fleet.Policy(m.Policy); policy != nil && policy.Spec.Settle.D(0) > 0 {
		settle = policy.Spec.Settle
	}
	dr.assign(v.Device.InstallID, releaseOf(p.fleet.fleet, m), settle, because, p.now)
	move := dr.move(lastAttempt(dr.status))
	move.Because = v.Reason
	p.result.Assigned = append(p.result.Assigned, move)
}

// note puts a decision into the result.
func (p *pass) note(dr *draft, dec planner.Decision) {
	move := dr.move(dr.attempt(dec.Attempt))
	move.Because = dec.Because
	switch {
	case dec.Started:
		p.started = append(p.started, move)
	case dec.End != "":
		p.result.Ended = append(p.result.Ended, move)
	case dec.Recall != "":
		move.Outcome = schema.Outcome(dec.Recall)
		p.result.Recalled = append(p.result.Recalled, move)
	}
}

// writeVerdicts puts the final verdicts into the drafts, in the words that
// are committed. A device that had no draft gets one for a new verdict.
func (p *pass) writeVerdicts() {
	for i, dr := range p.drafts {
		e := &p.d.memory.entries[i]
		if e.known.member == nil {
			if dr != nil {
				dr.status.Verdict = schema.Verdict{Code: codeRemoved, Reason: reasonRemoved}
			}
			continue
		}
		v := verdictForGit(&p.final.Verdicts[i])
		if dr == nil {
			if e.known.record.Status.Verdict == v {
				continue
			}
			dr = p.draft(i)
			dr.conclude(p.now)
		}
		dr.status.Verdict = v
	}
	p.drafts = slices.DeleteFunc(p.drafts, func(dr *draft) bool { return dr == nil })
}

// verdictForGit is a final verdict in the words that are committed.
func verdictForGit(v *planner.Verdict) schema.Verdict {
	code, reason := v.Code.ForGit(), v.Reason
	if v.Code == planner.Upgrade {
		// The replanning found room that the plan did not; it goes in the
		// next pass.
		code, reason = planner.Queued, "waits for its turn to go to "+v.Target.Version
	}
	return schema.Verdict{Code: string(code), Target: v.Target.Version, Reason: reason}
}

// dropPickups forgets the restarted clocks of attempts that are no longer
// waiting.
func (p *pass) dropPickups() {
	pickup := p.d.state.watch.Pickup
	for id, s := range pickup {
		rec := p.status.Devices[id]
		if rec == nil {
			delete(pickup, id)
			continue
		}
		if a := lastAttempt(rec.Status); a == nil || a.Attempt != s.Attempt || a.Outcome != "" || a.StartedAt != nil {
			delete(pickup, id)
		}
	}
}
