package repo

import (
	"context"
	"errors"
	"time"
)

// PutBlob keeps a blob for a commit to come and gives its hash.
func (r *Repo) PutBlob(ctx context.Context, data []byte) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", r.wrap("put blob", "", err)
	}
	id := hashObject(typeBlob, data)
	r.made.put(typeBlob, id, append([]byte(nil), data...))
	return id.String(), nil
}

// Commit makes a commit on parent ("" = none): path → blob hash, "" drops the
// path. Folders that become empty go. The commit stands nowhere before it is
// published. when is cut to seconds.
func (r *Repo) Commit(ctx context.Context, parent string, changes map[string]string, when time.Time, message string) (string, error) {
	ctx, cancel := r.within(ctx)
	defer cancel()
	id, err := r.build(ctx, parent, changes, func(tree oid, parents []oid) []byte {
		return encodeCommit(tree, parents, r.author, when, message)
	})
	if err != nil {
		return "", r.wrap("commit", "", err)
	}
	return id.String(), nil
}

// Orphan makes a parentless commit of just these files (path → blob hash);
// the same files give the same commit, whoever makes it and when.
func (r *Repo) Orphan(ctx context.Context, files map[string]string) (string, error) {
	ctx, cancel := r.within(ctx)
	defer cancel()
	id, err := r.build(ctx, "", files, func(tree oid, _ []oid) []byte { return encodeOrphan(tree) })
	if err != nil {
		return "", r.wrap("commit", "", err)
	}
	return id.String(), nil
}

func (r *Repo) build(ctx context.Context, parent string, changes map[string]string, encode func(oid, []oid) []byte) (oid, error) {
	list, err := parseChanges(changes)
	if err != nil {
		return zero, err
	}
	for _, c := range list {
		if err := r.checkBlob(ctx, c.id); err != nil {
			return zero, err
		}
	}
	root := zero
	var parents []oid
	if parent != "" {
		id, err := parseOID(parent)
		if err != nil {
			return zero, err
		}
		pc, err := r.commit(ctx, id)
		if err != nil {
			return zero, err
		}
		root, parents = pc.tree, []oid{id}
	}
	tree, made, err := editTree(ctx, r.get, root, list)
	if err != nil {
		return zero, err
	}
	for _, t := range made {
		r.made.put(typeTree, t.id, t.data)
	}
	if tree.IsZero() {
		tree = hashObject(typeTree, nil)
		r.made.put(typeTree, tree, nil)
	}
	data := encode(tree, parents)
	id := hashObject(typeCommit, data)
	r.made.put(typeCommit, id, data)
	return id, nil
}

// checkBlob makes sure that a commit will not name what is not there.
func (r *Repo) checkBlob(ctx context.Context, id oid) error {
	if id.IsZero() {
		return nil
	}
	if typ, _, ok := r.made.get(id); ok {
		if typ != typeBlob {
			return fail(kindRefused, "%s is a %s, not a blob", id, typ)
		}
		return nil
	}
	if r.objs.has(id) {
		return nil
	}
	_, _, err := r.find(ctx, id, 0)
	if err == nil || !errors.Is(err, errMissing) {
		return err
	}
	return fail(kindNotFound, "the blob %s is not here", id).hint("put it first")
}
