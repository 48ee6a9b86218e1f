package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/comment"
	"github.com/gitopsd/gitopsd/internal/preview"
)

// commentOutput is where a preview goes as the comment of a pull request.
type commentOutput struct {
	file string // "" = nowhere, "-" = standard output
}

func (o *commentOutput) bind(cmd *cobra.Command) {
	cmd.Flags().Var((*nonEmpty)(&o.file), "comment-file", "also write the comment of a pull request to `file`")
}

// alone says whether the comment is all that standard output gets.
func (o *commentOutput) alone() bool { return o.file == "-" }

// check refuses what can be seen to be wrong beforehand. That the file cannot be
// written is no reason to keep the plan to oneself.
func (o *commentOutput) check(cmd *cobra.Command, dir string) error {
	if o.alone() && cmd.Flags().Changed("output") {
		return withHint(usagef("the comment and the plan would both go to standard output"), "name a file for the comment, or leave out -o")
	}
	if path, err := reportPath(o.file); err == nil && isYAML(path) && within(dir, path) {
		return withHint(usagef("--comment-file %s: a YAML file there would be a part of the fleet", o.file), "give the comment another ending, such as .md")
	}
	return nil
}

func (o *commentOutput) plan(a *app, s *sides, doc *preview.Plan) error {
	shown := *doc
	shown.Note = redactText(doc.Note) // what a library puts into an error may be in it
	return o.write(a, func() string {
		return comment.Render(&shown, comment.Options{Name: s.fleetName(), Command: s.command(doc.Head, doc.Base)})
	})
}

func (o *commentOutput) problems(a *app, s *sides, head *side) error {
	return o.write(a, func() string {
		options := comment.Options{Name: s.fleetName(), Command: s.command(head.place, nil)}
		return comment.RenderProblems(head.place, head.fleet.Problems, options)
	})
}

func (o *commentOutput) write(a *app, render func() string) error {
	if o.file == "" {
		return nil
	}
	if o.alone() {
		_, err := io.WriteString(a.out, render())
		return err
	}
	if err := replaceFile(o.file, []byte(render())); err != nil {
		return fmt.Errorf("cannot write the comment to %s: %w", o.file, err)
	}
	return nil
}

// fleetName tells fleets of one repository apart: the folder of this one.
func (s *sides) fleetName() string {
	if s.local == nil {
		return ""
	}
	return strings.TrimSuffix(s.local.prefix, "/")
}

// command is the line that shows the same plan, with the commits by their
// hashes: a branch moves. A working tree is the reader's own.
func (s *sides) command(head preview.Place, base *preview.Place) string {
	const digits = 12 // of a hash, as git abbreviates it in a large repository
	words := []string{"gitopsd", "plan"}
	if s.dir != "." {
		words = append(words, s.dir)
	}
	if base != nil && base.Commit != "" {
		words = append(words, "--base", base.Commit[:min(digits, len(base.Commit))])
	}
	if head.Commit != "" {
		words = append(words, "--head", head.Commit[:min(digits, len(head.Commit))])
	}
	if s.spec.Repo.URL != "" {
		words = append(words, "--repo", redact(s.spec.Repo.URL))
	}
	for i := range words {
		words[i] = shellWord(words[i])
	}
	return strings.Join(words, " ")
}
