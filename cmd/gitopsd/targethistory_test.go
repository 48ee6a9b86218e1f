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
	if _, err := writeStarter(dir); err != nil {
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
	if got := targetsBefore(t.Context(), dir, "policies/gateways.yaml"); !slices.Equal(got, []string{"v1.0.0"}) {
		t.Errorf("one commit: got %v", got)
	}
	if code, _, stderr := gitopsd(t, "set-version", "gateways", "v1.2.0", dir); code != 0 {
		t.Fatal(stderr)
	}
	commit()
	if got := targetsBefore(t.Context(), dir, "policies/gateways.yaml"); !slices.Equal(got, []string{"v1.2.0", "v1.0.0"}) {
		t.Errorf("two commits: got %v", got)
	}
	linked := filepath.Join(t.TempDir(), "linked")
	gitserver.Git(t, root, "worktree", "add", "-q", "-b", "other", linked)
	for _, dir := range []string{filepath.Join(linked, "ops", "fleet"), dir} {
		code, stdout, stderr := gitopsd(t, "rollback", "gateways", dir)
		if code != 0 || !strings.Contains(stdout, "\n+  targetVersion: v1.0.0\n+  rollbackFrom: [v1.2.0]\n") {
			t.Errorf("%s: exit code %d\n%s%s", dir, code, stdout, stderr)
		}
	}
	// Without a history the newest release below is the best that is known.
	if err := os.RemoveAll(filepath.Join(root, ".git")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "policies/gateways.yaml")
	text := strings.Replace(readFile(t, dir, "policies/gateways.yaml"), "  targetVersion: v1.0.0\n  rollbackFrom: [v1.2.0]\n", "  targetVersion: v1.2.0\n", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := gitopsd(t, "rollback", "gateways", dir); code != 0 || !strings.Contains(stdout, "\n+  targetVersion: v1.1.0\n") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr := gitopsd(t, "set-version", "gateways", "v1.0.0", dir); code != 0 {
		t.Fatal(stderr)
	}
	text = strings.Replace(readFile(t, dir, "policies/gateways.yaml"), "  rollbackFrom: [v1.2.0]\n", "", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := gitopsd(t, "rollback", "gateways", dir)
	if want := "hint: say it with --to; the releases of gateways are v1.2.0, v1.1.0, v1.0.0\n"; code != 1 || !strings.HasSuffix(stderr, want) {
		t.Errorf("exit code %d, %s\nwant %s", code, stderr, want)
	}
}
