package repo

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"
)

const (
	// maxHaves bounds what one request says that this side has; the server
	// needs one common commit, and they are spread over the history.
	maxHaves = 64
	// maxHaveWalk bounds the commits read to find them.
	maxHaveWalk = 4096
	// healEvery is how seldom a damaged store is fetched again: a repository
	// that is itself damaged must not be cloned in a loop.
	healEvery = 10 * time.Minute
)

// Fetch makes a commit and what it reaches readable: with its whole history,
// or only its own tree. ref is where the remote has it.
func (r *Repo) Fetch(ctx context.Context, ref, commit string, history bool) error {
	ctx, cancel := r.within(ctx)
	defer cancel()
	return r.wrap("fetch", ref, r.fetch(ctx, ref, commit, history, storeLimits.packBytes))
}

// FetchAtMost is Fetch with its history of what a stranger may have written: no
// more than so many bytes come; [ErrTooLarge] says that there are more.
func (r *Repo) FetchAtMost(ctx context.Context, ref, commit string, limit int64) error {
	ctx, cancel := r.within(ctx)
	defer cancel()
	return r.wrap("fetch", ref, r.fetch(ctx, ref, commit, true, limit))
}

func (r *Repo) fetch(ctx context.Context, ref, commit string, history bool, limit int64) error {
	if err := validRef(ref); err != nil {
		return err
	}
	id, err := parseOID(commit)
	if err != nil {
		return err
	}
	if r.local != nil {
		_, err := r.commit(ctx, id)
		return err
	}
	r.fetches.Lock()
	defer r.fetches.Unlock()
	ctx = withoutHeal(ctx)
	if r.store.get(ref, history) == id {
		return nil
	}
	if complete, err := r.complete(ctx, id, history); err != nil || complete {
		if err != nil {
			return err
		}
		return r.store.keep(ref, history, id)
	}
	err = r.download(ctx, ref, id, history, true, limit)
	if (errors.Is(err, errDamaged) || errors.Is(err, fs.ErrNotExist)) && ctx.Err() == nil {
		// The server has answered, so it can be fetched from nothing. What
		// the server itself sent wrong is no reason to.
		r.log.Warn("the copy of the repository is damaged and is fetched again", "repo", r.at.String(), "store", r.store.dir, "cause", err)
		if err := r.store.reset(); err != nil {
			return err
		}
		err = r.download(ctx, ref, id, history, false, limit)
	}
	if err != nil {
		return timedOut(ctx, err)
	}
	r.tidy(ctx)
	return nil
}

