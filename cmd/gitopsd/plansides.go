package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

// workingTree is what the files of a folder are called beside commits.
const workingTree = "working tree"

// revisionOptions are the flags of commands that compare two revisions.
type revisionOptions struct{ base, head string }

func bindRevisions(cmd *cobra.Command) *revisionOptions {
	o := &revisionOptions{}
	cmd.Flags().Var((*nonEmpty)(&o.base), "base", "`revision` to compare with (default where the source branch and the head parted)")
	cmd.Flags().Var((*nonEmpty)(&o.head), "head", "`revision` to look at (default the working tree)")
	for _, name := range []string{"base", "head"} {
		_ = cmd.RegisterFlagCompletionFunc(name, offerNothing) // the error is for a flag that does not exist
	}
	return o
}

// sides loads what a preview compares.
type sides struct {
	app    *app
	dir    string
	spec   schema.ServeSpec
	loader schema.Loader
	local  *localGit // nil = the folder belongs to no repository
	// noLocal is why the repository of the folder cannot be read.
	noLocal error
}

// side is a revision that was loaded.
type side struct {
	place preview.Place
	fleet *schema.Fleet
	files *files
}

// revision is a side with the plan that was made for it.
func (s *side) revision(plan planner.Result) preview.Revision {
	return preview.Revision{Place: s.place, Fleet: s.fleet, Plan: plan, Read: s.files.payload}
}

func (a *app) openSides(dir string, spec schema.ServeSpec) *sides {
	s := &sides{app: a, dir: dir, spec: spec, loader: schema.Loader{OwnVersion: a.build.Version}}
	s.local, s.noLocal = openLocalGit(dir, spec)
	return s
}

func (s *sides) close() error {
	if s.local == nil {
		return nil
	}
	return s.local.repo.Close()
}

// head loads what is looked at. An invalid one is given with an error, after its
// problems were printed.
func (s *sides) head(ctx context.Context, revision string) (*side, error) {
	var head *side
	name := s.dir
	if revision == "" {
		src, err := dirSource(s.dir)
		if err != nil {
			return nil, err
		}
		if head, err = s.load(preview.Place{Name: workingTree}, src); err != nil {
			return nil, err
		}
		if !looksLikeFleet(head.files, head.fleet) {
			return nil, noFleet(s.dir)
		}
	} else {
		commit, err := s.find(ctx, revision)
		if err != nil {
			return nil, err
		}
		name = "the fleet at " + revision
		if head, err = s.load(preview.Place{Name: revision, Commit: commit}, s.local.source(ctx, commit)); err != nil {
			return nil, err
		}
		if !looksLikeFleet(head.files, head.fleet) {
			return nil, fmt.Errorf("%s does not look like a fleet repository: %s", name, nothingThere(s.local))
		}
	}
	switch {
	case head.fleet.Valid():
	case revision == "":
		return head, s.app.invalid(name, head.fleet)
	default:
		return head, withHint(s.app.notValid(name, head.fleet), "check out %s, correct what stands above, and gitopsd validate checks it again", revision)
	}
	return head, nil
}

func nothingThere(l *localGit) string {
	if l.prefix != "" {
		return "it holds no document below " + l.prefix
	}
	return "it holds no document"
}

// base loads what the head is compared with. Where that is left to this
// program, or its content is not valid, there may be none, and note says why.
func (s *sides) base(ctx context.Context, revision string, head *side) (base *side, note string, err error) {
	place := preview.Place{Name: revision}
	if revision != "" {
		if place.Commit, err = s.find(ctx, revision); err != nil {
			return nil, "", err
		}
	} else {
		switch {
		case s.noLocal != nil:
			return nil, "the git repository of this folder cannot be read: " + s.noLocal.Error(), nil
		case s.local == nil:
			return nil, "this folder belongs to no git repository", nil
		}
		if place, note, err = s.local.parted(ctx, s.spec.Branch, head.place.Commit); err != nil {
			return nil, "no revision to compare with was found: " + err.Error(), nil
		}
		if place.Commit == "" {
			return nil, note, nil
		}
	}
	base, err = s.load(place, s.local.source(ctx, place.Commit))
	switch {
	case err != nil && revision != "":
		return nil, "", err
	case err != nil:
		return nil, fmt.Sprintf("%s cannot be read: %v", place.Name, err), nil
	case base.fleet.Files == 0 && len(base.fleet.Problems) == 0:
		return nil, place.Name + " holds no fleet here", nil
	case !base.fleet.Valid():
		wrong, _ := tally(base.fleet.Problems)
		return nil, fmt.Sprintf("%s is not valid itself (%s), so what it says is not compared with", place.Name, plural(wrong, "error")), nil
	}
	return base, note, nil
}

