package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/edit"
	"github.com/gitopsd/gitopsd/schema"
)

// editResult is the JSON of the verbs that change files.
type editResult struct {
	schema.TypeMeta
	Changed bool     `json:"changed"` // false: it was so already
	Written bool     `json:"written"` // false as well with --dry-run
	File    string   `json:"file"`    // the document, from the root of the repository
	Files   []string `json:"files"`   // all that change
	Diff    string   `json:"diff"`    // unified
	Message string   `json:"message"` // for the commit
	Next    []string `json:"next"`    // commands
	Notes   []string `json:"notes"`   // what a person should know
}

// edited is what a verb wants to do, before anything is written.
type edited struct {
	changes []fileChange // the first one is of the document
	message string       // for the commit
	notes   []string
	already string   // what to say where nothing is to be done
	after   []string // commands for once it is committed, instead of a plan
}

// editOptions are the flags that all verbs have.
type editOptions struct {
	format *output
	dryRun bool
}

func bindEdit(cmd *cobra.Command) *editOptions {
	o := &editOptions{format: newOutput("diff", "json")}
	o.format.bind(cmd)
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show the change without writing it")
	return o
}

// change runs a verb on the fleet repository in a folder.
func (a *app) change(ctx context.Context, dir string, o *editOptions, verb func(t *workTree) (edited, error)) error {
	t, err := openWorkTree(dir, a.build.Version)
	if err != nil {
		return err
	}
	e, err := verb(t)
	if err != nil {
		return err
	}
	r := editResult{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "EditResult"},
		File:     e.changes[0].path, Files: []string{}, Next: []string{}, Notes: append([]string{}, e.notes...),
	}
	fresh := false
	for _, c := range e.changes {
		if c.same() {
			continue
		}
		r.Changed, fresh = true, fresh || c.before == nil
		r.Files = append(r.Files, c.path)
		if c.copyOf == nil {
			r.Diff += edit.Diff(c.path, c.before, c.after)
		}
	}
	if !r.Changed {
		r.Notes = append([]string{e.already + "; there is nothing to do"}, r.Notes...)
		return a.writeEdit(r, o)
	}
	before := t.fleet
	if err := a.checkChanges(t, e.changes); err != nil {
		return err
	}
	if wrong, _ := tally(before.Problems); wrong > 0 {
		left, _ := tally(t.fleet.Problems)
		if left > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("the fleet has %s, as before; %s lists them", plural(left, "error"), command("gitopsd validate", dir)))
		}
	}
	r.Message = e.message
	r.Next = nextCommands(dir, r.Message, e.changes[0].path, fresh)
	if len(e.after) > 0 {
		r.Next = append(r.Next[:len(r.Next)-1], e.after...)
	}
	if !o.dryRun {
		if err := writeChanges(ctx, t.dir, e.changes); err != nil {
			return err
		}
		r.Written = true
	}
	return a.writeEdit(r, o)
}

// nextCommands are what a person runs after a change.
func nextCommands(dir, message, file string, fresh bool) []string {
	git := "git"
	if dir != "." {
		git += " -C " + shellWord(dir)
	}
	file = strings.TrimSuffix(file, "/release.yaml") // with its payloads
	var list []string
	if fresh {
		list = append(list, git+" add "+shellWord(file))
	}
	return append(list, git+" commit -m "+shellWord(message)+" "+shellWord(file), command("gitopsd plan", dir))
}

// command is a command for the fleet repository in a folder.
func command(name, dir string) string {
	if dir == "." {
		return name
	}
	return name + " " + shellWord(dir)
}

func (a *app) writeEdit(r editResult, o *editOptions) error {
	if o.format.value == "json" {
		return writeJSON(a.out, r)
	}
	if err := a.writeDiff(r.Diff); err != nil {
		return err
	}
	for _, n := range r.Notes {
		a.sayln("%s", clean(n))
	}
	if !r.Changed {
		return nil
	}
	if !r.Written {
		a.sayln("nothing was written, because of --dry-run")
		return nil
	}
	for i, n := range r.Next {
		lead := "then: "
		if i == 0 {
			lead = "next: "
		}
		a.sayln("%s%s", lead, clean(n))
	}
	return nil
}

// Colours of a diff on a terminal (ECMA-48, SGR), as git has them.
const (
	diffHead    = "1"
	diffHunk    = "36"
	diffRemoved = "31"
	diffAdded   = "32"
)

// writeDiff writes a diff: as it is into a file or a pipe, where a program may
// apply it, and fit for the eyes on a terminal.
func (a *app) writeDiff(diff string) error {
	if _, _, terminal := terminalSize(a.out); !terminal {
		_, err := io.WriteString(a.out, diff)
		return err
	}
	colored := a.look().Color
	for line := range strings.Lines(diff) {
		text, color := clean(strings.TrimRight(line, "\r\n")), ""
		switch {
		case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
			color = diffHead
		case strings.HasPrefix(line, "@@"):
			color = diffHunk
		case strings.HasPrefix(line, "-"):
			color = diffRemoved
		case strings.HasPrefix(line, "+"):
			color = diffAdded
		}
		if colored && color != "" {
			text = "\x1b[" + color + "m" + text + "\x1b[0m"
		}
		if _, err := fmt.Fprintln(a.out, text); err != nil {
			return err
		}
	}
	return nil
}

// subjectLength is the length of a commit's subject, in characters, that the
// tools which list commits show whole.
const subjectLength = 72

// subject is a commit message of one line.
func subject(format string, args ...any) string {
	s := []rune(clean(fmt.Sprintf(format, args...)))
	if len(s) > subjectLength {
		return strings.TrimRight(string(s[:subjectLength-1]), " ") + "…"
	}
	return string(s)
}
