package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// foresee adds to a question what the next sweep would decide, and where the
// settings are written that it would decide by. What cannot be read is said,
// and left out: the status branch alone explains, too.
func (a *app) foresee(ctx context.Context, r *reader, status *sweep.Status, id string, q *view.Question) {
	reports, err := r.readReports(ctx, r.reportRefs())
	if err != nil {
		a.sayln("the reports could not be read: %s", clean(err.Error()))
	} else {
		q.Report = reports[id]
	}
	brake, brakeErr := (&brake{repo: r.fleet}).read(ctx, false)
	if brakeErr != nil {
		a.sayln("the brake could not be read: %s", clean(brakeErr.Error()))
	}
	q.Brake = brake.text
	swept := ""
	if status.Fleet != nil {
		swept = status.Fleet.SourceCommit
	}
	head, fleet, why := r.headFleet(ctx, a.build.Version)
	switch {
	case fleet == nil:
		a.sayln("the next sweep cannot be foreseen: %s", clean(why))
	case err == nil && brakeErr == nil:
		now := time.Now()
		q.Next = nextSweep(sweep.Scene{
			Fleet: fleet, Status: status, Now: now, OwnVersion: a.build.Version, Restrict: sweep.Braked(&brake.reading.Brake),
			Heard:   func(id string) sweep.Heard { return sweep.HeardOf(reports[id], now) },
			Stopped: standingStop(status.Fleet),
		}, id)
	}
	// What decided stands in what was swept; what will decide, in the head.
	place := swept
	if q.Next != nil {
		q.Next.Commit, q.Next.Ahead, q.Next.Unheard = head, head != swept, q.Report == nil
		place = head
	}
	if q.Source, err = r.source(ctx, place); err != nil {
		a.sayln("the fleet repository's documents could not be read, so no lines are named: %s", clean(err.Error()))
	}
}

// nextSweep plans, and gives what concerns one device; nil where the fleet
// does not have it any more.
func nextSweep(scene sweep.Scene, id string) *view.NextSweep {
	in := sweep.PlannerInput(scene)
	n := &view.NextSweep{At: scene.Now, Result: planner.Plan(in)}
	i := slices.IndexFunc(n.Result.Verdicts, func(v planner.Verdict) bool { return v.Device.ID == id })
	if i < 0 {
		return nil
	}
	n.Verdict = n.Result.Verdicts[i]
	for _, s := range n.Result.Policies {
		if s.Policy != n.Verdict.Device.Policy {
			continue
		}
		for k := range in.Policies {
			if in.Policies[k].Name == s.Policy {
				n.Limits = in.Policies[k].LimitsFor(s.N)
			}
		}
	}
	return n
}

// standingStop is the stop that the daemon is in, "" where it is in none. One
// for an invalid head is over where the head is valid, which is seen before.
func standingStop(fleet *schema.FleetStatus) string {
	if fleet == nil {
		return ""
	}
	for _, c := range fleet.Conditions {
		if c.Type == "Stopped" {
			return c.Reason
		}
	}
	return ""
}

// headFleet is the fleet at the head of the source branch; nil, and why, where
// no sweep would plan by it.
func (r *reader) headFleet(ctx context.Context, own string) (head string, fleet *schema.Fleet, why string) {
	ref := "refs/heads/" + r.branch()
	refs, err := r.fleet.Refs(ctx, ref)
	if err != nil {
		return "", nil, err.Error()
	}
	if head = refs[ref]; head == "" {
		return "", nil, "there is no branch " + r.branch()
	}
	if err := r.fleet.Fetch(ctx, ref, head, false); err != nil {
		return head, nil, err.Error()
	}
	loader := schema.Loader{OwnVersion: own}
	if fleet, err = loader.Load(sweep.Source(ctx, r.fleet, head)); err != nil {
		return head, nil, err.Error()
	}
	if !fleet.Valid() {
		wrong, _ := tally(fleet.Problems)
		return head, nil, fmt.Sprintf("%s is not valid (%s), so no sweep goes by it; gitopsd validate shows them", view.Short(head), plural(wrong, "error"))
	}
	return head, fleet, ""
}

// source finds settings in the documents of a commit of the source branch; nil
// where there is none.
func (r *reader) source(ctx context.Context, commit string) (func(file, field string) (string, int), error) {
	if commit == "" {
		return nil, nil
	}
	if err := r.fleet.Fetch(ctx, "refs/heads/"+r.branch(), commit, false); err != nil {
		return nil, err
	}
	return func(file, field string) (string, int) {
		blob, err := r.fleet.FileAt(ctx, commit, file)
		if err != nil || blob == "" {
			return "", 0
		}
		data, err := r.fleet.Blob(ctx, blob, documentLimit)
		if err != nil {
			return "", 0
		}
		return view.Setting(data, field)
	}, nil
}
