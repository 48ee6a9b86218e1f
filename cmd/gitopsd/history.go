package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

// defaultEvents is how much of a history is shown where nobody says: some
// screens, and the last rollouts.
const defaultEvents = 50

func historyCommand(a *app) *cobra.Command {
	format := newOutput("table", "json")
	var since, until string
	limit := defaultEvents
	cmd := &cobra.Command{
		Use:   "history DEVICE",
		Short: "Show what happened to a device",
		Long: `Show what happened to a device, newest first, from the history of the status
branch: what it was assigned and by whose commit, what it waited for until then,
how each attempt ended, holds, and when it came, moved, left and returned. A
device that left the fleet is found too, and one whose file moved is followed.

The commit is the newest that made the desired spec of the device what it was
assigned, not one that came with it, nor the merge that brought it. Where none
is found (the history is cut off or goes back too far, or another version of
gitopsd makes another spec) it says so, and names the commit that was swept.

A moment is RFC 3339, a day (its midnight, UTC) or how long ago: 90m, 36h, 7d.
All times are UTC.

A local repository is read where it is. A remote one has to send the history of
the status branch first.`,
		GroupID: groupLook,
		Args:    args(1, 1, "DEVICE"),
		Example: `  gitopsd history gw-berlin-01 --repo /srv/git/fleet.git
  gitopsd history gw-berlin-01 --since 7d
  gitopsd history gw-berlin-01 --since 2026-11-01 --until 2026-11-08 -o json`,
	}
	options := bindReader(cmd)
	cmd.ValidArgsFunction = completeReported(a, options)
	format.bind(cmd)
	cmd.Flags().Var((*nonEmpty)(&since), "since", "nothing before this `moment`")
	cmd.Flags().Var((*nonEmpty)(&until), "until", "only what was before this `moment`")
	cmd.Flags().IntVar(&limit, "limit", defaultEvents, "at most `N` events, the newest; 0 shows all")
	for _, name := range []string{"since", "until", "limit"} {
		_ = cmd.RegisterFlagCompletionFunc(name, offerNothing) // the error is for a flag that does not exist
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		bounds := historyBounds{events: limit}
		now := time.Now()
		if bounds.since, err = moment("--since", since, now); err != nil {
			return err
		}
		if bounds.until, err = moment("--until", until, now); err != nil {
			return err
		}
		switch {
		case limit < 0:
			return usagef("--limit %d: a number of events from 0 on is wanted", limit)
		case bounds.since != nil && bounds.until != nil && !bounds.since.Before(*bounds.until):
			return usagef("--since %s is not before --until %s", since, until)
		}
		r, err := options.open(cmd, a)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.close()) }()
		history, err := a.history(cmd.Context(), r, args[0], bounds)
		if err != nil {
			return err
		}
		if format.value == "json" {
			return writeJSON(a.out, history)
		}
		return view.WriteHistory(a.out, history, options.look(cmd, a))
	}
	return cmd
}

// history reads the history of one device.
func (a *app) history(ctx context.Context, r *reader, id string, bounds historyBounds) (*view.DeviceHistory, error) {
	ref := "refs/heads/" + r.statusBranch()
	refs, err := r.fleet.Refs(ctx, ref)
	if err != nil {
		return nil, repoHint(fmt.Errorf("cannot read the history of %s: %w", redact(r.spec.Repo.URL), err), r.spec.Repo.URL)
	}
	tip := refs[ref]
	if tip == "" {
		return nil, r.noStatus(nil)
	}
	if r.fleet.Path() == "" {
		a.sayln("fetching the history of %s from %s", r.statusBranch(), redact(r.spec.Repo.URL))
		if err := r.fleet.Fetch(ctx, ref, tip, true); err != nil {
			return nil, repoHint(fmt.Errorf("cannot fetch the history of %s: %w", redact(r.spec.Repo.URL), err), r.spec.Repo.URL)
		}
	}
	file, ids, err := r.findRecord(ctx, tip, id)
	if err != nil {
		return nil, err
	}
	if file == "" {
		return nil, noDevice(id, ids)
	}
	read, err := r.deviceHistory(ctx, tip, file, bounds, func(commits int, back time.Time) {
		a.sayln("looked at %s, back to %s", plural(commits, "commit"), view.Stamp(back))
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the history of %s: %w", id, err)
	}
	h := &view.DeviceHistory{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: view.KindDeviceHistory},
		Device:   id, Path: file, StatusCommit: tip, Since: bounds.since, Until: bounds.until,
		Commits: read.commits, Why: read.why,
		Events: view.Between(view.Events(read.changes), bounds.since, bounds.until),
	}
	if bounds.events > 0 && (read.enough || len(h.Events) > bounds.events) {
		h.Events = h.Events[:min(len(h.Events), bounds.events)]
		h.Why = fmt.Sprintf("these are the newest %d events, and --limit shows more", len(h.Events))
	}
	h.Whole = h.Why == ""
	return h, nil
}

// moment reads a time: RFC 3339, a day, or how long ago; nil for "".
func moment(flag, text string, now time.Time) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			t = t.UTC()
			return &t, nil
		}
	}
	const day = 24 * time.Hour
	if days, ok := strings.CutSuffix(text, "d"); ok {
		const most = 100 * 366 // as many days as a time can be counted back by
		if n, err := strconv.ParseUint(days, 10, 16); err == nil && n <= most {
			t := now.Add(-time.Duration(n) * day).UTC()
			return &t, nil
		}
	} else if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		t := now.Add(-ago).UTC()
		return &t, nil
	}
	return nil, withHint(usagef("%s %q is no moment", flag, text), "write 2026-11-01, 2026-11-01T08:00:00Z, or how long ago: 90m, 36h, 7d")
}
