package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// stateFolder is the daemon's own folder for one repository, locked.
type stateFolder struct {
	path      string
	temporary bool
	lock      *flock.Flock
}

// stateBase is the folder above the folders of the repositories: what was
// asked for, what systemd made for the service, or the user's own.
func stateBase(asked string, env environment) (string, error) {
	if asked != "" {
		return asked, nil
	}
	// systemd separates several folders with colons; ours is the first.
	if dirs := env["STATE_DIRECTORY"]; dirs != "" {
		first, _, _ := strings.Cut(dirs, ":")
		return first, nil
	}
	if dir := env["XDG_STATE_HOME"]; filepath.IsAbs(dir) {
		return filepath.Join(dir, "gitopsd"), nil
	}
	if home := env["HOME"]; home != "" {
		return filepath.Join(home, ".local", "state", "gitopsd"), nil
	}
	return "", withHint(usagef("there is no folder for what the daemon keeps: HOME is not set"), "name one with --state or %s", variable("state"))
}

// folderName names the folder of a repository: readable, and unique by its
// hash. Credentials take no part, so that a rotated one changes nothing.
func folderName(repo string) string {
	shown := strings.TrimRight(redact(repo), "/")
	// What is hashed tells more repositories apart than what may be shown.
	repo = strings.TrimRight(redactText(repo), "/")
	if abs, err := filepath.Abs(repo); err == nil && isFolder(repo) {
		repo, shown = abs, abs
	}
	const readable = 40 // enough to recognise it, short enough for any file system
	name := strings.TrimSuffix(shown[strings.LastIndexAny(shown, "/:")+1:], ".git")
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '-'
	}, name)
	sum := sha256.Sum256([]byte(repo))
	const digits = 12
	return name[:min(len(name), readable)] + "-" + hex.EncodeToString(sum[:])[:digits]
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// openState makes and locks the folder. When another daemon has it, a
// temporary one takes its place: the status branch keeps two daemons apart.
func openState(base, repo string) (*stateFolder, error) {
	dir := filepath.Join(base, folderName(repo))
	const action = "cannot open the state folder"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, withHint(fmt.Errorf("%s: %w", action, err), "name another one with --state or %s", variable("state"))
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, withHint(fmt.Errorf("%s %s: %w", action, dir, err), "name another one with --state or %s", variable("state"))
	}
	if locked {
		return &stateFolder{path: dir, lock: lock}, nil
	}
	temporary, err := os.MkdirTemp("", "gitopsd-state-")
	if err != nil {
		return nil, fmt.Errorf("%s: %s is in use, and there is no temporary one: %w", action, dir, err)
	}
	return &stateFolder{path: temporary, temporary: true}, nil
}

// close gives the folder back.
func (s *stateFolder) close() error {
	if s.temporary {
		return os.RemoveAll(s.path)
	}
	return errors.Join(s.lock.Unlock(), s.lock.Close())
}
