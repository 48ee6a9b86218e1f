package sweep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settleAfter gathers the many file events of one push.
	settleAfter = 100 * time.Millisecond

	// maxWatched bounds the folders below refs/ that are watched; a
	// repository with more branches in folders is polled.
	maxWatched = 500
)

// watch tells of changed refs of a local repository. stopped is closed when
// everything that was started has ended.
func (d *Daemon) watch(ctx context.Context) (changes <-chan struct{}, stopped <-chan struct{}, err error) {
	done := make(chan struct{})
	if d.cfg.WatchPath == "" {
		close(done)
		return nil, done, nil
	}
	git, err := gitDir(d.cfg.WatchPath)
	if err != nil {
		close(done)
		return nil, done, err
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		close(done)
		return nil, done, fmt.Errorf("watch %s: %w", git, err)
	}
	rw := &refWatcher{git: git, fs: w, own: []string{branchRef(d.cfg.StatusBranch), strings.TrimSuffix(d.cfg.DeviceRefs, "/")}}
	if err := rw.start(); err != nil {
		close(done)
		return nil, done, errors.Join(fmt.Errorf("watch %s: %w", git, err), w.Close())
	}
	out := make(chan struct{}, 1)
	go func() {
		defer close(done)
		rw.run(ctx, out)
		if err := w.Close(); err != nil {
			d.log.Debug("the watch of the repository did not end cleanly", keyError, err.Error())
		}
	}()
	return out, done, nil
}

// gitDir is where a local repository keeps its refs.
func gitDir(path string) (string, error) {
	for _, dir := range []string{path, filepath.Join(path, ".git")} {
		if info, err := os.Stat(filepath.Join(dir, "refs")); err == nil && info.IsDir() {
			return dir, nil
		}
	}
	return "", fmt.Errorf("%s is no git repository", path)
}

type refWatcher struct {
	git     string
	fs      *fsnotify.Watcher
	own     []string // refs that only the daemon moves; their changes are no news
	watched int
}

func (w *refWatcher) start() error {
	if err := w.fs.Add(w.git); err != nil { // packed-refs and HEAD
		return err
	}
	return w.addFolders(filepath.Join(w.git, "refs"))
}

func (w *refWatcher) addFolders(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // it went while we looked
		}
		if !entry.IsDir() {
			return nil
		}
		if w.isOwn(path) {
			return fs.SkipDir
		}
		if w.watched++; w.watched > maxWatched {
			return fmt.Errorf("more than %d folders of refs", maxWatched)
		}
		return w.fs.Add(path)
	})
}

func (w *refWatcher) isOwn(path string) bool {
	rel, err := filepath.Rel(w.git, path)
	if err != nil {
		return false
	}
	rel = filepath.ToSlash(rel)
	for _, own := range w.own {
		if rel == own || strings.HasPrefix(rel, own+"/") {
			return true
		}
	}
	return false
}

// matters says whether an event may be of a ref that the daemon reads.
func (w *refWatcher) matters(e fsnotify.Event) bool {
	if strings.HasSuffix(e.Name, ".lock") || e.Op == fsnotify.Chmod || w.isOwn(e.Name) {
		return false
	}
	if filepath.Dir(e.Name) == filepath.Clean(w.git) {
		name := filepath.Base(e.Name)
		return name == "HEAD" || name == "packed-refs"
	}
	return true
}

func (w *refWatcher) run(ctx context.Context, out chan<- struct{}) {
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-w.fs.Events:
			if !ok {
				return
			}
			if e.Has(fsnotify.Create) {
				if info, err := os.Stat(e.Name); err == nil && info.IsDir() {
					_ = w.addFolders(e.Name) // what cannot be watched is polled
				}
			}
			if w.matters(e) && due == nil {
				due = time.After(settleAfter)
			}
		case _, ok := <-w.fs.Errors: // an overflow: something changed
			if !ok {
				return
			}
			if due == nil {
				due = time.After(settleAfter)
			}
		case <-due:
			due = nil
			select {
			case out <- struct{}{}:
			default: // one is waiting already
			}
		}
	}
}
