package sweep

import (
	"context"
	"fmt"
	"reflect"
	"strings"
)

// publish writes what changed: one commit on the status branch by
// compare-and-swap, then the delivery refs. Nothing changed: no commit.
func (p *pass) publish(ctx context.Context) error {
	b := newBuilder(p.d.cfg.Remote, p.status)
	p.result.StatusCommit = p.tip
	err := p.build(ctx, b)
	var deliveries map[string][2]string
	if err == nil {
		deliveries, err = p.deliveries(ctx, b)
	}
	if s, ok := p.asStop(err); ok {
		p.stopMute(s) // nothing is written that could not be read again
		return nil
	}
	if err != nil {
		return err
	}
	if len(b.changes) == 0 && len(deliveries) == 0 {
		b.apply(p.status.Commit)
		return nil
	}
	lead, tip := map[string][2]string{}, p.status.Commit
	if len(b.changes) > 0 {
		commit, err := p.d.cfg.Remote.Commit(ctx, p.status.Commit, b.changes, p.now, p.message(b))
		if err != nil {
			return fmt.Errorf("build the status commit: %w", err)
		}
		tip = commit
		lead[branchRef(p.d.cfg.StatusBranch)] = [2]string{p.tip, commit}
	}
	p.wrote = true
	refused, err := p.d.cfg.Remote.Publish(ctx, lead, deliveries)
	if err != nil {
		if kindOf(err) != kindRace {
			p.d.uncertain()
		}
		return fmt.Errorf("push the status branch %s: %w", p.d.cfg.StatusBranch, err)
	}
	b.apply(tip)
	p.published(ctx, deliveries, refused)
	return nil
}

// build puts every changed document into the builder.
func (p *pass) build(ctx context.Context, b *builder) error {
	if p.fleet != nil {
		for _, dr := range p.drafts {
			if err := p.buildDevice(ctx, b, dr); err != nil {
				return err
			}
		}
		if p.rebuilt {
			b.dropStrangers()
		}
		if err := p.buildPayloads(ctx, b); err != nil {
			return err
		}
		if err := p.buildMarks(ctx, b); err != nil {
			return err
		}
	}
	if fleet := p.fleetStatus(); !sameFleet(fleet, p.status.Fleet) {
		if err := b.put(ctx, fleetFile, fleet); err != nil {
			return err
		}
		b.fleet = fleet
	}
	return nil
}

// buildDevice writes one device's documents where they changed or moved.
func (p *pass) buildDevice(ctx context.Context, b *builder, dr *draft) error {
	if dr.old != nil && dr.old.Path != dr.path {
		b.drop(dr.old.Path)
		if !strings.HasPrefix(dr.old.Path, retiredDir) {
			b.drop(assignedPath(dr.old.Path))
		}
	}
	if dr.member != nil && p.status.Retired[dr.id] != nil {
		b.retired[dr.id] = nil
	}
	if dr.retire {
		return p.buildRetired(ctx, b, dr)
	}
	if dr.isIdle() {
		dr.entry.idle = true
		return nil
	}
	changed := dr.statusChanged()
	rec := &Record{ID: dr.id, Path: dr.path, Status: dr.status, Assignment: dr.doc, kept: dr.kept}
	if changed {
		if err := b.keep(ctx, dr.path, dr.statusText); err != nil {
			return err
		}
	} else {
		rec.Status = dr.old.Status
	}
	switch {
	case dr.doc == nil:
	case dr.newDoc():
		if err := b.keep(ctx, assignedPath(dr.path), dr.docText); err != nil {
			return err
		}
		rec.payloads = payloadsOf(dr.doc.Spec)
	default:
		rec.payloads, rec.delivery = dr.old.payloads, dr.old.delivery
	}
	b.devices[dr.id] = rec
	return nil
}

// newDoc says whether a document is to be written, be it only at another path.
func (d *draft) newDoc() bool {
	return d.doc != nil && (d.docChanged() || d.old == nil || d.old.Path != d.path)
}

// encode writes a draft's documents, so that it is known whether they can be read again.
func (d *draft) encode() (err error) {
	if d.retire {
		return nil
	}
	if d.statusChanged() {
		if d.statusText, err = encode(d.path, d.status); err != nil {
			return err
		}
	}
	if d.newDoc() {
		d.docText, err = encode(assignedPath(d.path), d.doc)
	}
	return err
}

// buildRetired leaves of a removed device what its return would need.
func (p *pass) buildRetired(ctx context.Context, b *builder, dr *draft) error {
	b.devices[dr.id] = nil
	b.drop(dr.path)
	b.drop(assignedPath(dr.path))
	if dr.status.Assignment == nil && len(dr.status.Attempts) == 0 {
		return nil
	}
	st := *dr.status
	st.Observed = nil
	rec := &Record{ID: dr.id, Path: retiredPath(dr.id), Status: &st}
	b.retired[dr.id] = rec
	return b.put(ctx, rec.Path, rec.Status)
}

