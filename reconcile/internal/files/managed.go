package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
)

// entry is one path that this package has put something at.
type entry struct {
	Spec     string    `json:"spec"`               // as the spec wrote it
	Dir      bool      `json:"dir,omitempty"`      //
	Implicit bool      `json:"implicit,omitempty"` // a folder made only because something below needs it
	Original *original `json:"original,omitempty"` // nil = nothing was there
	// Secret is set for a secret: to [want.seal] once its file was seen to hold what
	// that opens to, and to unproved before anything else may be written.
	Secret string `json:"secret,omitempty"`
}

// unproved is no sum.
const unproved = "unproved"

// original is what was there before; a file's content lies in a folder of its
// own, named by its sum.
type original struct {
	Sum  string `json:"sum,omitempty"` // sha256, hex; "" for a directory
	Mode string `json:"mode"`          // octal
	UID  int    `json:"uid"`
	GID  int    `json:"gid"`

	Attributes disk.Attributes `json:"attributes,omitempty"` // of a file, extended ones
}

func (o *original) same(p *original) bool {
	return o.Sum == p.Sum && o.Mode == p.Mode && o.UID == p.UID && o.GID == p.GID && maps.EqualFunc(o.Attributes, p.Attributes, bytes.Equal)
}

func (o *original) meta() disk.Meta {
	mode, _ := parseMode(o.Mode, fileMode) // checked when it was read
	return disk.Meta{Mode: mode, UID: o.UID, GID: o.GID}
}

func originalOf(info fs.FileInfo, sum string) *original {
	m := disk.MetaOf(info)
	return &original{Sum: sum, Mode: octal(m.Mode), UID: m.UID, GID: m.GID}
}

// record is managed.json. It is written twice, so that one damaged file loses
// nothing: without it nobody knows any more what was there before.
type record struct {
	Format  int               `json:"format"`
	Entries map[string]*entry `json:"entries"`
}

// recordFormat is raised when an older agent would misread the record.
const recordFormat = 1

// maxRecord bounds the record, in bytes; 100,000 entries stay below it.
const maxRecord = 64 << 20

// stateMeta is for what only the agent reads: copies may be of secret files.
var (
	stateMeta    = disk.Meta{Mode: 0o600, UID: -1, GID: -1}
	stateDirMeta = disk.Meta{Mode: 0o700, UID: -1, GID: -1}
)

func (c *Controller) recordPath() string  { return path.Join(c.state, "managed.json") }
func (c *Controller) secondPath() string  { return path.Join(c.state, "managed.copy.json") }
func (c *Controller) originals() string   { return path.Join(c.state, "original") }
func (c *Controller) setAsideDir() string { return path.Join(c.state, "set-aside") }

func (c *Controller) load() error {
	c.managed = map[string]*entry{}
	var damaged []string
	for _, p := range []string{c.recordPath(), c.secondPath()} {
		entries, err := c.read(p)
		switch {
		case err == nil:
			c.managed = entries
			if p == c.recordPath() {
				second, err := c.read(c.secondPath())
				c.unsaved = err != nil || !maps.EqualFunc(entries, second, sameEntry)
			}
			for _, d := range damaged {
				if err := c.setAside(d); err != nil {
					return err
				}
			}
			return nil
		case errors.Is(err, fs.ErrNotExist):
		case disk.Short(err):
			return err
		default:
			c.warn(fmt.Errorf("what was managed cannot be read: %w", err))
			damaged = append(damaged, p)
		}
	}
	// Nothing is known any more. What a spec wants and is there already will
	// be taken over, and the copies are kept for a person.
	if len(damaged) > 0 {
		damaged = append(damaged, c.originals())
	}
	for _, d := range damaged {
		if err := c.setAside(d); err != nil {
			return err
		}
	}
	return nil
}

