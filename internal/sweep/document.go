package sweep

import (
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// takeBack makes the next document one without a spec: the device keeps what
// it has. The document bears the number of the last attempt that went well,
// so that nothing about it looks like the attempt that is recalled.
func (d *draft) takeBack(a *schema.Attempt) {
	if d.doc != nil && d.doc.Spec != nil {
		d.kept = d.doc
	}
	next := d.document()
	next.For = a.InstallID
	next.Attempt = d.lastGood(a.Attempt)
	next.Recalled = a.Attempt
	d.doc = next
}

// lastGood is the newest attempt before this one that ended ok; 0 = none.
func (d *draft) lastGood(before int64) int64 {
	for i := len(d.status.Attempts) - 1; i >= 0; i-- {
		if a := &d.status.Attempts[i]; a.Attempt < before && a.Outcome == schema.OutcomeOK {
			return a.Attempt
		}
	}
	return 0
}

// giveBack lets the document carry the spec of an attempt that went well:
// what the device runs is what is assigned to it. The spec is known if it is
// still what the device should be, or while this daemon remembers it;
// otherwise the device is on its way to something else anyway.
func (d *draft) giveBack(a *schema.Attempt) {
	switch m := d.member; {
	case m == nil:
		return
	case m.Rendered != nil && m.Version == a.Version && m.Rendered.Digest == a.Digest:
		next := d.document()
		next.Spec = m.Rendered.Spec
		if d.kept != nil && d.kept.Attempt == a.Attempt {
			next.Because, next.Settle = d.kept.Because, d.kept.Settle
		}
		d.give(next, a)
	case d.kept != nil && d.kept.Attempt == a.Attempt:
		next := d.document()
		next.Spec, next.Because, next.Settle = d.kept.Spec, d.kept.Because, d.kept.Settle
		d.give(next, a)
	}
}

func (d *draft) give(next *schema.Assignment, a *schema.Attempt) {
	next.For, next.Attempt, next.Version, next.Digest = a.InstallID, a.Attempt, a.Version, a.Digest
	d.doc, d.kept = next, nil
}

// document is a new one for this device, held as the present one is.
func (d *draft) document() *schema.Assignment {
	next := &schema.Assignment{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindAssignment},
		Metadata: schema.Metadata{Name: d.id},
	}
	if d.doc != nil {
		next.Hold, next.Removed = d.doc.Hold, d.doc.Removed
	}
	return next
}

// hold makes the document say what git says about a hold. A device that has
// no document has nothing to be held from.
func (d *draft) hold(reason string) {
	if d.doc == nil {
		return
	}
	present := ""
	if d.doc.Hold != nil {
		present = d.doc.Hold.Reason
	}
	if present == reason {
		return
	}
	next := *d.doc
	next.Hold = nil
	if reason != "" {
		next.Hold = &schema.Reason{Reason: reason}
	}
	d.doc = &next
}

// stay brings a document back to what an idle device of the fleet should
// have: not removed, and carrying the spec that it runs.
func (d *draft) stay() {
	if d.doc != nil && d.doc.Removed {
		next := *d.doc
		next.Removed = false
		d.doc = &next
	}
	if a := d.brought(); a != nil && (d.doc == nil || d.doc.Spec == nil || d.doc.For != a.InstallID) {
		d.giveBack(a)
	}
	if last := d.status.Assignment; d.doc == nil && last != nil {
		// It is back, and was told when it left that it has to let go.
		next := d.document()
		next.Attempt, next.Recalled = d.lastGood(last.Attempt+1), last.Recalled
		d.doc = next
	}
}

// brought is the attempt that brought what an idle device runs: the last one, if
// that went well. Where later ones ended otherwise, it is the one that the device
// names, once that is what is wanted of it: with its spec assigned again, to the
// installation that is there now, what they came to is over. Of a lost one that
// is not known yet, and the device must not be told of another before.
func (d *draft) brought() *schema.Attempt {
	last, r, o := lastAttempt(d.status), d.facts.Report, d.status.Observed
	switch {
	case last == nil || last.Outcome == schema.OutcomeOK:
		return last
	case !d.onIt || d.moved || last.Outcome == "" || r == nil || o == nil || r.InstallID != o.InstallID || r.Sequence < o.Sequence:
		return nil
	case last.Outcome == schema.OutcomeLost && last.InstallID == r.InstallID:
		return nil
	}
	is := r.Current
	if is.Attempt < 1 || is.Attempt >= last.Attempt || is.Digest == "" {
		return nil // nothing that it could know again
	}
	return &schema.Attempt{Attempt: is.Attempt, Version: is.Version, Digest: is.Digest, InstallID: r.InstallID}
}

// remove takes the spec from a device that left the fleet. An attempt that
// has started goes on to its end.
func (d *draft) remove(now time.Time) {
	if d.doc == nil {
		return
	}
	d.own()
	if a := lastAttempt(d.status); a != nil && a.Outcome == "" && a.StartedAt == nil && a.Recall == nil {
		a.Recall = &schema.Recall{Outcome: schema.OutcomeDeferred, Because: recallRemoved, At: now}
		d.recall, d.moved = a.Recall, true
		d.takeBack(a)
	}
	if d.doc.Removed && d.doc.Spec == nil && d.doc.Hold == nil {
		return
	}
	next := d.document()
	next.Hold, next.Removed = nil, true
	next.For, next.Recalled = d.doc.For, d.doc.Recalled
	if next.Attempt = d.doc.Attempt; d.doc.Spec != nil {
		next.Attempt = d.lastGood(d.doc.Attempt + 1)
	}
	d.doc = next
}
