package repo_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/repo"
)

// orphan makes a commit whose content is text.
func orphan(t testing.TB, r *repo.Repo, text string) string {
	t.Helper()
	ctx := context.Background()
	blob := must[string](t, "put")(r.PutBlob(ctx, []byte(text)))
	return must[string](t, "orphan")(r.Orphan(ctx, map[string]string{"report.yaml": blob}))
}

// moveLead publishes one ref as lead, so that its error is seen.
func moveLead(r *repo.Repo, ref, old, new string) error {
	_, err := r.Publish(context.Background(), map[string][2]string{ref: {old, new}}, nil)
	return err
}

func localPlace(t testing.TB) place {
	bare := gitserver.Bare(t, t.TempDir(), "fleet.git")
	return place{bare: bare, url: bare}
}

func TestLocalWithoutGit(t *testing.T) {
	p := localPlace(t)
	c1 := seed(t, p, "main", map[string]string{"a/b.yaml": "x\n"})
	gitserver.Git(t, p.bare, "gc", "-q")
	t.Setenv("PATH", "")
	r, d := open(t, p), openDevice(t, p)
	ctx := context.Background()
	if err := r.Fetch(ctx, "refs/heads/main", c1, true); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, r, c1)["a/b.yaml"]; got != "x\n" {
		t.Fatalf("a/b.yaml is %q", got)
	}
	c := orphan(t, r, "one")
	if err := moveLead(r, "refs/gitopsd/devices/a", "", c); err != nil {
		t.Fatal(err)
	}
	_, files, err := d.Read(ctx, "refs/gitopsd/devices/a", "", 0)
	if err != nil || string(files["report.yaml"]) != "one" {
		t.Fatalf("read %q, %v", files, err)
	}
	path := filepath.Join(t.TempDir(), "new.git")
	if err := repo.Init(path, "main"); err != nil {
		t.Fatal(err)
	}
	n := open(t, place{url: "file://" + path})
	blob := must[string](t, "put")(n.PutBlob(ctx, []byte("hello\n")))
	first := must[string](t, "commit")(n.Commit(ctx, "", map[string]string{"README.md": blob}, time.Unix(1e9, 0), "begin"))
	if err := moveLead(n, "refs/heads/main", "", first); err != nil {
		t.Fatal(err)
	}
	if n.Path() != path {
		t.Fatalf("path is %q, want %q", n.Path(), path)
	}
}

func TestInitIsAGitRepository(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new.git")
	if err := repo.Init(path, "trunk"); err != nil {
		t.Fatal(err)
	}
	fsck(t, path)
	if got := gitserver.Git(t, path, "symbolic-ref", "HEAD"); got != "refs/heads/trunk" {
		t.Fatalf("HEAD is %q", got)
	}
	if got := gitserver.Git(t, path, "rev-parse", "--is-bare-repository"); got != "true" {
		t.Fatalf("bare is %q", got)
	}
	if err := repo.Init(path, "trunk"); err == nil {
		t.Fatal("a folder that is not empty was accepted")
	}
	r := open(t, place{url: path})
	if head := must[string](t, "head")(r.Head(context.Background())); head != "trunk" {
		t.Fatalf("head is %q", head)
	}
	if refs := must[map[string]string](t, "refs")(r.Refs(context.Background(), "refs/")); len(refs) != 0 {
		t.Fatalf("refs are %v", refs)
	}
}

func TestLocalRefsLikeGit(t *testing.T) {
	ctx := context.Background()
	p := localPlace(t)
	r := open(t, p)
	a, b := orphan(t, r, "a"), orphan(t, r, "b")
	ok := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	ok("create", moveLead(r, "refs/gitopsd/devices/x", "", a))
	ok("create", moveLead(r, "refs/gitopsd/devices/y", "", a))
	gitserver.Git(t, p.bare, "pack-refs", "--all")
	wantKind(t, "create what is packed", moveLead(r, "refs/gitopsd/devices/x", "", b), "race")
	ok("move a packed ref", moveLead(r, "refs/gitopsd/devices/x", a, b))
	if got := gitserver.Git(t, p.bare, "rev-parse", "refs/gitopsd/devices/x"); got != b {
		t.Fatalf("git sees %s, want %s", got, b)
	}
	ok("delete a loose ref that is packed too", moveLead(r, "refs/gitopsd/devices/x", b, ""))
	ok("delete a packed ref", moveLead(r, "refs/gitopsd/devices/y", a, ""))
	if got := gitserver.Git(t, p.bare, "for-each-ref"); got != "" {
		t.Fatalf("git still sees %q", got)
	}
	// A name that is a folder of another, loose and packed.
	ok("create", moveLead(r, "refs/gitopsd/devices/d/e", "", a))
	wantKind(t, "a ref where a folder is", moveLead(r, "refs/gitopsd/devices/d", "", a), "refused")
	wantKind(t, "a ref below a ref", moveLead(r, "refs/gitopsd/devices/d/e/f", "", a), "refused")
	gitserver.Git(t, p.bare, "pack-refs", "--all")
	wantKind(t, "a ref where a packed folder is", moveLead(r, "refs/gitopsd/devices/d", "", a), "refused")
	wantKind(t, "a ref below a packed ref", moveLead(r, "refs/gitopsd/devices/d/e/f", "", a), "refused")
	ok("delete", moveLead(r, "refs/gitopsd/devices/d/e", a, ""))
	ok("take the name of an empty folder", moveLead(r, "refs/gitopsd/devices/d", "", a))

	gitserver.Git(t, p.bare, "symbolic-ref", "refs/heads/alias", "refs/gitopsd/devices/d")
	wantKind(t, "write through a symbolic ref", moveLead(r, "refs/heads/alias", a, b), "refused")
	if refs := must[map[string]string](t, "refs")(r.Refs(ctx, "refs/heads/")); refs["refs/heads/alias"] != a {
		t.Fatalf("the symbolic ref reads as %v", refs)
	}
	fsck(t, p.bare)
}

