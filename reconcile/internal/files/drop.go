package files

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
)

// drop takes away what the spec does not want any more: files, then folders
// from the inside out.
func (a *application) drop() error {
	keep := map[string]bool{} // by path as written: what is wanted but cannot be had stays as it is
	parents := map[string]bool{}
	for _, w := range a.wants {
		if w.err != nil {
			keep[w.spec] = true
			continue
		}
		for d := path.Dir(w.real); d != "/"; d = path.Dir(d) {
			parents[d] = true
		}
	}
	var files, dirs []string
	for at, e := range a.managed {
		w := a.byReal[at]
		switch {
		case keep[e.Spec] || (w != nil && w.dir == e.Dir):
		case !a.keepGoing && w == nil && !parents[at] && a.isSecret(at):
			// It could not be given back without its key: it goes with Settle.
		case e.Dir && e.Implicit && parents[at]:
		case e.Dir:
			dirs = append(dirs, at)
		default:
			files = append(files, at)
		}
	}
	sort.Strings(files)
	slices.SortFunc(dirs, func(x, y string) int { return strings.Compare(y, x) })
	for _, at := range append(files, dirs...) {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		e := a.managed[at]
		component := "files"
		if e.Dir {
			component = "directories"
		}
		gone, err := a.dropOne(at, e, parents[at])
		if err := a.pass(classify(component, e.Spec, err)); err != nil {
			return err
		}
		if err == nil && gone {
			delete(a.next, at)
		}
	}
	return nil
}

// dropOne gives true where the path is not managed any more.
func (a *application) dropOne(at string, e *entry, needed bool) (gone bool, err error) {
	if why := a.isProtected(at); why != "" {
		a.rescue(at, e, "it is protected: "+why)
		return true, nil
	}
	if real, err := a.root.Resolve(at); err != nil || real != at {
		a.rescue(at, e, "a symlink or a file stands among its parents now")
		return true, nil
	}
	info, err := a.root.Lstat(at)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err != nil {
		info = nil
	}
	if e.Dir {
		return a.dropDir(at, e, info, needed)
	}
	return true, a.dropFile(at, e, info)
}

func (a *application) dropFile(at string, e *entry, info fs.FileInfo) error {
	if isOther(info) {
		if !a.back || e.Original == nil {
			a.rescue(at, e, "something else than a file stands there now")
			return nil
		}
		if err := a.makeRoom(at, info); err != nil {
			return err
		}
		info = nil
	}
	if e.Original == nil {
		if info == nil {
			return a.lasts(at)
		}
		a.changed[e.Spec] = true
		return a.root.Remove(at)
	}
	meta := e.Original.meta()
	if info != nil && !isLink(info) {
		if sum, err := a.root.Sum(at); err == nil && sum == e.Original.Sum && !a.root.Doubtful(at) {
			if disk.MetaOf(info) == meta {
				return nil
			}
			if !e.Original.Attributes.Capable() { // a change of the owner takes capabilities away
				a.changed[e.Spec] = true
				return a.setMeta(at, meta)
			}
		}
	}
	if info == nil {
		if _, err := a.root.MkdirAll(path.Dir(at), defaultDir()); err != nil {
			return err
		}
	}
	meta.ReplaceLink = isLink(info)
	if len(e.Original.Attributes) > 0 {
		meta.Attributes = &e.Original.Attributes
	}
	_, err := a.root.CopyFile(path.Join(a.originals(), e.Original.Sum), at, e.Original.Sum, meta)
	if errors.Is(err, disk.ErrDamaged) || errors.Is(err, fs.ErrNotExist) {
		// Deleting would lose more: the file stays as it is.
		a.warn(fmt.Errorf("%s stays as it is: the copy of what was there before cannot be used: %w", at, err))
		return nil
	}
	if err == nil {
		a.changed[e.Spec] = true
	}
	return err
}

func (a *application) dropDir(at string, e *entry, info fs.FileInfo, needed bool) (gone bool, err error) {
	switch {
	case info != nil && !info.IsDir():
		a.warn(fmt.Errorf("%s: something else than the folder stands there now; it is left alone", at))
		return true, nil
	case info == nil:
		return true, a.lasts(at)
	case e.Original != nil:
		if disk.MetaOf(info) == e.Original.meta() {
			return true, a.lasts(at)
		}
		a.changed[e.Spec] = true
		return true, a.setMeta(at, e.Original.meta())
	case needed:
		// It was wanted for itself and is now only a parent, as if it had
		// been made for that.
		if disk.MetaOf(info) != defaultDir() {
			a.changed[e.Spec] = true
			if err := a.setMeta(at, defaultDir()); err != nil {
				return false, err
			}
		}
		a.next[at] = &entry{Spec: e.Spec, Dir: true, Implicit: true}
		return false, nil
	case path.Dir(at) == "/":
		return true, nil
	}
	list, err := a.root.List(at)
	if errors.Is(err, fs.ErrPermission) && closed(info.Mode(), true) { // as a spec had it
		if err := a.setMeta(at, defaultDir()); err != nil {
			return false, err
		}
		list, err = a.root.List(at)
	}
	if err != nil {
		return false, err
	}
	if len(list) > 0 {
		// What a person put there stays; what of ours could not go yet will
		// be tried again, and the folder with it.
		for other := range a.next {
			if within(other, at) && other != at {
				return false, nil
			}
		}
		return true, nil
	}
	if !e.Implicit {
		a.changed[e.Spec] = true
	}
	return true, a.root.Remove(at)
}
