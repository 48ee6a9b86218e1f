package memremote

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Client is one program's access to a repository: the Remote of package
// internal/sweep and that of package agentsync. Its hooks are called around
// every exchange; what works on objects that a real client has at hand is no
// exchange.
type Client struct {
	*Repo
	// Before is asked before an exchange has its effect; its error becomes
	// the exchange's, and nothing happened. nil = all goes through.
	Before func(op, what string) error
	// After is asked when the effect is there; its error becomes the
	// exchange's, which happened all the same. nil = all goes through.
	After func(op, what string) error
	// Behind is asked at every exchange that reads how far behind the replica
	// is that serves it. What is written, is written to the one true
	// repository. nil = there are no replicas.
	Behind func(op, what string) Lag
	// Pause is asked in the middle of an exchange that a server need not do at
	// once: between the refs of a listing, and between the branch and the
	// deliveries of a push that is not atomic. Its error cuts the exchange
	// there. nil = the server does all at once.
	Pause func(op, what string) error
	// Reverse lists the last prefix first: a server reads refs in any order.
	Reverse bool
	// Atomic lets all refs of one push move at once.
	Atomic bool
}

func (c *Client) enter(ctx context.Context, op, what string) error {
	if c.Before != nil {
		if err := c.Before(op, what); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (c *Client) leave(op, what string) error {
	if c.After != nil {
		return c.After(op, what)
	}
	return nil
}

func (c *Client) behind(op, what string) Lag {
	if c.Behind != nil {
		return c.Behind(op, what)
	}
	return Lag{}
}

func (c *Client) pause(op, what string) error {
	if c.Pause != nil {
		return c.Pause(op, what)
	}
	return nil
}

// Refs lists refs by prefixes; it is no moment in time, see Pause.
func (c *Client) Refs(ctx context.Context, prefixes ...string) (map[string]string, error) {
	what := strings.Join(prefixes, " ")
	if err := c.enter(ctx, "refs", what); err != nil {
		return nil, err
	}
	lag := c.behind("refs", what)
	out := map[string]string{}
	prefixes = slices.Clone(prefixes)
	if c.Reverse {
		slices.Reverse(prefixes)
	}
	for i, p := range prefixes {
		if i > 0 && i == len(prefixes)-1 {
			if err := c.pause("refs", "the rest of the listing"); err != nil {
				return nil, err
			}
		}
		c.mu.Lock()
		refs := c.shown(lag, p)
		if strings.HasSuffix(p, "/") {
			for ref, id := range refs {
				if strings.HasPrefix(ref, p) {
					out[ref] = id
				}
			}
		} else if id := refs[p]; id != "" {
			out[p] = id
		}
		c.mu.Unlock()
	}
	return out, c.leave("refs", what)
}

// Head is the branch of HEAD.
func (c *Client) Head(ctx context.Context) (string, error) {
	if err := c.enter(ctx, "head", ""); err != nil {
		return "", err
	}
	return c.head, c.leave("head", "")
}

// Fetch makes a commit readable.
func (c *Client) Fetch(ctx context.Context, ref, commit string, _ bool) error {
	if err := c.enter(ctx, "fetch", ref); err != nil {
		return err
	}
	lag := c.behind("fetch", ref)
	c.mu.Lock()
	known := c.has(lag, commit)
	c.mu.Unlock()
	if !known {
		return &Error{"not-found", "no commit " + commit}
	}
	return c.leave("fetch", ref)
}

// Blob reads a blob.
func (c *Client) Blob(ctx context.Context, blob string, limit int64) ([]byte, error) {
	c.mu.Lock()
	data, ok := c.blobs[blob]
	c.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case !ok:
		return nil, &Error{"not-found", "no blob " + blob}
	case limit > 0 && int64(len(data)) > limit:
		return nil, &Error{"refused", "too large"}
	}
	return slices.Clone(data), nil
}

// Tips reads small parentless commits. One that the server does not have is a
// nil map, as that of package repo is.
func (c *Client) Tips(ctx context.Context, refs map[string]string, limit int64) (map[string]map[string][]byte, error) {
	what := strings.Join(slices.Sorted(maps.Keys(refs)), " ")
	if err := c.enter(ctx, "tips", what); err != nil {
		return nil, err
	}
	lag := c.behind("tips", what)
	out := map[string]map[string][]byte{}
	c.mu.Lock()
	for ref, id := range refs {
		if lag.Moves > 0 && !c.has(lag, id) {
			out[ref] = nil
			continue
		}
		files, total, ok := c.tree(id)
		if !ok {
			c.mu.Unlock()
			return nil, &Error{"not-found", "no commit " + id}
		}
		if total <= limit {
			out[ref] = files
		}
	}
	c.mu.Unlock()
	return out, c.leave("tips", what)
}

// tree reads all files of a commit; the lock is held.
func (c *Client) tree(id string) (files map[string][]byte, total int64, ok bool) {
	k := c.commits[id]
	if k == nil {
		return nil, 0, false
	}
	files = make(map[string][]byte, len(k.files))
	for p, f := range k.files {
		files[p] = slices.Clone(c.blobs[f.blob])
		total += int64(len(files[p]))
	}
	return files, total, true
}

// PutBlob keeps a blob.
func (c *Client) PutBlob(ctx context.Context, data []byte) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.putBlob(data), ctx.Err()
}

