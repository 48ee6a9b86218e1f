package comment_test

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gitopsd/gitopsd/examples"
	"github.com/gitopsd/gitopsd/internal/comment"
	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/schema"
)

var update = flag.Bool("update", false, "write the comments into testdata")

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// edit is a text of a file of the example and what takes its place.
type edit struct{ file, from, to string }

// pullRequest is a change of the example.
type pullRequest struct {
	name       string
	base, head []edit            // of the example
	runs       map[string]string // the version of a gateway, where it is another one than the base's target
}

const (
	gateways = "policies/gateways.yaml"
	canary   = `  waves:
  - name: canary
    selector:
      matchLabels:
        ring: canary
`
)

// pullRequests are those whose pictures are in the documentation.
var pullRequests = []pullRequest{
	{name: "new-version", base: []edit{{gateways, "targetVersion: v1.2.1", "targetVersion: v1.1.0"}}},
	{name: "changed-in-place", head: []edit{{"overlays/sites/oslo.yaml", "198.51.100.53", "198.51.100.54"}}},
	{
		name: "less-careful",
		head: []edit{{gateways, "maxInFlight: 1", "maxInFlight: 50%"}, {gateways, "failureLimit: 0", "failureLimit: 2"}, {gateways, canary, ""}},
		runs: map[string]string{"gw-berlin-01": "v1.2.1", "": "v1.1.0"},
	},
	{name: "not-valid", head: []edit{
		{gateways, "maxInFlight: 1", "maxInflight: 1"},
		{"files/check.sh", "", ""},
		{"overlays/sites/oslo.yaml", "dns:", "dnss:"},
	}},
}

// TestPullRequests compares the comments on changes of the example with those
// that were looked at.
func TestPullRequests(t *testing.T) {
	for _, pr := range pullRequests {
		t.Run(pr.name, func(t *testing.T) {
			got := pr.comment(t)
			if list := wrong(got); len(list) > 0 {
				t.Errorf("%s in\n%s", strings.Join(list, "\n"), got)
			}
			path := filepath.Join("testdata", pr.name+".md")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("%s (-want +got), go test ./internal/comment -update writes it anew:\n%s", path, d)
			}
		})
	}
}

func (pr pullRequest) comment(t *testing.T) string {
	base := example(t, pr.base)
	head := example(t, append(slices.Clone(pr.base), pr.head...))
	if len(pr.head) == 0 {
		head = example(t, nil)
	}
	o := comment.Options{Command: "gitopsd plan --base main --head " + pr.name + " --repo https://git.example/fleet.git"}
	at := preview.Place{Name: pr.name, Commit: strings.Repeat("8c1e4f70", 5)}
	var loader schema.Loader
	after := load(t, &loader, head)
	if !after.Valid() {
		return comment.RenderProblems(at, after.Problems, o)
	}
	before := load(t, &loader, base)
	status := pr.status(t, before)
	in := preview.Input{Now: now, Present: map[string]preview.Present{}, DeletionLimit: func(total int) int { return max(2, total/5) }}
	for id, rec := range status.Devices {
		seen := rec.Status.Observed
		if seen == nil {
			seen = &schema.Observed{}
		}
		in.Present[id] = preview.Present{Version: seen.Version, Digest: seen.Digest, Policy: rec.Status.Policy}
	}
	side := func(place preview.Place, fleet *schema.Fleet, f files) preview.Revision {
		return preview.Revision{Place: place, Fleet: fleet, Plan: sweep.PlanNow(fleet, status, nil, now, "v9.0.0"), Read: f.blobs()}
	}
	in.Head = side(at, after, head)
	revision := side(preview.Place{Name: "main", Commit: strings.Repeat("2b9d06a3", 5)}, before, base)
	in.Base = &revision
	return comment.Render(preview.Compare(in), o)
}

// status is a fleet that is as the base wants it, but for a few devices.
func (pr pullRequest) status(t *testing.T, base *schema.Fleet) *sweep.Status {
	t.Helper()
	s := &sweep.Status{Commit: "c0ffee", Devices: map[string]*sweep.Record{}}
	quiet := now.Add(-26 * time.Hour)
	for _, m := range base.Devices {
		st := &schema.DeviceStatus{Metadata: schema.Metadata{Name: m.ID}, Policy: m.Policy}
		s.Devices[m.ID] = &sweep.Record{ID: m.ID, Path: "devices/" + m.ID + ".yaml", Status: st}
		if m.ID == "gw-oslo-05" {
			continue // has never reported
		}
		seen := &schema.Observed{
			InstallID: "i-" + m.ID, Sequence: 1, Version: m.Version, Digest: m.Rendered.Digest,
			Phase: schema.PhaseUpdated, Since: now.Add(-240 * time.Hour), Online: true,
		}
		if other := pr.runs[m.ID]; other != "" && m.Policy == "gateways" {
			seen.Version = other
		} else if other := pr.runs[""]; other != "" && m.Policy == "gateways" && m.Version == "v1.2.1" {
			seen.Version, seen.Digest = other, "sha256:"+strings.Repeat("0", 64)
		}
		switch m.ID {
		case "gw-berlin-06":
			seen.Online, seen.OfflineSince = false, &quiet
		case "gw-oslo-04":
			seen.Busy = true
		}
		st.Observed = seen
	}
	return s
}

// files are a revision of the example in memory.
type files map[string]string

// example is the example repository after some edits; one without a text
// removes the file.
func example(t *testing.T, edits []edit) files {
	t.Helper()
	f := files{}
	err := fs.WalkDir(examples.FleetRepo(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(examples.FleetRepo(), path)
		f[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range edits {
		if e.from == "" {
			delete(f, e.file)
			continue
		}
		if !strings.Contains(f[e.file], e.from) {
			t.Fatalf("%s does not hold %q", e.file, e.from)
		}
		f[e.file] = strings.Replace(f[e.file], e.from, e.to, 1)
	}
	return f
}

func (f files) Entries() ([]schema.Entry, error) {
	entries := make([]schema.Entry, 0, len(f))
	for path, content := range f {
		entries = append(entries, schema.Entry{Path: path, ID: id(content), Size: int64(len(content))})
	}
	slices.SortFunc(entries, func(a, b schema.Entry) int { return strings.Compare(a.Path, b.Path) })
	return entries, nil
}

func (f files) Read(e schema.Entry, _ int64) ([]byte, error) { return []byte(f[e.Path]), nil }

func id(content string) string {
	return strings.TrimPrefix(schema.PayloadDigest([]byte(content)), "sha256:")
}

func load(t *testing.T, loader *schema.Loader, f files) *schema.Fleet {
	t.Helper()
	fleet, err := loader.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	return fleet
}

// blobs reads the contents by their ids.
func (f files) blobs() func(string) ([]byte, error) {
	byID := make(map[string]string, len(f))
	for _, content := range f {
		byID[id(content)] = content
	}
	return func(want string) ([]byte, error) { return []byte(byID[want]), nil }
}
