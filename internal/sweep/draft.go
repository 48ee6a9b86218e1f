package sweep

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

const (
	// keptAttempts and keptFailures bound a device's history: the newest of
	// any kind, and the newest that count as failures, so that going from A
	// to B and back to A still knows what failed.
	keptAttempts = 10
	keptFailures = 30

	// codeRemoved stands in the status of a device that left the fleet.
	codeRemoved   = string(planner.Excluded)
	reasonRemoved = "removed from the fleet repository"
	recallRemoved = "the device left the fleet"
)

// draft is one device while a pass works on it: what stands on the status
// branch, and what is to stand there.
type draft struct {
	id     string
	path   string
	member *schema.Member // nil = it left the fleet
	old    *Record        // nil = nothing is known of it
	facts  Facts
	entry  *entry
	device *planner.Device // as the plan saw it

	status *schema.DeviceStatus
	doc    *schema.Assignment // content; its generation is set by finish
	kept   *schema.Assignment // what a recall took the place of
	recall *schema.Recall     // made in this pass; its generation is set by finish
	retire bool               // its record goes to retired/
	force  bool               // everything is written anew, with a new generation
	heard  bool               // its record has to say when it was heard
	onIt   bool               // it runs what is wanted of it, as the plan has it
	owned  bool               // the attempts are a copy
	moved  bool               // an attempt began, moved or ended in this pass

	statusText, docText []byte // as they are written, where they are
}

// newDraft starts a draft from what stands on the status branch.
func newDraft(e *entry, device *planner.Device) *draft {
	d := &draft{entry: e, device: device, member: e.known.member, old: e.known.record, facts: e.facts}
	if d.member != nil {
		d.id, d.path = d.member.ID, d.member.Path
	} else {
		d.id, d.path = d.old.ID, d.old.Path
	}
	d.status = &schema.DeviceStatus{TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindDeviceStatus}}
	d.status.Metadata.Name = d.id
	if old := d.old; old != nil {
		d.status.Policy = old.Status.Policy
		d.status.Verdict = old.Status.Verdict
		d.status.Assignment = old.Status.Assignment
		d.status.Observed = old.Status.Observed
		d.status.Attempts = slices.Clip(old.Status.Attempts)
		d.doc, d.kept = old.Assignment, old.kept
	}
	return d
}

// conclude brings a draft to its end, once its attempts are what they will
// be; only the verdict may still change.
func (d *draft) conclude(now time.Time) {
	if d.member != nil {
		d.hold(d.entry.known.hold())
		d.stay()
		d.status.Policy = d.member.Policy
	} else {
		d.remove(now)
		d.retire = d.gone(d.device.Online)
	}
	d.observe(d.device.Online, d.device.OfflineSince, now)
	d.finish()
}

// isIdle says whether a draft comes to what stands on the status branch.
func (d *draft) isIdle() bool {
	return !d.retire && !d.statusChanged() && d.old.Assignment == d.doc && d.old.kept == d.kept
}

// own makes the attempts the draft's, to be changed; until then they are
// those of the record, which never change.
func (d *draft) own() {
	if !d.owned {
		d.status.Attempts = slices.Clone(d.status.Attempts)
		d.owned = true
	}
}

func (d *draft) attempt(number int64) *schema.Attempt {
	for i := range d.status.Attempts {
		if d.status.Attempts[i].Attempt == number {
			return &d.status.Attempts[i]
		}
	}
	return nil
}

// apply records a decision of the planner. It gives false for one about an
// attempt that is not there.
func (d *draft) apply(dec planner.Decision, now time.Time) bool {
	said := d.device.Said
	d.own()
	a := d.attempt(dec.Attempt)
	if a == nil {
		return false
	}
	d.moved = true
	if a.StartedAt == nil && showsStart(a, dec, said) {
		a.StartedAt, a.StartSeq = &now, said.Sequence
	}
	switch {
	case dec.Started:
		a.StartedAt, a.StartSeq = &now, said.Sequence
	case dec.OnTarget:
		a.OnTargetAt = &now
	case dec.Recall != "":
		a.Recall = &schema.Recall{Outcome: schema.Outcome(dec.Recall), Because: dec.Because, At: now}
		d.recall = a.Recall
		d.takeBack(a)
	case dec.End != "":
		d.end(a, dec, now)
	}
	return true
}

// showsStart says whether what ends an attempt, or finds it on target, is the
// first report that is seen of its start.
func showsStart(a *schema.Attempt, dec planner.Decision, said planner.Said) bool {
	ended := dec.OnTarget || dec.End == planner.OK || dec.End == planner.Failed
	return ended && said.Attempt == a.Attempt && (said.Begun || said.Outcome == string(planner.Failed))
}

// end writes an outcome. A document that could still be begun never outlives
// its attempt, unless that went well.
func (d *draft) end(a *schema.Attempt, dec planner.Decision, now time.Time) {
	a.Outcome, a.EndedAt = schema.Outcome(dec.End), &now
	a.Stage, a.Message = oneLine(dec.Stage), oneLine(dec.Because)
	switch dec.End {
	case planner.OK:
		a.Stage, a.Message = "", ""
		if a == lastAttempt(d.status) && (d.doc == nil || d.doc.Spec == nil) {
			d.giveBack(a)
		}
	case planner.Failed, planner.Lost, planner.Refused, planner.Exhausted:
		if d.doc != nil && d.doc.Attempt == a.Attempt && d.doc.Spec != nil {
			d.takeBack(a)
		}
	}
}

