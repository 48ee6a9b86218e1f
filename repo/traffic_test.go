package repo_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/repo"
)

// TestIncrementsAreSmall: what a fetch and a publication cost depends on what
// has changed, with and without history, with old servers too.
func TestIncrementsAreSmall(t *testing.T) {
	ctx := context.Background()
	for _, old := range []bool{false, true} {
		for _, history := range []bool{false, true} {
			p := overHTTP(t)
			p.srv.OnlyV0(old)
			files := map[string]string{}
			for i := range 2000 {
				files[fmt.Sprintf("devices/s%02d/d%04d.yaml", i%40, i)] = strings.Repeat(fmt.Sprintf("line %d\n", i), 20)
			}
			c := seed(t, p, "main", files)
			r := open(t, p)
			if err := r.Fetch(ctx, "refs/heads/main", c, history); err != nil {
				t.Fatal(err)
			}
			for turn := range 3 {
				c = seed(t, p, "main", map[string]string{"devices/s03/d0003.yaml": fmt.Sprint("turn ", turn)})
				p.srv.ResetTraffic()
				if err := r.Fetch(ctx, "refs/heads/main", c, history); err != nil {
					t.Fatal(err)
				}
				_, in, out := p.srv.Traffic()
				if in+out > 5000 {
					t.Errorf("old server %v, history %v: following one file takes %d bytes, want at most 5000", old, history, in+out)
				}
			}
			if got := tree(t, r, c); len(got) != 2000 || got["devices/s03/d0003.yaml"] != "turn 2" {
				t.Fatalf("%d files, d0003 is %q", len(got), got["devices/s03/d0003.yaml"])
			}
			blob := must[string](t, "put")(r.PutBlob(ctx, []byte("new\n")))
			next := must[string](t, "commit")(r.Commit(ctx, c, map[string]string{"devices/s03/d0003.yaml": blob}, time.Unix(2e9, 0), "x"))
			if err := moveLead(r, "refs/heads/gitopsd/other", "", next); err != nil {
				t.Fatal(err)
			}
			p.srv.ResetTraffic()
			if err := moveLead(r, "refs/heads/main", c, next); err != nil {
				t.Fatal(err)
			}
			if requests, in, _ := p.srv.Traffic(); in > 2000 || requests != 1 {
				t.Errorf("publishing one file takes %d requests and sends %d bytes, want 1 and at most 2000", requests, in)
			}
			fsck(t, p.bare)
		}
	}
}

// TestTipsInOneExchange reads many reports at once, with some hostile ones
// among them: too large, with a history behind, and too many files.
func TestTipsInOneExchange(t *testing.T) {
	ctx := context.Background()
	p := overHTTP(t)
	r, d := open(t, p), openDevice(t, p)
	want := map[string]string{}
	moves := map[string][2]string{}
	for i := range 50 {
		ref := fmt.Sprintf("refs/gitopsd/reports/dev-%02d", i)
		want[ref] = orphan(t, r, fmt.Sprint("report ", i))
		moves[ref] = [2]string{"", want[ref]}
	}
	if refused, err := r.Publish(ctx, nil, moves); err != nil || len(refused) > 0 {
		t.Fatal(refused, err)
	}
	if _, err := r.Refs(ctx, "refs/gitopsd/reports/"); err != nil {
		t.Fatal(err)
	}
	p.srv.ResetTraffic()
	tips := must[map[string]map[string][]byte](t, "tips")(r.Tips(ctx, want, 4096))
	if requests, _, _ := p.srv.Traffic(); requests != 1 || len(tips) != 50 || string(tips["refs/gitopsd/reports/dev-07"]["report.yaml"]) != "report 7" {
		t.Fatalf("%d tips in %d requests", len(tips), requests)
	}

	history := seed(t, p, "main", map[string]string{"big": strings.Repeat("noise", 100_000)})
	for i := range 3 {
		history = seed(t, p, "main", map[string]string{"report.yaml": fmt.Sprint(i)})
	}
	want["refs/heads/main"] = history
	want["refs/gitopsd/reports/large"] = must[string](t, "write")(d.Write(ctx, "refs/gitopsd/reports/large", "", map[string][]byte{"report.yaml": []byte(strings.Repeat("x", 1<<20))}))
	many := map[string][]byte{}
	for i := range 5000 {
		many[fmt.Sprint(i)] = nil
	}
	want["refs/gitopsd/reports/many"] = must[string](t, "write")(d.Write(ctx, "refs/gitopsd/reports/many", "", many))
	tips = must[map[string]map[string][]byte](t, "tips")(r.Tips(ctx, want, 4096))
	if len(tips) != 50 {
		t.Fatalf("%d tips, want the 50 honest ones", len(tips))
	}
	for _, ref := range []string{"refs/gitopsd/reports/large", "refs/gitopsd/reports/many"} {
		if _, _, err := d.Read(ctx, ref, "", 4096); kindOf(err) != "refused" {
			t.Errorf("reading %s: %v", ref, err)
		}
	}
	// One that is gone for good does not hide the others.
	gone := want["refs/gitopsd/reports/large"]
	gitserver.Git(t, p.bare, "update-ref", "-d", "refs/gitopsd/reports/large")
	gitserver.Git(t, p.bare, "prune", "--expire=now")
	tips = must[map[string]map[string][]byte](t, "tips")(r.Tips(ctx, map[string]string{"a": gone, "b": want["refs/gitopsd/reports/dev-01"]}, 4096))
	if len(tips) != 2 || tips["a"] != nil || tips["b"] == nil {
		t.Fatalf("tips are %v", tips)
	}
}

