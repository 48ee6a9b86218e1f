package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/internal/view"
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
			read, err := r.deviceHistory(ctx, status.Commit, record.Path, explainedHistory, nil)
			if err != nil {
				a.sayln("its history could not be read whole: %s", clean(err.Error()))
			}
			question.Changes = read.changes
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

// explainedHistory is what explain reads of the history: what fits on a
// screen, and is read in about a second.
var explainedHistory = historyBounds{events: 30, commits: 5000}
