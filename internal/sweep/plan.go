package sweep

import (
	"context"
	"fmt"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// plan takes a snapshot of every device, lets the planner decide and applies
// that to drafts. Where an attempt moved it plans once more, over the drafts:
// the verdicts that are committed are those of the status that is committed.
func (p *pass) plan(ctx context.Context) error {
	if p.fleet == nil {
		p.keepStrangers()
		return nil // only the stop is written
	}
	p.noticeStrangers(ctx)
	p.decide(ctx)
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
	scene := p.scene(ctx)
	in := PlannerInput(scene)
	first := planner.Plan(in)
	p.makeDrafts(in)
	p.final = first
	if p.applyAll(scene, first) {
		after := scene
		after.Status = p.drafted()
		after.Delivered = nil // nothing of what is new is delivered yet
		p.final = planner.Plan(PlannerInput(after))
	}
	p.writeVerdicts()
	p.keepGap(in)
	p.dropPickups()
}

// scene is what this pass knows.
func (p *pass) scene(ctx context.Context) Scene {
	s := Scene{
		Fleet: p.fleet.fleet, Status: p.status, Facts: p.facts,
		Now: p.now, OwnVersion: p.d.cfg.OwnVersion, Watching: p.watching, NoTimeouts: p.clockStops,
		Restrict: p.restrict, Delivered: p.confirmed, Pickup: p.pickups(), due: &p.due,
	}
	if len(p.stops) > 0 {
		s.Stopped = p.stops[0].reason
	}
	p.facts = make(map[string]Facts, len(p.fleet.fleet.Devices))
	s.Facts = p.facts
	for _, m := range p.fleet.fleet.Devices {
		f := p.factsOf(m.ID)
		p.facts[m.ID] = f
		p.sayDuplicate(ctx, m.ID, f)
	}
	for id := range p.status.Devices {
		if _, ok := p.facts[id]; !ok {
			p.facts[id] = p.factsOf(id)
		}
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

// makeDrafts gives every device of the fleet a draft, and every one that left
// it and is still on the status branch. Those of the fleet come first and in
// its order, as they do in plans.
func (p *pass) makeDrafts(in planner.Input) {
	members := p.fleet.fleet.Devices
	store := make([]draft, len(members))
	statuses := make([]schema.DeviceStatus, len(members))
	p.drafts = make([]*draft, len(members), len(in.Devices))
	for i, m := range members {
		p.drafts[i] = &store[i]
		store[i].status = &statuses[i]
		store[i].begin(m, p.status.record(m.ID), p.facts[m.ID])
		store[i].known = &in.Devices[i]
	}
	for i := range in.Devices {
		if d := &in.Devices[i]; d.Removed {
			if rec := p.status.Devices[d.ID]; rec != nil {
				dr := &draft{status: &schema.DeviceStatus{}, known: d}
				dr.begin(nil, rec, p.facts[d.ID])
				p.drafts = append(p.drafts, dr)
			}
		}
	}
	if p.rebuilt {
		for _, dr := range p.drafts {
			dr.complete(p.fleet.fleet)
		}
	}
}

// applyAll applies a plan to the drafts and says whether an attempt moved;
// nothing else can change what the same plan would say again.
// Outcomes come first: they free the slots that the upgrades take.
func (p *pass) applyAll(scene Scene, res planner.Result) bool {
	if len(res.Decisions) > 0 {
		byID := make(map[string]*draft, len(p.drafts))
		for _, dr := range p.drafts {
			byID[dr.id] = dr
		}
		for _, dec := range res.Decisions {
			if dr := byID[dec.Device]; dr != nil && dr.apply(dec, dr.known.Said, p.now) {
				p.note(dr, dec)
			}
		}
	}
	for i := range res.Verdicts {
		v := &res.Verdicts[i]
		if dr := p.drafts[i]; v.Upgrade && dr.member.Rendered != nil {
			p.assign(dr, v)
		}
	}
	moved := false
	for _, dr := range p.drafts {
		known := dr.known
		if dr.member != nil {
			dr.hold(scene.holdOf(dr.member))
			dr.stay()
			dr.status.Policy = dr.member.Policy
		} else {
			dr.remove(p.now)
			dr.retire = dr.gone(known.Online)
		}
		dr.observe(known.Online, known.OfflineSince, p.now)
		dr.finish()
		moved = moved || dr.moved
	}
	return moved
}

// assign gives a device its next attempt.
func (p *pass) assign(dr *draft, v *planner.Verdict) {
	m := dr.member
	var settle *schema.Duration
	if policy := p.fleet.fleet.Policy(m.Policy); policy != nil && policy.Spec.Settle.D(0) > 0 {
		settle = policy.Spec.Settle
	}
	dr.assign(v.Device.InstallID, releaseOf(p.fleet.fleet, m), settle, p.becauseOf(m), p.now)
	move := dr.move(lastAttempt(dr.status))
	move.Because = v.Reason
	p.result.Assigned = append(p.result.Assigned, move)
}

// becauseOf is the change that led to a rollout: the commit that was swept
// when its first device was assigned it.
func (p *pass) becauseOf(m *schema.Member) *schema.Because {
	key := m.Policy + "\x00" + m.Version + "\x00" + m.Rollout
	if b := p.d.because[key]; b != nil {
		return b
	}
	var found *schema.Because
	for _, rec := range p.status.Devices {
		a := lastAttempt(rec.Status)
		if doc := rec.Assignment; doc != nil && doc.Because != nil && a != nil && a.Attempt == doc.Attempt &&
			a.Policy == m.Policy && a.Version == m.Version && a.Rollout == m.Rollout &&
			(found == nil || doc.Because.Commit < found.Commit) {
			found = doc.Because
		}
	}
	if found == nil {
		found = &schema.Because{Commit: p.fleet.commit, Subject: p.fleet.subject, Author: p.fleet.author, Policy: m.Policy}
	}
	p.d.because[key] = found
	return found
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

// drafted is the status as the drafts have it, for planning only.
func (p *pass) drafted() *Status {
	s := newStatus()
	s.Retired = p.status.Retired
	for _, dr := range p.drafts {
		s.Devices[dr.id] = &Record{ID: dr.id, Path: dr.path, Status: dr.status, Assignment: dr.doc}
	}
	return s
}

// writeVerdicts puts the final verdicts into the drafts, in the words that
// are committed.
func (p *pass) writeVerdicts() {
	for i, dr := range p.drafts {
		if dr.member == nil {
			dr.status.Verdict = schema.Verdict{Code: codeRemoved, Reason: reasonRemoved}
			continue
		}
		v := &p.final.Verdicts[i]
		code := v.Code.ForGit()
		reason := v.Reason
		if v.Code == planner.Upgrade {
			// The replanning found room that the plan did not; it goes in the
			// next pass.
			code, reason = planner.Queued, "waits for its turn to go to "+v.Target.Version
		}
		dr.status.Verdict = schema.Verdict{Code: string(code), Target: v.Target.Version, Reason: reason}
	}
}

// keepGap remembers the silence between two passes that would hide a
// device's: the shortest after which one counts as offline.
func (p *pass) keepGap(in planner.Input) {
	gap := time.Duration(0)
	configured := map[string]time.Duration{}
	for i := range in.Policies {
		configured[in.Policies[i].Name] = in.Policies[i].OfflineAfter
	}
	for i := range in.Devices {
		d := &in.Devices[i]
		if !d.Seen {
			continue
		}
		if limit := offlineLimit(p.facts[d.ID].Report, configured[d.Policy]); gap == 0 || limit < gap {
			gap = limit
		}
	}
	p.d.state.watch.Gap = max(gap, minOfflineAfter)
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
