package repo_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/repo"
)

// history makes a clone with a merge, tags, a remote's branch and a linked
// work tree, and opens it.
func history(t *testing.T) (dir string, r *repo.Repo) {
	t.Helper()
	base := t.TempDir()
	dir = filepath.Join(base, "clone")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"init -q -b main", "commit -q --allow-empty -m one", "commit -q --allow-empty -m two", "tag light",
		"tag -a -m annotated heavy", "checkout -q -b side HEAD~1", "commit -q --allow-empty -m three",
		"checkout -q main", "commit -q --allow-empty -m four", "merge -q --no-ff -m five side",
		"update-ref refs/remotes/origin/main main~1", "symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main",
		"branch topic side", "worktree add -q ../linked topic", "pack-refs --all", "repack -q -a -d",
		"commit -q --allow-empty -m six",
	} {
		gitserver.Git(t, dir, strings.Fields(line)...)
	}
	return dir, openAt(t, place{url: dir}, "")
}

func TestRevisionAgreesWithGit(t *testing.T) {
	dir, r := history(t)
	whole := gitserver.Git(t, dir, "rev-parse", "HEAD")
	for _, name := range []string{
		"HEAD", "@", "main", "side", "light", "heavy", "origin", "origin/main", "refs/heads/topic", "tags/light", "heads/main",
		"HEAD~1", "HEAD~", "HEAD^", "HEAD~1^2", "main~1^2~1", "main~2", "heavy^{commit}", "heavy^0", "heavy~1", "HEAD~0",
		whole, whole[:7], whole[:5], strings.ToUpper(whole[:12]),
	} {
		want := gitserver.Git(t, dir, "rev-parse", name+"^{commit}")
		got, err := r.Revision(context.Background(), name)
		if err != nil || got != want {
			t.Errorf("%s: got %s (%v), want %s", name, got, err, want)
		}
	}
	linked := openAt(t, place{url: filepath.Join(filepath.Dir(dir), "linked")}, "")
	want := gitserver.Git(t, dir, "rev-parse", "topic")
	if got, err := linked.Revision(context.Background(), "HEAD"); err != nil || got != want {
		t.Errorf("HEAD of a linked work tree: got %s (%v), want %s", got, err, want)
	}
}

func TestRevisionThatIsNone(t *testing.T) {
	dir, r := history(t)
	tree := gitserver.Git(t, dir, "rev-parse", "HEAD^{tree}")
	for _, name := range []string{
		"", "nothing", "main~99", "main^3", "HEAD^^{tree}", "HEAD:file", "../../etc/passwd", "--upload-pack=x", "\x1b[31m", "main~x",
		"main~99999999999999999999", "^", "~", tree, "ffff", "refs/heads/../../HEAD", strings.Repeat("a", 2000), "HEAD" + strings.Repeat("^", 900),
	} {
		got, err := r.Revision(context.Background(), name)
		var e *repo.Error
		if got != "" || !errors.As(err, &e) || e.Kind() != "not-found" {
			t.Errorf("%q: got %q and %v, want an error of the kind not-found", name, got, err)
		}
		if err != nil && strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("%q: the error has a control character", name)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty")
	gitserver.Git(t, "/", "init", "-q", "-b", "main", empty)
	if _, err := openAt(t, place{url: empty}, "").Revision(context.Background(), "HEAD"); err == nil || !strings.Contains(err.Error(), "no commits yet") {
		t.Errorf("HEAD of an empty repository: %v", err)
	}
}

func TestMergeBaseAgreesWithGit(t *testing.T) {
	dir, r := history(t)
	names := []string{"main", "side", "light", "topic", "main~1", "main~2", "main~3", "origin/main"}
	// Two merges that cross: each has both sides' bases.
	for _, line := range []string{"checkout -q -b left main~2", "merge -q --no-ff -m l side", "checkout -q -b right side", "merge -q --no-ff -m r main~2",
		"commit -q --allow-empty -m r2"} {
		gitserver.Git(t, dir, strings.Fields(line)...)
	}
	names = append(names, "right", "left")
	ctx := context.Background()
	for _, a := range names {
		for _, b := range names {
			x, err := r.Revision(ctx, a)
			if err != nil {
				t.Fatal(err)
			}
			y, err := r.Revision(ctx, b)
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.MergeBase(ctx, x, y)
			all := strings.Fields(gitserver.Git(t, dir, "merge-base", "--all", a, b))
			if err != nil || !slices.Contains(all, got) {
				t.Errorf("%s and %s: got %s (%v), want one of %v", a, b, got, err, all)
			}
		}
	}
	other := gitserver.Git(t, dir, "commit-tree", "-m", "alone", gitserver.Git(t, dir, "rev-parse", "HEAD^{tree}"))
	if got, err := r.MergeBase(ctx, other, gitserver.Git(t, dir, "rev-parse", "main")); got != "" || err != nil {
		t.Errorf("histories that have nothing in common: got %q, %v", got, err)
	}
}

// A clone that was cut off, as pipelines make it, is no damage.
func TestMergeBaseOfAShallowClone(t *testing.T) {
	dir, _ := history(t)
	cut := filepath.Join(t.TempDir(), "cut")
	gitserver.Git(t, "/", "clone", "-q", "--depth", "1", "--no-single-branch", "file://"+dir, cut)
	r := openAt(t, place{url: cut}, "")
	ctx := context.Background()
	main, err := r.Revision(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	side, err := r.Revision(ctx, "origin/side")
	if err != nil {
		t.Fatal(err)
	}
	if _, whole := history(t); whole.IsShallow() || !r.IsShallow() {
		t.Errorf("cut off: the whole one %v, the other %v", whole.IsShallow(), r.IsShallow())
	}
	if got, err := r.MergeBase(ctx, main, side); err != nil || got != "" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := r.Revision(ctx, "main~1"); err == nil || !strings.Contains(err.Error(), "shallow") {
		t.Errorf("a parent that was cut off: %v", err)
	}
}

// The parents of a commit are told in their order, also where a clone was cut
// off: what stands in the commit. They cannot be compared with then.
func TestParents(t *testing.T) {
	dir, r := history(t)
	ctx := context.Background()
	for _, commit := range strings.Fields(gitserver.Git(t, dir, "rev-list", "--all")) {
		want := strings.Fields(gitserver.Git(t, dir, "rev-list", "--parents", "-1", commit))[1:]
		if got, err := r.Parents(ctx, commit); err != nil || !slices.Equal(got, want) {
			t.Errorf("of %s: got %v (%v), want %v", commit, got, err, want)
		}
	}
	cut := filepath.Join(t.TempDir(), "cut")
	gitserver.Git(t, "/", "clone", "-q", "--depth", "1", "file://"+dir, cut)
	shallow := openAt(t, place{url: cut}, "")
	head := gitserver.Git(t, cut, "rev-parse", "HEAD")
	parents, err := shallow.Parents(ctx, head)
	if err != nil || len(parents) == 0 {
		t.Fatalf("cut off: got %v (%v), want the parents that stand in it", parents, err)
	}
	err = shallow.Diff(ctx, head, parents[0], func(string, string, string, uint32) error { return nil })
	var kind interface{ Kind() string }
	if !errors.As(err, &kind) || kind.Kind() != "not-found" {
		t.Errorf("a parent that was cut off: %v, want that it is not found", err)
	}
}
