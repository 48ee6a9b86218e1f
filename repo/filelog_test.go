package repo_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/repo"
)

// fastImport gives a stream to git and gives the tip of a branch.
func fastImport(t testing.TB, bare, branch, stream string) string {
	t.Helper()
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Stdin = bare, strings.NewReader(stream)
	cmd.Env = append(os.Environ(), gitserver.Environ()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("fast-import: %v\n%s", err, out)
	}
	return gitserver.Git(t, bare, "rev-parse", branch)
}

// fileLog collects all of the history of a path.
func fileLog(t testing.TB, r *repo.Repo, tip, path string) (commits []string, looks int) {
	t.Helper()
	l := must[*repo.FileLog](t, "log")(r.FileLog(tip))
	for {
		c := must[*repo.FileChange](t, "next")(l.Next(context.Background(), path, nil))
		if c == nil {
			return commits, l.Looks()
		}
		if c.Old == c.New {
			t.Errorf("%s: the commit %s changed nothing: %+v", path, c.Commit, c)
		}
		commits = append(commits, c.Commit)
	}
}

// A history of files that come, change, go, and give way to folders of their
// name and back has the commits that git names.
func TestFileLogAgreesWithGit(t *testing.T) {
	const seed, commits = 1, 60
	rnd := rand.New(rand.NewPCG(seed, seed))
	p := localPlace(t)
	paths := []string{"a.yaml", "d/a.yaml", "d/b.yaml", "d/e/a.yaml", "d/e", "other/x.yaml"}
	var b strings.Builder
	for i := range commits {
		fmt.Fprintf(&b, "commit refs/heads/main\ncommitter Op <op@example.com> %d +0000\ndata 1\nx\n", 1e9+i)
		path := paths[rnd.IntN(len(paths))]
		if rnd.IntN(4) == 0 {
			fmt.Fprintf(&b, "D %s\n", path)
			continue
		}
		content := fmt.Sprint(rnd.IntN(3))
		fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n", path, len(content), content)
	}
	tip := fastImport(t, p.bare, "main", b.String())
	r := open(t, p)
	history := strings.Fields(gitserver.Git(t, p.bare, "log", "--format=%H", tip))
	trees := make([]map[string]string, len(history)+1) // by path, newest first
	for i, c := range history {
		trees[i] = map[string]string{}
		for line := range strings.Lines(gitserver.Git(t, p.bare, "ls-tree", "-r", c)) {
			info, path, _ := strings.Cut(strings.TrimSpace(line), "\t")
			trees[i][path] = strings.Fields(info)[2]
		}
	}
	for _, path := range append(paths, "d/none.yaml", "d/e/a.yaml/below") {
		var want []string
		for i, c := range history {
			if trees[i][path] != trees[i+1][path] {
				want = append(want, c)
			}
		}
		got, looks := fileLog(t, r, tip, path)
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("seed %d, %s: got %d commits, want %d:\n%v\n%v", seed, path, len(got), len(want), got, want)
		}
		if looks != commits {
			t.Errorf("%s: %d commits were looked at, want each once: %d", path, looks, commits)
		}
		if got, want := must[string](t, "at")(r.FileAt(context.Background(), tip, path)), trees[0][path]; got != want {
			t.Errorf("%s at the tip: got %q, want %q", path, got, want)
		}
	}
}

