package files

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"syscall"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/schema"
)

// Apply makes the device have exactly the spec's files and directories, in an
// order in which every step can be repeated; what the spec drops goes, and
// what was there before comes back. changed lists paths that differ now.
// A rollback is an Apply of the old spec.
//
// The order is: take links away that stand in the place of our folders (only on
// the way back), sweep what a crash left, drop, record what will be changed,
// then write. Dropping comes first so that a path may change from file to
// folder; recording comes after it, so that one write of the record serves
// both, and before any write, so that nothing is overwritten unrecorded.
func (c *Controller) Apply(ctx context.Context, spec *schema.Spec, p Payloads, way Way) (changed []string, err error) {
	a := &application{Controller: c, ctx: ctx, payloads: p, keepGoing: way != Onward, back: way == Back, next: maps.Clone(c.managed), changed: map[string]bool{}}
	if way == Back && ctx.Err() == nil {
		a.errs = c.unlink(spec, a.changed) // before paths are followed
	}
	if a.wants, err = c.wants(spec); err != nil {
		return sortedKeys(a.changed), joinErrors(append(a.errs, err))
	}
	a.byReal = index(a.wants)
	for _, step := range []func() error{a.refuse, a.sweep, a.drop, a.record, a.write} {
		if err = step(); err != nil {
			break
		}
	}
	if err == nil {
		c.collect()
	}
	return sortedKeys(a.changed), joinErrors(append(a.errs, err))
}

// application is one run of Apply.
type application struct {
	*Controller
	ctx       context.Context
	payloads  Payloads
	keepGoing bool
	back      bool
	wants     []*want
	byReal    map[string]*want
	next      map[string]*entry // what will be managed
	secrets   map[string]bool   // that stand somewhere, by path; nil = not looked up yet
	changed   map[string]bool
	errs      []error // gone past
}

// pass gives the error back, or notes it where errors are gone past.
func (a *application) pass(err error) error {
	if err == nil || !a.keepGoing || a.ctx.Err() != nil {
		return err
	}
	a.errs = append(a.errs, err)
	return nil
}

// refuse stops at what cannot be had here, before anything changes. Where errors
// are gone past, such a path stays as it is.
func (a *application) refuse() error {
	for _, w := range a.wants {
		if w.err == nil {
			w.err = a.open(w)
		}
		if a.back && a.untouched(w) {
			w.err, w.kept = nil, true
		}
		if w.err != nil {
			if err := a.pass(w.err); err != nil {
				return err
			}
		}
	}
	return a.ctx.Err()
}

func (a *application) sweep() error {
	dirs := map[string]bool{a.state: true, a.originals(): true, a.setAsideDir(): true}
	for _, w := range a.wants {
		if w.err == nil {
			dirs[path.Dir(w.real)] = true
		}
	}
	for at := range a.managed {
		dirs[path.Dir(at)] = true
	}
	for d := path.Dir(a.state); d != "/"; d = path.Dir(d) {
		dirs[d], dirs[path.Dir(d)] = true, true
	}
	for _, d := range sortedKeys(dirs) {
		// A parent may be a file now, or a link somewhere else.
		if real, err := a.root.Resolve(d); err != nil || real != d {
			continue
		}
		if info, err := a.root.Lstat(d); err != nil || !info.IsDir() {
			continue
		}
		if err := a.root.Sweep(d); err != nil {
			if err := a.pass(classify("files", d, err)); err != nil {
				return err
			}
		}
	}
	return nil
}

// record writes down what will be changed, with a copy of what is there.
func (a *application) record() error {
	for _, w := range a.wants {
		if w.err != nil {
			continue
		}
		if err := a.recordOne(w); err != nil {
			w.err = w.failure(err)
			if err := a.pass(w.err); err != nil {
				return err
			}
		}
	}
	return a.saveNext()
}

func (a *application) saveNext() error {
	if maps.EqualFunc(a.next, a.managed, sameEntry) && !a.unsaved && (len(a.next) == 0 || a.recorded()) {
		return a.ctx.Err()
	}
	if err := a.save(a.next); err != nil {
		return classify("state", "managed.json", err)
	}
	a.managed = a.next
	return a.ctx.Err()
}

// mismatch knows besides that the device was on the spec before, if this is the
// way back: all its files are ours.
func (a *application) mismatch(w *want, info fs.FileInfo, managed map[string]*entry) string {
	return mismatch(w, info, a.back || isFile(managed[w.real]))
}

