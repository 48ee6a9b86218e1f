package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

func statusCommand(a *app) *cobra.Command {
	format := newOutput("table", "json")
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the fleet at a glance",
		Long: `Show what the status branch says: what was swept, how far each policy is, which
devices need a person, and what the others wait for. What does not run on a
device that is where it should be (an application, a unit, a disk that is full)
is read from its newest report: it comes and goes, so git has nothing of it.

Exit codes: 0 it is shown, also where it tells of a stop; 1 it could not be
read, or devices were given more than it knows of, which stops every daemon.`,
		GroupID: groupLook,
		Args:    args(0, 0, ""),
		Example: `  gitopsd status --repo /srv/git/fleet.git
  gitopsd status --repo https://git.example/fleet.git -o json | jq .counts`,
	}
	options := bindReader(cmd)
	format.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		r, err := options.open(cmd, a)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.close()) }()
		status, doubt, err := r.doubtedStatus(cmd.Context())
		if err != nil {
			return err
		}
		if status.Commit == "" {
			return r.noStatus(doubt)
		}
		documents := statusView(status)
		if documents.Head, documents.Ahead, err = r.unswept(cmd.Context(), status); err != nil {
			a.sayln("the head of %s could not be read: %s", r.branch(), clean(err.Error()))
		}
		if documents.Reports, err = r.readReports(cmd.Context(), r.reportRefs()); err != nil {
			a.sayln("what devices say of themselves could not be read: %s", clean(err.Error()))
		}
		fleet := view.NewFleet(r.branch(), documents)
		if format.value == "json" {
			err = writeJSON(a.out, fleet)
		} else {
			err = view.WriteFleet(a.out, fleet, options.look(cmd, a))
		}
		if err != nil {
			return err
		}
		return doubted(doubt)
	}
	return cmd
}

func (r *reader) readStatus(ctx context.Context) (*sweep.Status, error) {
	status, err := sweep.ReadStatus(ctx, r.fleet, r.statusBranch())
	if err == nil {
		return status, nil
	}
	err = fmt.Errorf("cannot read the status of %s: %w", redact(r.spec.Repo.URL), err)
	if remedy := sweep.ReadRemedy(err); remedy != "" {
		return nil, withHint(err, "%s", remedy)
	}
	return nil, repoHint(err, r.spec.Repo.URL)
}

// doubtedStatus is the status branch with what speaks against it: a daemon
// that finds it older than what devices were given writes nothing there any
// more, and it would look like that of a fleet at rest.
func (r *reader) doubtedStatus(ctx context.Context) (*sweep.Status, *sweep.Doubt, error) {
	status, err := r.readStatus(ctx)
	if err != nil {
		return nil, nil, err
	}
	doubt, err := sweep.FindDoubt(ctx, r.fleet, status, r.statusBranch(), or(r.spec.Refs.Devices, schema.DefaultDeviceRefs))
	if err != nil {
		return nil, nil, repoHint(fmt.Errorf("cannot compare the status of %s with what devices were given: %w", redact(r.spec.Repo.URL), err), r.spec.Repo.URL)
	}
	return status, doubt, nil
}

// status is one that decisions can be foreseen from: a doubted one is an
// error.
func (r *reader) status(ctx context.Context) (*sweep.Status, error) {
	status, doubt, err := r.doubtedStatus(ctx)
	if err != nil {
		return nil, err
	}
	return status, doubted(doubt)
}

// doubted ends a command with 1 that has shown a status, or would have.
func doubted(d *sweep.Doubt) error {
	if d == nil {
		return nil
	}
	return withHint(fmt.Errorf("no daemon goes on from this status (%s): %s", d.Reason, d.Message), "%s", d.Remedy)
}

// noStatus is for a repository that was never swept, or has lost what a sweep
// wrote.
func (r *reader) noStatus(doubt *sweep.Doubt) error {
	if doubt != nil {
		return doubted(doubt)
	}
	if err := onlyAClone(r.spec, r.fleet, r.statusBranch()); err != nil {
		return err
	}
	return withHint(fmt.Errorf("%s has no branch %s: no sweep was done yet", redact(r.spec.Repo.URL), r.statusBranch()),
		"gitopsd serve --repo %s --once does the first sweep; another branch is named with --status-branch", shellWord(redact(r.spec.Repo.URL)))
}

// statusView is what package view needs of the status branch.
func statusView(s *sweep.Status) view.Status {
	v := view.Status{
		Commit: s.Commit, Fleet: s.Fleet, Marks: s.Marks,
		Devices: map[string]*schema.DeviceStatus{}, Holds: map[string]string{}, Gone: map[string]bool{},
	}
	for _, d := range s.Devices {
		v.Devices[d.Path] = d.Status
		if a := d.Assignment; a != nil {
			v.Gone[d.Path] = a.Removed
			if a.Hold != nil {
				v.Holds[d.Path] = a.Hold.Reason
			}
		}
	}
	return v
}

// unswept is the head of the source branch and how many of its commits no
// sweep has seen. They are counted where the history is at hand; a remote
// repository would have to send it.
func (r *reader) unswept(ctx context.Context, status *sweep.Status) (head string, ahead int, err error) {
	ref := "refs/heads/" + r.branch()
	refs, err := r.fleet.Refs(ctx, ref)
	if err != nil {
		return "", 0, err
	}
	head = refs[ref]
	if head == "" || status.Fleet == nil || status.Fleet.SourceCommit == "" || head == status.Fleet.SourceCommit || r.fleet.Path() == "" {
		return head, 0, nil
	}
	const enough = 1000 // to say that a daemon has not swept for long
	err = r.fleet.Log(ctx, head, status.Fleet.SourceCommit, func(string, string, time.Time, string) bool {
		ahead++
		return ahead < enough
	})
	return head, ahead, err
}
