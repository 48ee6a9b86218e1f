package reconcile

import (
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
)

const (
	// watchDelay gathers what an editor does in several steps.
	watchDelay = 500 * time.Millisecond
	// A file that is changed again and again after each repair is repaired
	// more and more seldom, down to the full comparison's pace: something
	// else manages it too.
	firstSpacing = 2 * time.Second
	// maxWatched bounds what the kernel is asked to watch; the rest is seen
	// by the full comparison.
	maxWatched = 512
)

// watcher tells of changes in the folders of managed files. One that could
// not be started tells of none, and the full comparison finds them later.
type watcher struct {
	fs      *fsnotify.Watcher
	pumping sync.WaitGroup
	tell    chan struct{}
	folders []string
	dueAt   time.Duration // uptime of the next repair; 0 = none
	last    time.Duration // of the last one; 0 = none
	spacing time.Duration
}

func (a *Agent) watch() *watcher {
	w := &watcher{spacing: firstSpacing}
	if a.unwatched {
		return w
	}
	fw, err := fsnotify.NewBufferedWatcher(16)
	if err != nil {
		a.log.Warn("managed files are not watched; they are compared every few minutes", "error", err)
		return w
	}
	w.fs, w.tell = fw, make(chan struct{}, 1)
	w.pumping.Go(w.pump)
	return w
}

// pump turns events into one signal, leaving out those of our own temporary
// files. It ends when the watcher is closed.
func (w *watcher) pump() {
	for {
		select {
		case e, ok := <-w.fs.Events:
			if !ok {
				return
			}
			if disk.IsTemp(filepath.Base(e.Name)) {
				continue
			}
		case _, ok := <-w.fs.Errors: // an overflow: something has changed
			if !ok {
				return
			}
		}
		select {
		case w.tell <- struct{}{}:
		default:
		}
	}
}

func (w *watcher) events() <-chan struct{} { return w.tell }

func (w *watcher) close() {
	if w.fs != nil {
		w.fs.Close()
		w.pumping.Wait()
	}
}

// follow watches exactly these folders, given as the host sees them.
func (w *watcher) follow(folders []string) {
	if w.fs == nil || slices.Equal(folders, w.folders) {
		return
	}
	for _, f := range w.folders {
		if !slices.Contains(folders, f) {
			_ = w.fs.Remove(f) // gone with the folder
		}
	}
	for _, f := range folders {
		_ = w.fs.Add(f) // one that cannot be watched is compared like the rest
	}
	w.folders = folders
}

// saw takes the uptime, as the methods below do.
func (w *watcher) saw(now time.Duration) {
	if w.dueAt != 0 {
		return
	}
	w.dueAt = now + watchDelay
	if w.last != 0 {
		w.dueAt = max(w.dueAt, w.last+w.spacing)
	}
}

func (w *watcher) due(now time.Duration) bool { return w.dueAt != 0 && now >= w.dueAt }

// dueIn is negative when nothing is due.
func (w *watcher) dueIn(now time.Duration) time.Duration {
	if w.dueAt == 0 {
		return -1
	}
	return max(w.dueAt-now, 0)
}

func (w *watcher) repaired(now time.Duration, changed bool) {
	lately := w.last != 0 && now-w.last <= 2*w.spacing
	switch {
	case !lately:
		w.spacing = firstSpacing
	case changed && w.dueAt != 0:
		w.spacing = min(2*w.spacing, driftEvery)
	}
	w.dueAt = 0
	if changed {
		w.last = now
		w.folders = nil // added again; those that are watched stay so
	}
}

// watched are the folders of the current spec's files on the host. It is
// worked out again when the current spec changes.
func (a *Agent) watched() []string {
	cur := a.store.current
	if a.store.attempts.Direction != steady || a.store.attempts.Observes != 0 || cur.Unknown || cur.Attempt == 0 {
		return nil
	}
	if a.watchedOf == cur.Attempt {
		return a.folders
	}
	spec, err := a.store.currentSpec()
	if err != nil {
		return a.folders
	}
	a.folders, a.watchedOf = nil, cur.Attempt
	for _, f := range a.files.Watched(wholeSet(spec)) {
		if host, err := a.root.HostPath(f); err == nil && len(a.folders) < maxWatched {
			a.folders = append(a.folders, host)
		}
	}
	return a.folders
}
