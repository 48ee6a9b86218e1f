package repo_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/repo"
)

// holderOf, in the environment, makes TestLockHolder the process that is killed.
const holderOf = "REPO_TEST_LOCK"

// TestLockHolder is run by the tests below in a process of its own.
func TestLockHolder(t *testing.T) {
	place, ok := os.LookupEnv(holderOf)
	if !ok {
		return // by itself it is nothing
	}
	bare, what, _ := strings.Cut(place, " ")
	ref, commit, _ := strings.Cut(what, " ")
	r, err := repo.Open(repo.Config{URL: bare, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r.Publish(context.Background(), map[string][2]string{ref: {"", commit}}, nil))
}

// holdLock starts a process that has locked the ref and gets no further: what
// it reads next, packed-refs, is a pipe that nobody writes to.
func holdLock(t *testing.T, bare, ref, commit string) (end func()) {
	t.Helper()
	pipe := filepath.Join(bare, "packed-refs")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestLockHolder$", "-test.v")
	cmd.Env = append(os.Environ(), holderOf+"="+bare+" "+ref+" "+commit)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end = func() {
		if !ended {
			ended = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(end)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(bare, ref+".lock")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			end()
			t.Fatalf("the other process never locked the ref: %s", &out)
		}
	}
	if err := os.Remove(pipe); err != nil {
		t.Fatal(err)
	}
	return end
}

// stored is an orphan commit that is in the repository already.
func stored(t *testing.T, r *repo.Repo, text string) string {
	t.Helper()
	c := orphan(t, r, text)
	if err := moveLead(r, "refs/gitopsd/kept/"+text, "", c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLockOfAKilledProcessIsTakenOver(t *testing.T) {
	for _, ref := range []string{"refs/gitopsd/reports/d1", "refs/heads/gitopsd/status"} {
		p := localPlace(t)
		r := open(t, p)
		a := stored(t, r, "a")
		kill := holdLock(t, p.bare, ref, a)
		lock := filepath.Join(p.bare, ref+".lock")

		// As long as that process lives, the lock is its own, however old.
		old := time.Now().Add(-2 * time.Minute)
		if err := os.Chtimes(lock, old, old); err != nil {
			t.Fatal(err)
		}
		err := moveLead(r, ref, "", a)
		wantKind(t, "the lock of a process that lives", err, "locked")
		if !strings.Contains(err.Error(), lock) {
			t.Fatalf("the error does not name %s: %v", lock, err)
		}
		kill()
		if _, err := os.Stat(lock); err != nil {
			t.Fatalf("the killed process left no lock, so this shows nothing: %v", err)
		}
		if err := moveLead(r, ref, "", a); err != nil {
			t.Fatalf("after the process was killed: %v", err)
		}
		if got := gitserver.Git(t, p.bare, "rev-parse", ref); got != a {
			t.Fatalf("%s is at %s, want %s", ref, got, a)
		}
		noLocks(t, p.bare)
	}
}

// Somebody else's lock in the place of one that was left behind is not ours
// to remove, and neither is one that was there before it.
func TestLockOfGitIsNeverTakenOver(t *testing.T) {
	const ref = "refs/gitopsd/reports/d1"
	p := localPlace(t)
	r := open(t, p)
	a := stored(t, r, "a")
	kill := holdLock(t, p.bare, ref, a)
	kill()
	lock := filepath.Join(p.bare, ref+".lock")
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"", a + "\n"} {
		if err := os.WriteFile(lock, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		err := moveLead(r, ref, "", a)
		wantKind(t, "a fresh lock of somebody else", err, "locked")
		if !strings.Contains(err.Error(), lock) || !strings.Contains(err.Error(), "remove") {
			t.Fatalf("the error names neither path nor remedy: %v", err)
		}
		if left, err := os.ReadFile(lock); err != nil || string(left) != content {
			t.Fatalf("the lock of somebody else: %q, %v", left, err)
		}
		if err := os.Remove(lock); err != nil {
			t.Fatal(err)
		}
	}
	if err := moveLead(r, ref, "", a); err != nil {
		t.Fatal(err)
	}
	// What the killed process left beside its lock goes too, once it is old.
	old := time.Now().Add(-2 * time.Minute)
	marks, err := filepath.Glob(filepath.Join(p.bare, "gitopsd-locks", "*"))
	if err != nil || len(marks) == 0 {
		t.Fatalf("nothing is left of the killed process: %v", err)
	}
	for _, m := range marks {
		if err := os.Chtimes(m, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := moveLead(r, ref, a, ""); err != nil {
		t.Fatal(err)
	}
	noLocks(t, p.bare)
}

// noLocks fails when there is a lock file or what belongs to one.
func noLocks(t *testing.T, bare string) {
	t.Helper()
	err := filepath.WalkDir(bare, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() && (strings.HasSuffix(path, ".lock") || strings.Contains(path, "gitopsd-locks")) {
			t.Errorf("left behind: %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	fsck(t, bare)
}

// A device whose report ref is locked asks once, and not as if somebody else
// were faster.
func TestLockedIsNoRace(t *testing.T) {
	const ref = "refs/gitopsd/reports/d1"
	everyWay(t, func(t *testing.T, p place) {
		d := openDevice(t, p)
		lock := filepath.Join(p.bare, ref+".lock")
		if err := os.MkdirAll(filepath.Dir(lock), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(lock, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := d.Write(context.Background(), ref, "", map[string][]byte{"report.yaml": []byte("x")})
		wantKind(t, "a locked ref", err, "locked")
		if _, err := os.Stat(lock); err != nil {
			t.Fatalf("the lock of somebody else is gone: %v", err)
		}
	})
}
