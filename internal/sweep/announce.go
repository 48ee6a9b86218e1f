package sweep

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

const (
	// firstLook and lastLook bound the waits until an announced commit is
	// looked for again, which double: most servers show a push within
	// seconds, and a mirror may take a minute.
	firstLook = time.Second
	lastLook  = 30 * time.Second

	// maxLooks ends that, after some three minutes in which the repository
	// answered: a commit that is not there by then never came, or is found by
	// the ordinary passes. While the repository does not answer, no look is
	// counted.
	maxLooks = 10

	// maxOld bounds what is remembered of one branch that is pushed to again
	// and again while its server shows nothing of it.
	maxOld = 100
)

// Announcement is news of a branch from somebody who may know of it before the
// repository shows it: servers tell of a push before all of their machines have
// it. The zero value only asks for a pass.
type Announcement struct {
	Branch string // the source branch or the brake branch
	Before string // the commit that it was at; "" = none, or not known
	Commit string // the commit that it is at; "" = it is gone, or not known
}

// announced is what others said of branches, and what was seen of them.
type announced struct {
	wake chan struct{} // has room for one: what is asked for twice is done once

	mu     sync.Mutex
	heads  map[string]string // branch → commit of the last listing, "" = absent; no entry = not listed yet
	wanted map[string]*wantedHead
}

// wantedHead is an announced commit that was not seen yet. Nothing in it but
// looks is changed, and that by the loop alone.
type wantedHead struct {
	commit string
	old    map[string]bool // what the branch may show until it shows the commit
	looks  int
}

func newAnnounced() *announced {
	return &announced{wake: make(chan struct{}, 1), heads: map[string]string{}, wanted: map[string]*wantedHead{}}
}

// Announce makes the next pass come at once, and lets Run look again soon until
// it sees the announced commit, or another that is news. It returns at once and
// may be called by anybody at any time, unlike all else of a Daemon.
func (d *Daemon) Announce(a Announcement) {
	if a.Commit != "" {
		d.announced.want(a)
	}
	select {
	case d.announced.wake <- struct{}{}:
	default: // a pass is coming already
	}
}

func (n *announced) want(a Announcement) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := &wantedHead{commit: a.Commit, old: map[string]bool{a.Before: true}}
	if head, listed := n.heads[a.Branch]; listed {
		w.old[head] = true
	}
	if earlier := n.wanted[a.Branch]; earlier != nil && len(earlier.old) < maxOld {
		maps.Copy(w.old, earlier.old)
	}
	delete(w.old, a.Commit)
	n.wanted[a.Branch] = w
}

// saw notes what a listing of the refs showed of a branch.
func (n *announced) saw(branch, commit string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.heads[branch] = commit
}

// lookAgain is called after a pass that worked, and gives the time until the
// next one: less than the interval while an announced commit is not there.
func (d *Daemon) lookAgain(ctx context.Context, interval time.Duration) time.Duration {
	n := d.announced
	n.mu.Lock()
	wanted, heads := maps.Clone(n.wanted), maps.Clone(n.heads)
	n.mu.Unlock()
	for branch, w := range wanted {
		head, listed := heads[branch]
		switch {
		case !listed, !w.old[head], d.contains(ctx, branch, head, w.commit):
		case w.looks == maxLooks:
			d.log.WarnContext(ctx, "a commit was announced and is not there; it is no longer looked for, the next sweep comes at its time",
				keyBranch, branch, keyCommit, short(w.commit), keyOld, short(head), keyTry, w.looks)
		default:
			interval = min(interval, firstLook<<w.looks, lastLook)
			w.looks++
			continue
		}
		n.mu.Lock()
		if n.wanted[branch] == w { // nobody announced another one meanwhile
			delete(n.wanted, branch)
		}
		n.mu.Unlock()
	}
	return interval
}

// contains says whether a head is already beyond an announced commit: the news
// of it came late. The brake branch is fetched without its history.
func (d *Daemon) contains(ctx context.Context, branch, head, commit string) bool {
	if head == "" || branch == schema.BrakeBranch {
		return false
	}
	is, err := d.cfg.Remote.IsAncestor(ctx, commit, head)
	return err == nil && is
}