// Commit makes a commit on a parent.
func (c *Client) Commit(ctx context.Context, parent string, changes map[string]string, when time.Time, message string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	files := map[string]entry{}
	if parent != "" {
		k := c.commits[parent]
		if k == nil {
			return "", &Error{"not-found", "no parent " + parent}
		}
		files = maps.Clone(k.files)
	}
	for p, blob := range changes {
		if blob == "" {
			delete(files, p)
			continue
		}
		if _, ok := c.blobs[blob]; !ok {
			return "", fmt.Errorf("a commit names an unknown blob at %s", p)
		}
		files[p] = entry{blob, regular}
	}
	return c.putCommit(parent, files, "gitopsd", message, when), ctx.Err()
}

// Orphan makes a parentless commit.
func (c *Client) Orphan(ctx context.Context, files map[string]string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tree := map[string]entry{}
	for p, blob := range files {
		if _, ok := c.blobs[blob]; !ok {
			return "", fmt.Errorf("a delivery names an unknown blob at %s", p)
		}
		tree[p] = entry{blob, regular}
	}
	return c.putCommit("", tree, "", "", time.Time{}), ctx.Err()
}

// Publish moves refs by compare-and-swap.
func (c *Client) Publish(ctx context.Context, lead, rest map[string][2]string) (map[string]string, error) {
	what := strings.Join(append(slices.Sorted(maps.Keys(lead)), slices.Sorted(maps.Keys(rest))...), " ")
	if err := c.enter(ctx, "publish", what); err != nil {
		return nil, err
	}
	if err := c.lead(lead); err != nil {
		return nil, err
	}
	refused := map[string]string{}
	for i, ref := range slices.Sorted(maps.Keys(rest)) {
		if !c.Atomic && (i > 0 || len(lead) > 0) {
			if err := c.pause("publish", ref); err != nil {
				return nil, err
			}
		}
		if !c.swap(ref, rest[ref]) {
			refused[ref] = "stands elsewhere"
		}
	}
	return refused, c.leave("publish", what)
}

func (c *Client) lead(lead map[string][2]string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ref, m := range lead {
		if c.refs[ref] != m[0] {
			return &Error{"race", ref + " moved"}
		}
	}
	for ref, m := range lead {
		c.move(ref, m[1])
	}
	return nil
}

func (c *Client) swap(ref string, m [2]string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refs[ref] != m[0] {
		return false
	}
	c.move(ref, m[1])
	return true
}

// Read gives the files at a ref, as a device asks for them.
func (c *Client) Read(ctx context.Context, ref, have string, limit int64) (string, map[string][]byte, error) {
	if err := c.enter(ctx, "read", ref); err != nil {
		return "", nil, err
	}
	lag := c.behind("read", ref)
	c.mu.Lock()
	id := c.shown(lag, ref)[ref]
	var files map[string][]byte
	var total int64
	if id != "" && id != have {
		files, total, _ = c.tree(id)
	}
	c.mu.Unlock()
	if total > limit {
		return "", nil, &Error{"refused", "too large"}
	}
	return id, files, c.leave("read", ref)
}

// Write moves a ref to a parentless commit of these files.
func (c *Client) Write(ctx context.Context, ref, old string, files map[string][]byte) (string, error) {
	if err := c.enter(ctx, "write", ref); err != nil {
		return "", err
	}
	c.mu.Lock()
	tree := map[string]entry{}
	for p, data := range files {
		tree[p] = entry{c.putBlob(data), regular}
	}
	id := c.putCommit("", tree, "", "", time.Time{})
	at := c.refs[ref]
	if at == old {
		c.move(ref, id)
	}
	c.mu.Unlock()
	if at != old && at != id {
		return "", &Error{"race", ref + " stands elsewhere"}
	}
	return id, c.leave("write", ref)
}

// Answers is an exchange like any other.
func (c *Client) Answers(ctx context.Context) error {
	if err := c.enter(ctx, "answers", ""); err != nil {
		return err
	}
	return c.leave("answers", "")
}

// Close does nothing: there is no connection.
func (c *Client) Close() error { return nil }