// buildPayloads keeps exactly the payloads that assignments name, and those
// that a recalled attempt may bring back.
func (p *pass) buildPayloads(ctx context.Context, b *builder) error {
	counted := p.status.counted()
	more := map[string]int{} // records that need it, of a payload
	for id, rec := range b.devices {
		for _, digest := range p.status.Devices[id].needs() {
			more[digest]--
		}
		for _, digest := range rec.needs() {
			more[digest]++
		}
		if err := p.putPayloads(ctx, b, rec); err != nil {
			return err
		}
	}
	for digest, n := range more {
		if counted.payloads[digest]+n == 0 {
			b.drop(payloadPath(digest))
		}
	}
	if counted.tidy {
		return nil
	}
	// Somebody else wrote the branch: he may have left some, or lost some.
	needed := map[string]bool{}
	for rec := range b.records() {
		for _, digest := range rec.needs() {
			needed[payloadPath(digest)] = true
		}
		if err := p.putPayloads(ctx, b, rec); err != nil {
			return err
		}
	}
	for path := range p.status.blobs {
		if strings.HasPrefix(path, payloadsDir) && !needed[path] {
			b.drop(path)
		}
	}
	b.tidy = true
	return nil
}

// putPayloads adds the payloads of a record that are not there yet: the very
// blobs of the source branch, or what a template made.
func (p *pass) putPayloads(ctx context.Context, b *builder, rec *Record) error {
	if rec == nil {
		return nil
	}
	for _, digest := range rec.payloads {
		at := payloadPath(digest)
		if b.base.blobs[at] != "" || b.changes[at] != "" {
			continue
		}
		m := p.fleet.fleet.Member(rec.ID)
		if m == nil || m.Rendered == nil {
			return fmt.Errorf("the payload %s of %s is not known any more", digest, rec.ID)
		}
		payload, ok := m.Rendered.Payloads[digest]
		switch {
		case !ok:
			return fmt.Errorf("the payload %s of %s is not known any more", digest, rec.ID)
		case payload.ID != "":
			b.link(at, payload.ID)
		default:
			if err := b.keep(ctx, at, payload.Data); err != nil {
				return err
			}
		}
	}
	return nil
}

// buildMarks writes the failure marks that changed and drops the empty ones.
func (p *pass) buildMarks(ctx context.Context, b *builder) error {
	b.marks = p.failureMarks()
	for at, m := range b.marks {
		if old := p.status.marks[at]; reflect.DeepEqual(old, m) {
			continue
		}
		if err := b.put(ctx, at, m); err != nil {
			return err
		}
	}
	for path := range p.status.marks {
		if b.marks[path] == nil {
			b.drop(path)
		}
	}
	return nil
}

// deliveries are the refs to move: device ref → value that is known, and the
// commit of the new document.
func (p *pass) deliveries(ctx context.Context, b *builder) (map[string][2]string, error) {
	moves := map[string][2]string{}
	for _, dr := range p.drafts {
		ref := p.d.cfg.DeviceRefs + dr.id
		if dr.retire {
			if known := p.d.delivered[dr.id]; known != "" && p.sawItsLast(dr.id) {
				moves[ref] = [2]string{known, ""}
			}
			continue
		}
		rec := b.devices[dr.id]
		if rec == nil || rec.Assignment == nil || rec.delivery != "" || !dr.docChanged() {
			continue
		}
		commit, err := p.deliver(ctx, rec.payloads, assignedPath(rec.Path), b.blob)
		if err != nil {
			return nil, err
		}
		rec.delivery = commit
		if known := p.d.delivered[dr.id]; known != commit {
			moves[ref] = [2]string{known, commit}
		}
	}
	return moves, nil
}

// published takes over what was pushed.
func (p *pass) published(ctx context.Context, deliveries map[string][2]string, refused map[string]string) {
	d := p.d
	d.status = p.status
	p.result.StatusCommit = p.status.Commit
	p.result.Committed = p.status.Commit != p.tip
	p.result.Refused = refused
	for ref, move := range deliveries {
		id := strings.TrimPrefix(ref, d.cfg.DeviceRefs)
		if why, no := refused[ref]; no {
			// Somebody else may have written it; the next repair looks.
			d.unsure[id] = true
			d.log.DebugContext(ctx, "a delivery was not taken", keyRef, ref, keyReason, why)
			continue
		}
		d.delivered[id] = move[1]
		delete(d.unsure, id)
		delete(d.refused, ref)
	}
	p.logChanges(ctx)
}

// logChanges says what this pass decided, one line each.
func (p *pass) logChanges(ctx context.Context) {
	log := p.d.log
	for _, m := range p.result.Assigned {
		log.InfoContext(ctx, "assigned", keyDevice, m.Device, keyVersion, m.Version, keyAttempt, m.Attempt, keyReason, m.Because)
	}
	for _, m := range p.result.Recalled {
		log.InfoContext(ctx, "recalled", keyDevice, m.Device, keyVersion, m.Version, keyAttempt, m.Attempt, keyReason, m.Because)
	}
	for _, m := range p.result.Ended {
		log.InfoContext(ctx, "ended", keyDevice, m.Device, keyVersion, m.Version, keyAttempt, m.Attempt, keyOutcome, string(m.Outcome), keyReason, m.Because)
	}
	for _, dr := range p.drafts {
		if v := dr.status.Verdict; dr.old == nil || dr.old.Status.Verdict.Code != v.Code {
			log.InfoContext(ctx, "verdict", keyDevice, dr.id, keyCode, v.Code, keyReason, v.Reason, keyCommit, short(p.result.SourceCommit))
		}
	}
}
