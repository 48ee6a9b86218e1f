package repo

import (
	"container/heap"
	"context"
	"errors"
	"time"
)

// IsAncestor tells whether ancestor is commit or one of its ancestors. A
// commit that is not there any more is no ancestor.
func (r *Repo) IsAncestor(ctx context.Context, ancestor, commit string) (bool, error) {
	a, err := parseOID(ancestor)
	if err != nil {
		return false, r.wrap("compare", ancestor, err)
	}
	c, err := parseOID(commit)
	if err != nil {
		return false, r.wrap("compare", commit, err)
	}
	ok, err := r.isAncestor(ctx, a, c)
	return ok, r.wrap("compare", commit, err)
}

func (r *Repo) isAncestor(ctx context.Context, ancestor, from oid) (bool, error) {
	if _, err := r.commit(ctx, ancestor); errors.Is(err, errMissing) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	// Breadth first: what is asked is mostly a near ancestor, and dates are
	// not to be trusted.
	seen := map[oid]bool{from: true}
	for todo := []oid{from}; len(todo) > 0; todo = todo[1:] {
		if todo[0] == ancestor {
			return true, nil
		}
		c, err := r.commit(ctx, todo[0])
		if err != nil {
			return false, err
		}
		for _, p := range c.parents {
			if !seen[p] {
				seen[p] = true
				todo = append(todo, p)
			}
		}
	}
	return false, nil
}

// Parents are those of a commit, of which some may not be here.
func (r *Repo) Parents(ctx context.Context, commit string) ([]string, error) {
	id, err := parseOID(commit)
	if err != nil {
		return nil, r.wrap("read", commit, err)
	}
	c, err := r.commit(ctx, id)
	if err != nil {
		return nil, r.wrap("read", commit, err)
	}
	parents := make([]string, len(c.parents))
	for i, p := range c.parents {
		parents[i] = p.String()
	}
	return parents, nil
}

// logSlop is how many commits are looked at after everything still to come is
// known to be reachable from `until`: clocks of committers differ (git uses
// the same number).
const logSlop = 5

// Log calls fn for the commits reachable from `from` but not from `until`
// ("" = to the root), newest first, while it returns true. author is
// "Name <mail>", when the time of the committer. A commit that was fetched
// without its history can be looked at too: fn ends it there.
func (r *Repo) Log(ctx context.Context, from, until string, fn func(hash, author string, when time.Time, message string) bool) error {
	start, err := parseOID(from)
	if err != nil {
		return r.wrap("log", from, err)
	}
	stop, err := optionalOID(until)
	if err != nil {
		return r.wrap("log", until, err)
	}
	return r.wrap("log", from, r.logCommits(ctx, start, stop, fn))
}

func (r *Repo) logCommits(ctx context.Context, start, stop oid, fn func(hash, author string, when time.Time, message string) bool) error {
	w := &logWalk{repo: r, hidden: map[oid]bool{}, seen: map[oid]bool{}}
	if err := w.push(ctx, start, false); err != nil {
		return err
	}
	if stop.IsZero() {
		for w.Len() > 0 {
			n := heap.Pop(w).(*logNode)
			// Where fn has seen enough, a history that was not fetched is not missed.
			if !fn(n.id.String(), n.author, n.when, n.message) {
				return nil
			}
			if err := w.parents(ctx, n); err != nil {
				return err
			}
		}
		return nil
	}
	if err := w.push(ctx, stop, true); err != nil && !errors.Is(err, errMissing) {
		return err
	}
	var found []*logNode
	for slop := logSlop; w.Len() > 0 && slop > 0; {
		n := heap.Pop(w).(*logNode)
		if err := w.parents(ctx, n); err != nil {
			return err
		}
		if !w.hidden[n.id] {
			found = append(found, n)
		}
		if w.onlyHidden() {
			slop--
		} else {
			slop = logSlop
		}
	}
	for _, n := range found {
		if !w.hidden[n.id] && !fn(n.id.String(), n.author, n.when, n.message) {
			return nil
		}
	}
	return nil
}

type logNode struct {
	*commit
	id oid
}

// logWalk is a queue of commits, newest first. hidden marks those reachable
// from where the log ends.
type logWalk struct {
	repo   *Repo
	queue  []*logNode
	seen   map[oid]bool
	hidden map[oid]bool
}

func (w *logWalk) Len() int { return len(w.queue) }
func (w *logWalk) Less(i, j int) bool {
	a, b := w.queue[i], w.queue[j]
	if !a.when.Equal(b.when) {
		return a.when.After(b.when)
	}
	return a.id.String() < b.id.String()
}
func (w *logWalk) Swap(i, j int) { w.queue[i], w.queue[j] = w.queue[j], w.queue[i] }
func (w *logWalk) Push(x any)    { w.queue = append(w.queue, x.(*logNode)) }
func (w *logWalk) Pop() any {
	n := w.queue[len(w.queue)-1]
	w.queue = w.queue[:len(w.queue)-1]
	return n
}

// push queues a commit. One that turns out hidden after it was seen goes
// through the queue again, so that its ancestors learn of it.
func (w *logWalk) push(ctx context.Context, id oid, hide bool) error {
	if w.seen[id] && (!hide || w.hidden[id]) {
		return nil
	}
	c, err := w.repo.commit(ctx, id)
	if err != nil {
		return err
	}
	w.seen[id] = true
	if hide {
		w.hidden[id] = true
	}
	heap.Push(w, &logNode{commit: c, id: id})
	return nil
}

// parents queues those of a commit.
func (w *logWalk) parents(ctx context.Context, n *logNode) error {
	hide := w.hidden[n.id]
	for _, p := range n.parents {
		// A hidden history may end in what is not here.
		if err := w.push(ctx, p, hide); err != nil && !(hide && errors.Is(err, errMissing)) {
			return err
		}
	}
	return nil
}

func (w *logWalk) onlyHidden() bool {
	for _, n := range w.queue {
		if !w.hidden[n.id] {
			return false
		}
	}
	return true
}
