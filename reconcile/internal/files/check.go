package files

import (
	"errors"
	"io/fs"
	"path"

	"github.com/gitopsd/gitopsd/schema"
)

// Check finds what can never work here (permanent failures), changing nothing.
// A payload that cannot be had is told with the class of its own error, and so is
// a secret that the device has no key for.
func (c *Controller) Check(spec *schema.Spec, p Payloads) error {
	wants, err := c.wants(spec)
	errs := []error{err}
	byReal := index(wants)
	for _, w := range wants {
		if w.err == nil {
			w.err = w.readBack()
		}
		if w.err == nil {
			w.err = c.inTheWay(w, byReal)
		}
		if w.err == nil {
			w.err = c.open(w)
		}
		if w.err == nil && !w.dir {
			w.err = w.taking(p)
		}
		errs = append(errs, w.err)
	}
	return joinErrors(errs)
}

// taking asks for the content, and refuses a unit that would take the agent away.
func (w *want) taking(p Payloads) error {
	data, err := w.bytes(p)
	if err != nil {
		return err
	}
	for _, at := range []string{w.spec, w.real} {
		if why := schema.UnitTextProblem(at, data); why != "" {
			return w.permanent("%s", why)
		}
	}
	return nil
}

func index(wants []*want) map[string]*want {
	m := map[string]*want{}
	for _, w := range wants {
		if w.err == nil {
			m[w.real] = w
		}
	}
	return m
}

// inTheWay says what stands where something is wanted and will not go by
// itself.
func (c *Controller) inTheWay(w *want, wanted map[string]*want) error {
	if w.blocked != nil {
		for d := path.Dir(w.real); d != "/"; d = path.Dir(d) {
			info, err := c.root.Lstat(d)
			if err == nil && !info.IsDir() && !c.vanishes(d, info, wanted) {
				return w.permanent("%s is in the way: %w", d, w.blocked)
			}
		}
	}
	info, err := c.root.Lstat(w.real)
	if errors.Is(err, fs.ErrNotExist) || w.blocked != nil {
		return nil
	}
	if err != nil {
		return w.failure(err)
	}
	if why := mismatch(w, info, isFile(c.managed[w.real])); why != "" && !c.vanishes(w.real, info, wanted) {
		return w.permanent("%s", why)
	}
	return nil
}

// mismatch says why what is there cannot become what is wanted, or "". Where a
// file of ours stood, whatever else is there came up later and goes out of the
// way: nobody loses anything by it, and the device could not be put right
// otherwise.
func mismatch(w *want, info fs.FileInfo, ours bool) string {
	switch t := info.Mode().Type(); {
	case !w.dir && ours:
		return ""
	case t == fs.ModeSymlink && w.dir:
		return "a symlink is in its place, and symlinks are neither followed nor replaced; put a folder there, or name the one that it leads to"
	case t == fs.ModeSymlink:
		return "a symlink is in its place, and symlinks are neither followed nor replaced; name the file that it leads to"
	case w.dir && t != fs.ModeDir:
		return "a file is in its place"
	case !w.dir && t == fs.ModeDir:
		return "a folder is in its place, and folders are not deleted for a file"
	case !w.dir && t != 0:
		return "what is in its place is no regular file"
	}
	return ""
}

func isLink(info fs.FileInfo) bool { return info != nil && info.Mode().Type() == fs.ModeSymlink }

func isFile(e *entry) bool { return e != nil && !e.Dir }

// vanishes says whether something that is on the device now is ours alone and
// goes because the spec drops it.
func (c *Controller) vanishes(at string, info fs.FileInfo, wanted map[string]*want) bool {
	e := c.managed[at]
	if e == nil || e.Original != nil || e.Dir != info.IsDir() {
		return false
	}
	if w := wanted[at]; w != nil && w.dir == e.Dir {
		return false
	}
	if !e.Dir {
		return info.Mode().IsRegular() || isLink(info)
	}
	if path.Dir(at) == "/" {
		return false
	}
	list, err := c.root.List(at)
	if err != nil {
		return false
	}
	for _, f := range list {
		info, err := f.Info()
		if err != nil || !c.vanishes(path.Join(at, f.Name()), info, wanted) {
			return false
		}
	}
	return true
}
