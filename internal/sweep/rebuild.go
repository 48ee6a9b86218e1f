package sweep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// rebuild makes a status out of what stands at the delivery refs and what the
// devices report, where a person has accepted that the status branch is lost.
// Generation and attempt go on one above all that is known, so that no device
// sees a number twice; what cannot be told is taken as still in flight.
func (p *pass) rebuild(ctx context.Context) error {
	if !p.rebuilt {
		return nil
	}
	from, err := p.acceptedSource(ctx)
	if err != nil {
		return err
	}
	docs, err := p.readDeliveries(ctx, slices.Collect(maps.Keys(p.delivery)), p.delivery)
	if err != nil {
		return err
	}
	st := newStatus()
	st.Commit = p.tip
	st.Fleet = &schema.FleetStatus{SourceCommit: from}
	if p.tip != "" {
		err := p.d.cfg.Remote.Walk(ctx, p.tip, func(path, blob string, _ uint32) error {
			st.blobs[path] = blob
			if strings.HasPrefix(path, failuresDir) {
				st.marks[path] = nil
			}
			return nil
		})
		switch {
		case err != nil && isBroken(err): // nothing can be added to it
			st.Commit, st.blobs, st.marks = "", map[string]string{}, map[string]*schema.FailureMarks{}
		case err != nil:
			return fmt.Errorf("read the status commit %s: %w", short(p.tip), err)
		}
	}
	maps.Copy(st.Retired, p.status.Retired)
	ids := map[string]bool{}
	for id, doc := range docs {
		ids[id] = doc != nil
	}
	for id, v := range p.d.reports {
		ids[id] = ids[id] || v.report != nil
	}
	for id, rec := range p.status.Devices {
		ids[id] = ids[id] || rec != nil
	}
	for id, any := range ids {
		if any {
			st.Devices[id] = p.rebuildDevice(id, docs[id])
		}
	}
	p.status = st
	p.d.log.WarnContext(ctx, "the status branch is rebuilt from deliveries and reports", keyCommit, from)
	return nil
}

// acceptedSource is the source commit that the lost status was of.
func (p *pass) acceptedSource(ctx context.Context) (string, error) {
	given := p.d.accept.StatusLoss
	if accepts(given, p.head) {
		return p.head, nil
	}
	found := ""
	if p.head != "" {
		err := p.d.cfg.Remote.Log(ctx, p.head, "", func(hash, _ string, _ time.Time, _ string) bool {
			if accepts(given, hash) {
				found = hash
			}
			return found == ""
		})
		if err != nil {
			return "", fmt.Errorf("look for the source commit %s: %w", given, err)
		}
	}
	if found == "" {
		return "", fmt.Errorf("--accept-status-loss=%s: %w", given, errNoCommit)
	}
	return found, nil
}

var errNoCommit = errors.New("that is no commit of the source branch (give at least 7 digits of one)")

// rebuildDevice puts one device's record together.
func (p *pass) rebuildDevice(id string, doc *schema.Assignment) *Record {
	old := p.status.Devices[id]
	if doc != nil && badNumber(likelyNumber, doc) != "" {
		doc = nil
	}
	rec := &Record{ID: id, Path: devicesDir + id + ".yaml", Assignment: doc, Status: &schema.DeviceStatus{}}
	if old != nil {
		rec.Path = old.Path
		rec.Status.Policy, rec.Status.Attempts = old.Status.Policy, slices.Clone(old.Status.Attempts)
		rec.Status.Attempts = slices.DeleteFunc(rec.Status.Attempts, func(a schema.Attempt) bool { return beyond(likelyNumber, a.Attempt) })
		if rec.Assignment == nil && old.Assignment != nil && badNumber(likelyNumber, old.Assignment) == "" {
			rec.Assignment = old.Assignment
		}
	}
	var report *schema.Report
	if v := p.d.reports[id]; v != nil {
		report = v.report
	}
	ref := &schema.AssignmentRef{}
	raise := func(generation, attempt int64) {
		if generation < likelyNumber {
			ref.Generation = max(ref.Generation, generation)
		}
		if attempt < likelyNumber {
			ref.Attempt = max(ref.Attempt, attempt)
		}
	}
	raise(p.status.generation(id), 0)
	if doc != nil {
		raise(doc.Generation, max(doc.Attempt, doc.Recalled))
		p.rebuildAttempt(rec, doc, report)
	}
	if report != nil {
		raise(report.Generation, max(report.Attempt, report.Recalled))
		raise(report.Current.Generation, report.Current.Attempt)
		if report.Desired != nil {
			raise(report.Desired.Generation, report.Desired.Attempt)
		}
	}
	if ref.Generation > 0 || ref.Attempt > 0 {
		rec.Status.Assignment = ref
	}
	return rec
}

// rebuildAttempt adds the attempt that the delivery is about, as far as the
// old record does not have it.
func (p *pass) rebuildAttempt(rec *Record, doc *schema.Assignment, report *schema.Report) {
	a := schema.Attempt{Version: doc.Version, Digest: doc.Digest, InstallID: doc.For, AssignedAt: p.now}
	if doc.Because != nil {
		a.Policy = doc.Because.Policy
	}
	switch {
	case doc.Spec != nil:
		a.Attempt = doc.Attempt
	case doc.Recalled > 0:
		a.Attempt = doc.Recalled
		a.Recall = &schema.Recall{Generation: doc.Generation, Outcome: schema.OutcomeDeferred, Because: "found as recalled when the status was rebuilt", At: p.now}
	default:
		return
	}
	if slices.ContainsFunc(rec.Status.Attempts, func(o schema.Attempt) bool { return o.Attempt >= a.Attempt }) {
		return
	}
	if report != nil && report.InstallID == doc.For {
		speaks := report.Attempt == a.Attempt
		if speaks && a.Digest == "" {
			a.Digest = report.Digest
		}
		switch {
		case speaks && report.Outcome != "":
			a.Outcome, a.EndedAt = report.Outcome, &p.now
			a.Stage, a.Message = report.Stage, messageOf(report)
		case speaks && (report.Begun || report.Phase == schema.PhaseStarting):
			a.StartedAt, a.StartSeq = &p.now, report.Sequence
		case doc.Spec != nil && report.Current.Attempt == a.Attempt:
			a.Outcome, a.EndedAt = schema.OutcomeOK, &p.now
		}
	}
	rec.Status.Attempts = append(rec.Status.Attempts, a)
}

// complete fills in what only the fleet knows of a rebuilt attempt.
func (d *draft) complete(fleet *schema.Fleet) {
	d.force = true
	d.own()
	m := d.member
	if m == nil || m.Rendered == nil {
		return
	}
	for i := range d.status.Attempts {
		a := &d.status.Attempts[i]
		if a.Digest != m.Rendered.Digest || a.Rollout != "" {
			continue
		}
		a.Version, a.Rollout, a.Line, a.Pinned = m.Version, m.Rollout, m.Line, m.Pinned
		a.Release = releaseOf(fleet, m)
		if a.Policy == "" {
			a.Policy = m.Policy
		}
	}
}
