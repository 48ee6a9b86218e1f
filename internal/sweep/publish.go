package sweep

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// publish writes what changed: one commit on the status branch by
// compare-and-swap, then the delivery refs. Nothing changed: no commit.
func (p *pass) publish(ctx context.Context) error {
	b := &builder{remote: p.d.cfg.Remote, base: p.status.blobs, changes: map[string]string{}}
	p.result.StatusCommit = p.tip
	next, err := p.build(ctx, b)
	var deliveries map[string][2]string
	if err == nil {
		deliveries, err = p.deliveries(ctx, b, next)
	}
	if s, ok := p.asStop(err); ok {
		p.stopMute(s) // nothing is written that could not be read again
		return nil
	}
	if err != nil {
		return err
	}
	if len(b.changes) == 0 && len(deliveries) == 0 {
		return nil
	}
	lead := map[string][2]string{}
	if len(b.changes) > 0 {
		commit, err := p.d.cfg.Remote.Commit(ctx, p.status.Commit, b.changes, p.now, p.message(next, b.changes))
		if err != nil {
			return fmt.Errorf("build the status commit: %w", err)
		}
		next.Commit = commit
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
	p.published(ctx, next, deliveries, refused)
	return nil
}

// builder gathers the changes of one commit.
type builder struct {
	remote  Remote
	base    map[string]string // path → blob before
	changes map[string]string // path → blob after, "" = dropped
}

// put writes a document; one that encodes to what already stands is no change.
func (b *builder) put(ctx context.Context, path string, doc any) error {
	data, err := encode(path, doc)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return b.keep(ctx, path, data)
}

// encode writes a document that can be read again, or none.
func encode(path string, doc any) ([]byte, error) {
	if why := badNumber(saneNumber, doc); why != "" {
		return nil, &unreadable{path: path, why: why}
	}
	return schema.Encode(doc)
}

// keep adds a file.
func (b *builder) keep(ctx context.Context, path string, data []byte) error {
	blob, err := b.remote.PutBlob(ctx, data)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	b.link(path, blob)
	return nil
}

func (b *builder) link(path, blob string) {
	if b.base[path] == blob {
		delete(b.changes, path)
		return
	}
	b.changes[path] = blob
}

func (b *builder) drop(path string) {
	if b.base[path] != "" {
		b.changes[path] = ""
	} else {
		delete(b.changes, path)
	}
}

// dropStrangers drops documents of devices that a rebuilt status does not
// have: nobody could read them, or they stand in another place now.
func (b *builder) dropStrangers(next *Status) {
	keep := map[string]bool{}
	for _, rec := range next.Devices {
		keep[rec.Path] = true
		if rec.Assignment != nil {
			keep[assignedPath(rec.Path)] = true
		}
	}
	for path := range b.base {
		if (strings.HasPrefix(path, devicesDir) || strings.HasPrefix(path, assignedDir)) && !keep[path] {
			b.drop(path)
		}
	}
}

// after is the whole tree once the changes are made.
func (b *builder) after() map[string]string {
	if len(b.changes) == 0 {
		return b.base
	}
	blobs := maps.Clone(b.base)
	for path, blob := range b.changes {
		if blob == "" {
			delete(blobs, path)
		} else {
			blobs[path] = blob
		}
	}
	return blobs
}

// build puts every changed document into the builder and gives the status as
// it will be.
func (p *pass) build(ctx context.Context, b *builder) (*Status, error) {
	next := newStatus()
	next.Commit = p.status.Commit
	next.marks = p.status.marks
	if p.fleet == nil {
		next.Devices, next.Retired = p.status.Devices, p.status.Retired
	} else {
		next.Devices = make(map[string]*Record, len(p.drafts))
		maps.Copy(next.Retired, p.status.Retired)
		for _, dr := range p.drafts {
			if err := p.buildDevice(ctx, b, next, dr); err != nil {
				return nil, err
			}
		}
		if p.rebuilt {
			b.dropStrangers(next)
		}
		if err := p.buildPayloads(ctx, b, next); err != nil {
			return nil, err
		}
		if err := p.buildMarks(ctx, b, next); err != nil {
			return nil, err
		}
	}
	next.Fleet = p.status.Fleet
	if fleet := p.fleetStatus(); !sameFleet(fleet, p.status.Fleet) {
		if err := b.put(ctx, fleetFile, fleet); err != nil {
			return nil, err
		}
		next.Fleet = fleet
	}
	next.blobs = b.after()
	next.sortMarks()
	return next, nil
}

// buildDevice writes one device's documents where they changed or moved.
func (p *pass) buildDevice(ctx context.Context, b *builder, next *Status, dr *draft) error {
	if dr.old != nil && dr.old.Path != dr.path {
		b.drop(dr.old.Path)
		if !strings.HasPrefix(dr.old.Path, retiredDir) {
			b.drop(assignedPath(dr.old.Path))
		}
	}
	if dr.member != nil {
		delete(next.Retired, dr.id)
	}
	if dr.retire {
		return p.buildRetired(ctx, b, next, dr)
	}
	changed := dr.statusChanged()
	if old := dr.old; !changed && old.Assignment == dr.doc && old.kept == dr.kept {
		next.Devices[dr.id] = old // statusChanged: it has the same path
		return nil
	}
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
	next.Devices[dr.id] = rec
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
func (p *pass) buildRetired(ctx context.Context, b *builder, next *Status, dr *draft) error {
	b.drop(dr.path)
	b.drop(assignedPath(dr.path))
	if dr.status.Assignment == nil && len(dr.status.Attempts) == 0 {
		return nil
	}
	st := *dr.status
	st.Observed = nil
	rec := &Record{ID: dr.id, Path: retiredPath(dr.id), Status: &st}
	next.Retired[dr.id] = rec
	return b.put(ctx, rec.Path, rec.Status)
}

// buildPayloads keeps exactly the payloads that assignments name, and those
// that a recalled attempt may bring back.
func (p *pass) buildPayloads(ctx context.Context, b *builder, next *Status) error {
	needed := map[string]bool{}
	for _, dr := range p.drafts {
		rec := next.Devices[dr.id]
		if rec == nil {
			continue
		}
		for _, digest := range rec.payloads {
			at := payloadPath(digest)
			if needed[at] {
				continue
			}
			needed[at] = true
			if err := p.putPayload(ctx, b, at, digest, dr); err != nil {
				return err
			}
		}
	}
	for _, dr := range p.drafts {
		if dr.kept == nil || next.Devices[dr.id] == nil {
			continue
		}
		for _, digest := range payloadsOf(dr.kept.Spec) {
			needed[payloadPath(digest)] = true
		}
	}
	for path := range b.base {
		if strings.HasPrefix(path, payloadsDir) && !needed[path] {
			b.drop(path)
		}
	}
	return nil
}

// putPayload adds a payload that is not there yet: the very blob of the
// source branch, or what a template made.
func (p *pass) putPayload(ctx context.Context, b *builder, at, digest string, dr *draft) error {
	if b.base[at] != "" {
		return nil
	}
	if dr.member == nil || dr.member.Rendered == nil {
		return fmt.Errorf("the payload %s of %s is not known any more", digest, dr.id)
	}
	payload, ok := dr.member.Rendered.Payloads[digest]
	if !ok {
		return fmt.Errorf("the payload %s of %s is not known any more", digest, dr.id)
	}
	if payload.ID != "" {
		b.link(at, payload.ID)
		return nil
	}
	blob, err := b.remote.PutBlob(ctx, payload.Data)
	if err != nil {
		return fmt.Errorf("write %s: %w", at, err)
	}
	b.link(at, blob)
	return nil
}

// buildMarks writes the failure marks that changed and drops the empty ones.
func (p *pass) buildMarks(ctx context.Context, b *builder, next *Status) error {
	marks := p.failureMarks()
	for at, m := range marks {
		if err := b.put(ctx, at, m); err != nil {
			return err
		}
	}
	for path := range b.base {
		if strings.HasPrefix(path, failuresDir) && marks[path] == nil {
			b.drop(path)
		}
	}
	next.marks = marks
	return nil
}

// deliveries are the refs to move: device ref → value that is known, and the
// commit of the new document.
func (p *pass) deliveries(ctx context.Context, b *builder, next *Status) (map[string][2]string, error) {
	moves := map[string][2]string{}
	for _, dr := range p.drafts {
		ref := p.d.cfg.DeviceRefs + dr.id
		if dr.retire {
			if known := p.d.delivered[dr.id]; known != "" {
				moves[ref] = [2]string{known, ""}
			}
			continue
		}
		rec := next.Devices[dr.id]
		if rec.Assignment == nil || rec.delivery != "" || !dr.docChanged() {
			continue
		}
		commit, err := p.deliver(ctx, rec.payloads, assignedPath(rec.Path), next.blobs)
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
func (p *pass) published(ctx context.Context, next *Status, deliveries map[string][2]string, refused map[string]string) {
	d := p.d
	d.status = next
	p.result.StatusCommit = next.Commit
	p.result.Committed = next.Commit != p.tip
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
