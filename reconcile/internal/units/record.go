package units

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
)

// record is units.json: what was there before us, and what is to be done. It
// is written before the change that it speaks of.
type record struct {
	Format int `json:"format"`
	// Before are the units that a spec has named, as they were.
	Before map[string]*before `json:"before,omitempty"`
	// Notify are the units that a file restarts or reloads, by the file's path:
	// as the spec says that it is from, so that they are known too when the
	// next one drops the file.
	Notify map[string]notify `json:"notify,omitempty"`
	// Due are the units whose files are being changed.
	Due map[string]*due `json:"due,omitempty"`
	// Reload: systemd has to read its units anew.
	Reload bool `json:"reload,omitempty"`
}

// recordFormat is raised when an older agent would misread the record.
const recordFormat = 1

// maxRecord bounds the record, in bytes.
const maxRecord = 16 << 20

// before is a unit as it was when a spec named it first.
type before struct {
	File    string `json:"file,omitempty"`    // how its file was enabled, in systemd's word
	Under   string `json:"under,omitempty"`   // the same, of one that was masked, once it is not
	Running bool   `json:"running,omitempty"` //
	Missing bool   `json:"missing,omitempty"` // nothing made it: it is ours alone
	// Enabled and State say what specs have set since, and comes back.
	Enabled bool `json:"enabled,omitempty"`
	State   bool `json:"state,omitempty"`
	// Ran: a service that ends by itself has done so since its files changed.
	Ran bool `json:"ran,omitempty"`
}

// Ours says whether nothing but a spec makes a unit that it has named.
func (c *Controller) Ours(name string) bool {
	b := c.rec.Before[name]
	return b != nil && b.Missing
}

func (b *before) masked() bool { return b.File == "masked" || b.File == "masked-runtime" }

// enabled gives nil where the word says nothing of it.
func (b *before) enabled() *bool {
	file := b.File
	if b.masked() {
		file = b.Under
	}
	yes := file == "enabled" || file == "enabled-runtime"
	if yes || file == "disabled" || file == "linked" || file == "linked-runtime" {
		return &yes
	}
	return nil
}

// notify is what a change of one file does.
type notify struct {
	Restart []string `json:"restart,omitempty"`
	Reload  []string `json:"reload,omitempty"`
}

// due is what a unit runs with while its files are being changed: each of
// these as it was before. Where all are so again, and nobody has started it in
// between, there is nothing to do.
type due struct {
	Paths      map[string]string `json:"paths"` // what was there
	Invocation string            `json:"invocation,omitempty"`
	Own        bool              `json:"own,omitempty"`     // one of them is the unit's own file
	Restart    bool              `json:"restart,omitempty"` // or else it reads its configuration anew
}

func newRecord() *record {
	return &record{Format: recordFormat, Before: map[string]*before{}, Notify: map[string]notify{}, Due: map[string]*due{}}
}

func (r *record) empty() bool {
	return len(r.Before) == 0 && len(r.Notify) == 0 && len(r.Due) == 0 && !r.Reload
}

func (r *record) clone() *record {
	c := newRecord()
	c.Reload = r.Reload
	for name, b := range r.Before {
		v := *b
		c.Before[name] = &v
	}
	maps.Copy(c.Notify, r.Notify)
	for name, d := range r.Due {
		v := *d
		v.Paths = maps.Clone(d.Paths)
		c.Due[name] = &v
	}
	return c
}

func (c *Controller) recordPath() string { return path.Join(c.state, "units.json") }

// load reads the record. One that cannot be read is set aside: what the spec
// names is then taken over as it is.
func (c *Controller) load() error {
	c.rec, c.saved = newRecord(), newRecord()
	data, err := c.root.ReadState(c.recordPath(), maxRecord)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil && disk.Short(err):
		return err
	}
	r := &record{}
	if err == nil { // what a newer agent wrote besides is left out of account
		err = json.Unmarshal(data, r)
	}
	if err == nil && r.Format != recordFormat {
		err = fmt.Errorf("format %d is not %d", r.Format, recordFormat)
	}
	if err == nil && (slices.Contains(slices.Collect(maps.Values(r.Before)), nil) || slices.Contains(slices.Collect(maps.Values(r.Due)), nil)) {
		err = errors.New("it has an entry that cannot be")
	}
	if err == nil {
		c.rec = r.clone() // no map of it is nil
		c.saved = c.rec
		return nil
	}
	to, aside := c.root.SetAside(c.recordPath(), c.now())
	if aside != nil {
		return aside
	}
	c.warn(fmt.Errorf("what units were before cannot be read, and is set aside as %s: %w", to, err))
	return nil
}

// save writes the record where it differs from what is on disk. On a full disk
// it is kept in memory, so that the way back, which makes room, knows it.
func (c *Controller) save(r *record) error {
	c.rec = r
	_, err := c.root.Lstat(c.recordPath())
	if there := err == nil; reflect.DeepEqual(r, c.saved) && there == !r.empty() {
		return nil
	}
	if r.empty() {
		if err := c.root.Remove(c.recordPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		c.saved = r
		return nil
	}
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if _, err := c.root.MkdirAll(c.state, disk.Meta{Mode: 0o700, UID: -1, GID: -1}); err != nil {
		return err
	}
	if err := c.root.WriteFile(c.recordPath(), append(data, '\n'), disk.Meta{Mode: 0o600, UID: -1, GID: -1}); err != nil {
		return err
	}
	c.saved = r
	return nil
}

// onDisk is what stands at a path, in a word that differs where it does.
func (c *Controller) onDisk(p string) string {
	real, err := c.root.Resolve(p)
	if err != nil {
		return ""
	}
	info, err := c.root.Lstat(real)
	if err != nil {
		return ""
	}
	m := disk.MetaOf(info)
	if !info.Mode().IsRegular() {
		return fmt.Sprintf("%s %d:%d", info.Mode(), m.UID, m.GID)
	}
	sum, err := c.root.Sum(real)
	if err != nil {
		return "unreadable"
	}
	return fmt.Sprintf("%s %v %d:%d", sum, m.Mode, m.UID, m.GID)
}
