package main

import (
	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/internal/view"
)

func diffCommand(a *app) *cobra.Command {
	format := newOutput("text", "json", "yaml")
	cmd := &cobra.Command{
		Use:   "diff DEVICE [DIR]",
		Short: "Show what a change would do to one device",
		Long: `Show what a change of the fleet repository in DIR (default: here) would do to
one device: each value of its desired spec that differs, with the file and line
that it comes from on both sides, and the lines of files that differ.

The working tree, or the commit that --head names, is compared with the commit
that --base names. Without --base it is compared with what the device was
assigned, where --repo or a configuration says whose status to read, and else
as gitopsd plan does: with where it left the source branch.

What looks like a secret is not printed.`,
		GroupID:           groupAuthor,
		Args:              args(1, 2, "DEVICE [DIR]"),
		ValidArgsFunction: completeDevice(a),
		Example: `  gitopsd diff gw-berlin-01
  gitopsd diff gw-berlin-01 --base main --head topic
  gitopsd diff gw-berlin-01 --repo https://git.example/fleet.git`,
	}
	options := bindReader(cmd)
	revisions := bindRevisions(cmd)
	format.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.compare(cmd, comparison{
			options: options, revisions: revisions, dir: folder(args, 1), assigned: true,
			then: func(_ *sides, in preview.Input) error {
				doc := preview.Look(in, args[0])
				if doc == nil {
					_, err := findMember(in.Head.Fleet, args[0])
					return err
				}
				switch format.value {
				case "json":
					return writeJSON(a.out, doc)
				case "yaml":
					return a.writeYAML(doc)
				}
				return view.WriteDiff(a.out, doc, a.look())
			},
		})
	}
	return cmd
}
