package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"syscall"
)

// Missing lists the folders that [Root.MkdirAll] would make, outermost first,
// by the paths that they would really have.
func (r *Root) Missing(p string) ([]string, error) {
	real, err := r.walk(p, true)
	if err != nil {
		return nil, err
	}
	var missing []string
	for d := real; ; d = path.Dir(d) {
		info, err := r.root.Lstat(rel(d))
		if err == nil {
			if !info.IsDir() {
				return nil, fmt.Errorf("%s: %w", d, syscall.ENOTDIR)
			}
			return missing, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", d, bare(err))
		}
		missing = append([]string{d}, missing...)
	}
}

// MkdirAll makes a folder and its parents, each with its owner and mode from
// the first moment. It gives the folders that it made, outermost first, also
// when it fails later on.
func (r *Root) MkdirAll(p string, m Meta) (made []string, err error) {
	missing, err := r.Missing(p)
	if err != nil {
		return nil, fmt.Errorf("make folder %s: %w", p, err)
	}
	for _, d := range missing {
		mine, err := r.mkdir(d, m)
		if err != nil {
			return made, fmt.Errorf("make folder %s: %w", d, bare(err))
		}
		if mine {
			made = append(made, d)
		}
	}
	return made, nil
}

// mkdir makes one folder, and says whether it is ours: another process may make
// the same one meanwhile, and it is there then, too.
func (r *Root) mkdir(real string, m Meta) (mine bool, err error) {
	tmp := tempBeside(real)
	if err := r.step("mkdir", tmp); err != nil {
		return false, err
	}
	if err := r.root.Mkdir(rel(tmp), 0o700); err != nil {
		return false, err
	}
	placed := false
	defer func() {
		if !placed && r.step("remove", tmp) == nil {
			_ = r.root.Remove(rel(tmp)) // best effort: Sweep finds what stays
		}
	}()
	f, err := r.root.Open(rel(tmp))
	if err != nil {
		return false, err
	}
	defer f.Close()
	if err := r.metaOf(f, tmp, m); err != nil {
		return false, err
	}
	if err := r.step("rename", real); err != nil {
		return false, err
	}
	if err := r.root.Rename(rel(tmp), rel(real)); err != nil {
		if !errors.Is(err, fs.ErrExist) { // ENOTEMPTY is one, too
			return false, err
		}
		if info, lstatErr := r.root.Lstat(rel(real)); lstatErr != nil || !info.IsDir() {
			return false, err
		}
		return false, r.syncName(real)
	}
	placed = true
	return true, r.syncName(real)
}
