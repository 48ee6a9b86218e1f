package main

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

// localGit is the git repository that a folder belongs to.
type localGit struct {
	repo   *repo.Repo
	prefix string // of the folder in it, with a slash at its end; "" = its root
}

// openLocalGit finds the repository of a folder; nil where there is none.
func openLocalGit(dir string, spec schema.ServeSpec) (*localGit, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	for at := abs; ; at = filepath.Dir(at) {
		if isWorkTree(at) || at == abs && isBare(at) {
			r, err := repo.Open(repo.Config{URL: at, Timeout: spec.Timeout.D(defaultTimeout)})
			if err != nil {
				return nil, err
			}
			prefix, err := filepath.Rel(at, abs)
			if err != nil || prefix == "." {
				return &localGit{repo: r}, nil
			}
			return &localGit{repo: r, prefix: filepath.ToSlash(prefix) + "/"}, nil
		}
		if at == filepath.Dir(at) {
			return nil, nil
		}
	}
}

// source gives the files of a commit, as far as they are of the folder.
func (l *localGit) source(ctx context.Context, commit string) schema.Source {
	src := sweep.Source(ctx, l.repo, commit)
	if l.prefix == "" {
		return src
	}
	return &subfolder{Source: src, prefix: l.prefix}
}

// subfolder is a folder of a source.
type subfolder struct {
	schema.Source
	prefix string
}

// Entries lists the folder, in the order of the source.
func (b *subfolder) Entries() ([]schema.Entry, error) {
	all, err := b.Source.Entries()
	if err != nil {
		return nil, err
	}
	var entries []schema.Entry
	for _, e := range all {
		if rest, ok := strings.CutPrefix(e.Path, b.prefix); ok {
			e.Path = rest
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// parted finds what a head is compared with where nobody says: the commit at
// which it left the source branch. A working tree without commits of its own is
// compared with HEAD, a commit that is on the source branch already with its
// first parent.
func (l *localGit) parted(ctx context.Context, branch, head string) (preview.Place, string, error) {
	before, own := "HEAD", head == ""
	if own {
		var err error
		if head, err = l.repo.Revision(ctx, "HEAD"); err != nil {
			return preview.Place{}, "", err
		}
	} else {
		before = head + "^"
	}
	candidates := []string{"refs/remotes/origin/HEAD", "refs/remotes/origin/" + schema.DefaultBranch, "refs/heads/" + schema.DefaultBranch}
	if branch != "" {
		candidates = []string{"refs/remotes/origin/" + branch, "refs/heads/" + branch}
	}
	onIt := false
	for _, ref := range candidates {
		upstream, err := l.repo.Revision(ctx, ref)
		if err != nil {
			continue // not that one
		}
		base, err := l.repo.MergeBase(ctx, upstream, head)
		if err != nil {
			return preview.Place{}, "", err
		}
		if base == "" {
			continue
		}
		if onIt = base == head; onIt {
			break
		}
		name := shortRef(ref)
		if base != upstream {
			name = "where it left " + name
		}
		return preview.Place{Name: name, Commit: base}, "", nil
	}
	if !onIt && l.repo.IsShallow() {
		// HEAD would be taken for the base of a change that it is a part of.
		return preview.Place{}, "where the source branch and this one parted is not in this shallow clone (fetch-depth: 0 of a pipeline, git fetch --unshallow, or --base)", nil
	}
	commit, err := l.repo.Revision(ctx, before)
	if err != nil && !own {
		return preview.Place{}, "this is the first commit", nil
	}
	if own {
		return preview.Place{Name: "HEAD", Commit: commit}, "", err
	}
	return preview.Place{Name: "the commit before", Commit: commit}, "", err
}

// shortRef is a ref as people call it.
func shortRef(ref string) string {
	for _, lead := range []string{"refs/heads/", "refs/remotes/"} {
		if rest, ok := strings.CutPrefix(ref, lead); ok {
			return strings.TrimSuffix(rest, "/HEAD")
		}
	}
	return ref
}
