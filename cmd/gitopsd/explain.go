package main

import (
	"context"
	"errors"
	"fmt"

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
that is written, until when and not before when, which checks it has passed, how
those stand that it goes with (policy, waves, pilot, budgets), its attempts and
failures, by whose commit it was assigned what it was, what happened to it, and
what it says of itself. "gitopsd history --help" says which commit that is.

The verdict is that of the status branch. What the next sweep would decide is
planned as well, by the head of the source branch, the brake and the reports; it
gives the details where it comes to the same, and is shown where it does not.`,
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
			return a.notOnRecord(cmd.Context(), r, status, args[0])
		}
		question := view.Question{Path: record.Path, Status: statusView(status), Assignment: record.Assignment}
		a.foresee(ctx, r, status, record.ID, &question)
		// A local repository has its whole history at hand; a remote one would
		// have to send it.
		if r.fleet.Path() != "" || history {
			read, err := r.deviceHistory(ctx, status.Commit, record.Path, explainedHistory, nil)
			if err != nil {
				a.sayln("its history could not be read whole: %s", clean(err.Error()))
			}
			question.Changes, question.Earlier = read.changes, read.enough || read.why != ""
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

// notOnRecord is for a device of which the status branch says nothing.
func (a *app) notOnRecord(ctx context.Context, r *reader, status *sweep.Status, id string) error {
	if status.Retired[id] != nil {
		return withHint(fmt.Errorf("the device %q has left the fleet", id), "gitopsd history %s tells when, and what it was assigned", id)
	}
	if head, fleet, _ := r.headFleet(ctx, a.build.Version); fleet != nil && fleet.Member(id) != nil {
		return withHint(fmt.Errorf("no sweep has seen the device %q, which is in %s", id, view.Short(head)),
			"gitopsd status says when the last sweep was and whether a stop stands; gitopsd plan --repo … shows what the next one would decide")
	}
	var ids []string
	for known := range status.Devices {
		ids = append(ids, known)
	}
	return noDevice(id, ids)
}

// explainedHistory is what explain reads of the history: what fits on a
// screen, and is read in about a second.
var explainedHistory = historyBounds{events: 30, commits: 5000}