// A file is followed where the caller says that it is, and only as far back as
// the caller wants.
func TestFileLogFollowsAndStops(t *testing.T) {
	p := localPlace(t)
	var b strings.Builder
	commit := func(when int, lines ...string) {
		fmt.Fprintf(&b, "commit refs/heads/main\ncommitter Op <op@example.com> %d +0000\ndata 1\nx\n%s\n", when, strings.Join(lines, "\n"))
	}
	commit(100, "M 100644 inline old.yaml", "data 1", "1")
	commit(200, "M 100644 inline old.yaml", "data 1", "2")
	commit(300, "R old.yaml new.yaml")
	commit(400, "M 100644 inline other.yaml", "data 1", "x")
	commit(500, "M 100644 inline new.yaml", "data 1", "3")
	tip := fastImport(t, p.bare, "main", b.String())
	r, ctx := open(t, p), context.Background()
	l := must[*repo.FileLog](t, "log")(r.FileLog(tip))
	var times []int64
	path := "new.yaml"
	for {
		c := must[*repo.FileChange](t, "next")(l.Next(ctx, path, nil))
		if c == nil {
			break
		}
		times = append(times, c.Time.Unix())
		if c.Old == "" {
			path = "old.yaml"
		}
	}
	if fmt.Sprint(times) != "[500 300 200 100]" {
		t.Errorf("got the changes of %v, want 500, 300, 200, 100", times)
	}
	l = must[*repo.FileLog](t, "log")(r.FileLog(tip))
	c, err := l.Next(ctx, "old.yaml", func(_ string, when time.Time) bool { return when.Unix() > 400 })
	if c != nil || err != nil || l.Looks() != 2 {
		t.Errorf("got %+v (%v) after %d commits, want nothing after 2", c, err, l.Looks())
	}
	if _, err := r.FileLog("HEAD"); err == nil {
		t.Error("a revision that is no hash was taken")
	}
}

// Where a shallow clone ends, nothing is made up.
func TestFileLogEndsWhereACloneWasCut(t *testing.T) {
	p := localPlace(t)
	for _, v := range []string{"1", "2", "3"} {
		seed(t, p, "main", map[string]string{"a.yaml": v})
	}
	dir := t.TempDir() + "/shallow.git"
	gitserver.Git(t, p.bare, "clone", "-q", "--bare", "--depth=2", "file://"+p.bare, dir)
	r := openAt(t, place{url: dir}, "")
	l := must[*repo.FileLog](t, "log")(r.FileLog(gitserver.Git(t, dir, "rev-parse", "main")))
	n := 0
	for must[*repo.FileChange](t, "next")(l.Next(context.Background(), "a.yaml", nil)) != nil {
		n++
	}
	if n != 1 || !l.Cut() {
		t.Errorf("%d changes, cut %v; want 1 of the two commits, and that it was cut", n, l.Cut())
	}
}

// BenchmarkFileLog reads the history of one file of 1,000 among so many
// commits that change one file each, beside git log -- path.
func BenchmarkFileLog(b *testing.B) {
	const files = 1000
	for _, commits := range []int{10_000, 100_000} {
		p := localPlace(b)
		var s strings.Builder
		for i := range commits {
			fmt.Fprintf(&s, "commit refs/heads/status\ncommitter Op <op@example.com> %d +0000\ndata 1\nx\n", 1e9+i)
			if i == 0 {
				for k := range files {
					doc := benchDoc(k, 0)
					fmt.Fprintf(&s, "M 100644 inline %s\ndata %d\n%s\n", benchPath(k), len(doc), doc)
				}
				continue
			}
			doc := benchDoc(i%files, i)
			fmt.Fprintf(&s, "M 100644 inline %s\ndata %d\n%s\n", benchPath(i%files), len(doc), doc)
		}
		tip := fastImport(b, p.bare, "status", s.String())
		b.Run(fmt.Sprintf("commits=%d/by=gitopsd", commits), func(b *testing.B) {
			for b.Loop() {
				got, _ := fileLog(b, open(b, p), tip, benchPath(7))
				if len(got) != commits/files+1 {
					b.Fatalf("%d changes, want %d", len(got), commits/files+1)
				}
			}
		})
		b.Run(fmt.Sprintf("commits=%d/by=git", commits), func(b *testing.B) {
			for b.Loop() {
				gitserver.Git(b, p.bare, "log", "--format=%H", tip, "--", benchPath(7))
			}
		})
	}
}
