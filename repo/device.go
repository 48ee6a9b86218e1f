package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
)

// Device is a repository as a device uses it: single refs, read and written
// whole, nothing kept on disk.
type Device struct{ *connection }

// OpenDevice opens the repository for a device; cfg.Store and cfg.Author are
// not used. A local path has to be there, a server is first asked by the first
// operation.
func OpenDevice(cfg Config) (*Device, error) {
	c, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	return &Device{c}, nil
}

// Close gives back connections and files.
func (d *Device) Close() error { return d.close() }

// URL is where the repository is, for people: without user info.
func (d *Device) URL() string { return d.at.String() }

// Read gives the files of the tip of exactly this ref. files is nil when the
// tip is still have; commit is "" when the ref does not exist. limit bounds
// names and content in total, in bytes; more is an error of the kind refused.
// Where the ref could be read and what it names could not, commit is given
// with the error.
func (d *Device) Read(ctx context.Context, ref, have string, limit int64) (commit string, files map[string][]byte, err error) {
	return d.ReadBut(ctx, ref, have, limit, nil)
}

// ReadBut is Read where the caller has the content of some files already: known
// gives their paths, and is asked only when the tip is another one. Where the
// server can leave content out, those of them that are in the tip are nil.
func (d *Device) ReadBut(ctx context.Context, ref, have string, limit int64, known func() []string) (commit string, files map[string][]byte, err error) {
	ctx, cancel := d.within(ctx)
	defer cancel()
	if limit <= 0 {
		limit = defaultTip
	}
	id, files, err := d.read(ctx, ref, have, limit, known)
	if err != nil {
		return optional(id), nil, d.wrap("read", ref, err)
	}
	return optional(id), files, nil
}

func (d *Device) read(ctx context.Context, ref, have string, limit int64, known func() []string) (oid, map[string][]byte, error) {
	if err := validRef(ref); err != nil {
		return zero, nil, err
	}
	old, err := optionalOID(have)
	if err != nil {
		return zero, nil, err
	}
	if d.local != nil {
		id, err := d.refs.read(ref)
		if err != nil || id.IsZero() || id == old {
			return id, nil, err
		}
		files, err := tipFiles(ctx, d.object, id, limit, nil)
		// What was inflated on the way, and the indexes of the packs, are of
		// no use for the next delivery: a device stays small.
		d.objs.reopen()
		return id, files, err
	}
	id := zero
	var pack *packData
	var spared map[string]bool
	err = d.remote.upload(ctx, question{prefixes: []string{ref}, exact: true}, func(l *listing) (*fetchRequest, error) {
		id = l.refs[ref]
		if id.IsZero() || id == old {
			return nil, nil
		}
		req := &fetchRequest{wants: []oid{id}, depth: 1}
		if spared = spare(l, known); spared != nil {
			req.filter = noContent
		}
		return req, nil
	}, func(r io.Reader) (err error) {
		pack, err = readPack(r, &memoryPack{}, tipLimits(limit, 1), nil)
		return err
	})
	if err != nil || pack == nil {
		return id, nil, err
	}
	if spared == nil {
		files, err := tipFiles(ctx, pack.typed, id, limit, nil)
		return id, files, err
	}
	files, err := d.readRest(ctx, pack, id, limit, spared)
	if errors.Is(err, errMissing) || hasKind(err, kindNotFound) || hasKind(err, kindCorrupt) {
		return d.read(ctx, ref, "", limit, nil) // its server does not give single files after all
	}
	return id, files, err
}

func (d *Device) object(ctx context.Context, id oid, typ objectType, limit int64) ([]byte, error) {
	t, data, err := d.objs.read(ctx, id, limit)
	switch {
	case errors.Is(err, errMissing):
		return nil, fail(kindCorrupt, "the %s %s is missing", typ, id).hint("`git fsck` in that repository says more")
	case err == nil && t != typ:
		return nil, fail(kindCorrupt, "%s is a %s, not a %s", id, t, typ)
	}
	return data, err
}

