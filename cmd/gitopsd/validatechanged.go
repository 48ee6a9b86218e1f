package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gitopsd/gitopsd/internal/advice"
	"github.com/gitopsd/gitopsd/internal/listing"
	"github.com/gitopsd/gitopsd/schema"
)

// validation checks the fleet in a folder; since narrows what is shown.
func (a *app) validation(ctx context.Context, dir, since string) (*listing.Result, error) {
	loader, tree, err := a.problemsOf(dir, since != "")
	if err != nil {
		return nil, err
	}
	now := time.Now()
	var old *oldFleet
	if since == "" {
		defer a.frugally()()
	} else {
		if old, err = a.readOld(ctx, loader, dir, since, now); err != nil {
			return nil, err
		}
	}
	fleet, err := loader.Load(tree)
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", cannotReadFleet, dir, err)
	}
	if !looksLikeFleet(tree, fleet) {
		return nil, noFleet(dir)
	}
	entries, err := tree.Entries()
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", cannotReadFleet, dir, err)
	}
	r := &listing.Result{
		Dir: dir, Root: a.rootOf(dir), Problems: advice.Check(fleet, now), Files: fleet.Files, Devices: len(fleet.Devices),
		Valid: fleet.Valid(), Lines: listing.NewLines(tree, entries), Version: a.build.Version,
	}
	if old != nil {
		old.narrow(r, entries)
	}
	return r, nil
}

// rootOf is where a folder lies in its repository, as forges name paths; where
// no .git is, in the workspace of the pipeline.
func (a *app) rootOf(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	root := abs
	for !isWorkTree(root) {
		if root == filepath.Dir(root) {
			root = a.env["GITHUB_WORKSPACE"]
			if real, err := filepath.EvalSymlinks(root); err == nil {
				root = real
			}
			break
		}
		root = filepath.Dir(root)
	}
	rel, err := filepath.Rel(root, abs)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.ToSlash(rel) + "/"
}

// oldFleet is what a fleet is compared with.
type oldFleet struct {
	since   listing.Since
	entries map[string]schema.Entry
	known   map[knownProblem]int
}

// knownProblem is a problem wherever in its file it stands: lines move.
type knownProblem struct {
	file, pointer, rule, message string
	severity                     schema.Severity
}

func known(p schema.Problem) knownProblem {
	return knownProblem{p.File, p.Pointer, p.Rule, p.Message, p.Severity}
}

// readOld loads the fleet at the commit where the revision and what is checked
// out have parted.
func (a *app) readOld(ctx context.Context, loader *schema.Loader, dir, revision string, now time.Time) (old *oldFleet, err error) {
	s := a.openSides(dir, schema.ServeSpec{})
	defer func() { err = errors.Join(err, s.close()) }()
	commit, err := s.find(ctx, revision)
	if err != nil {
		return nil, err
	}
	if commit, err = a.whereParted(ctx, s.local, revision, commit); err != nil {
		return nil, err
	}
	tree := newFiles(s.local.source(ctx, commit))
	fleet, err := loader.Load(tree)
	if err != nil {
		return nil, withHint(fmt.Errorf("cannot read the fleet of %s: %w", revision, err), "in a pipeline, check out with the history (fetch-depth: 0)")
	}
	entries, err := tree.Entries()
	if err != nil {
		return nil, fmt.Errorf("cannot read the fleet of %s: %w", revision, err)
	}
	old = &oldFleet{since: listing.Since{Revision: revision, Commit: commit}, entries: map[string]schema.Entry{}, known: map[knownProblem]int{}}
	for _, e := range entries {
		old.entries[e.Path] = e
	}
	for _, p := range advice.Check(fleet, now) {
		old.known[known(p)]++
	}
	return old, nil
}

// whereParted is the last commit that a revision and what is checked out have
// in common, so that what others merged meanwhile is not taken for a change of
// this one. Where none is at hand, it is the revision itself.
func (a *app) whereParted(ctx context.Context, local *localGit, revision, commit string) (string, error) {
	head, err := local.repo.Revision(ctx, "HEAD")
	if err != nil {
		return "", fmt.Errorf("cannot tell what changed since %s: %w", revision, err)
	}
	base, err := local.repo.MergeBase(ctx, commit, head)
	if err != nil {
		return "", fmt.Errorf("cannot tell what changed since %s: %w", revision, err)
	}
	if base == "" {
		why := "they have no commit in common"
		if local.repo.IsShallow() {
			why = "this clone is shallow (fetch-depth: 0 of a pipeline, or git fetch --unshallow)"
		}
		a.sayln("compared with %s itself, and not with where this branch left it: %s", revision, why)
		return commit, nil
	}
	return base, nil
}

// narrow takes away what the change cannot have caused: problems of files that
// are as they were, as far as the same was wrong with them before. What is
// wrong in a file because another one changed is not among those.
func (o *oldFleet) narrow(r *listing.Result, entries []schema.Entry) {
	same := make(map[string]bool, len(entries))
	for _, e := range entries {
		before, was := o.entries[e.Path]
		same[e.Path] = was && e.ID != "" && e.ID == before.ID && e.Mode == before.Mode ||
			was && e.ID == "" && e.Mode == before.Mode && e.Mode != schema.ModeRegular && e.Mode != schema.ModeExecutable
	}
	shown := []schema.Problem{}
	for _, p := range r.Problems {
		// What lies in no file of the repository, a folder or one that is
		// missing, can only be told by what was said of it.
		_, inFile := same[p.File]
		if k := known(p); o.known[k] > 0 && (!inFile || same[p.File]) {
			o.known[k]--
			if p.Severity == schema.SeverityError {
				o.since.Errors++
			} else {
				o.since.Warnings++
			}
			continue
		}
		shown = append(shown, p)
	}
	r.Problems, r.Since = shown, &o.since
}
