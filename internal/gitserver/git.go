package gitserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Git runs the git program in dir with an identity and without the user's
// configuration, and gives what it printed, trimmed. A failure ends the test.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := TryGit(dir, args...)
	if err != nil {
		t.Fatalf("git %s in %s: %v\n%s", strings.Join(args, " "), dir, err, out)
	}
	return out
}

// TryGit is [Git] that gives the failure to the caller; the text holds both
// outputs.
func TryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), Environ()...)
	out, err := cmd.CombinedOutput()
	return strings.TrimRight(string(out), "\n"), err
}

// Environ makes a git process independent of the machine it runs on.
func Environ() []string {
	return []string{
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Op", "GIT_AUTHOR_EMAIL=op@example.com",
		"GIT_COMMITTER_NAME=Op", "GIT_COMMITTER_EMAIL=op@example.com",
	}
}

// Bare makes an empty bare repository dir/name that may be pushed to over
// http, with HEAD on main, and gives its path.
func Bare(t testing.TB, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	Git(t, dir, "init", "-q", "--bare", "-b", "main", path)
	Git(t, path, "config", "http.receivepack", "true")
	Git(t, path, "config", "uploadpack.allowFilter", "true")
	Git(t, path, "config", "gc.auto", "0")
	Git(t, path, "config", "receive.autogc", "false")
	return path
}
