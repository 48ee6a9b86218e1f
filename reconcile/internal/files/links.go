package files

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"syscall"

	"github.com/gitopsd/gitopsd/schema"
)

// Way is what an Apply is for.
type Way int

// The ways.
const (
	// Onward is an update: it stops at the first error.
	Onward Way = iota
	// Repair goes on past single errors and joins them.
	Repair
	// Back is a rollback. It goes on like Repair. The device was on the spec
	// before, so that whatever stands in the place of its files came up since,
	// and goes out of the way; so do symlinks in the place of folders, where
	// nobody can miss what is behind them.
	Back
)

// unlink takes symlinks away that stand in the place of folders that the spec
// wants or that we had made; the folders are then missing like any other.
// Between updates such a link is only told: somebody may have moved the folder
// to where there is room. But a way back that waits for a person is none, and
// what it leads to stays.
func (c *Controller) unlink(spec *schema.Spec, changed map[string]bool) (errs []error) {
	folders := map[string]string{} // path as a spec writes it, by the real one
	for at, e := range c.managed {
		if e.Dir && e.Original == nil {
			folders[at] = e.Spec
		}
	}
	if spec != nil {
		for p := range spec.Directories {
			if real, err := c.root.Resolve(p); err == nil && badPath(p) == "" {
				folders[real] = p
			}
		}
	}
	for _, at := range sortedKeys(folders) { // parents first
		if c.isProtected(at) != "" {
			continue
		}
		if real, err := c.root.Resolve(at); err != nil || real != at {
			continue // below a link that stays
		}
		if info, err := c.root.Lstat(at); err != nil || !isLink(info) {
			continue
		}
		missed, err := c.behind(at)
		switch {
		case err != nil:
		case missed != "":
			c.warn(fmt.Errorf("%s: a symlink stands in the place of the folder and stays, because %s is behind it", at, missed))
			continue
		default:
			err = c.root.Remove(at)
		}
		if err != nil {
			errs = append(errs, classify("directories", folders[at], err))
			continue
		}
		changed[folders[at]] = true
		c.warn(fmt.Errorf("%s: the symlink in the place of the folder was taken away", at))
	}
	return errs
}

// behind names something that is found by the link at a path, and would not be
// without it: all but what the folder is known to hold, and what is ours under
// its own name. "" = nothing is.
func (c *Controller) behind(at string) (string, error) {
	inside, err := c.root.Resolve(path.Join(at, "x"))
	switch {
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENOTDIR):
		return "", nil // it leads to no folder
	case err != nil:
		return "", err
	}
	return c.unknown(path.Dir(inside), at)
}

// unknown names the first thing in a folder that is not ours, by its own path
// or by the one that it has below at.
func (c *Controller) unknown(dir, at string) (string, error) {
	list, err := c.root.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, f := range list {
		own, here := path.Join(dir, f.Name()), path.Join(at, f.Name())
		switch e := c.managed[here]; {
		case c.managed[own] != nil:
		case e == nil || e.Dir != f.IsDir() || (!e.Dir && !f.Type().IsRegular()):
			return own, nil
		case e.Dir:
			if name, err := c.unknown(own, here); name != "" || err != nil {
				return name, err
			}
		}
	}
	return "", nil
}
