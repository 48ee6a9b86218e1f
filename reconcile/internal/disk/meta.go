package disk

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Meta is what a written file or folder should have. UID and GID -1 keep the
// process's own.
type Meta struct {
	Mode     fs.FileMode // permission, setuid, setgid, sticky
	UID, GID int
	// ReplaceLink has a written file take the place of a symlink; without it
	// that is [ErrSymlink].
	ReplaceLink bool
	// Attributes are the extended ones that a written file gets; nil = of those
	// of the file whose place it takes, the ones that are of the place.
	Attributes *Attributes
}

// modeBits are the bits of a mode that a Meta sets.
const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// metaOf sets owner and then mode, because chown takes setuid and setgid away.
func (r *Root) metaOf(f *os.File, name string, m Meta) error {
	if err := r.chown(f, name, m); err != nil {
		return err
	}
	return r.chmod(f, name, m)
}

func (r *Root) chown(f *os.File, name string, m Meta) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	uid, gid := Owner(info)
	if (m.UID >= 0 && m.UID != uid) || (m.GID >= 0 && m.GID != gid) {
		if err := r.step("chown", name); err != nil {
			return err
		}
		return f.Chown(m.UID, m.GID)
	}
	return nil
}

func (r *Root) chmod(f *os.File, name string, m Meta) error {
	if err := r.step("chmod", name); err != nil {
		return err
	}
	return f.Chmod(m.Mode & modeBits)
}

// Owner gives the user and group ids of a file of this package.
func Owner(info fs.FileInfo) (uid, gid int) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), int(st.Gid)
	}
	return -1, -1
}

// MetaOf is the present mode and owner of a file.
func MetaOf(info fs.FileInfo) Meta {
	uid, gid := Owner(info)
	return Meta{Mode: info.Mode() & modeBits, UID: uid, GID: gid}
}

// SetMeta corrects mode and owner of a file or folder and leaves its content
// alone; what is right already is not touched.
func (r *Root) SetMeta(p string, m Meta) error {
	wrap := func(err error) error { return fmt.Errorf("set mode and owner of %s: %w", p, bare(err)) }
	real, err := r.Resolve(p)
	if err != nil {
		return err
	}
	info, err := r.root.Lstat(rel(real))
	if err != nil {
		return wrap(err)
	}
	if info.Mode().Type() == fs.ModeSymlink {
		return wrap(ErrSymlink)
	}
	now, changed := MetaOf(info), false
	if (m.UID >= 0 && m.UID != now.UID) || (m.GID >= 0 && m.GID != now.GID) {
		if err := r.step("chown", real); err != nil {
			return wrap(err)
		}
		if err := r.root.Lchown(rel(real), m.UID, m.GID); err != nil {
			return wrap(err)
		}
		changed = true
	}
	if changed || m.Mode&modeBits != now.Mode {
		if err := r.step("chmod", real); err != nil {
			return wrap(err)
		}
		if err := r.root.Chmod(rel(real), m.Mode&modeBits); err != nil {
			return wrap(err)
		}
		changed = true
	}
	if !changed {
		return nil
	}
	if err := r.syncPath(real); err != nil {
		return wrap(r.settle(real, err))
	}
	return nil
}
