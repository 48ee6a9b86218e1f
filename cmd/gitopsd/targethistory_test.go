package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/internal/gitserver"
)

// TestRollbackFollowsTheHistory: what was there before is what is gone back
// to, not a release that nobody ran; also where the fleet is a folder of a
// larger repository, and in a linked work tree.
func TestRollbackFollowsTheHistory(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "ops", "fleet")
	if _, err := writeStarter(dir, partFleet); err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"v1.1.0", "v1.2.0"} {
		if code, _, stderr := gitopsd(t, "release", "new", "gateways", v, dir, "--from", "v1.0.0"); code != 0 {
			t.Fatal(stderr)
		}
	}
	gitserver.Git(t, root, "init", "-q", "-b", "main")
	commit := func() {
		gitserver.Git(t, root, "add", "-A")
		gitserver.Git(t, root, "commit", "-q", "-m", "x")
	}
	commit()
	if got := targetsBefore(t.Context(), dir, "policies/gateways.yaml").versions; !slices.Equal(got, []string{"v1.0.0"}) {
		t.Errorf("one commit: got %v", got)
	}
	if code, _, stderr := gitopsd(t, "set-version", "gateways", "v1.2.0", dir); code != 0 {
		t.Fatal(stderr)
	}
	commit()
	if got := targetsBefore(t.Context(), dir, "policies/gateways.yaml").versions; !slices.Equal(got, []string{"v1.2.0", "v1.0.0"}) {
		t.Errorf("two commits: got %v", got)
	}
	linked := filepath.Join(t.TempDir(), "linked")
	gitserver.Git(t, root, "worktree", "add", "-q", "-b", "other", linked)
	for _, dir := range []string{filepath.Join(linked, "ops", "fleet"), dir} {
		code, stdout, stderr := gitopsd(t, "rollback", "gateways", dir)
		if code != 0 || !strings.Contains(stdout, "\n+  targetVersion: v1.0.0\n+  rollbackFrom: [v1.2.0, v1.1.0]\n") {
			t.Errorf("%s: exit code %d\n%s%s", dir, code, stdout, stderr)
		}
	}
	// Without a history it is not sure which of several it was.
	if err := os.RemoveAll(filepath.Join(root, ".git")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "policies/gateways.yaml")
	text := strings.Replace(readFile(t, dir, "policies/gateways.yaml"), "  targetVersion: v1.0.0\n  rollbackFrom: [v1.2.0, v1.1.0]\n", "  targetVersion: v1.2.0\n", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := gitopsd(t, "rollback", "gateways", dir); code != 1 || stdout != "" || !strings.HasSuffix(stderr, "older releases are v1.1.0, v1.0.0\n") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr := gitopsd(t, "set-version", "gateways", "v1.0.0", dir); code != 0 {
		t.Fatal(stderr)
	}
	text = strings.Replace(readFile(t, dir, "policies/gateways.yaml"), "  rollbackFrom: [v1.2.0, v1.1.0]\n", "", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := gitopsd(t, "rollback", "gateways", dir)
	if want := "hint: if devices run a newer one, name it in the policy: rollbackFrom: [v1.2.0]\n"; code != 1 || !strings.HasSuffix(stderr, want) {
		t.Errorf("exit code %d, %s\nwant %s", code, stderr, want)
	}
}

// TestRollbackNeverGoesToWhatIsKnownToBeBad: to a version that devices were
// taken back from, or that they failed, and to none by guessing in a clone
// whose history was cut off.
func TestRollbackNeverGoesToWhatIsKnownToBeBad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	if _, err := writeStarter(dir, partFleet); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) {
		t.Helper()
		if code, _, stderr := gitopsd(t, args...); code != 0 {
			t.Fatal(stderr)
		}
	}
	gitserver.Git(t, filepath.Dir(dir), "init", "-q", "-b", "main", dir)
	commit := func() {
		t.Helper()
		gitserver.Git(t, dir, "add", "-A")
		gitserver.Git(t, dir, "commit", "-q", "-m", "x")
	}
	commit()
	for _, v := range []string{"v1.1.0", "v1.2.0"} {
		run("release", "new", "gateways", v, dir, "--from", "v1.0.0")
	}
	run("set-version", "gateways", "v1.1.0", dir)
	commit()
	run("rollback", "gateways", dir, "--to", "v1.0.0")
	commit()
	run("set-version", "gateways", "v1.2.0", dir)
	commit()
	rollback := func(dir string, wantCode int, want string) {
		t.Helper()
		code, stdout, stderr := gitopsd(t, "rollback", "gateways", dir, "--dry-run")
		if code != wantCode || !strings.Contains(stdout+stderr, want) || strings.Contains(stdout, "targetVersion: v1.1.0") {
			t.Errorf("%s: exit code %d, want %d and %q\n%s%s", dir, code, wantCode, want, stdout, stderr)
		}
	}
	rollback(dir, 0, "\n+  targetVersion: v1.0.0\n")

	shallow := filepath.Join(t.TempDir(), "shallow")
	gitserver.Git(t, filepath.Dir(dir), "clone", "-q", "--depth", "1", "file://"+dir, shallow)
	rollback(shallow, 0, "\n+  targetVersion: v1.0.0\n") // v1.1.0 cannot be meant
	for _, where := range []string{shallow, dir} {
		run("release", "new", "gateways", "v0.9.0", where, "--from", "v1.0.0")
	}
	rollback(shallow, 1, "older releases are v1.1.0 (in rollbackFrom), v1.0.0, v0.9.0\n")
	rollback(dir, 0, "\n+  targetVersion: v1.0.0\n")

	// The clone has the status branch, and a device failed v1.0.0.
	gitserver.Git(t, dir, "checkout", "-q", "--orphan", "failed")
	gitserver.Git(t, dir, "rm", "-rqf", "--cached", ".")
	writeBelow(t, dir, "failures/gateways/gateways/v1.0.0.yaml", `apiVersion: gitopsd.dev/v1alpha1
kind: FailureMarks
metadata:
  name: v1.0.0
policy: gateways
version: v1.0.0
halted: false
marks:
- device: gw-example-01
  attempt: 3
  outcome: failed
  digest: sha256:0
  rollout: sha256:0
  at: "2026-01-01T00:00:00Z"
`)
	gitserver.Git(t, dir, "add", "failures")
	gitserver.Git(t, dir, "commit", "-q", "-m", "status")
	gitserver.Git(t, dir, "update-ref", "refs/remotes/origin/gitopsd/status", "failed")
	gitserver.Git(t, dir, "checkout", "-qf", "main")
	rollback(dir, 1, "1 device failed v1.0.0, which would be next")
}
