package files

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
)

// mostAsides is how often a repair sets something of one name aside: beyond it a
// program makes it anew each time, and would fill the disk.
const mostAsides = 20

// isOther says that something stands there that is neither a file nor a link.
func isOther(info fs.FileInfo) bool {
	return info != nil && !info.Mode().IsRegular() && !isLink(info)
}

// makeRoom clears the place of a file of ours of a folder, a pipe or the like,
// which came up later: an empty folder goes, anything else is put aside whole.
func (a *application) makeRoom(at string, info fs.FileInfo) error {
	if info.IsDir() {
		if list, err := a.root.List(at); err == nil && len(list) == 0 {
			a.warn(fmt.Errorf("%s: an empty folder in the place of the file is taken away", at))
			return a.root.Remove(at)
		}
	}
	if n := a.asides(at); a.keepGoing && !a.back && n >= mostAsides {
		return failure.Permanent("files", at, "something else stands in its place, and was set aside %d times already; look where it comes from, and empty %s", n, a.setAsideDir())
	}
	if err := a.makeState(a.setAsideDir()); err != nil {
		return err
	}
	to, err := a.root.SetAsideIn(a.setAsideDir(), at, a.now())
	if errors.Is(err, syscall.EXDEV) || errors.Is(err, fs.ErrPermission) { // it can only stay in its own folder
		to, err = a.root.SetAside(at, a.now())
	}
	if err == nil && to != "" {
		a.warn(fmt.Errorf("%s: something else stood in the place of the file; it was set aside as %s", at, to))
	}
	return err
}

// asides counts what was set aside under the name of a path.
func (c *Controller) asides(at string) (n int) {
	for _, dir := range []string{c.setAsideDir(), path.Dir(at)} {
		list, _ := c.root.List(dir) // one that is missing holds none
		for _, f := range list {
			if strings.HasPrefix(f.Name(), path.Base(at)+disk.AsideMark) {
				n++
			}
		}
	}
	return n
}
