package main

import (
	"context"
	"slices"
	"strings"
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

// pastTargets is what the git repository of a work tree says of the versions
// that a policy had.
type pastTargets struct {
	versions []string // newest first, each once; also the present one
	whole    bool     // nothing before them was left out
	// failures are the marks on the status branch, as far as the clone has
	// that branch.
	failures []*schema.FailureMarks
}

// targetsBefore are the targets that a policy has had in the commits of a work
// tree. They are none where there is no history.
func targetsBefore(ctx context.Context, dir, file string) pastTargets {
	local, err := openLocalGit(dir, schema.ServeSpec{})
	if err != nil || local == nil {
		return pastTargets{}
	}
	r := local.repo
	defer r.Close()
	past := pastTargets{failures: knownFailures(ctx, r)}
	branch, err := r.Head(ctx)
	if err != nil || branch == "" {
		return past
	}
	ref := "refs/heads/" + branch
	refs, err := r.Refs(ctx, ref)
	if err != nil || refs[ref] == "" {
		return past
	}
	var commits []string
	err = r.Log(ctx, refs[ref], "", func(hash, _ string, _ time.Time, _ string) bool {
		commits = append(commits, hash)
		return len(commits) <= targetCommits
	})
	past.whole = err == nil && !r.IsShallow() && len(commits) <= targetCommits
	if past.whole {
		commits = append(commits, "") // the root's parent is nothing
	}
	all := false
	past.versions, all = targetsOf(ctx, r, commits, local.prefix+file)
	past.whole = past.whole && all
	return past
}

// knownFailures are the failures that the status branch tells, or the copy of
// it that a clone has.
func knownFailures(ctx context.Context, r *repo.Repo) []*schema.FailureMarks {
	for _, branch := range []string{"refs/heads/" + schema.DefaultStatusBranch, "refs/remotes/origin/" + schema.DefaultStatusBranch} {
		refs, err := r.Refs(ctx, branch)
		if err != nil || refs[branch] == "" {
			continue
		}
		var marks []*schema.FailureMarks
		// What cannot be read tells of no failure, and of nothing else either.
		_ = r.Walk(ctx, refs[branch], func(p, blob string, _ uint32) error {
			if !strings.HasPrefix(p, "failures/") {
				return nil
			}
			data, err := r.Blob(ctx, blob, documentLimit)
			if err != nil {
				return err
			}
			m := &schema.FailureMarks{}
			schema.Decode(p, data, m)
			marks = append(marks, m)
			return nil
		})
		return marks
	}
	return nil
}

// failed is how many devices of a policy have failed or refused a version.
func (past *pastTargets) failed(p *schema.Policy, version string) int {
	n := 0
	for _, m := range past.failures {
		if m.Policy == p.Metadata.Name && or(m.Line, m.Policy) == lineOf(p) && sameVersion(m.Version, version) {
			n += len(m.Marks)
		}
	}
	return n
}

// targetsOf reads the versions of a policy's file in commits, newest first;
// what cannot be read is left out. It says whether it looked at all of them.
func targetsOf(ctx context.Context, r *repo.Repo, commits []string, file string) (targets []string, all bool) {
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
			return targets, false
		}
		if blob == "" {
			continue
		}
		changes++
		data, err := r.Blob(ctx, blob, documentLimit)
		if err != nil {
			return targets, false
		}
		var policy schema.Policy
		schema.Decode(file, data, &policy)
		if v := policy.Spec.TargetVersion; v != "" && !slices.Contains(targets, v) {
			targets = append(targets, v)
		}
	}
	return targets, changes < targetChanges
}