func TestLocalRefsStayInside(t *testing.T) {
	p := localPlace(t)
	r := open(t, p)
	a := orphan(t, r, "a")
	for _, name := range []string{
		"", "main", "HEAD", "refs", "refs/", "refs/heads", "refs/heads/", "refs/heads/../../x", "refs/heads/a..b", "refs/heads/.a",
		"refs/heads/a.lock", "refs/heads/a.lock/b", "refs/heads/a b", "refs/heads/a\nb", "refs/heads/a\x00", "refs/heads/a~1", "refs/heads/a@{1}",
		"refs/heads/a*", "refs/heads/a[", "refs/heads/a\\b", "refs/heads//a", "refs/heads/a.", "/etc/passwd", "refs/heads/" + strings.Repeat("a", 300),
	} {
		wantKind(t, fmt.Sprintf("the name %q", name), moveLead(r, name, "", a), "refused")
	}
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(p.bare, "refs", "link")); err != nil {
		t.Fatal(err)
	}
	wantKind(t, "a folder that is a link", moveLead(r, "refs/link/a", "", a), "refused")
	if left, _ := os.ReadDir(outside); len(left) != 0 {
		t.Fatalf("something was written outside: %v", left)
	}
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte(a+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(p.bare, "refs", "heads", "linked")); err != nil {
		t.Fatal(err)
	}
	if refs := must[map[string]string](t, "refs")(r.Refs(context.Background(), "refs/")); len(refs) != 0 {
		t.Fatalf("links are read as refs: %v", refs)
	}
}

func TestLocalLocks(t *testing.T) {
	p := localPlace(t)
	r := open(t, p)
	a := orphan(t, r, "a")
	const ref = "refs/gitopsd/devices/x"
	lock := filepath.Join(p.bare, ref+".lock")
	if err := os.MkdirAll(filepath.Dir(lock), 0o755); err != nil {
		t.Fatal(err)
	}
	// A fresh lock is waited for.
	if err := os.WriteFile(lock, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- moveLead(r, ref, "", a) }()
	time.AfterFunc(100*time.Millisecond, func() { os.Remove(lock) })
	if err := <-done; err != nil {
		t.Fatalf("after the lock was gone: %v", err)
	}
	// An old one is a person's matter, and stays.
	if err := os.WriteFile(lock, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * time.Minute)
	if err := os.Chtimes(lock, old, old); err != nil {
		t.Fatal(err)
	}
	err := moveLead(r, ref, a, "")
	wantKind(t, "an old lock", err, "locked")
	if !strings.Contains(err.Error(), lock) || !strings.Contains(err.Error(), "remove it") {
		t.Fatalf("the error names neither path nor remedy: %v", err)
	}
	if _, err := os.Stat(lock); err != nil {
		t.Fatalf("the lock of somebody else is gone: %v", err)
	}
}

// TestLocalWritersRace lets several processes' worth of writers increment a
// counter, while git packs the refs under them.
func TestLocalWritersRace(t *testing.T) {
	p := localPlace(t)
	const ref, writers, each = "refs/gitopsd/devices/counter", 3, 10
	ctx := context.Background()
	var wg sync.WaitGroup
	errs := make(chan error, writers)
	for w := range writers {
		r := open(t, p)
		wg.Go(func() {
			for n := 0; n < each; {
				refs, err := r.Refs(ctx, ref)
				if err != nil {
					errs <- err
					return
				}
				old, count := refs[ref], "0"
				if old != "" {
					tips, err := r.Tips(ctx, map[string]string{ref: old}, 1000)
					if err != nil {
						errs <- err
						return
					}
					count = string(tips[ref]["n"])
				}
				var was int
				fmt.Sscan(count, &was)
				blob, _ := r.PutBlob(ctx, []byte(fmt.Sprint(was+1)))
				who, _ := r.PutBlob(ctx, []byte(fmt.Sprint(w, n)))
				c, err := r.Orphan(ctx, map[string]string{"n": blob, "who": who})
				if err == nil {
					_, err = r.Publish(ctx, map[string][2]string{ref: {old, c}}, nil)
				}
				switch {
				case err == nil:
					n++
				case kindOf(err) != "race" && kindOf(err) != "locked":
					errs <- err
					return
				}
			}
		})
	}
	stop := make(chan struct{})
	var packer sync.WaitGroup
	packer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = gitserver.TryGit(p.bare, "pack-refs", "--all")
			}
		}
	})
	wg.Wait()
	close(stop)
	packer.Wait()
	close(errs)
	for err := range errs {
		t.Fatal(err)
	}
	if got := gitserver.Git(t, p.bare, "show", ref+":n"); got != fmt.Sprint(writers*each) {
		t.Fatalf("the counter is at %s after %d increments: a lost update", got, writers*each)
	}
	fsck(t, p.bare)
}

