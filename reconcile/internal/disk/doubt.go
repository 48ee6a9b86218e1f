package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// Doubtful says that the last change of a path could not be synced: it looks
// done, and a power cut may take it back. It is to be taken for not done. A
// file is written again, because the kernel has forgotten what it could not
// write, and a later sync that works says nothing of it; for a folder, or for
// what is gone, [Root.Sync] is all there is.
func (r *Root) Doubtful(p string) bool {
	real, err := r.Resolve(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	return err == nil && r.doubt[real]
}

// Sync makes last what stands at a path, or that nothing does.
func (r *Root) Sync(p string) error {
	wrap := func(err error) error { return fmt.Errorf("sync %s: %w", p, bare(err)) }
	real, err := r.Resolve(p)
	if err != nil {
		return err
	}
	switch info, err := r.root.Lstat(rel(real)); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return wrap(err)
	case info.IsDir() || info.Mode().IsRegular():
		if err := r.syncPath(real); err != nil {
			return wrap(err)
		}
	}
	err = r.syncDir(path.Dir(real))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // gone with its folder
	}
	return wrapNil(r.settle(real, err), wrap)
}

// syncName makes last that something has, or has not, this name. What could
// not be synced of the folders above comes first, or it would go with them.
func (r *Root) syncName(real string) error {
	for _, d := range r.doubtAbove(real) {
		if err := r.Sync(d); err != nil {
			return r.settle(real, err)
		}
	}
	return r.settle(real, r.syncDir(path.Dir(real)))
}

func (r *Root) doubtAbove(real string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var above []string
	for d := path.Dir(real); len(r.doubt) > 0 && d != "/"; d = path.Dir(d) {
		if r.doubt[d] {
			above = append(above, d)
		}
	}
	return above
}

// settle keeps whether the last change of a path is sure to last.
func (r *Root) settle(real string, err error) error {
	if IsTemp(path.Base(real)) {
		return err // swept, whether it comes back or not
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.doubt[real] = true
	} else {
		delete(r.doubt, real)
	}
	return err
}
