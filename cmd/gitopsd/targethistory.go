package main

import (
	"context"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

// Limits of what is read of the history for one file: years of a fleet, and
// done in well under a second.
const (
	targetCommits = 2000
	targetChanges = 50
)

// targetsBefore are the targets that a policy has had in the commits of a work
// tree, newest first, each once. It is empty where there is no history.
func targetsBefore(ctx context.Context, dir, file string) []string {
	root, inside := gitRoot(dir)
	if root == "" {
		return nil
	}
	r, err := repo.Open(repo.Config{URL: root, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil
	}
	defer r.Close()
	branch, err := r.Head(ctx)
	if err != nil || branch == "" {
		return nil
	}
	ref := "refs/heads/" + branch
	refs, err := r.Refs(ctx, ref)
	if err != nil || refs[ref] == "" {
		return nil
	}
	var commits []string
	err = r.Log(ctx, refs[ref], "", func(hash, _ string, _ time.Time, _ string) bool {
		commits = append(commits, hash)
		return len(commits) <= targetCommits
	})
	if err != nil {
		return nil
	}
	if len(commits) <= targetCommits {
		commits = append(commits, "") // the root's parent is nothing
	}
	return targetsOf(ctx, r, commits, path.Join(inside, file))
}

// targetsOf reads the versions of a policy's file in commits, newest first;
// what cannot be read is left out.
func targetsOf(ctx context.Context, r *repo.Repo, commits []string, file string) []string {
	var targets []string
	changes := 0
	for i := 0; i+1 < len(commits) && changes < targetChanges; i++ {
		blob := ""
		err := r.Diff(ctx, commits[i+1], commits[i], func(p, _, newBlob string, _ uint32) error {
			if p == file {
				blob = newBlob
			}
			return nil
		})
		if err != nil {
			return targets
		}
		if blob == "" {
			continue
		}
		changes++
		data, err := r.Blob(ctx, blob, documentLimit)
		if err != nil {
			return targets
		}
		var policy schema.Policy
		schema.Decode(file, data, &policy)
		if v := policy.Spec.TargetVersion; v != "" && !slices.Contains(targets, v) {
			targets = append(targets, v)
		}
	}
	return targets
}

// gitRoot finds the work tree that a folder is in, and where in it that is.
func gitRoot(dir string) (root, inside string) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", ""
	}
	for up := abs; ; up = filepath.Dir(up) {
		if isWorkTree(up) {
			rel, err := filepath.Rel(up, abs)
			if err != nil {
				return "", ""
			}
			return up, filepath.ToSlash(rel)
		}
		if up == filepath.Dir(up) {
			return "", ""
		}
	}
}
