package files

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/secrets"
	"github.com/gitopsd/gitopsd/schema"
)

// Payloads gives the bytes of "sha256:<hex>".
type Payloads func(digest string) ([]byte, error)

// Config of a Controller.
type Config struct {
	Root      *disk.Root
	State     string   // folder below the root: "/var/lib/gitopsd"
	Protected []string // further paths that no spec may touch
	// Identities open the secrets of specs.
	Identities secrets.Identities
	// Texts are told what was in them; nil = nobody has to know.
	Texts *secrets.Texts
	// Current gives the spec that the device is on; nil = it is on none.
	Current func() (*schema.Spec, error)
	Warn    func(error)      // told what a person should know but stops nothing; nil = nobody
	Now     func() time.Time // dates what is set aside; nil = time.Now
}

// Controller manages the files and directories of a spec; what it put on the
// device stands in managed.json, with a copy of what was there before.
type Controller struct {
	root       *disk.Root
	state      string
	protected  []string
	linked     []string // what those lead to, where they are links
	identities secrets.Identities
	texts      *secrets.Texts
	current    func() (*schema.Spec, error)
	warn       func(error)
	now        func() time.Time
	ids        ids
	managed    map[string]*entry // by resolved path
	// unsaved: the two records do not both say the same as memory. Power went
	// between them, or one could not be written.
	unsaved bool
}

// New reads what is managed. A record that cannot be read is set aside with
// its date; the error is for a disk on which not even that can be done.
func New(c Config) (*Controller, error) {
	if c.Root == nil || c.State == "" {
		return nil, errors.New("files: root and state folder are needed")
	}
	ctl := &Controller{
		root: c.Root, state: path.Clean(c.State), protected: c.Protected, identities: c.Identities, texts: c.Texts, current: c.Current,
		warn: c.Warn, now: c.Now, ids: ids{root: c.Root},
	}
	if ctl.warn == nil {
		ctl.warn = func(error) {}
	}
	if ctl.now == nil {
		ctl.now = time.Now
	}
	if err := ctl.load(); err != nil {
		return nil, err
	}
	return ctl, nil
}

// Drift lists the paths of the spec that differ on the device, sorted. The
// error joins what could not be compared.
func (c *Controller) Drift(spec *schema.Spec, p Payloads) ([]string, error) {
	wants, err := c.wants(spec)
	errs := []error{err}
	var drift []string
	for _, w := range wants {
		if w.err != nil {
			errs = append(errs, w.err)
			continue
		}
		same, err := c.asWanted(w)
		if err != nil {
			errs = append(errs, w.failure(err))
		} else if !same {
			drift = append(drift, w.spec)
		}
	}
	sort.Strings(drift)
	return drift, joinErrors(errs)
}

// Ahead lists the paths that an Apply of the spec would make different, sorted:
// those of Drift, and files that go or come back. What cannot be compared is
// left to Apply, which tells of it.
func (c *Controller) Ahead(spec *schema.Spec, p Payloads) []string {
	ahead, _ := c.Drift(spec, p)
	wants, _ := c.wants(spec)
	wanted := index(wants)
	for at, e := range c.managed {
		if e.Dir || wanted[at] != nil {
			continue
		}
		info, err := c.root.Lstat(at)
		switch {
		case err != nil && e.Original == nil:
			continue
		case err == nil && e.Original != nil && info.Mode().IsRegular() && disk.MetaOf(info) == e.Original.meta():
			if sum, err := c.root.Sum(at); err == nil && sum == e.Original.Sum {
				continue
			}
		}
		ahead = append(ahead, e.Spec)
	}
	sort.Strings(ahead)
	return ahead
}

// asWanted compares content, mode and owner with what is on the disk.
func (c *Controller) asWanted(w *want) (bool, error) {
	info, err := c.root.Lstat(w.real)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if w.dir {
		return info.IsDir() && disk.MetaOf(info) == w.meta, nil
	}
	if !info.Mode().IsRegular() || disk.MetaOf(info) != w.meta {
		return false, nil
	}
	return c.sameContent(w, info)
}

// sameContent compares a regular file's content. Sizes are compared first,
// and a file is read piece by piece, because it may be large.
func (c *Controller) sameContent(w *want, info fs.FileInfo) (bool, error) {
	if err := c.open(w); err != nil {
		return false, err
	}
	if w.size >= 0 && info.Size() != w.size {
		return false, nil
	}
	sum, err := c.root.Sum(w.real)
	if errors.Is(err, fs.ErrPermission) && closed(w.meta.Mode, false) && disk.MetaOf(info) == w.meta {
		return true, nil // an earlier agent gave it that mode, and the content with it
	}
	return sum == w.sum, err
}

// Watched lists the folders whose changes may be drift: those that hold a
// managed path, or their nearest parent that exists. Sorted, resolved.
func (c *Controller) Watched(spec *schema.Spec) []string {
	wants, _ := c.wants(spec)
	seen := map[string]bool{}
	for _, w := range wants {
		if w.err != nil {
			continue
		}
		for d := path.Dir(w.real); ; d = path.Dir(d) {
			if info, err := c.root.Lstat(d); (err == nil && info.IsDir()) || d == "/" {
				seen[d] = true
				break
			}
		}
	}
	return sortedKeys(seen)
}

// Made says whether a file would not be there if no spec had asked for it.
func (c *Controller) Made(p string) bool {
	real, err := c.root.Resolve(p)
	if err != nil {
		return false
	}
	e := c.managed[real]
	return isFile(e) && e.Original == nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func octal(m fs.FileMode) string {
	n := uint32(m.Perm())
	for bit, unix := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&bit != 0 {
			n |= unix
		}
	}
	return fmt.Sprintf("%04o", n)
}