func TestLocalMultiLeadIsAllOrNothing(t *testing.T) {
	p := localPlace(t)
	r := open(t, p)
	a, b := orphan(t, r, "a"), orphan(t, r, "b")
	if err := moveLead(r, "refs/heads/one", "", a); err != nil {
		t.Fatal(err)
	}
	_, err := r.Publish(context.Background(), map[string][2]string{"refs/heads/one": {a, b}, "refs/heads/two": {a, b}}, nil)
	wantKind(t, "one of two leads is stale", err, "race")
	if got := gitserver.Git(t, p.bare, "rev-parse", "refs/heads/one"); got != a {
		t.Fatalf("one of the leads moved to %s", got)
	}
}

func TestWorkTree(t *testing.T) {
	ctx := context.Background()
	work := t.TempDir()
	gitserver.Git(t, work, "init", "-q", "-b", "main")
	gitserver.Git(t, work, "commit", "-q", "--allow-empty", "-m", "one")
	head := gitserver.Git(t, work, "rev-parse", "HEAD")
	linked := filepath.Join(t.TempDir(), "linked")
	gitserver.Git(t, work, "worktree", "add", "-q", linked, "-b", "side")
	for _, dir := range []string{work, linked, filepath.Join(work, ".git")} {
		r := open(t, place{url: dir})
		refs := must[map[string]string](t, "refs")(r.Refs(ctx, "refs/heads/"))
		if refs["refs/heads/main"] != head || refs["refs/heads/side"] != head {
			t.Fatalf("%s: refs are %v", dir, refs)
		}
		next := must[string](t, "commit")(r.Commit(ctx, head, map[string]string{"x": must[string](t, "put")(r.PutBlob(ctx, []byte("x")))}, time.Unix(1e9, 0), "x"))
		wantKind(t, dir+": the branch that is checked out", moveLead(r, "refs/heads/main", head, next), "refused")
		wantKind(t, dir+": the branch of a linked work tree", moveLead(r, "refs/heads/side", head, next), "refused")
		name := "refs/heads/status-" + filepath.Base(dir)
		if err := moveLead(r, name, "", next); err != nil {
			t.Fatal(err)
		}
	}
	fsck(t, work)
}

func TestLocalRefusals(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, path, kind string
		make             func(path string)
	}{
		{"missing", "missing", "not-found", func(string) {}},
		{"no repository", "plain", "not-found", func(p string) { os.Mkdir(p, 0o755) }},
		{"a file", "file", "not-found", func(p string) { os.WriteFile(p, nil, 0o644) }},
		{"sha256", "sha256", "refused", func(p string) { gitserver.Git(t, dir, "init", "-q", "--bare", "--object-format=sha256", p) }},
		{"reftable", "reftable", "refused", func(p string) {
			gitserver.Bare(t, dir, "reftable")
			gitserver.Git(t, p, "config", "extensions.refStorage", "reftable")
		}},
	} {
		path := filepath.Join(dir, c.path)
		c.make(path)
		_, err := repo.Open(repo.Config{URL: path})
		wantKind(t, c.name, err, c.kind)
		if !strings.Contains(err.Error(), path) {
			t.Errorf("%s: the error does not name the path: %v", c.name, err)
		}
	}
}

// TestSharedRepository: what is written is for the group, as git does it.
func TestSharedRepository(t *testing.T) {
	p := localPlace(t)
	gitserver.Git(t, p.bare, "config", "core.sharedRepository", "group")
	r := open(t, p)
	c := orphan(t, r, "a")
	if err := moveLead(r, "refs/gitopsd/devices/a", "", c); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{
		"refs/gitopsd":                   0o070,
		"refs/gitopsd/devices":           0o070,
		"refs/gitopsd/devices/a":         0o060,
		"objects/" + c[:2]:               0o070,
		"objects/" + c[:2] + "/" + c[2:]: 0o040,
	} {
		fi, err := os.Stat(filepath.Join(p.bare, path))
		if err != nil {
			t.Fatal(err)
		}
		if got := fi.Mode().Perm() & 0o070; got != want {
			t.Errorf("%s is %o for the group, want %o", path, got, want)
		}
	}
}
