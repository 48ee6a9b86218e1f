package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// presentStatus is what is known of the devices now; without a repository
// nothing is.
type presentStatus struct {
	status  *sweep.Status
	reports map[string]*schema.Report
	devices map[string]preview.Present // nil = no status was read
	brake   sweep.Restrictions
	reader  *reader // nil = there is no repository
}

func (p *presentStatus) close() error {
	if p.reader == nil {
		return nil
	}
	return p.reader.close()
}

// plan says what a sweep of this fleet would decide.
func (p *presentStatus) plan(fleet *schema.Fleet, now time.Time, own string) planner.Result {
	return planner.Plan(p.input(fleet, now, own))
}

// input is what a sweep of this fleet would ask the planner.
func (p *presentStatus) input(fleet *schema.Fleet, now time.Time, own string) planner.Input {
	heard := func(id string) sweep.Heard { return sweep.HeardOf(p.reports[id], now) }
	return sweep.PlannerInput(sweep.Scene{
		Fleet: fleet, Status: p.status, Heard: heard, Now: now, OwnVersion: own, Restrict: p.brake,
	})
}

// standing is what keeps a plan from coming true yet: the planner is not told of
// a stop, which would hide what comes after it.
func (p *presentStatus) standing() []string {
	if p.status == nil {
		return nil
	}
	reason := standingStop(p.status.Fleet)
	if reason == "" {
		return nil
	}
	return []string{"a stop is in force, " + reason + ", and nothing is assigned before it ends; this is what comes then (gitopsd status has the remedy)"}
}

// openPresent reads the status branch and the reports, where a repository is
// named.
func openPresent(ctx context.Context, spec schema.ServeSpec) (p *presentStatus, err error) {
	if spec.Repo.URL == "" {
		return &presentStatus{}, nil
	}
	r, err := openReader(spec)
	if err != nil {
		return nil, err
	}
	if p, err = readPresent(ctx, r); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return p, nil
}

// readPresent reads from repositories that are open.
func readPresent(ctx context.Context, r *reader) (p *presentStatus, err error) {
	p = &presentStatus{reader: r}
	if p.status, err = r.status(ctx); err != nil {
		return nil, err
	}
	if p.status.Commit == "" {
		if err = onlyAClone(r.spec, r.fleet, r.statusBranch()); err != nil {
			return nil, err
		}
	}
	if p.reports, err = r.readReports(ctx, r.reportRefs()); err != nil {
		return nil, err
	}
	state, err := (&brake{repo: r.fleet}).read(ctx, false)
	if err != nil {
		return nil, repoHint(err, r.spec.Repo.URL)
	}
	p.brake = sweep.Braked(&state.reading.Brake)
	payloads := &assignedPayloads{ctx: ctx, reader: r, commit: p.status.Commit}
	p.devices = make(map[string]preview.Present, len(p.status.Devices))
	for id, rec := range p.status.Devices {
		p.devices[id] = presentDevice(rec, p.reports[id], payloads.read)
	}
	return p, nil
}

// presentDevice is what the status branch and its own report say of a device.
func presentDevice(rec *sweep.Record, report *schema.Report, read func(string) ([]byte, error)) preview.Present {
	d := preview.Present{Policy: rec.Status.Policy}
	o := rec.Status.Observed
	switch {
	case report != nil && (o == nil || o.InstallID != report.InstallID || report.Sequence >= o.Sequence):
		d.Version, d.Digest = report.Current.Version, report.Current.Digest
	case o != nil:
		d.Version, d.Digest = o.Version, o.Digest
	}
	d.Assigned = preview.Side{Version: d.Version, Digest: d.Digest}
	if doc := rec.Assignment; doc != nil {
		d.Removed = doc.Removed
		if doc.Spec != nil {
			d.Assigned = preview.Side{Version: doc.Version, Digest: doc.Digest, Spec: doc.Spec, Read: read}
		}
	}
	return d
}

// assignedPayloads reads payloads from the status branch; where they are is
// looked up when somebody first asks.
type assignedPayloads struct {
	ctx    context.Context // of whoever asked for the preview, which has none
	reader *reader
	commit string
	blobs  map[string]string
}

func (p *assignedPayloads) read(digest string) ([]byte, error) {
	if p.blobs == nil {
		p.blobs = map[string]string{}
		err := p.reader.fleet.Walk(p.ctx, p.commit, func(path, blob string, _ uint32) error {
			if strings.HasPrefix(path, "payloads/") {
				p.blobs["sha256:"+path[strings.LastIndexByte(path, '/')+1:]] = blob
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	blob := p.blobs[digest]
	if blob == "" {
		return nil, fmt.Errorf("the status branch has no payload %s", digest)
	}
	return p.reader.fleet.Blob(p.ctx, blob, payloadLimit)
}