// complete tells whether a commit is here with all that is asked for, though
// it was fetched for another ref or is an older one.
func (r *Repo) complete(ctx context.Context, id oid, history bool) (bool, error) {
	if !history {
		for _, tip := range r.store.tips(false) {
			if tip == id {
				return true, nil
			}
		}
	}
	tips := r.store.tips(true)
	for _, tip := range tips {
		if tip == id {
			return true, nil
		}
	}
	if !r.objs.has(id) {
		return false, nil
	}
	for _, tip := range tips {
		if ok, err := r.isAncestor(ctx, id, tip); err == nil && ok {
			return true, nil
		} else if ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
	return false, nil
}

// download fetches a commit into the store; incremental says what is here
// already, and limit how many bytes may come.
func (r *Repo) download(ctx context.Context, ref string, id oid, history, incremental bool, limit int64) error {
	req := &fetchRequest{wants: []oid{id}}
	if !history {
		req.depth = 1
	}
	if incremental {
		r.addHaves(ctx, req, ref, history)
	}
	decide := func(l *listing) (*fetchRequest, error) {
		if l.v2 || l.all[id] || l.caps.has("allow-reachable-sha1-in-want") || l.caps.has("allow-any-sha1-in-want") || (l.caps.has("allow-tip-sha1-in-want") && l.all[id]) {
			return req, nil
		}
		// An old server gives only what a ref points to now.
		tip, ok := l.refs[ref]
		switch {
		case !ok:
			return nil, fail(kindNotFound, "the ref is not there")
		case !history:
			return nil, fail(kindRace, "the ref has moved from %s to %s meanwhile", id, tip).hint("it is tried again")
		}
		req.wants = []oid{tip}
		return req, nil
	}
	err := r.remote.upload(ctx, question{prefixes: []string{ref}, exact: true, byHash: true}, decide, func(pack io.Reader) error {
		return r.store.receive(ctx, pack, history, limit)
	})
	if err != nil {
		return err
	}
	typ, data, err := r.objs.read(ctx, id, 0)
	if errors.Is(err, errMissing) {
		return fail(kindRace, "the ref has moved away from %s meanwhile", id).hint("it is tried again")
	}
	if err != nil {
		// What came was whole, so it is the store that cannot be read.
		return fail(kindCorrupt, "%w: %w", errDamaged, err)
	}
	if typ != typeCommit {
		return fail(kindRefused, "%s is a %s, not a commit", id, typ)
	}
	c, err := parseCommit(data)
	if err != nil {
		return err
	}
	if _, _, err := r.objs.read(ctx, c.tree, 0); err != nil {
		if !errors.Is(err, errMissing) || len(req.haves) > 0 {
			return fail(kindCorrupt, "%w: %w", errDamaged, err)
		}
		return fail(kindCorrupt, "the server sent a commit without its tree: %w", err)
	}
	return r.store.keep(ref, history, id)
}

// addHaves says what the store has that is of use for the request.
func (r *Repo) addHaves(ctx context.Context, req *fetchRequest, ref string, history bool) {
	if !history {
		tips := r.store.tips(false)
		if old := r.store.get(ref, false); !old.IsZero() {
			tips = []oid{old}
		}
		// The server has to know that these have no parents here: otherwise
		// it would leave out what only an older commit reaches.
		req.haves, req.shallows = tips, tips
		return
	}
	seen := map[oid]bool{}
	walked := 0
	for _, tip := range r.store.tips(true) {
		// The tip and commits ever further back: where the branch was
		// rewritten, one of them is still common.
		next := 0
		for n, at := 0, tip; !at.IsZero() && walked < maxHaveWalk && len(req.haves) < maxHaves; n++ {
			walked++
			if n == next {
				if !seen[at] {
					seen[at] = true
					req.haves = append(req.haves, at)
				}
				next = n*2 + 1
			}
			c, err := r.commit(ctx, at)
			if err != nil || len(c.parents) == 0 {
				break
			}
			at = c.parents[0]
		}
	}
}

type healing struct{}

// withoutHeal marks what runs under the lock of fetches, where a heal would
// wait for itself.
func withoutHeal(ctx context.Context) context.Context {
	return context.WithValue(ctx, healing{}, false)
}

// heal fetches a damaged store again. What it answers with, when it cannot,
// is the trouble of the remote, or the damage itself.
func (r *Repo) heal(ctx context.Context, damage error) error {
	if ctx.Value(healing{}) != nil {
		return damage
	}
	r.fetches.Lock()
	defer r.fetches.Unlock()
	// Reading has no deadline of its own, but this is no longer reading.
	ctx, cancel := r.within(withoutHeal(ctx))
	defer cancel()
	r.mu.Lock()
	again := !r.healed.IsZero() && time.Since(r.healed) < healEvery
	r.mu.Unlock()
	if again {
		// Somebody else may have healed it just now: the caller looks again.
		return nil
	}
	// Nothing is thrown away before the remote has answered.
	err := r.remote.upload(ctx, question{head: true}, func(*listing) (*fetchRequest, error) { return nil, nil }, nil)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.healed = time.Now()
	r.mu.Unlock()
	r.log.Warn("the copy of the repository is damaged and is fetched again", "repo", r.at.String(), "store", r.store.dir, "cause", damage)
	kept := r.store.all()
	if err := r.store.reset(); err != nil {
		return err
	}
	for _, k := range kept {
		if err := r.download(ctx, k.ref, k.id, k.history, false, storeLimits.packBytes); err != nil {
			if hasKind(err, kindNotFound) || hasKind(err, kindRace) {
				continue
			}
			return err
		}
	}
	return nil
}