func (c *Controller) read(p string) (map[string]*entry, error) {
	if info, err := c.root.Lstat(p); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", p, disk.ErrNotRegular)
	}
	data, err := c.root.ReadState(p, maxRecord)
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil { // what a newer agent wrote besides is left out of account
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	if r.Format != recordFormat {
		return nil, fmt.Errorf("%s: format %d is not %d", p, r.Format, recordFormat)
	}
	for at, e := range r.Entries {
		if e == nil || badPath(at) != "" {
			return nil, fmt.Errorf("%s: entry %q is not one of ours", p, at)
		}
		if o := e.Original; o != nil {
			if _, err := parseMode(o.Mode, 0); err != nil || o.Mode == "" || (!e.Dir && !payloadDigest.MatchString("sha256:"+o.Sum)) {
				return nil, fmt.Errorf("%s: entry %q has an original that cannot be", p, at)
			}
		}
	}
	if r.Entries == nil {
		r.Entries = map[string]*entry{}
	}
	return r.Entries, nil
}

func (c *Controller) save(entries map[string]*entry) error {
	data, err := json.MarshalIndent(record{Format: recordFormat, Entries: entries}, "", " ")
	if err != nil {
		return err
	}
	if err := c.makeState(c.state); err != nil {
		return err
	}
	c.unsaved = true
	for _, p := range []string{c.recordPath(), c.secondPath()} {
		if info, err := c.root.Lstat(p); err == nil && !info.Mode().IsRegular() {
			if err := c.setAside(p); err != nil {
				return err
			}
		}
		if err := c.root.WriteFile(p, append(data, '\n'), stateMeta); err != nil {
			return err
		}
	}
	c.unsaved = false
	return nil
}

// makeState makes a folder of the state readable by the agent alone, and the
// parents of the state as any other folder.
func (c *Controller) makeState(dir string) error {
	if _, err := c.root.MkdirAll(path.Dir(c.state), defaultDir()); err != nil {
		return err
	}
	_, err := c.root.MkdirAll(dir, stateDirMeta)
	return err
}

// recorded says whether the record on disk is still there, twice; somebody may
// have removed the state folder while the agent ran.
func (c *Controller) recorded() bool {
	for _, p := range []string{c.recordPath(), c.secondPath()} {
		if info, err := c.root.Lstat(p); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			return false
		}
	}
	return true
}

// setAside moves something unreadable out of the way.
func (c *Controller) setAside(p string) error {
	to, err := c.root.SetAside(p, c.now())
	if to != "" {
		c.warn(fmt.Errorf("%s was set aside as %s", p, to))
	}
	return err
}

// keep copies what stands at a path to the originals.
func (c *Controller) keep(real string, info fs.FileInfo) (*original, error) {
	sum, err := c.root.Sum(real)
	if err != nil {
		return nil, err
	}
	if err := c.makeState(c.originals()); err != nil {
		return nil, err
	}
	to := path.Join(c.originals(), sum)
	if have, err := c.root.Sum(to); err != nil || have != sum || c.root.Doubtful(to) {
		if _, err := c.root.CopyFile(real, to, sum, stateMeta); err != nil {
			return nil, err
		}
	}
	o := originalOf(info, sum)
	o.Attributes, err = c.root.Attributes(real)
	return o, err
}

// rescue keeps an original that cannot be given back where a person finds it.
func (c *Controller) rescue(at string, e *entry, why string) {
	if e.Original == nil || e.Original.Sum == "" {
		c.warn(fmt.Errorf("%s: %s; it is not managed any more", at, why))
		return
	}
	to := path.Join(c.setAsideDir(), e.Original.Sum)
	err := c.makeState(c.setAsideDir())
	if err == nil {
		_, err = c.root.CopyFile(path.Join(c.originals(), e.Original.Sum), to, e.Original.Sum, stateMeta)
	}
	if err != nil {
		c.warn(fmt.Errorf("%s: %s; what was there before is lost: %w", at, why, err))
		return
	}
	c.warn(fmt.Errorf("%s: %s; what was there before is kept as %s", at, why, to))
}

// collect removes copies that no entry needs any more.
func (c *Controller) collect() {
	list, err := c.root.List(c.originals())
	if err != nil {
		return // there are none
	}
	var needed []string
	for _, e := range c.managed {
		if e.Original != nil {
			needed = append(needed, e.Original.Sum)
		}
	}
	slices.Sort(needed)
	for _, f := range list {
		if _, found := slices.BinarySearch(needed, f.Name()); found {
			continue
		}
		if err := c.root.Remove(path.Join(c.originals(), f.Name())); err != nil {
			c.warn(err)
		}
	}
}
