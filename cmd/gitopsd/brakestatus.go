package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

func brakeStatusCommand(a *app) *cobra.Command {
	format := newOutput("table", "json")
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what the brake stops, since when and by whom",
		Long: `Show what the branch gitopsd/brake stops, since when, by whom and why. A
brake.yaml that cannot be read stops everything, and is told with what is wrong
with it; and so does one that is called otherwise, as brake.yml or
sub/brake.yaml, or another YAML file in its place, until it is renamed.`,
		Args: args(0, 0, ""),
		Example: `  gitopsd brake status --repo /srv/git/fleet.git
  gitopsd brake status --repo https://git.example/fleet.git -o json | jq .on`,
	}
	options := bindReader(cmd)
	format.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		spec, err := options.named(cmd, a)
		if err != nil {
			return err
		}
		b, err := openBrake(spec, repo.Author{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.close()) }()
		ctx := cmd.Context()
		if err := b.swept(ctx); err != nil {
			return err
		}
		state, err := b.read(ctx, true)
		if err != nil {
			return repoHint(err, spec.Repo.URL)
		}
		doc := brakeStatusOf(state)
		if err := b.since(ctx, state, doc.Entries); err != nil {
			doc.Notes = append(doc.Notes, "warning: its history could not be read whole: "+err.Error())
		}
		if !doc.On {
			a.sayln("the brake is off")
		}
		return a.writeBrake(doc, format)
	}
	return cmd
}

// Scopes of a brake.
const (
	scopeAll    = "all"
	scopePolicy = "policy"
	scopeDevice = "device"
)

// brakeStatusOf is the document of a brake: everything first, then policies
// and devices by name.
func brakeStatusOf(state brakeState) brakeStatus {
	b := state.reading.Brake
	doc := brakeStatus{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "BrakeStatus"},
		On:       !b.Empty(), Commit: state.commit, Unreadable: state.reading.Unreadable, Entries: []brakeEntry{}, Notes: []string{},
	}
	if b.All != nil {
		doc.Entries = append(doc.Entries, brakeEntry{Scope: scopeAll, Reason: b.All.Reason})
	}
	for _, name := range slices.Sorted(maps.Keys(b.Policies)) {
		doc.Entries = append(doc.Entries, brakeEntry{Scope: scopePolicy, Name: name, Reason: b.Policies[name].Reason})
	}
	for _, name := range slices.Sorted(maps.Keys(b.Devices)) {
		doc.Entries = append(doc.Entries, brakeEntry{Scope: scopeDevice, Name: name, Reason: b.Devices[name].Reason})
	}
	for _, p := range state.reading.Problems {
		p.Severity = schema.SeverityError // problemText says of a warning that it is one, too
		doc.Notes = append(doc.Notes, "warning: "+problemText(p))
	}
	return doc
}

// stands says whether a brake has an entry, for whatever reason.
func (e *brakeEntry) stands(b schema.Brake) bool {
	switch e.Scope {
	case scopeAll:
		return b.All != nil
	case scopePolicy:
		_, ok := b.Policies[e.Name]
		return ok
	}
	_, ok := b.Devices[e.Name]
	return ok
}

// brakeHistory bounds what is read of the history of the brake, in commits;
// it has one for each time that somebody pulled it.
const brakeHistory = 1000

// since finds the commit since which each entry stands there without a break.
func (b *brake) since(ctx context.Context, state brakeState, entries []brakeEntry) error {
	if state.commit == "" || len(entries) == 0 {
		return nil
	}
	type commit struct {
		hash, author string
		when         time.Time
	}
	var commits []commit
	err := b.repo.Log(ctx, state.commit, "", func(hash, author string, when time.Time, _ string) bool {
		commits = append(commits, commit{hash, author, when})
		return len(commits) < brakeHistory
	})
	if err != nil {
		return err
	}
	ended := make([]bool, len(entries))
	at := state
	for i, c := range commits {
		open := false
		for j := range entries {
			e := &entries[j]
			if ended[j] = ended[j] || !e.stands(at.reading.Brake); ended[j] {
				continue
			}
			when := c.when.UTC()
			e.Since, e.By, e.Commit, open = &when, c.author, c.hash, true
		}
		if !open || i+1 == len(commits) {
			break
		}
		if at, err = b.before(ctx, at, commits[i+1].hash, c.hash); err != nil {
			return err
		}
	}
	return nil
}

// before is the brake one commit earlier.
func (b *brake) before(ctx context.Context, at brakeState, older, newer string) (brakeState, error) {
	touched := false
	err := b.repo.Diff(ctx, older, newer, func(p, _, _ string, _ uint32) error {
		touched = touched || p == brakeFile
		return nil
	})
	switch {
	case err != nil:
		return at, err
	case touched || at.reading.Misnamed != "":
		return b.tree(ctx, older)
	}
	at.commit = older
	return at, nil
}

func (a *app) writeBrake(doc brakeStatus, format *output) error {
	if format.value == "json" {
		return writeJSON(a.out, doc)
	}
	for _, n := range doc.Notes {
		a.sayln("%s", clean(n))
	}
	if len(doc.Entries) == 0 {
		return nil
	}
	t := brakeTable(doc.Entries)
	return t.Write(a.out, a.look())
}

// brakeTable shows what is stopped and, where one of them tells, since when.
func brakeTable(entries []brakeEntry) view.Table {
	dated := slices.ContainsFunc(entries, func(e brakeEntry) bool { return e.Since != nil })
	t := view.Table{Head: []string{"STOPPED", "REASON"}}
	if dated {
		t = view.Table{Head: []string{"STOPPED", "SINCE", "BY", "REASON"}, Spare: []string{"SINCE", "BY"}}
	}
	for _, e := range entries {
		what := "everything"
		if e.Scope != scopeAll {
			what = e.Scope + " " + e.Name
		}
		switch {
		case !dated:
			t.Row(what, e.Reason)
		case e.Since == nil:
			t.Row(what, "-", "-", e.Reason)
		default:
			t.Row(what, e.Since.Format(time.RFC3339), or(e.By, "-"), e.Reason)
		}
	}
	return t
}