// find gives the commit of a revision that was asked for.
func (s *sides) find(ctx context.Context, revision string) (string, error) {
	action := fmt.Errorf("cannot look at the revision %q", revision)
	switch {
	case s.noLocal != nil:
		return "", fmt.Errorf("%w: %w", action, s.noLocal)
	case s.local == nil:
		return "", withHint(fmt.Errorf("%w: %s belongs to no git repository", action, s.dir), "name a clone of the fleet repository")
	}
	commit, err := s.local.repo.Revision(ctx, revision)
	var e *repo.Error
	if errors.As(err, &e) {
		return "", withOptionalHint(fmt.Errorf("%w: %w", action, e.Err), e.Hint)
	}
	return commit, err
}

func withOptionalHint(err error, hint string) error {
	if hint == "" {
		return err
	}
	return withHint(err, "%s", hint)
}

func (s *sides) load(place preview.Place, src schema.Source) (*side, error) {
	f := newFiles(src)
	fleet, err := s.loader.Load(f)
	if err != nil {
		return nil, fmt.Errorf("cannot read the fleet of %s: %w", place.Name, err)
	}
	return &side{place: place, fleet: fleet, files: f}, nil
}

// files is a source that is read by content id, too.
type files struct {
	listedOnce
	byID map[string]schema.Entry // made when it is first asked for
}

func newFiles(src schema.Source) *files { return &files{listedOnce: listedOnce{Source: src}} }

// payloadLimit bounds a payload that is read, in bytes; validation allows no
// larger one.
const payloadLimit = 64 << 20

func (f *files) payload(id string) ([]byte, error) {
	if f.byID == nil {
		entries, err := f.Entries()
		if err != nil {
			return nil, err
		}
		f.byID = make(map[string]schema.Entry, len(entries))
		for _, e := range entries {
			if e.ID != "" {
				f.byID[e.ID] = e
			}
		}
	}
	e, ok := f.byID[id]
	if !ok {
		return nil, fmt.Errorf("there is no content %s", id)
	}
	return f.Read(e, payloadLimit)
}

// comparison is what a command wants to be compared.
type comparison struct {
	options   *readerOptions
	revisions *revisionOptions
	dir       string
	// assigned says that what was assigned is compared with, where no base is
	// named and a repository is.
	assigned bool
	// invalid hears of a head that is not valid; nil = its problems on standard
	// error are enough.
	invalid func(*sides, *side) error
	// then is called while all of both sides can be read.
	then func(*sides, preview.Input) error
}

// compare loads both sides and the present status, and plans.
func (a *app) compare(cmd *cobra.Command, c comparison) (err error) {
	spec, _, _, err := c.options.resolve(cmd, a.env)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	s := a.openSides(c.dir, spec)
	defer func() { err = errors.Join(err, s.close()) }()
	head, err := s.head(ctx, c.revisions.head)
	if err != nil {
		if head != nil && c.invalid != nil {
			err = errors.Join(err, c.invalid(s, head))
		}
		return err
	}
	in := preview.Input{Now: time.Now(), DeletionLimit: func(total int) int { return sweep.DeletionLimit(head.fleet, total) }}
	var base *side
	// What a device was assigned is nearer to it than what some commit says.
	if !c.assigned || c.revisions.base != "" || spec.Repo.URL == "" {
		if base, in.Note, err = s.base(ctx, c.revisions.base, head); err != nil {
			return err
		}
	}
	present, err := openPresent(ctx, spec)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, present.close()) }()
	in.Present, in.Standing = present.devices, present.standing()
	in.Head = head.revision(present.plan(head.fleet, in.Now, a.build.Version))
	if base != nil {
		revision := base.revision(present.plan(base.fleet, in.Now, a.build.Version))
		in.Base = &revision
	}
	return c.then(s, in)
}
