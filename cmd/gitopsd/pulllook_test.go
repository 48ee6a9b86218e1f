package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/internal/comment"
	"github.com/gitopsd/gitopsd/internal/github"
	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

// lookWorld is a fleet on a git server, with a clone to make pull requests in.
type lookWorld struct {
	t     *testing.T
	bare  string
	clone string
	look  *pullLook
}

func newLookWorld(t *testing.T) *lookWorld {
	dir := t.TempDir()
	w := &lookWorld{t: t, bare: gitserver.Bare(t, dir, "fleet.git"), clone: starterFleet(t)}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "fleet"}, {"push", "-q", w.bare, "HEAD:main"}, {"switch", "-q", "-c", "next"}} {
		w.git(args...)
	}
	url := gitserver.New(t, dir).URL + "/fleet.git"
	state := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	fleet, err := repo.Open(repo.Config{URL: url, Store: filepath.Join(state, "fleet.git")})
	if err != nil {
		t.Fatal(err)
	}
	w.look = newPullLook(schema.ServeSpec{Repo: schema.RepoConfig{URL: url}}, "v0.1.0", fleet, fleet, state, log)
	t.Cleanup(func() {
		if err := errors.Join(w.look.close(), fleet.Close()); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *lookWorld) git(args ...string) string {
	w.t.Helper()
	return gitserver.Git(w.t, w.clone, args...)
}

func (w *lookWorld) write(path, text string) {
	w.t.Helper()
	path = filepath.Join(w.clone, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		w.t.Fatal(err)
	}
}

// pull makes pull request n of what was written.
func (w *lookWorld) pull(n int) github.Pull {
	w.t.Helper()
	w.git("add", "-A")
	w.git("commit", "-q", "--allow-empty", "-m", "a change")
	w.git("push", "-q", "-f", w.bare, fmt.Sprintf("HEAD:refs/pull/%d/head", n))
	p := github.Pull{Number: n, Open: true, BaseRef: "main", HeadRef: "--><script>@everyone\x1b[2J`", Head: w.git("rev-parse", "HEAD"), Fork: true}
	w.git("switch", "-q", "-C", "next", "main")
	return p
}

func (w *lookWorld) review(p github.Pull) github.Review {
	w.t.Helper()
	r, err := w.look.look(context.Background(), p)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func TestPullRequestsAreLookedAt(t *testing.T) {
	w := newLookWorld(t)

	w.write("devices/example/gw-example-02.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-example-02, labels: {role: gateway, site: example}}\nspec: {}\n")
	p := w.pull(1)
	r := w.review(p)
	if r.Validate.State != github.Success || r.Plan.State != github.Success || r.Head != p.Head || r.Base != w.git("rev-parse", "main") {
		t.Errorf("a valid change: %+v", r)
	}
	if !strings.Contains(r.Comment, "`` --><script>@everyone") || strings.Contains(r.Comment, "\x1b") || !strings.Contains(r.Comment, "gw-example-02") || !strings.Contains(r.Comment, "--head "+p.Head[:12]) {
		t.Errorf("its comment:\n%s", r.Comment)
	}

	w.write("policies/gateways.yaml", "kind: Policy\nnope: [\n")
	r = w.review(w.pull(2))
	if r.Validate.State != github.Failure || r.Plan.State != github.Failure || len(r.Problems) == 0 || r.Problems[0].Line == 0 || !strings.Contains(r.Comment, "not valid") {
		t.Errorf("an invalid change: %+v", r)
	}

	// The branch has moved on: what it has more is not taken for a change.
	w.write("files/edge.conf", "level=1\n")
	behind := w.pull(3)
	w.git("switch", "-q", "main")
	w.write("files/new.conf", "x\n")
	w.git("add", "-A")
	w.git("commit", "-q", "-m", "meanwhile")
	w.git("push", "-q", w.bare, "main")
	w.git("switch", "-q", "next")
	r = w.review(behind)
	if r.Base != w.git("rev-parse", "main") || strings.Contains(r.Comment, "new.conf") || !strings.Contains(r.Comment, "where it left") {
		t.Errorf("a change that is behind: base %s\n%s", r.Base, r.Comment)
	}

	// Nothing in common, and nothing in it at all.
	w.git("switch", "-q", "--orphan", "other")
	r = w.review(w.pull(4))
	if r.Validate.State != github.Success || !strings.Contains(r.Comment, "no commit in common") {
		t.Errorf("an unrelated history: %+v", r)
	}
}

// Symlinks, submodules and hooks of a pull request are content like any other.
func TestB123_PullRequestsAreOnlyRead(t *testing.T) {
	w := newLookWorld(t)
	trace := filepath.Join(t.TempDir(), "ran")
	w.write(".gitattributes", "* filter=evil diff=evil\n")
	w.write(".gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c touch% "+trace+"\n")
	w.write("hooks/post-checkout", "#!/bin/sh\ntouch "+trace+"\n")
	if err := errors.Join(os.Symlink("/etc/passwd", filepath.Join(w.clone, "files", "host")), os.Symlink("/dev/zero", filepath.Join(w.clone, "devices", "zero.yaml"))); err != nil {
		t.Fatal(err)
	}
	w.git("add", "-A")
	w.git("update-index", "--add", "--cacheinfo", "160000,"+w.git("rev-parse", "HEAD")+",x")
	r := w.review(w.pull(1))
	if r.Validate.State != github.Failure {
		t.Errorf("a device that is a symlink is valid: %+v", r)
	}
	if _, err := os.Lstat(trace); err == nil {
		t.Error("something of the pull request was run")
	}
	if strings.Contains(r.Comment, "root:") {
		t.Errorf("a file of this machine is in the comment:\n%s", r.Comment)
	}
}

// What a pull request costs is bounded, and what costs more is told, once: the
// same would come of another look.
func TestPullRequestsThatCostTooMuch(t *testing.T) {
	w := newLookWorld(t)
	for i := range 10 {
		// One content under many names is cheap to send, and not to look at.
		w.write(fmt.Sprintf("devices/many/gw-%d.yaml", i), "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-1, labels: {role: gateway, site: example}}\n")
	}
	many := w.pull(1)
	w.write("files/new.conf", "x\n")
	few := w.pull(2)
	noise := make([]byte, 256<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	w.write("files/large.bin", string(noise))
	large := w.pull(3)
	w.look.bytes = 100 << 10
	r := w.review(large)
	if r.Head != large.Head || r.Validate.State != github.Failure || !strings.Contains(r.Comment, "its commits hold more than") {
		t.Errorf("a large file: %+v", r)
	}
	w.look.documents = 8 * pullDocument
	for number, r := range map[int]github.Review{1: w.review(many), 2: w.review(few)} {
		refused := r.Validate.State == github.Failure && r.Plan.State == github.Failure && strings.Contains(r.Validate.Words, "more than") && strings.Contains(r.Comment, "more than")
		if refused != (number == 1) {
			t.Errorf("pull request %d: %+v", number, r)
		}
	}

	w.look.reading = 1
	r = w.review(few)
	if r.Head != few.Head || r.Validate.State != github.Failure || !strings.Contains(r.Validate.Words, "takes longer") || !strings.Contains(r.Comment, "takes longer") {
		t.Errorf("there is no time: %+v", r)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := w.look.look(ended, few); err == nil {
		t.Errorf("the daemon ends: %+v", r)
	}
}

func TestB24_HeadsThatAreNotThere(t *testing.T) {
	w := newLookWorld(t)
	w.write("files/edge.conf", "level=1\n")
	first := w.pull(1)
	w.write("files/edge.conf", "level=2\n")
	second := w.pull(1) // pushed by force
	for name, p := range map[string]github.Pull{
		"replaced": first,
		"never":    {Number: 1, Head: strings.Repeat("ab", 20)},
		"no pull":  {Number: 7, Head: second.Head},
	} {
		_, err := w.look.look(context.Background(), p)
		var k interface{ Kind() string }
		if !errors.As(err, &k) || k.Kind() != "not-found" {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.review(second)
	gitserver.Git(t, w.bare, "update-ref", "-d", "refs/pull/1/head")
	if _, err := w.look.look(context.Background(), second); err == nil {
		t.Error("a head that vanished was looked at")
	}
}

// The largest change that can be: every one of 10,000 files, all new names.
func TestB117_TenThousandChangedFiles(t *testing.T) {
	w := newLookWorld(t)
	const count = 10_000
	var stream strings.Builder
	stream.WriteString("commit refs/heads/many\ncommitter Op <op@example.com> 1700000000 +0000\ndata 1\nx\nfrom refs/heads/main^0\n")
	for i := range count {
		id := fmt.Sprintf("gateway-with-a-long-name-of-a-site-%05d", i)
		text := "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: " + id + ", labels: {role: gateway, site: example}}\nspec: {vars: {word: \"日本語\"}}\n"
		fmt.Fprintf(&stream, "M 100644 inline devices/site-%02d/%s.yaml\ndata %d\n%s\n", i%100, id, len(text), text)
	}
	fast := exec.Command("git", "fast-import", "--quiet")
	fast.Dir, fast.Stdin = w.clone, strings.NewReader(stream.String())
	if out, err := fast.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w.git("push", "-q", w.bare, "refs/heads/many:refs/pull/1/head")
	r := w.review(github.Pull{Number: 1, HeadRef: "many", Head: w.git("rev-parse", "many")})
	if len(r.Comment) > comment.MaxBytes || len(r.Comment) < comment.MinBytes {
		t.Errorf("the comment has %d bytes", len(r.Comment))
	}
	if r.Validate.State != github.Success || r.Plan.State != github.Success {
		t.Errorf("%+v, %+v", r.Validate, r.Plan)
	}
}

// A copy that has grown too large begins anew.
func TestPullStoreIsBounded(t *testing.T) {
	w := newLookWorld(t)
	p := w.pull(1)
	w.review(p)
	big := filepath.Join(w.look.config.Store, "big")
	f, err := os.Create(big)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(maxPullStore), f.Close()); err != nil {
		t.Fatal(err)
	}
	w.review(p)
	if _, err := os.Stat(big); err == nil {
		t.Error("it is as large as it was")
	}
}
