package files

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// isOther says that something stands there that is neither a file nor a link.
func isOther(info fs.FileInfo) bool {
	return info != nil && !info.Mode().IsRegular() && !isLink(info)
}

// makeRoom clears the place of a file of ours of a folder, a pipe or the like,
// which came up later: an empty folder goes, anything else is put aside whole.
func (c *Controller) makeRoom(at string, info fs.FileInfo) error {
	if info.IsDir() {
		if list, err := c.root.List(at); err == nil && len(list) == 0 {
			c.warn(fmt.Errorf("%s: an empty folder in the place of the file is taken away", at))
			return c.root.Remove(at)
		}
	}
	if err := c.makeState(c.setAsideDir()); err != nil {
		return err
	}
	to, err := c.root.SetAsideIn(c.setAsideDir(), at, c.now())
	if errors.Is(err, syscall.EXDEV) || errors.Is(err, fs.ErrPermission) { // it can only stay in its own folder
		to, err = c.root.SetAside(at, c.now())
	}
	if err == nil && to != "" {
		c.warn(fmt.Errorf("%s: something else stood in the place of the file; it was set aside as %s", at, to))
	}
	return err
}
