package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func initCommand(a *app) *cobra.Command {
	var parts []string
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a commented starter fleet repository",
		Long: `Write a small fleet repository with comments into DIR (default: here). It is
valid as it is, and its policy is switched off. Files that exist are never
overwritten: if one is in the way, nothing is written.

What is written has parts, of which --parts names some:
  fleet    the documents of the fleet, and a page on them
  editor   JSON Schemas in .gitopsd/schemas, which editors with
           yaml-language-server use without a network, and settings for VS Code
  github   a workflow that checks pull requests, for GitHub
  gitlab   a pipeline that checks merge requests, for GitLab

Where DIR lies inside a git repository, a workflow would not be run from there.
It is left out, or written to the root of the repository where --parts names it.`,
		GroupID:           groupAuthor,
		Args:              args(0, 1, "[DIR]"),
		ValidArgsFunction: completeFolder(0),
		Example: `  gitopsd init fleet
  cd fleet && git init -b main && git add . && git commit -m "a fleet"
  gitopsd init --parts fleet,gitlab fleet
  gitopsd init --parts editor,github       # for a fleet that there is already`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := folder(args, 0)
			s := &starter{dir: dir, parts: parts, version: a.build.Version}
			if err := s.check(); err != nil {
				return err
			}
			root, prefix := repositoryAround(dir)
			s.root, s.prefix = root, prefix
			if prefix != "" && !cmd.Flags().Changed("parts") {
				s.parts = slices.DeleteFunc(slices.Clone(s.parts), func(p string) bool { return p == partGitHub })
				a.sayln("no workflow: %s is a folder of the repository %s; gitopsd init --parts github %s writes one there", dir, root, shellWord(dir))
			}
			paths, err := s.write()
			if err != nil {
				return err
			}
			for _, p := range paths {
				if _, err := fmt.Fprintln(a.out, filepath.Join(dir, p)); err != nil {
					return err
				}
			}
			if !slices.Contains(s.parts, partFleet) {
				return nil
			}
			at := ""
			if dir != "." {
				at = " -C " + shellWord(dir)
			}
			a.sayln("next: %s", command("gitopsd validate", dir))
			begin := ""
			if prefix == "" && !isWorkTree(dir) {
				begin = fmt.Sprintf("git%s init -q -b main && ", at)
			}
			a.sayln("then: %sgit%s add . && git%s commit -q -m 'a fleet'", begin, at, at)
			return nil
		},
	}
	cmd.Flags().StringSliceVar(&parts, "parts", defaultParts(), "the `parts` to write, of "+strings.Join(starterParts(), ", "))
	completeFlag(cmd, "parts", "", starterParts())
	return cmd
}
