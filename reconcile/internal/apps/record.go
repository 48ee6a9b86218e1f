package apps

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
)

// record is apps.json: what of ours may run on the device, and what we pulled.
type record struct {
	Format int                 `json:"format"`
	Apps   map[string]*applied `json:"apps,omitempty"`
	// Reload: systemd has not read the quadlet files anew since they changed.
	Reload bool `json:"reload,omitempty"`
	// Forget are units that systemd is to forget, while what they run goes on.
	Forget []string `json:"forget,omitempty"`
	// Stayed are networks that were in use when their application went.
	Stayed []string `json:"stayed,omitempty"`
	// Current and Before are the images of the current spec and of the one
	// before, by reference, as they were when the spec succeeded.
	Current map[string]string `json:"current,omitempty"`
	Before  map[string]string `json:"before,omitempty"`
	Pulled  []pulled          `json:"pulled,omitempty"`
}

// applied is one application.
type applied struct {
	// Hash is of what it was started from; "" = it is to be stopped, and
	// started anew where the spec still wants it.
	Hash  string `json:"hash,omitempty"`
	Units []unit `json:"units,omitempty"` // all that may be there, of before and after
	// Before are those of its units that ran before it was ours, and Taken is
	// the hash that it was taken over with: they run again when it is dropped,
	// and go on running where nothing has changed.
	Before []string `json:"before,omitempty"`
	Taken  string   `json:"taken,omitempty"`
}

// byHand says whether it has the containers of a project that somebody had run
// by podman-compose alone, and no update with them has succeeded: until then the
// way back leaves them as they are.
func (a *applied) byHand() bool {
	return a.Hash != "" && a.Hash == a.Taken && len(a.Before) == 0 && len(a.Units) == 1 && a.Units[0].Kind == composeKind
}

// pulled is an image that was not there before we pulled it. The entry is
// written before the pull, without an id.
type pulled struct {
	Ref string `json:"ref"`
	ID  string `json:"id,omitempty"`
}

// recordFormat is raised when an older agent would misread the record.
const recordFormat = 1

// maxRecord bounds the record, in bytes; a thousand applications stay below.
const maxRecord = 8 << 20

var recordMeta = disk.Meta{Mode: 0o600, UID: -1, GID: -1}

func (c *Controller) recordPath() string { return path.Join(c.State, "apps.json") }

// load gives the record. One that cannot be read is set aside: what runs as
// the spec says is then taken over again.
func (c *Controller) load() (*record, error) {
	if c.rec != nil {
		return c.rec.clone(), nil
	}
	r := &record{Format: recordFormat}
	data, err := c.Root.ReadState(c.recordPath(), maxRecord)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil && disk.Short(err):
		return nil, failure.Retryable(component, "", "%w", err)
	default:
		r.Format = 0
		if err == nil { // what a newer agent wrote besides is left out of account
			err = json.Unmarshal(data, r)
		}
		if err == nil && r.Format != recordFormat {
			err = fmt.Errorf("format %d is not %d", r.Format, recordFormat)
		}
		if err != nil {
			to, aside := c.Root.SetAside(c.recordPath(), c.Now())
			if aside != nil {
				return nil, failure.Retryable(component, "", "%w", aside)
			}
			c.Warn(fmt.Errorf("the record of applications cannot be read, and is set aside as %s: %w", to, err))
			r = &record{Format: recordFormat}
		}
	}
	if r.Apps == nil {
		r.Apps = map[string]*applied{}
	}
	for name, a := range r.Apps {
		if a == nil {
			delete(r.Apps, name)
		}
	}
	c.rec = r
	return r.clone(), nil
}

func (c *Controller) save(r *record) error {
	if c.rec != nil && reflect.DeepEqual(c.rec, r) && !c.Root.Doubtful(c.recordPath()) {
		return nil
	}
	data, err := json.MarshalIndent(r, "", " ")
	if err == nil {
		_, err = c.Root.MkdirAll(c.State, checkDir)
	}
	if err == nil {
		c.rec = nil // until it is known what the disk has
		err = c.Root.WriteFile(c.recordPath(), append(data, '\n'), recordMeta)
	}
	if err != nil {
		return failure.Retryable(component, "", "keep what runs: %w", err)
	}
	c.rec = r.clone()
	return nil
}

func (r *record) clone() *record {
	out := *r
	out.Apps = make(map[string]*applied, len(r.Apps))
	for name, a := range r.Apps {
		out.Apps[name] = &applied{Hash: a.Hash, Units: slices.Clone(a.Units), Before: a.Before, Taken: a.Taken}
	}
	out.Pulled, out.Forget, out.Stayed = slices.Clone(r.Pulled), slices.Clone(r.Forget), slices.Clone(r.Stayed)
	return &out // the maps of images are replaced, not changed
}

// has says whether a unit is one of ours.
func (r *record) has(name string) bool {
	for _, a := range r.Apps {
		if slices.ContainsFunc(a.Units, func(u unit) bool { return u.Name == name }) {
			return true
		}
	}
	return false
}

// marks says whether everything that is to be stopped or started for these
// stands in the record.
func (r *record) marks(all []*want) bool {
	kept := 0
	for _, w := range all {
		a := r.Apps[w.name]
		if a == nil || a.Hash != "" && a.Hash != w.hash {
			return false
		}
		if a.Hash != "" {
			kept++
		}
	}
	for _, a := range r.Apps {
		if a.Hash != "" {
			kept--
		}
	}
	return kept == 0 // what is kept is wanted
}

// add makes an application's units those of before and after. One that was or
// will be of a .kube file counts as that: with such a one, pods go too.
func (a *applied) add(more []unit) {
	for _, u := range more {
		i := slices.IndexFunc(a.Units, func(o unit) bool { return o.Name == u.Name })
		if i < 0 {
			a.Units = append(a.Units, u)
		} else if was := a.Units[i]; was.Object == "" && was.Kind != "kube" {
			a.Units[i] = u
		}
	}
	slices.SortFunc(a.Units, func(x, y unit) int { return strings.Compare(x.Name, y.Name) })
}
