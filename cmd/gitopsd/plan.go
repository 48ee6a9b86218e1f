package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/internal/view"
)

func planCommand(a *app) *cobra.Command {
	format := newOutput("table", "wide", "json", "yaml", "name")
	var (
		notes    commentOutput
		exitCode bool
	)
	cmd := &cobra.Command{
		Use:   "plan [DIR]",
		Short: "Show what a change would do, and what the next sweep would",
		Long: `Show what a change of the fleet repository in DIR (default: here) would do: to
the content of which devices, to the policies, in the worst case; and the
verdict of the next sweep for each device.

The working tree, or the commit that --head names, is compared with the commit
that --base names. Without --base that is where it left the source branch
(origin's, or the local one); a working tree without commits of its own is
compared with HEAD, and a commit of the source branch with the one before.
Revisions are commits of the repository that DIR belongs to, which may be dirty.
A base that is not valid is not compared with.

With --repo (or a configuration that names one) the present status is read from
there; without it devices count as seen, online, idle, capable and at v0.0.0,
and the summary says so. Without a base the head is compared with what was
assigned.

With --comment-file the same is written as one comment for a pull request, in
the markdown of GitHub and within its limits: also for an invalid head, then
with its problems. The file is replaced whole, or stays as it is; - is standard
output, in place of the plan.

Output formats: table, wide (more of each device), json and yaml (everything),
name (the devices that the next sweep would upgrade or recall, one a line).

Exit codes with --exit-code: 0 nothing would be upgraded or recalled, 3
something would. Without it: 0. An invalid head always ends with 3.`,
		GroupID:           groupAuthor,
		Args:              args(0, 1, "[DIR]"),
		ValidArgsFunction: completeFolder(0),
		Example: `  gitopsd plan
  gitopsd plan examples/fleet-repo
  gitopsd plan --repo https://git.example/fleet.git --exit-code
  gitopsd plan --base main --head topic --repo https://git.example/fleet.git
  gitopsd plan --base origin/main --comment-file comment.md
  gitopsd plan -o json | jq -r '.verdicts[] | select(.upgrade) | .device'`,
	}
	options := bindReader(cmd)
	revisions := bindRevisions(cmd)
	format.bind(cmd)
	notes.bind(cmd)
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "end with 3 if something would be upgraded or recalled")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := notes.check(cmd, folder(args, 0)); err != nil {
			return err
		}
		return a.compare(cmd, comparison{
			options: options, revisions: revisions, dir: folder(args, 0),
			invalid: func(s *sides, head *side) error { return notes.problems(a, s, head) },
			then: func(s *sides, in preview.Input) error {
				doc := preview.Compare(in)
				for _, p := range in.Head.Fleet.Problems {
					doc.Summary.Warnings = append(doc.Summary.Warnings, warningText(p))
				}
				if err := notes.plan(a, s, doc); err != nil {
					return err
				}
				if !notes.alone() {
					if err := a.printPlan(doc, format.value); err != nil {
						return err
					}
				}
				if exitCode && doc.Summary.Upgrades+doc.Summary.Recalls > 0 {
					return contentProblems()
				}
				return nil
			},
		})
	}
	return cmd
}

func (a *app) printPlan(doc *preview.Plan, format string) error {
	switch format {
	case "json":
		return writeJSON(a.out, doc)
	case "yaml":
		return a.writeYAML(doc)
	case "name":
		return a.writeMoving(doc)
	}
	return a.writePlan(doc, format == "wide")
}

// writeYAML writes a document whose text may come from a repository.
func (a *app) writeYAML(doc any) error {
	data, err := yaml.Marshal(doc)
	if err != nil {
		return fmt.Errorf("cannot write the document as YAML: %w", err)
	}
	_, err = fmt.Fprint(a.out, view.CleanLines(string(data)))
	return err
}

// writeMoving writes who would move.
func (a *app) writeMoving(doc *preview.Plan) error {
	moves := map[string]bool{}
	for _, r := range doc.Recalls {
		moves[r.Device] = true
	}
	for i := range doc.Verdicts {
		v := &doc.Verdicts[i]
		if !v.Upgrade && !moves[v.Device] {
			continue
		}
		delete(moves, v.Device)
		if _, err := fmt.Fprintln(a.out, clean(v.Device)); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) writePlan(doc *preview.Plan, wide bool) error {
	if err := view.WritePlan(a.out, doc, a.look(), wide); err != nil {
		return err
	}
	for _, w := range doc.Summary.Warnings {
		a.sayln("warning: %s", clean(w))
	}
	text := plural(doc.Summary.Upgrades, "upgrade") + ", " + plural(doc.Summary.Recalls, "recall")
	if doc.Summary.Assumed {
		text += "; no status was read, so every device counts as seen, online, idle and at v0.0.0 (--repo reads it)"
	}
	a.sayln("%s", text)
	return nil
}
