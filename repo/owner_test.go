//go:build linux

package repo_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/repo"
)

// another is a user that owns nothing here.
const another = 65534

// asUser does file operations with the rights of another user.
func asUser(t *testing.T, uid int, do func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := syscall.Setfsuid(uid); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setfsuid(os.Geteuid()); err != nil {
			t.Fatal(err)
		}
	}()
	do()
}

func chown(t *testing.T, dir string, uid int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(path, uid, uid)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The copy was once used by another user: it is of use all the same, or the
// error says whose it is; what lies in it is never run.
func TestB129_CopyOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to act as two users")
	}
	ctx := context.Background()
	p := overHTTP(t)
	c1 := seed(t, p, "main", map[string]string{"a": "1"})
	parent := t.TempDir()
	if err := os.Chmod(filepath.Dir(parent), 0o755); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(parent, "store")
	r := openAt(t, p, store)
	if err := r.Fetch(ctx, "refs/heads/main", c1, true); err != nil {
		t.Fatal(err)
	}
	r.Close()
	// git would now refuse with "dubious ownership", and rightly so, because
	// it runs what such a repository names.
	chown(t, store, another)
	ran := filepath.Join(t.TempDir(), "ran")
	evil := filepath.Join(store, "hooks", "evil")
	if err := os.MkdirAll(filepath.Dir(evil), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(evil, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"reference-transaction", "post-update", "fsmonitor-watchman"} {
		if err := os.Symlink("evil", filepath.Join(store, "hooks", name)); err != nil {
			t.Fatal(err)
		}
	}
	config := fmt.Sprintf("[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfsmonitor = %s\n\tsshCommand = %s\n\tgitProxy = %s\n\taskPass = %s\n[credential]\n\thelper = %s\n", evil, evil, evil, evil, evil)
	if err := os.WriteFile(filepath.Join(store, "config"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	r = openAt(t, p, store)
	c2 := seed(t, p, "main", map[string]string{"a": "2"})
	if err := r.Fetch(ctx, "refs/heads/main", c2, true); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, r, c2)["a"]; got != "2" {
		t.Fatalf("a is %q", got)
	}
	r.Close()
	if _, err := os.Stat(ran); err == nil {
		t.Fatal("something that lies in the copy was run")
	}

	// The other way round: what root wrote there is no trouble for its owner.
	asUser(t, another, func() {
		r, err := repo.Open(repo.Config{URL: p.url, Store: store})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		c3 := seed(t, p, "main", map[string]string{"a": "3"})
		if err := r.Fetch(ctx, "refs/heads/main", c3, true); err != nil {
			t.Fatal(err)
		}
		if got := tree(t, r, c3)["a"]; got != "3" {
			t.Fatalf("a is %q", got)
		}
	})

	chown(t, store, 0)
	for _, path := range []string{store, filepath.Join(store, "objects", "pack")} {
		for _, mode := range []os.FileMode{0o700, 0o755} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			asUser(t, another, func() {
				r, err := repo.Open(repo.Config{URL: p.url, Store: store})
				if err == nil {
					defer r.Close()
					next := seed(t, p, "main", map[string]string{"a": fmt.Sprint(path, mode)})
					err = r.Fetch(ctx, "refs/heads/main", next, true)
				}
				wantKind(t, "the copy of root", err, "auth")
				for _, part := range []string{store, "belongs to the user 0", "runs as the user", "chown"} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("the error does not say %q: %v", part, err)
					}
				}
			})
		}
	}
	gitserver.Git(t, p.bare, "fsck", "--connectivity-only")
}