func TestSHA256IsRefused(t *testing.T) {
	ctx := context.Background()
	for _, old := range []bool{false, true} {
		dir := t.TempDir()
		gitserver.Git(t, dir, "init", "-q", "--bare", "-b", "main", "--object-format=sha256", "x.git")
		srv := gitserver.New(t, dir)
		srv.OnlyV0(old)
		bare := filepath.Join(dir, "x.git")
		empty := gitserver.Git(t, bare, "hash-object", "-t", "tree", "-w", "/dev/null")
		gitserver.Git(t, bare, "update-ref", "refs/heads/main", gitserver.Git(t, bare, "commit-tree", "-m", "x", empty))
		_, err := open(t, place{url: srv.URL + "/x.git"}).Refs(ctx, "refs/heads/")
		wantKind(t, "a sha256 repository", err, "refused")
		if !strings.Contains(err.Error(), "sha256") {
			t.Errorf("the error does not say why: %v", err)
		}
	}
}

func TestPrivateAuthority(t *testing.T) {
	ctx := context.Background()
	p := overHTTP(t)
	seed(t, p, "main", map[string]string{"a": "a"})
	srv := httptest.NewUnstartedServer(p.srv)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	p.url = srv.URL + "/fleet.git"
	_, err := open(t, p).Refs(ctx, "refs/heads/")
	wantKind(t, "an unknown authority", err, "auth")
	if !strings.Contains(err.Error(), "caFile") {
		t.Errorf("no remedy: %v", err)
	}
	p.cred.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(p.cred.CAFile, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := open(t, p)
	_, err = r.Refs(ctx, "refs/heads/")
	wantKind(t, "a file without certificates", err, "auth")
	if err := os.WriteFile(p.cred.CAFile, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Refs(ctx, "refs/heads/"); err != nil {
		t.Fatalf("after the file was corrected: %v", err)
	}
}

// TestRaceOverHTTP lets several daemons increment one file, each on top of
// what it has fetched; none may lose another's work.
func TestRaceOverHTTP(t *testing.T) {
	ctx := context.Background()
	p := overHTTP(t)
	const writers, each = 3, 4
	done := make(chan error, writers)
	for w := range writers {
		r := open(t, p)
		go func() {
			for n := 0; n < each; {
				refs, err := r.Refs(ctx, status)
				if err == nil && refs[status] != "" {
					err = r.Fetch(ctx, status, refs[status], false)
				}
				var blob, next string
				if err == nil {
					blob, err = r.PutBlob(ctx, []byte(fmt.Sprint(w, n)))
				}
				if err == nil {
					next, err = r.Commit(ctx, refs[status], map[string]string{fmt.Sprintf("w%d/n%d", w, n): blob}, time.Unix(1e9, 0), fmt.Sprint(w, n))
				}
				if err == nil {
					_, err = r.Publish(ctx, map[string][2]string{status: {refs[status], next}}, nil)
				}
				switch {
				case err == nil:
					n++
				case kindOf(err) != "race":
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(gitserver.Git(t, p.bare, "ls-tree", "-r", "--name-only", status), "\n") + 1; got != writers*each {
		t.Fatalf("%d files, want %d: a lost update", got, writers*each)
	}
	if got := gitserver.Git(t, p.bare, "rev-list", "--count", status); got != fmt.Sprint(writers*each) {
		t.Fatalf("%s commits, want %d", got, writers*each)
	}
	fsck(t, p.bare)
}

// TestLocalReadsWhileGitRepacks: indexes that were read before do not matter.
func TestLocalReadsWhileGitRepacks(t *testing.T) {
	ctx := context.Background()
	p := localPlace(t)
	c := seed(t, p, "main", map[string]string{"a": "1", "b/c": "2"})
	r := open(t, p)
	tree(t, r, c)
	for turn := range 4 {
		next := seed(t, p, "main", map[string]string{"a": fmt.Sprint(turn)})
		gitserver.Git(t, p.bare, "repack", "-adq")
		if err := r.Fetch(ctx, "refs/heads/main", next, true); err != nil {
			t.Fatal(err)
		}
		if got := tree(t, r, next); got["a"] != fmt.Sprint(turn) || got["b/c"] != "2" {
			t.Fatalf("tree is %v", got)
		}
		tree(t, r, c)
	}
	// A pack that is being written has no index yet.
	if err := os.WriteFile(filepath.Join(p.bare, "objects", "pack", "pack-"+strings.Repeat("ab", 20)+".pack"), []byte("PACK"), 0o644); err != nil {
		t.Fatal(err)
	}
	tree(t, open(t, p), c)
}

// TestGitReadsOurPacks publishes enough objects at once for a pack.
func TestGitReadsOurPacks(t *testing.T) {
	ctx := context.Background()
	p := localPlace(t)
	r := open(t, p)
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("devices/%03d.yaml", i)] = must[string](t, "put")(r.PutBlob(ctx, []byte(fmt.Sprint(i))))
	}
	c := must[string](t, "commit")(r.Commit(ctx, "", files, time.Unix(1e9, 0), "x"))
	if err := moveLead(r, status, "", c); err != nil {
		t.Fatal(err)
	}
	fsck(t, p.bare)
	if got := len(tree(t, r, c)); got != 300 {
		t.Fatalf("%d files", got)
	}
	if out, err := exec.Command("git", "-C", p.bare, "count-objects", "-v").Output(); err != nil || !strings.Contains(string(out), "packs: 1") {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestEditsLikeGit(t *testing.T) {
	ctx := context.Background()
	p := localPlace(t)
	r := open(t, p)
	put := func(s string) string { return must[string](t, "put")(r.PutBlob(ctx, []byte(s))) }
	x := put("x")
	commit := func(parent string, changes map[string]string) (string, error) {
		return r.Commit(ctx, parent, changes, time.Unix(1e9, 0), fmt.Sprint(changes))
	}
	base := must[string](t, "commit")(commit("", map[string]string{"a": x, "b/c": x, "b/d": x, "a.b": x, "a-b/x": x, "e/f/g": x}))
	for _, c := range []struct {
		changes map[string]string
		want    string
	}{
		{map[string]string{"e/f/g": ""}, "a a-b/x a.b b/c b/d"},
		{map[string]string{"a": "", "a/b": x}, "a-b/x a.b a/b b/c b/d e/f/g"},
		{map[string]string{"a/b": x}, "a-b/x a.b a/b b/c b/d e/f/g"},
		{map[string]string{"b": x}, "a a-b/x a.b b e/f/g"},
		{map[string]string{"b": x, "b/c": ""}, "a a-b/x a.b b e/f/g"},
		{map[string]string{"none/at/all": "", "b": ""}, "a a-b/x a.b b/c b/d e/f/g"},
		{map[string]string{}, "a a-b/x a.b b/c b/d e/f/g"},
	} {
		next := must[string](t, "commit")(commit(base, c.changes))
		if err := moveLead(r, fmt.Sprintf("refs/heads/t-%s", next), "", next); err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(gitserver.Git(t, p.bare, "ls-tree", "-r", "--name-only", next), "\n", " ")
		if got != c.want {
			t.Errorf("%v gives %q, want %q", c.changes, got, c.want)
		}
	}
	for _, bad := range []map[string]string{
		{"": x}, {"/a": x}, {"a/": x}, {"a//b": x}, {"../a": x}, {"a/../b": x}, {".git/config": x}, {"a/.GIT": x}, {"a\x00": x},
		{"n": x, "n/m": x}, {"a": "zz"}, {"a": strings.Repeat("12", 20)},
	} {
		if c, err := commit(base, bad); err == nil {
			t.Errorf("%q was accepted as %s", bad, c)
		}
	}
	fsck(t, p.bare)
	one, two := orphan(t, r, "same"), orphan(t, open(t, p), "same")
	if one != two {
		t.Errorf("the same files give %s and %s", one, two)
	}
}

func TestUnknownForms(t *testing.T) {
	for _, url := range []string{"", "git://127.0.0.1/x.git", "ftp://127.0.0.1/x", "file://elsewhere/x", "http:///x", "ssh://127.0.0.1", "\n"} {
		if _, err := repo.Open(repo.Config{URL: url, Store: t.TempDir()}); err == nil {
			t.Errorf("%q was accepted", url)
		}
	}
}
