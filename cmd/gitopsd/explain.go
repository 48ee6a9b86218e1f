package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

func explainCommand(a *app) *cobra.Command {
	format := newOutput("table", "json")
	cmd := &cobra.Command{
		Use:   "explain DEVICE",
		Short: "Say why a device is where it is",
		Long: `Say why a device is where it is: the verdict, what stands in the way and where
that is written, until when, which checks it has passed, what happened to it,
and what it says of itself.`,
		GroupID: groupLook,
		Args:    args(1, 1, "DEVICE"),
		Example: `  gitopsd explain gw-berlin-01 --repo /srv/git/fleet.git
  gitopsd explain gw-berlin-01 --repo https://git.example/fleet.git -o json`,
	}
	options := bindReader(cmd)
	cmd.ValidArgsFunction = completeReported(a, options)
	format.bind(cmd)
	var history bool
	cmd.Flags().BoolVar(&history, "history", false, "read the changes of its status from a remote repository too, which has to send the history of the status branch")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		r, err := options.open(cmd, a)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.close()) }()
		ctx := cmd.Context()
		status, doubt, err := r.doubtedStatus(ctx)
		if err != nil {
			return err
		}
		if status.Commit == "" {
			return r.noStatus(doubt)
		}
		record := status.Devices[args[0]]
		if record == nil {
			var ids []string
			for id := range status.Devices {
				ids = append(ids, id)
			}
			return noDevice(args[0], ids)
		}
		question := view.Question{Path: record.Path, Status: statusView(status)}
		if reports, err := r.readReports(ctx, r.reportRefs()+record.ID); err == nil {
			question.Report = reports[record.ID]
		} else {
			a.sayln("its report could not be read: %s", clean(err.Error()))
		}
		if source, err := r.source(ctx, status); err == nil {
			question.Source = source
		} else {
			a.sayln("the fleet repository's documents could not be read, so no lines are named: %s", clean(err.Error()))
		}
		// A local repository has its whole history at hand; a remote one would
		// have to send it.
		if r.fleet.Path() != "" || history {
			if question.Changes, err = r.history(ctx, status.Commit, record.Path); err != nil {
				a.sayln("its history could not be read whole: %s", clean(err.Error()))
			}
		}
		explanation := view.Explain(question)
		if format.value == "json" {
			err = writeJSON(a.out, explanation)
		} else {
			err = view.WriteExplanation(a.out, explanation, options.look(cmd, a))
		}
		if err != nil {
			return err
		}
		return doubted(doubt)
	}
	return cmd
}

// source finds settings in the documents of the commit that was swept.
func (r *reader) source(ctx context.Context, status *sweep.Status) (func(file, field string) (string, int), error) {
	if status.Fleet == nil || status.Fleet.SourceCommit == "" {
		return nil, nil
	}
	commit := status.Fleet.SourceCommit
	ref := "refs/heads/" + r.branch()
	if err := r.fleet.Fetch(ctx, ref, commit, false); err != nil {
		return nil, err
	}
	blobs := map[string]string{}
	err := r.fleet.Walk(ctx, commit, func(path, blob string, _ uint32) error {
		blobs[path] = blob
		return nil
	})
	if err != nil {
		return nil, err
	}
	return func(file, field string) (string, int) {
		const limit = 1 << 20 // far above any document that validates
		if blobs[file] == "" {
			return "", 0
		}
		data, err := r.fleet.Blob(ctx, blobs[file], limit)
		if err != nil {
			return "", 0
		}
		return view.Setting(data, field)
	}, nil
}

// Limits of what explain reads of the history: enough for weeks of a busy
// fleet, and done in well under a second.
const (
	historyCommits = 500
	historyChanges = 30
)

// history fetches what changes needs, and gives it.
func (r *reader) history(ctx context.Context, tip, path string) ([]view.Change, error) {
	if err := r.fleet.Fetch(ctx, "refs/heads/"+r.statusBranch(), tip, true); err != nil {
		return nil, err
	}
	return r.changes(ctx, tip, path)
}

// changes reads earlier versions of a device's status, newest first.
func (r *reader) changes(ctx context.Context, tip, path string) ([]view.Change, error) {
	type commit struct {
		hash string
		when time.Time
	}
	var commits []commit
	err := r.fleet.Log(ctx, tip, "", func(hash, _ string, when time.Time, _ string) bool {
		commits = append(commits, commit{hash, when})
		return len(commits) <= historyCommits
	})
	if err != nil {
		return nil, err
	}
	if len(commits) <= historyCommits {
		commits = append(commits, commit{}) // the root's parent is nothing
	}
	var list []view.Change
	for i := 0; i+1 < len(commits) && len(list) < historyChanges; i++ {
		blob, touched := "", false
		err := r.fleet.Diff(ctx, commits[i+1].hash, commits[i].hash, func(p, _, newBlob string, _ uint32) error {
			if p == path {
				blob, touched = newBlob, true
			}
			return nil
		})
		if err != nil {
			return list, err
		}
		if !touched {
			continue
		}
		change := view.Change{Commit: commits[i].hash, Time: commits[i].when}
		if blob != "" {
			if change.Status, err = r.deviceStatus(ctx, path, blob); err != nil {
				return list, err
			}
		}
		list = append(list, change)
	}
	return list, nil
}

func (r *reader) deviceStatus(ctx context.Context, path, blob string) (*schema.DeviceStatus, error) {
	const limit = 1 << 20 // a status holds the attempts that count
	data, err := r.fleet.Blob(ctx, blob, limit)
	if err != nil {
		return nil, err
	}
	status := &schema.DeviceStatus{}
	for _, p := range schema.DecodeStatus(path, data, status) {
		if p.Severity == schema.SeverityError {
			return nil, errors.New(problemText(p))
		}
	}
	return status, nil
}
