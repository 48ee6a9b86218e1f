package repo_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/gitserver"
)

func packFiles(t testing.TB, store, ending string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(store, "objects", "pack", "*"+ending))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestDamagedStore damages the store in every way that is worth a name, while
// it is open and before it is opened; each time the content is there again.
func TestDamagedStore(t *testing.T) {
	ctx := context.Background()
	damages := map[string]func(t *testing.T, store string){
		"all gone":      func(t *testing.T, store string) { os.RemoveAll(store) },
		"objects gone":  func(t *testing.T, store string) { os.RemoveAll(filepath.Join(store, "objects")) },
		"a pack gone":   func(t *testing.T, store string) { os.Remove(packFiles(t, store, ".pack")[0]) },
		"an index gone": func(t *testing.T, store string) { os.Remove(packFiles(t, store, ".idx")[0]) },
		"a pack cut":    func(t *testing.T, store string) { os.Truncate(packFiles(t, store, ".pack")[0], 30) },
		"an index cut":  func(t *testing.T, store string) { os.Truncate(packFiles(t, store, ".idx")[0], 30) },
		"packs empty": func(t *testing.T, store string) {
			for _, f := range append(packFiles(t, store, ".pack"), packFiles(t, store, ".idx")...) {
				os.Truncate(f, 0)
			}
		},
		"bytes flipped": func(t *testing.T, store string) {
			for _, f := range packFiles(t, store, ".pack") {
				b, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				for i := 40; i < len(b); i += 7 {
					b[i] ^= 0x55
				}
				os.Chmod(f, 0o644)
				if err := os.WriteFile(f, b, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		},
		"refs cut": func(t *testing.T, store string) {
			os.WriteFile(filepath.Join(store, "packed-refs"), []byte("ab"), 0o644)
		},
		"HEAD gone": func(t *testing.T, store string) { os.Remove(filepath.Join(store, "HEAD")) },
		"leftovers": func(t *testing.T, store string) {
			os.WriteFile(filepath.Join(store, "packed-refs.lock"), nil, 0o644)
			os.WriteFile(filepath.Join(store, "shallow.lock"), nil, 0o644)
			os.WriteFile(filepath.Join(store, "objects", "pack", "tmp_pack_1"), []byte("PACK"), 0o644)
			os.WriteFile(filepath.Join(store, "objects", "pack", "pack-"+fmt.Sprintf("%040d", 1)+".pack"), []byte("PACK"), 0o644)
		},
	}
	for name, damage := range damages {
		for _, reopen := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/reopened=%v", name, reopen), func(t *testing.T) {
				p := overHTTP(t)
				seed(t, p, "main", map[string]string{"a": "1", "b/c": "2"})
				c := seed(t, p, "main", map[string]string{"a": "3"})
				store := filepath.Join(t.TempDir(), "store")
				r := openAt(t, p, store)
				if err := r.Fetch(ctx, "refs/heads/main", c, true); err != nil {
					t.Fatal(err)
				}
				if reopen {
					r.Close()
				}
				damage(t, store)
				if reopen {
					r = openAt(t, p, store)
				}
				if err := r.Fetch(ctx, "refs/heads/main", c, true); err != nil {
					t.Fatal(err)
				}
				if got := fmt.Sprint(tree(t, r, c)); got != "map[a:3 b/c:2]" {
					t.Fatalf("tree is %v", got)
				}
				next := seed(t, p, "main", map[string]string{"a": "4"})
				if err := r.Fetch(ctx, "refs/heads/main", next, true); err != nil {
					t.Fatal(err)
				}
				if got := fmt.Sprint(tree(t, r, next)); got != "map[a:4 b/c:2]" {
					t.Fatalf("tree is %v", got)
				}
				if left := packFiles(t, store, "tmp_pack_1"); reopen && len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			})
		}
	}
}

// TestDamageIsNoReasonToForget: while the server is away, the store stays.
func TestDamageIsNoReasonToForget(t *testing.T) {
	ctx := context.Background()
	p := overHTTP(t)
	c := seed(t, p, "main", map[string]string{"a": "1"})
	store := t.TempDir()
	r := openAt(t, p, store)
	if err := r.Fetch(ctx, "refs/heads/main", c, true); err != nil {
		t.Fatal(err)
	}
	before := packFiles(t, store, ".pack")
	p.srv.Fail(500, -1)
	_, err := r.Blob(ctx, "1234567890123456789012345678901234567890", 0)
	wantKind(t, "a blob that is missing while the server is away", err, "network")
	if after := packFiles(t, store, ".pack"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Fatalf("packs were %v, are %v", before, after)
	}
	p.srv.Fail(0, 0)
	_, err = r.Blob(ctx, "1234567890123456789012345678901234567890", 0)
	wantKind(t, "a blob that is nowhere", err, "not-found")
}

// TestNonsenseIsNoReasonToForget: a server that once sends a broken pack does
// not cost the store.
func TestNonsenseIsNoReasonToForget(t *testing.T) {
	ctx := context.Background()
	p := overHTTP(t)
	c := seed(t, p, "main", map[string]string{"a": "1"})
	store := t.TempDir()
	r := openAt(t, p, store)
	if err := r.Fetch(ctx, "refs/heads/main", c, true); err != nil {
		t.Fatal(err)
	}
	before := packFiles(t, store, ".pack")
	next := seed(t, p, "main", map[string]string{"a": "2"})
	p.srv.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		io.WriteString(w, "000dpackfile\n0015\x01PACK\x00\x00\x00\x02\x00\x00\x00\x01\x95\x0c000000")
		return true
	})
	err := r.Fetch(ctx, "refs/heads/main", next, true)
	wantKind(t, "a broken pack", err, "corrupt")
	p.srv.Intercept(nil)
	if after := packFiles(t, store, ".pack"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Fatalf("packs were %v, are %v", before, after)
	}
	if err := r.Fetch(ctx, "refs/heads/main", next, true); err != nil {
		t.Fatal(err)
	}
}

