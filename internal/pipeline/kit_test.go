//go:build system

package pipeline

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gitopsd/gitopsd/examples"
	"github.com/gitopsd/gitopsd/internal/gitserver"
)

// need finds a program, or skips the test where skipping is allowed.
func need(t *testing.T, program, debian string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	if os.Getenv("GITOPSD_NO_SKIP") != "" {
		t.Fatalf("the program %s is needed here (Debian: %s)", program, debian)
	}
	t.Skipf("the program %s is missing (Debian: %s)", program, debian)
	return ""
}

var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gitopsd-pipeline-")
	if err != nil {
		return "", err
	}
	exe := filepath.Join(dir, "gitopsd")
	if out, err := exec.Command("go", "build", "-o", exe, "github.com/gitopsd/gitopsd/cmd/gitopsd").CombinedOutput(); err != nil {
		return exe, fmt.Errorf("build gitopsd: %w\n%s", err, out)
	}
	return exe, nil
})

// gitopsd builds the program once for all tests of a run.
func gitopsd(t *testing.T) string {
	t.Helper()
	exe, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

func TestMain(m *testing.M) {
	code := m.Run()
	if exe, _ := binary(); exe != "" {
		os.RemoveAll(filepath.Dir(exe))
	}
	os.Exit(code)
}

// hostile is what a pull request may call its branch. Where it got into a
// script, a file named pwned would appear.
const hostile = "x$(touch${IFS}pwned)`touch${IFS}pwned`';touch${IFS}pwned;'"

// pull is a pull request of the example, in a repository on a server.
type pull struct {
	t      *testing.T
	url    string
	folder string // of the fleet in it; "" = its root
	base   string // the branch's commit
	head   string // the pull request's
	merge  string // what GitHub tried
}

// newPull makes a repository with the example and a pull request that changes
// it; meanwhile the branch goes on.
func newPull(t *testing.T, folder string, change func(dir string)) *pull {
	t.Helper()
	need(t, "git", "git")
	temp := t.TempDir()
	bare := gitserver.Bare(t, temp, "fleet.git")
	dir := filepath.Join(temp, "work")
	gitserver.Git(t, temp, "clone", "-q", bare, dir)
	git := func(args ...string) string { return gitserver.Git(t, dir, args...) }
	fleet := filepath.Join(dir, folder)
	if err := os.CopyFS(fleet, examples.FleetRepo()); err != nil {
		t.Fatal(err)
	}
	commit := func(message string) string {
		git("add", "-A")
		git("commit", "-q", "-m", message)
		return git("rev-parse", "HEAD")
	}
	git("checkout", "-q", "-B", "main")
	commit("the fleet")
	git("checkout", "-q", "-b", hostile)
	change(fleet)
	p := &pull{t: t, url: "file://" + bare, folder: folder}
	p.head = commit("change it")
	git("checkout", "-q", "main")
	write(t, filepath.Join(dir, "notes.md"), "the branch goes on\n")
	p.base = commit("notes")
	git("merge", "-q", "--no-ff", "-m", "try", p.head)
	p.merge = git("rev-parse", "HEAD")
	git("push", "-q", "origin", p.base+":refs/heads/main", p.head+":refs/pull/7/head", p.merge+":refs/pull/7/merge")
	return p
}

// checkout is what actions/checkout leaves: one commit, so deep.
func (p *pull) checkout(commit string, depth int) string {
	p.t.Helper()
	dir := filepath.Join(p.t.TempDir(), "workspace")
	gitserver.Git(p.t, filepath.Dir(dir), "init", "-q", dir)
	gitserver.Git(p.t, dir, "remote", "add", "origin", p.url)
	gitserver.Git(p.t, dir, "fetch", "-q", "--no-tags", fmt.Sprintf("--depth=%d", depth), "origin", "+"+commit+":refs/remotes/pull/7/merge")
	gitserver.Git(p.t, dir, "checkout", "-q", "--detach", commit)
	return dir
}

// event is what GitHub tells of the pull request.
func (p *pull) event() map[string]any {
	return map[string]any{
		"action": "opened",
		"number": 7,
		"pull_request": map[string]any{
			"number": 7, "title": hostile, "body": hostile,
			"base": map[string]any{"ref": "main", "sha": p.base},
			"head": map[string]any{"ref": hostile, "sha": p.head},
		},
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// overwrite puts the files of one folder over those of another.
func overwrite(t *testing.T, dir, from string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err == nil {
			write(t, filepath.Join(dir, rel), read(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// edit replaces one text of a file, which must stand there once, and says where
// a part of the new text begins.
func edit(t *testing.T, path, old, now, part string) (place string) {
	t.Helper()
	text := read(t, path)
	if strings.Count(text, old) != 1 {
		t.Fatalf("%s has %q %d times", path, old, strings.Count(text, old))
	}
	at := strings.Index(text, old) + strings.Index(now, part)
	text = strings.Replace(text, old, now, 1)
	write(t, path, text)
	before := text[:at]
	return fmt.Sprintf("%d:%d", 1+strings.Count(before, "\n"), at-strings.LastIndex(before, "\n"))
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// withoutGo is a PATH to what the action's scripts use, but for Go.
func withoutGo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, program := range []string{"bash", "basename", "git", "sed", "cat", "mkdir", "rm"} {
		if err := os.Symlink(need(t, program, program), filepath.Join(dir, program)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
