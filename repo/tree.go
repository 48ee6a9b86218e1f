package repo

import (
	"context"
	"fmt"
	"sort"
	"strings"
)

// source gives an object by name, of the type that is asked for.
type source func(ctx context.Context, id oid, typ objectType) ([]byte, error)

const (
	// maxDepth bounds the folders in a path; a deeper one is hostile.
	maxDepth = 64
	// maxWalk bounds the entries of one walk, and maxPaths the bytes of their
	// paths: a tree of a few kilobytes can name itself a million times over, and
	// whoever walks it mostly keeps what it is told. The status of a hundred
	// thousand devices has less than half as many.
	maxWalk  = 1 << 20
	maxPaths = 256 << 20
)

// walker counts, so that no tree can keep it busy for ever.
type walker struct {
	get   source
	seen  int
	bytes int // of paths
}

// tree reads a folder; its errors name the path, which ends with a slash.
func (w *walker) tree(ctx context.Context, id oid, path string, depth int) ([]treeEntry, error) {
	if depth > maxDepth {
		return nil, fail(kindCorrupt, "folder %q: nested deeper than %d", shownFolder(path), maxDepth)
	}
	if id.IsZero() {
		return nil, nil
	}
	data, err := w.get(ctx, id, typeTree)
	if err != nil {
		return nil, fmt.Errorf("folder %q: %w", shownFolder(path), err)
	}
	entries, err := parseTree(data)
	if err != nil {
		return nil, fmt.Errorf("folder %q, tree %s: %w", shownFolder(path), id, err)
	}
	if w.seen += len(entries); w.seen > maxWalk {
		return nil, fail(kindCorrupt, "folder %q: more than %d entries up to here", shownFolder(path), maxWalk)
	}
	for _, e := range entries {
		w.bytes += len(path) + len(e.name)
	}
	if w.bytes > maxPaths {
		return nil, fail(kindCorrupt, "folder %q: the paths up to here have more than %d MiB", shownFolder(path), maxPaths>>20)
	}
	return entries, nil
}

// shownFolder is a folder for people; the top one is "/".
func shownFolder(path string) string {
	if path == "" {
		return "/"
	}
	return sanitize(strings.TrimSuffix(path, "/"), 200)
}

// walk calls fn for every entry but folders, in the order of paths.
func (w *walker) walk(ctx context.Context, id oid, path string, depth int, fn func(path string, e treeEntry) error) error {
	entries, err := w.tree(ctx, id, path, depth)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.mode == modeTree {
			err = w.walk(ctx, e.id, path+e.name+"/", depth+1, fn)
		} else {
			err = fn(path+e.name, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// diff calls fn for every path whose entry differs, in the order of paths; it
// reads only folders that differ. Absent entries are zero.
func (w *walker) diff(ctx context.Context, a, b oid, path string, depth int, fn func(path string, old, new treeEntry) error) error {
	if a == b {
		return nil
	}
	as, err := w.tree(ctx, a, path, depth)
	if err != nil {
		return err
	}
	bs, err := w.tree(ctx, b, path, depth)
	if err != nil {
		return err
	}
	for len(as) > 0 || len(bs) > 0 {
		var x, y treeEntry
		switch {
		case len(bs) == 0 || (len(as) > 0 && as[0].key() < bs[0].key()):
			x, as = as[0], as[1:]
		case len(as) == 0 || bs[0].key() < as[0].key():
			y, bs = bs[0], bs[1:]
		default:
			x, as, y, bs = as[0], as[1:], bs[0], bs[1:]
		}
		if x == y {
			continue
		}
		name := x.name
		if name == "" {
			name = y.name
		}
		// Equal keys are of one kind: folder or not.
		if x.mode == modeTree || y.mode == modeTree {
			err = w.diff(ctx, x.id, y.id, path+name+"/", depth+1, fn)
		} else {
			err = fn(path+name, x, y)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// newTree is a tree that an edit made, with what it was made from.
type newTree struct {
	id       oid
	data     []byte
	base     oid
	baseData []byte
}

// change is what becomes of a path: a blob, or with a zero id nothing.
type change struct {
	path []string
	id   oid
}

// parseChanges checks paths and sorts them.
func parseChanges(m map[string]string) ([]change, error) {
	paths := make([]string, 0, len(m))
	for p := range m {
		paths = append(paths, p)
	}
	sort.Strings(paths)
	list := make([]change, 0, len(m))
	set := map[string]bool{}
	for _, p := range paths {
		id, err := optionalOID(m[p])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sanitize(p, 200), err)
		}
		parts := strings.Split(p, "/")
		if len(parts) > maxDepth || len(p) > 4096 {
			return nil, fail(kindRefused, "the path %q is too long or too deep", sanitize(p, 100))
		}
		for i, part := range parts {
			if err := validName(part); err != nil {
				return nil, fmt.Errorf("path %q: %w", sanitize(p, 200), err)
			}
			if i > 0 && set[strings.Join(parts[:i], "/")] && !id.IsZero() {
				return nil, fail(kindRefused, "the path %q needs a folder where the same change puts a file", sanitize(p, 200))
			}
		}
		if !id.IsZero() {
			set[p] = true
		}
		list = append(list, change{path: parts, id: id})
	}
	return list, nil
}

// editTree applies changes to a tree and gives the new root, zero when nothing
// is left, and every tree that is new. It reads and writes only the folders on
// the way to a change. A file gives way to a folder of its name and a folder
// to a file.
func editTree(ctx context.Context, get source, root oid, changes []change) (oid, []newTree, error) {
	var made []newTree
	w := &walker{get: get}
	var edit func(base oid, changes []change, path string, depth int) (oid, error)
	edit = func(base oid, changes []change, path string, depth int) (oid, error) {
		var baseData []byte
		entries := map[string]treeEntry{}
		if !base.IsZero() {
			list, err := w.tree(ctx, base, path, depth)
			if err != nil {
				return zero, err
			}
			for _, e := range list {
				entries[e.name] = e
			}
			if baseData, err = get(ctx, base, typeTree); err != nil {
				return zero, err
			}
		}
		below := map[string][]change{}
		for _, c := range changes {
			name := c.path[depth]
			if len(c.path) > depth+1 {
				below[name] = append(below[name], c)
				continue
			}
			old, ok := entries[name]
			if c.id.IsZero() {
				if ok && old.mode != modeTree {
					delete(entries, name)
				}
				continue
			}
			mode := uint32(modeFile)
			if ok && old.mode == modeExec {
				mode = modeExec
			}
			entries[name] = treeEntry{name: name, mode: mode, id: c.id}
		}
		names := make([]string, 0, len(below))
		for n := range below {
			names = append(names, n)
		}
		sort.Strings(names)
		for _, name := range names {
			sub := zero
			old, ok := entries[name]
			if ok && old.mode == modeTree {
				sub = old.id
			}
			id, err := edit(sub, below[name], path+name+"/", depth+1)
			if err != nil {
				return zero, err
			}
			switch {
			case !id.IsZero():
				entries[name] = treeEntry{name: name, mode: modeTree, id: id}
			case ok && old.mode == modeTree:
				delete(entries, name)
			}
		}
		if len(entries) == 0 {
			return zero, nil
		}
		list := make([]treeEntry, 0, len(entries))
		for _, e := range entries {
			list = append(list, e)
		}
		data := encodeTree(list)
		id := hashObject(typeTree, data)
		if id != base {
			made = append(made, newTree{id: id, data: data, base: base, baseData: baseData})
		}
		return id, nil
	}
	id, err := edit(root, changes, "", 0)
	return id, made, err
}