// TestManyCommits makes more commits than there may be packs, with both kinds
// of branches, and follows them with a second repository.
func TestManyCommits(t *testing.T) {
	ctx := context.Background()
	p := overHTTP(t)
	store, other := t.TempDir(), t.TempDir()
	r, s := openAt(t, p, store), openAt(t, p, other)
	tip, main := "", ""
	files, mains := map[string]string{}, map[string]string{}
	const commits = 30
	first := ""
	for i := range commits {
		path, text := fmt.Sprintf("devices/%d/%d.yaml", i%3, i%7), fmt.Sprintf("%d\n", i)
		files[path] = text
		blob := must[string](t, "put")(r.PutBlob(ctx, []byte(text)))
		next := must[string](t, "commit")(r.Commit(ctx, tip, map[string]string{path: blob}, time.Unix(1e9+int64(i), 0), "sweep"))
		if err := moveLead(r, status, tip, next); err != nil {
			t.Fatal(err)
		}
		tip = next
		mains[path] = "m" + text
		blob = must[string](t, "put")(r.PutBlob(ctx, []byte("m"+text)))
		next = must[string](t, "commit")(r.Commit(ctx, main, map[string]string{path: blob}, time.Unix(1e9+int64(i), 0), "people"))
		if err := moveLead(r, "refs/heads/main", main, next); err != nil {
			t.Fatal(err)
		}
		if main = next; first == "" {
			first = next
		}
		if err := s.Fetch(ctx, status, tip, false); err != nil {
			t.Fatal(err)
		}
		if err := s.Fetch(ctx, "refs/heads/main", main, true); err != nil {
			t.Fatal(err)
		}
	}
	for what, got := range map[string]map[string]string{"own status": tree(t, r, tip), "fetched status": tree(t, s, tip)} {
		if fmt.Sprint(got) != fmt.Sprint(files) {
			t.Errorf("%s is %v, want %v", what, got, files)
		}
	}
	if got := tree(t, s, main); fmt.Sprint(got) != fmt.Sprint(mains) {
		t.Errorf("main is %v, want %v", got, mains)
	}
	n := 0
	if err := s.Log(ctx, main, "", func(string, string, time.Time, string) bool { n++; return true }); err != nil || n != commits {
		t.Errorf("the history has %d commits (%v), want %d", n, err, commits)
	}
	if ok, err := s.IsAncestor(ctx, first, main); err != nil || !ok {
		t.Errorf("the first commit is no ancestor: %v, %v", ok, err)
	}
	for _, dir := range []string{store, other} {
		if packs := packFiles(t, dir, ".pack"); len(packs) > 52 {
			t.Errorf("%d packs in %s", len(packs), dir)
		}
		// git has no complaint about what the packs hold.
		for _, f := range packFiles(t, dir, ".idx") {
			gitserver.Git(t, dir, "verify-pack", f)
		}
	}
	fsck(t, other)
	fsck(t, p.bare)
	// Everything is still there for a new process.
	if got := tree(t, openAt(t, p, other), tip); fmt.Sprint(got) != fmt.Sprint(files) {
		t.Errorf("after opening again status is %v", got)
	}
}

// TestRewrittenBranch follows a branch that is forced back and elsewhere.
func TestRewrittenBranch(t *testing.T) {
	everyWay(t, func(t *testing.T, p place) {
		ctx := context.Background()
		c1 := seed(t, p, "main", map[string]string{"a": "1", "b": "1"})
		c2 := seed(t, p, "main", map[string]string{"a": "2"})
		c3 := seed(t, p, "main", map[string]string{"a": "1"})
		for _, history := range []bool{true, false} {
			gitserver.Git(t, p.bare, "update-ref", "refs/heads/main", c3)
			r := open(t, p)
			for _, step := range []struct{ commit, a string }{{c3, "1"}, {c1, "1"}, {c2, "2"}, {c3, "1"}} {
				gitserver.Git(t, p.bare, "update-ref", "refs/heads/main", step.commit)
				if err := r.Fetch(ctx, "refs/heads/main", step.commit, history); err != nil {
					t.Fatalf("history %v: %v", history, err)
				}
				if got := tree(t, r, step.commit); got["a"] != step.a || got["b"] != "1" {
					t.Fatalf("history %v: tree of %s is %v", history, step.commit, got)
				}
			}
		}
		// An unrelated history, the old one gone for good.
		r := open(t, p)
		if err := r.Fetch(ctx, "refs/heads/main", c3, true); err != nil {
			t.Fatal(err)
		}
		gitserver.Git(t, p.bare, "update-ref", "-d", "refs/heads/main")
		gitserver.Git(t, p.bare, "prune", "--expire=now")
		n := seed(t, p, "main", map[string]string{"new": "1"})
		if err := r.Fetch(ctx, "refs/heads/main", n, true); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(tree(t, r, n)); got != "map[new:1]" {
			t.Fatalf("tree is %v", got)
		}
		if ok, err := r.IsAncestor(ctx, c3, n); err != nil || ok {
			t.Fatalf("ancestor: %v, %v", ok, err)
		}
	})
}