// Write moves the ref from old ("" = absent) to a parentless commit of these
// files. When the ref stands elsewhere the error's Kind is race. The same
// files give the same commit; where the ref already has it, that is a success.
// A ref whose file a power cut has emptied, in a local repository, is written
// whatever old is.
func (d *Device) Write(ctx context.Context, ref, old string, files map[string][]byte) (commit string, err error) {
	ctx, cancel := d.within(ctx)
	defer cancel()
	id, err := d.write(ctx, ref, old, files)
	if err != nil {
		return "", d.wrap("write", ref, err)
	}
	return id.String(), nil
}

func (d *Device) write(ctx context.Context, ref, old string, files map[string][]byte) (oid, error) {
	if err := validRef(ref); err != nil {
		return zero, err
	}
	u := refUpdate{name: ref}
	var err error
	if u.old, err = optionalOID(old); err != nil {
		return zero, err
	}
	objs, err := orphanObjects(ctx, files)
	if err != nil {
		return zero, err
	}
	u.new = objs[len(objs)-1].id
	if u.old == u.new {
		return u.new, nil
	}
	if d.local != nil {
		if err := addObjects(d.local, objs); err != nil {
			return zero, err
		}
		err := d.refs.update(ctx, []refUpdate{u}, true)
		if hasKind(err, kindRace) {
			if now, rerr := d.refs.read(ref); rerr == nil && now == u.new {
				err = nil
			}
		}
		return u.new, err
	}
	cmds := []refUpdate{u}
	res, err := d.remote.push(ctx, func(capabilities) (*pushRequest, error) { return newPush(cmds, objs, false) })
	if why := outcome(res, err, cmds); why != nil {
		moved, verdict := d.judge(ctx, cmds, why)
		switch {
		case verdict != nil:
			return zero, verdict
		case !moved:
			return zero, why
		}
	}
	return u.new, nil
}

// orphanObjects makes the objects of a parentless commit, which is the last.
func orphanObjects(ctx context.Context, files map[string][]byte) ([]outObject, error) {
	var objs []outObject
	seen := map[oid]bool{}
	changes := map[string]string{}
	paths := make([]string, 0, len(files))
	for p := range files {
		paths = append(paths, p)
	}
	sort.Strings(paths)
	for _, p := range paths {
		id := hashObject(typeBlob, files[p])
		changes[p] = id.String()
		if !seen[id] {
			seen[id] = true
			objs = append(objs, outObject{id: id, typ: typeBlob, data: files[p]})
		}
	}
	list, err := parseChanges(changes)
	if err != nil {
		return nil, err
	}
	none := func(context.Context, oid, objectType) ([]byte, error) { return nil, errMissing }
	root, made, err := editTree(ctx, none, zero, list)
	if err != nil {
		return nil, err
	}
	for _, t := range made {
		if !seen[t.id] {
			seen[t.id] = true
			objs = append(objs, outObject{id: t.id, typ: typeTree, data: t.data})
		}
	}
	if root.IsZero() {
		root = hashObject(typeTree, nil)
		objs = append(objs, outObject{id: root, typ: typeTree})
	}
	data := encodeOrphan(root)
	return append(objs, outObject{id: hashObject(typeCommit, data), typ: typeCommit, data: data}), nil
}

// Answers is nil if the repository gives an answer of any kind, an error page
// included; for a local path, if it can be read.
func (d *Device) Answers(ctx context.Context) error {
	ctx, cancel := d.within(ctx)
	defer cancel()
	var err error
	if d.local != nil {
		err = readable(d.local.dir)
	} else {
		err = d.remote.answers(ctx)
	}
	return d.wrap("reach", "", err)
}

func readable(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "HEAD"))
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return fail(kindCorrupt, "%s is empty", filepath.Join(dir, "HEAD"))
	}
	if _, err := os.ReadDir(filepath.Join(dir, "refs")); err != nil {
		return fmt.Errorf("refs: %w", err)
	}
	return nil
}
