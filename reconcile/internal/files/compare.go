package files

import (
	"errors"
	"io/fs"
	"path"
	"sort"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/schema"
)

// Side is one of the two sides of a [Difference].
type Side struct {
	Mode     string // octal
	UID, GID int
	Size     int64 // in bytes; -1 = of a payload that is not here
	// Read gives the content of a file of at most limit bytes; nil for a
	// folder, for what is no regular file, and for a secret.
	Read func(limit int64) ([]byte, error)
}

// Difference is one path that Apply would change.
type Difference struct {
	Path     string // as the spec writes it
	Dir      bool
	From, To *Side // nil = nothing there
	// Original says that To is what was there before the first spec.
	Original bool
	// Secret says that a secret stands there, or is to: its content is nobody's.
	Secret bool
	Err    error // why it cannot be had, or compared
}

// Compare lists what Apply would change, sorted by path, and changes nothing.
// The error is for a device whose users cannot be read at all.
func (c *Controller) Compare(spec *schema.Spec, p Payloads) ([]Difference, error) {
	wants, err := c.wants(spec)
	if err != nil {
		return nil, err
	}
	byReal, secret := index(wants), c.secretPaths()
	var list []Difference
	keep := map[string]bool{}
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
		if w.err != nil {
			keep[w.spec] = true
			list = append(list, Difference{Path: w.spec, Dir: w.dir, Err: w.err})
			continue
		}
		same, err := c.asWanted(w)
		if err == nil && same {
			continue
		}
		d := Difference{Path: w.spec, Dir: w.dir, Err: err, From: c.present(w.real), Secret: w.secret || secret[w.real]}
		d.To = &Side{Mode: octal(w.meta.Mode), UID: w.meta.UID, GID: w.meta.GID, Size: w.size}
		if !w.dir {
			d.To.Read = bounded(w.size, func() ([]byte, error) { return w.bytes(p) })
		}
		list = append(list, d.sealed())
	}
	for at, e := range c.managed {
		if w := byReal[at]; e.Implicit || keep[e.Spec] || (w != nil && w.dir == e.Dir) {
			continue
		}
		if d := c.dropped(at, e); d != nil {
			d.Secret = secret[at]
			list = append(list, d.sealed())
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Path < list[j].Path })
	return list, nil
}

// sealed has nobody read what is a secret.
func (d *Difference) sealed() Difference {
	for _, s := range []*Side{d.From, d.To} {
		if d.Secret && s != nil {
			s.Read = nil
		}
	}
	return *d
}

// dropped is what becomes of a path that the spec does not want any more; nil
// where nothing does.
func (c *Controller) dropped(at string, e *entry) *Difference {
	d := &Difference{Path: e.Spec, Dir: e.Dir, From: c.present(at)}
	if e.Original == nil {
		if d.From == nil {
			return nil
		}
		return d
	}
	o := e.Original
	d.Original, d.To = true, &Side{Mode: octal(o.meta().Mode), UID: o.UID, GID: o.GID}
	if !e.Dir {
		kept := path.Join(c.originals(), o.Sum)
		if info, err := c.root.Lstat(kept); err == nil {
			d.To.Size = info.Size()
		}
		d.To.Read = func(limit int64) ([]byte, error) { return c.root.ReadFile(kept, limit) }
	}
	if d.From != nil && d.From.Mode == d.To.Mode && d.From.UID == d.To.UID && d.From.GID == d.To.GID {
		if sum, err := c.root.Sum(at); e.Dir || err == nil && sum == o.Sum {
			return nil
		}
	}
	return d
}

// present is what stands at a path; nil = nothing.
func (c *Controller) present(real string) *Side {
	info, err := c.root.Lstat(real)
	if err != nil {
		return nil
	}
	m := disk.MetaOf(info)
	s := &Side{Mode: octal(m.Mode), UID: m.UID, GID: m.GID}
	if info.Mode().IsRegular() {
		s.Size = info.Size()
		s.Read = func(limit int64) ([]byte, error) { return c.root.ReadFile(real, limit) }
	}
	return s
}

// bounded refuses what is larger than its reader wants.
func bounded(size int64, read func() ([]byte, error)) func(int64) ([]byte, error) {
	return func(limit int64) ([]byte, error) {
		if size > limit {
			return nil, disk.ErrTooLarge
		}
		data, err := read()
		if err == nil && int64(len(data)) > limit {
			return nil, disk.ErrTooLarge
		}
		return data, err
	}
}

// Shown says whether everybody on the device may read a side.
func (s *Side) Shown() bool {
	m, err := parseMode(s.Mode, 0)
	return err == nil && m&fs.FileMode(0o004) != 0
}

// TooLarge says that a side was not read because it is larger than wanted.
func TooLarge(err error) bool { return errors.Is(err, disk.ErrTooLarge) }
