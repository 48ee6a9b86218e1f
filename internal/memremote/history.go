package memremote

import (
	"context"
	"maps"
	"slices"
	"time"
)

// IsAncestor walks the history.
func (c *Client) IsAncestor(ctx context.Context, ancestor, commit string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := commit; id != ""; {
		if id == ancestor {
			return true, ctx.Err()
		}
		k := c.commits[id]
		if k == nil {
			break
		}
		id = k.parent
	}
	return false, ctx.Err()
}

// Log calls fn for the commits from one to another, newest first.
func (c *Client) Log(ctx context.Context, from, until string, fn func(hash, author string, when time.Time, message string) bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	stop := map[string]bool{}
	for id := until; id != "" && c.commits[id] != nil; id = c.commits[id].parent {
		stop[id] = true
	}
	for id := from; id != "" && !stop[id]; {
		k := c.commits[id]
		if k == nil {
			return &Error{"not-found", "no commit " + id}
		}
		if !fn(id, k.author, k.when, k.message) {
			break
		}
		id = k.parent
	}
	return ctx.Err()
}

// Parents is the one parent of a commit, or none.
func (c *Client) Parents(ctx context.Context, commit string) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.commits[commit]
	if k == nil {
		return nil, &Error{"not-found", "no commit " + commit}
	}
	if k.parent == "" {
		return nil, ctx.Err()
	}
	return []string{k.parent}, ctx.Err()
}

// Diff calls fn for every path that differs between two commits, by path.
func (c *Client) Diff(ctx context.Context, oldCommit, newCommit string, fn func(path, oldBlob, newBlob string, mode uint32) error) error {
	c.mu.Lock()
	from, to := c.commits[oldCommit], c.commits[newCommit]
	c.mu.Unlock()
	if from == nil || to == nil {
		return &Error{"not-found", "no commit " + oldCommit + " or " + newCommit}
	}
	paths := maps.Clone(from.files)
	maps.Copy(paths, to.files)
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		if from.files[p] == to.files[p] {
			continue
		}
		if err := fn(p, from.files[p].blob, to.files[p].blob, paths[p].mode); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Walk calls fn for every file of a commit, by path.
func (c *Client) Walk(ctx context.Context, commit string, fn func(path, blob string, mode uint32) error) error {
	c.mu.Lock()
	k := c.commits[commit]
	c.mu.Unlock()
	if k == nil {
		return &Error{"not-found", "no commit " + commit}
	}
	for _, p := range slices.Sorted(maps.Keys(k.files)) {
		if err := fn(p, k.files[p].blob, k.files[p].mode); err != nil {
			return err
		}
	}
	return ctx.Err()
}
