package preview_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/schema"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// files are a revision in memory.
type files map[string]string

func (f files) Entries() ([]schema.Entry, error) {
	var entries []schema.Entry
	for path, content := range f {
		entries = append(entries, schema.Entry{Path: path, ID: id(content), Size: int64(len(content))})
	}
	slices.SortFunc(entries, func(a, b schema.Entry) int { return strings.Compare(a.Path, b.Path) })
	return entries, nil
}

func id(content string) string {
	return strings.TrimPrefix(schema.PayloadDigest([]byte(content)), "sha256:")
}

func (f files) Read(e schema.Entry, _ int64) ([]byte, error) { return []byte(f[e.Path]), nil }

func (f files) blob(want string) ([]byte, error) {
	for _, content := range f {
		if id(content) == want {
			return []byte(content), nil
		}
	}
	return nil, fmt.Errorf("no content %s", want)
}

// change is two revisions of a fleet and what its devices are.
type change struct {
	older, base, head files
	present           map[string]presentDevice // nil = no status
}

// presentDevice is a device in present.yaml: what it runs is the content of
// what was before the base, of the base or of the head, "nothing", or unknown.
type presentDevice struct {
	Version  string `json:"version"`
	Content  string `json:"content"`
	Assigned string `json:"assigned"` // the content of which; "" = what it runs
	As       string `json:"as"`       // the device whose digest it reports; "" = its own
	Policy   string `json:"policy"`
	Hours    int    `json:"hours"` // since when it is so; 0 = for ten days
}

// parseChange reads a case: files below base/, which those below head/ and
// older/ replace; an empty one is gone there.
func parseChange(t testing.TB, archive *txtar.Archive) change {
	t.Helper()
	c := change{older: files{}, base: files{}, head: files{}}
	for _, f := range archive.Files {
		if path, ok := strings.CutPrefix(f.Name, "base/"); ok {
			c.base[path], c.head[path], c.older[path] = string(f.Data), string(f.Data), string(f.Data)
		}
	}
	for _, f := range archive.Files {
		side, path, _ := strings.Cut(f.Name, "/")
		of := map[string]files{"head": c.head, "older": c.older}[side]
		switch {
		case of != nil && len(f.Data) == 0:
			delete(of, path)
		case of != nil:
			of[path] = string(f.Data)
		case f.Name == "present.yaml":
			if err := yaml.UnmarshalStrict(f.Data, &c.present); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

// input loads and plans both sides; a change without a base has only files
// below head/.
func (c change) input(t testing.TB) preview.Input {
	t.Helper()
	var loader schema.Loader
	load := func(f files) *schema.Fleet {
		fleet, err := loader.Load(f)
		if err != nil {
			t.Fatal(err)
		}
		if !fleet.Valid() {
			t.Fatalf("the fleet of the test is not valid: %+v", fleet.Problems)
		}
		return fleet
	}
	head, base, older := load(c.head), load(c.base), load(c.older)
	in := preview.Input{Now: now, DeletionLimit: func(total int) int { return max(2, total/5) }}
	var status *sweep.Status
	if c.present != nil {
		status = c.status(base, head, older)
		in.Present = map[string]preview.Present{}
		for id, rec := range status.Devices {
			p := preview.Present{Version: rec.Status.Observed.Version, Digest: rec.Status.Observed.Digest, Policy: rec.Status.Policy}
			p.Assigned = preview.Side{Version: p.Version, Digest: p.Digest}
			if a := rec.Assignment; a != nil {
				p.Assigned = preview.Side{Version: a.Version, Digest: a.Digest, Spec: a.Spec, Read: func(digest string) ([]byte, error) {
					for _, fleet := range []*schema.Fleet{base, head, older} {
						if m := fleet.Member(id); m != nil && m.Rendered != nil && m.Rendered.Payloads[digest].Data != nil {
							return m.Rendered.Payloads[digest].Data, nil
						}
					}
					return c.base.blob(strings.TrimPrefix(digest, "sha256:"))
				}}
			}
			in.Present[id] = p
		}
	}
	plan := func(f *schema.Fleet, files files, name string) preview.Revision {
		return preview.Revision{Place: preview.Place{Name: name}, Fleet: f, Plan: sweep.PlanNow(f, status, nil, now, "v9.0.0"), Read: files.blob}
	}
	in.Head = plan(head, c.head, "head")
	if len(c.base) > 0 {
		revision := plan(base, c.base, "base")
		in.Base = &revision
	}
	return in
}

func (c change) status(base, head, older *schema.Fleet) *sweep.Status {
	s := &sweep.Status{Commit: "c0ffee", Devices: map[string]*sweep.Record{}}
	for name, p := range c.present {
		if p.Hours == 0 {
			p.Hours = 240
		}
		var digest string
		var assignment *schema.Assignment
		for content, fleet := range map[string]*schema.Fleet{"base": base, "head": head, "older": older} {
			m := fleet.Member(name)
			if p.Content == content {
				digest = fleet.Member(cmp.Or(p.As, name)).Rendered.Digest
			}
			if cmp.Or(p.Assigned, p.Content) == content {
				assignment = &schema.Assignment{Metadata: schema.Metadata{Name: name}, Generation: 1, Attempt: 1, Version: m.Version, Digest: m.Rendered.Digest, Spec: m.Rendered.Spec}
			}
		}
		if p.Content == "unknown" {
			digest = "sha256:" + strings.Repeat("0", 64)
		}
		s.Devices[name] = &sweep.Record{ID: name, Path: "devices/" + name + ".yaml", Assignment: assignment, Status: &schema.DeviceStatus{
			Metadata: schema.Metadata{Name: name}, Policy: p.Policy,
			Observed: &schema.Observed{InstallID: "i-" + name, Sequence: 1, Version: p.Version, Digest: digest, Phase: schema.PhaseUpdated, Since: now.Add(-time.Duration(p.Hours) * time.Hour), Online: true},
		}}
	}
	return s
}
