package repo

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
)

// heldRef is a ref whose lock this process holds, checked and ready.
type heldRef struct {
	u    refUpdate
	path string
	lock *lockFile
}

// update moves refs by compare-and-swap: either none, or all once every one
// is locked and has its old value. A power cut between the renames can still
// leave a part of them moved, as with git.
//
// With mend, a ref whose file holds no value takes the new one whatever the old
// one is: nobody can have moved it.
func (l localRefs) update(ctx context.Context, cmds []refUpdate, mend bool) error {
	cmds = append([]refUpdate(nil), cmds...)
	// One order for everybody who locks several.
	sort.Slice(cmds, func(i, j int) bool { return cmds[i].name < cmds[j].name })
	var held []*heldRef
	defer func() {
		for _, h := range held {
			h.release()
		}
	}()
	for _, u := range cmds {
		h, err := l.hold(ctx, u, mend)
		if err != nil {
			return err
		}
		held = append(held, h)
	}
	for _, h := range held {
		if err := l.commit(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

func (h *heldRef) release() {
	if h.lock != nil {
		h.lock.release()
		h.lock = nil
	}
}

// hold locks a ref, compares its value and writes the new one into the lock.
func (l localRefs) hold(ctx context.Context, u refUpdate, mend bool) (*heldRef, error) {
	if err := validRef(u.name); err != nil {
		return nil, err
	}
	path := filepath.Join(l.dir, filepath.FromSlash(u.name))
	if err := l.checkFolders(u); err != nil {
		return nil, err
	}
	lock, err := l.lock(ctx, u.name, func() error { return l.makeFolders(filepath.Dir(path)) })
	if err != nil {
		if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrExist) {
			return nil, fail(kindRefused, "a ref stands where %s needs a folder", u.name).hint("delete or rename the shorter ref")
		}
		return nil, err
	}
	h := &heldRef{u: u, path: path, lock: lock}
	err = forGroup(l.shared, lock.path)
	if err == nil {
		err = l.prepare(h, mend)
	}
	if err != nil {
		h.release()
		return nil, err
	}
	return h, nil
}

// makeFolders makes the folders of a ref.
func (l localRefs) makeFolders(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := l.makeFolders(filepath.Dir(dir)); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o777)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return forGroup(l.shared, dir)
}

// checkFolders refuses names whose folders are symbolic links or other refs.
func (l localRefs) checkFolders(u refUpdate) error {
	parts := strings.Split(u.name, "/")
	for i := 1; i < len(parts); i++ {
		dir := strings.Join(parts[:i], "/")
		fi, err := os.Lstat(filepath.Join(l.dir, filepath.FromSlash(dir)))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return err
		}
		if fi.Mode()&fs.ModeSymlink != 0 {
			return fail(kindRefused, "%s in the repository is a symbolic link", dir).hint("refs are not written through links")
		}
		if !fi.IsDir() {
			return fail(kindRefused, "the ref %s stands where %s needs a folder", dir, u.name).hint("delete or rename the shorter ref")
		}
	}
	return nil
}

// prepare looks at the ref under its lock.
func (l localRefs) prepare(h *heldRef, mend bool) error {
	name := h.u.name
	id, target, err := l.readFile(name)
	switch {
	case mend && hasKind(err, kindCorrupt):
		id, err = h.u.old, nil
	case err == nil && target != "":
		return fail(kindRefused, "%s is a symbolic ref to %s", name, sanitize(target, 100)).hint("name that ref instead")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	conflict := ""
	packed, perr := l.packed(func(n string) bool {
		if strings.HasPrefix(n, name+"/") || strings.HasPrefix(name, n+"/") {
			conflict = n
		}
		return n == name
	})
	if perr != nil {
		return perr
	}
	if err != nil {
		id = packed[name]
	}
	if id != h.u.old {
		return fail(kindRace, "%s is at %s, not at %s", name, orNone(id), orNone(h.u.old))
	}
	if h.u.new.IsZero() {
		return nil
	}
	if conflict != "" {
		return fail(kindRefused, "the refs %s and %s cannot exist together", conflict, name).hint("delete or rename one of them")
	}
	if fi, err := os.Lstat(h.path); err == nil && fi.IsDir() {
		// Folders without refs are left behind when refs are packed or
		// deleted; one with a ref in it stays and is a conflict.
		removeEmpty(h.path)
		if fi, err := os.Lstat(h.path); err == nil && fi.IsDir() {
			return fail(kindRefused, "refs below %s/ stand where %s needs a file", name, name).hint("delete or rename the longer refs")
		}
	}
	if _, err := h.lock.WriteString(h.u.new.String() + "\n"); err != nil {
		return err
	}
	return h.lock.Sync()
}

func orNone(id oid) string {
	if id.IsZero() {
		return "nothing"
	}
	return id.String()
}

// removeEmpty removes a folder if there are only folders below it.
func removeEmpty(path string) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() {
			return
		}
		removeEmpty(filepath.Join(path, e.Name()))
	}
	_ = os.Remove(path)
}

// commit makes the new value of a held ref the ref's value.
func (l localRefs) commit(ctx context.Context, h *heldRef) error {
	if h.u.new.IsZero() {
		defer h.release()
		// Packed first: were the file removed first, the packed value would
		// come to light again.
		if err := l.dropPacked(ctx, h.u.name); err != nil {
			return err
		}
		err := os.Remove(h.path)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err != nil {
			return err
		}
		_ = os.Remove(filepath.Join(l.dir, "logs", filepath.FromSlash(h.u.name)))
		return syncDir(filepath.Dir(h.path))
	}
	lock := h.lock
	h.lock = nil
	if err := lock.become(h.path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(h.path))
}

// dropPacked rewrites packed-refs without a ref.
func (l localRefs) dropPacked(ctx context.Context, name string) error {
	packed, err := l.packed(func(n string) bool { return n == name })
	if err != nil || len(packed) == 0 {
		return err
	}
	path := filepath.Join(l.dir, "packed-refs")
	lock, err := l.lock(ctx, "packed-refs", func() error { return nil })
	if err != nil {
		return err
	}
	done := false
	defer func() {
		if !done {
			lock.release()
		}
	}()
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	dropping := false
	err = scanPacked(bytes.NewReader(old), func(line, n string, _ oid) error {
		if n != "" {
			dropping = n == name
		} else if strings.HasPrefix(line, "#") {
			dropping = false
		}
		if !dropping {
			b.WriteString(line + "\n")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := lock.Write(b.Bytes()); err != nil {
		return err
	}
	if err := lock.Sync(); err != nil {
		return err
	}
	if err := forGroup(l.shared, lock.path); err != nil {
		return err
	}
	done = true
	if err := lock.become(path); err != nil {
		return err
	}
	return syncDir(l.dir)
}