func sameEntry(x, y *entry) bool {
	if x.Original != nil && y.Original != nil {
		return x.Spec == y.Spec && x.Dir == y.Dir && x.Implicit == y.Implicit && x.Secret == y.Secret && x.Original.same(y.Original)
	}
	return *x == *y
}

func (a *application) recordOne(w *want) error {
	if w.blocked != nil { // by something that may have been dropped
		real, err := a.root.Resolve(w.spec)
		if err != nil {
			return err
		}
		if real != w.real {
			return w.permanent("it lies behind a symlink that came up meanwhile")
		}
	}
	parents, err := a.root.Missing(path.Dir(w.real))
	if err != nil {
		return err
	}
	info, err := a.root.Lstat(w.real)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	exists := err == nil
	if exists {
		if why := a.mismatch(w, info, a.next); why != "" {
			return w.permanent("%s", why)
		}
	}
	for _, d := range parents {
		if a.next[d] == nil {
			a.next[d] = &entry{Spec: d, Dir: true, Implicit: true}
		}
	}
	if e := a.next[w.real]; e != nil && e.Dir == w.dir {
		a.next[w.real] = &entry{Spec: w.spec, Dir: w.dir, Original: e.Original, Secret: a.mark(w, info, e.Secret)}
		return nil
	}
	e := &entry{Spec: w.spec, Dir: w.dir, Secret: a.mark(w, info, "")}
	switch {
	case !exists, isLink(info), !w.dir && (isOther(info) || a.isSecret(w.real)):
	case w.dir:
		e.Original = originalOf(info, "")
	default:
		if e.Original, err = a.keep(w.real, info); err != nil {
			return err
		}
	}
	a.next[w.real] = e
	return nil
}

// write puts folders and then files in place.
func (a *application) write() error {
	for _, dirs := range []bool{true, false} {
		for _, w := range a.wants {
			if w.err != nil || w.dir != dirs {
				continue
			}
			if err := a.ctx.Err(); err != nil {
				return err
			}
			did, err := a.writeOne(w)
			if did {
				a.changed[w.spec] = true
			}
			if err := a.pass(w.failure(err)); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeOne gives true where the path differs from before, also where it then
// failed.
func (a *application) writeOne(w *want) (did bool, err error) {
	info, err := a.root.Lstat(w.real)
	exists := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if exists {
		if why := a.mismatch(w, info, a.managed); why != "" {
			return false, w.permanent("%s", why)
		}
		same := w.dir || w.kept
		if !same && info.Mode().IsRegular() {
			same, err = a.sameContent(w, info)
			if err != nil && !errors.Is(err, syscall.EIO) && !(errors.Is(err, fs.ErrPermission) && closed(info.Mode(), false)) {
				return false, err // but what cannot be read any more is written again
			}
		}
		if same && (w.dir || !a.root.Doubtful(w.real)) {
			if disk.MetaOf(info) == w.meta {
				return false, a.lasts(w.real)
			}
			return true, a.setMeta(w.real, w.meta)
		}
	} else if _, err := a.root.MkdirAll(path.Dir(w.real), defaultDir()); err != nil {
		return false, err
	}
	if w.dir {
		_, err := a.root.MkdirAll(w.real, w.meta)
		return err == nil, err
	}
	data, err := w.bytes(a.payloads)
	if err != nil {
		return false, err
	}
	if isOther(info) {
		if err := a.makeRoom(w.real, info); err != nil {
			return false, err
		}
	}
	meta := w.meta
	meta.ReplaceLink = isLink(info)
	err = a.root.WriteFile(w.real, data, meta)
	return err == nil, err
}

func (a *application) setMeta(at string, m disk.Meta) error {
	if err := a.root.SetMeta(at, m); err != nil {
		return err
	}
	return a.lasts(at)
}

// lasts makes last what is as it should be already and could not be synced
// when it was done.
func (a *application) lasts(at string) error {
	if !a.root.Doubtful(at) {
		return nil
	}
	return a.root.Sync(at)
}

// defaultDir is for folders that are made because something below needs them.
func defaultDir() disk.Meta {
	uid, gid := ownIDs()
	return disk.Meta{Mode: parentMode, UID: uid, GID: gid}
}