// assign starts the next attempt.
func (d *draft) assign(install, release string, settle *schema.Duration, because *schema.Because, now time.Time) {
	m := d.member
	d.own()
	number := d.lastNumber() + 1
	d.status.Attempts = append(d.status.Attempts, schema.Attempt{
		Attempt: number, Policy: m.Policy, Line: m.Line, Version: m.Version, Digest: m.Rendered.Digest,
		Rollout: m.Rollout, Release: release, InstallID: install, Pinned: m.Pinned, AssignedAt: now,
	})
	next := d.document()
	next.For, next.Attempt, next.Version, next.Digest = install, number, m.Version, m.Rendered.Digest
	next.Settle, next.Because, next.Spec = settle, because, m.Rendered.Spec
	next.Removed = false
	d.doc, d.kept, d.moved = next, nil, true
}

// lastNumber is the highest attempt that was ever handed out, as far as any
// record tells.
func (d *draft) lastNumber() int64 {
	var n int64
	for i := range d.status.Attempts {
		n = max(n, d.status.Attempts[i].Attempt)
	}
	if d.doc != nil {
		n = max(n, d.doc.Attempt, d.doc.Recalled)
	}
	if ref := d.status.Assignment; ref != nil {
		n = max(n, ref.Attempt, ref.Recalled)
	}
	return n
}

// gone says whether a device that left the fleet may be forgotten: nothing is
// open, and it has seen that it left, or nobody knows when it would.
func (d *draft) gone(online bool) bool {
	if d.member != nil || d.old == nil {
		return false
	}
	if a := lastAttempt(d.status); a != nil && a.Outcome == "" {
		return false
	}
	if d.doc == nil {
		return true
	}
	if d.doc != d.old.Assignment || !d.doc.Removed {
		return false // first it has to be published
	}
	seen := d.facts.Report != nil && d.facts.Report.Generation >= d.doc.Generation
	return seen || !online
}

// observe records the newest report, unless that is older than what stands.
func (d *draft) observe(online bool, since time.Time, now time.Time) {
	old := d.status.Observed
	next := schema.Observed{Phase: schema.PhaseError, Since: now}
	if old != nil {
		next = *old
	}
	r := d.facts.Report
	switch {
	case d.keepsTurn(now):
	case r != nil && !older(r, old):
		next = schema.Observed{
			InstallID: r.InstallID, Sequence: r.Sequence, Generation: r.Generation, Attempt: r.Attempt,
			Version: oneLine(r.Current.Version), Digest: oneLine(r.Current.Digest), Phase: r.Phase, Reason: kept(r), Since: now,
			AgentVersion: oneLine(r.AgentVersion), Busy: r.Busy,
		}
		if r.Hold != nil {
			next.Held = or(oneLine(r.Hold.Reason), "held on the device")
		}
		if old != nil && old.InstallID == next.InstallID {
			next.HeardAt = old.HeardAt
			if old.Phase == next.Phase && old.Attempt == next.Attempt {
				next.Since = old.Since
			}
		}
	case old == nil && d.facts.Problem == "":
		return // it has never said anything
	}
	if next.Problem = d.facts.Problem; d.facts.Duplicate {
		next.Problem = "" // it would come and go with the turns
	}
	if d.heard && next.InstallID == d.device.InstallID {
		next.HeardAt = moment(d.device.LastSeen)
	}
	next.Online, next.OfflineSince = online, nil
	if !online && next.InstallID != "" && !since.IsZero() {
		next.OfflineSince = &since
	}
	if old == nil || next.Sequence != old.Sequence || !sameObserved(&next, old) {
		kept := next
		d.status.Observed = &kept
	}
}

// finish settles generations and what the status repeats of the document.
func (d *draft) finish() {
	var last int64
	if d.status.Assignment != nil {
		last = d.status.Assignment.Generation
	}
	if d.old != nil && d.old.Assignment != nil {
		last = max(last, d.old.Assignment.Generation)
	}
	if d.doc != nil && d.docChanged() {
		next := *d.doc
		next.Generation = last + 1
		d.doc = &next
	} else if d.old != nil {
		d.doc = d.old.Assignment
	}
	if d.doc != nil {
		d.status.Assignment = &schema.AssignmentRef{
			Generation: d.doc.Generation, Attempt: d.doc.Attempt, Version: d.doc.Version, Digest: d.doc.Digest, Recalled: d.doc.Recalled,
		}
		if d.recall != nil {
			d.recall.Generation = d.doc.Generation
		}
	}
	d.trim()
}

// trim bounds the history, oldest first.
func (d *draft) trim() {
	attempts := d.status.Attempts
	if len(attempts) <= keptAttempts {
		return
	}
	keep := make([]bool, len(attempts))
	failures := 0
	for i := len(attempts) - 1; i >= 0; i-- {
		newest := len(attempts)-i <= keptAttempts
		if isFailure(attempts[i].Outcome) {
			failures++
			keep[i] = newest || failures <= keptFailures
			continue
		}
		keep[i] = newest || attempts[i].Outcome == ""
	}
	var kept []schema.Attempt
	for i, a := range attempts {
		if keep[i] {
			kept = append(kept, a)
		}
	}
	d.status.Attempts = kept
}

// move describes an attempt for the result, the log and the commit message.
func (d *draft) move(a *schema.Attempt) Move {
	return Move{Device: d.id, Attempt: a.Attempt, Version: a.Version, Outcome: a.Outcome}
}

func (m Move) String() string {
	return fmt.Sprintf("%s %s (attempt %d)", m.Device, m.Version, m.Attempt)
}

func byDevice(a, b Move) int {
	return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Attempt, b.Attempt))
}
