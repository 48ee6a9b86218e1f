package examples_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gitopsd/gitopsd/examples"
	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

var versions = []string{"v1.0.0", "v1.1.0", "v1.2.0", "v1.2.1"}

// at gives the example with its gateways on a version.
func at(t *testing.T, version string) *schema.Fleet {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, examples.FleetRepo()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "policies/gateways.yaml")
	policy, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const line = "  targetVersion: v1.2.1\n"
	if strings.Count(string(policy), line) != 1 {
		t.Fatalf("the policy has not one line %q", line)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(policy), line, "  targetVersion: "+version+"\n", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	source, err := schema.DirSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := (&schema.Loader{OwnVersion: "v9.9.9"}).Load(source)
	if err != nil {
		t.Fatal(err)
	}
	return fleet
}

// TestNothingIsWrong: no error and no warning, on any version.
func TestNothingIsWrong(t *testing.T) {
	for _, version := range versions {
		for _, p := range at(t, version).Problems {
			t.Errorf("%s: %s:%d:%d %s: %s %s", version, p.File, p.Line, p.Column, p.Rule, p.Message, p.Hint)
		}
	}
}

// TestEmbeddedIsWhole: what is compiled in is what a reader sees.
func TestEmbeddedIsWhole(t *testing.T) {
	list := func(fsys fs.FS) map[string]string {
		files := map[string]string{}
		if err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := fs.ReadFile(fsys, path)
			files[path] = string(data)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return files
	}
	if diff := cmp.Diff(list(os.DirFS("fleet-repo")), list(examples.FleetRepo())); diff != "" {
		t.Errorf("folder and embedded differ:\n%s", diff)
	}
}

// TestRendered: what some devices get, in all that a reader is told about.
func TestRendered(t *testing.T) {
	fleet := at(t, "v1.2.1")
	if len(fleet.Devices) != 12 {
		t.Fatalf("%d devices, want 12", len(fleet.Devices))
	}
	file := func(id, path string) (string, bool) {
		t.Helper()
		m := fleet.Member(id)
		if m == nil || m.Rendered == nil {
			t.Fatalf("%s is not rendered", id)
		}
		spec, err := schema.DecodeSpec(m.Rendered.Spec)
		if err != nil {
			t.Fatal(err)
		}
		f := spec.Files[path]
		switch {
		case f == nil:
			return "", false
		case f.Content != nil:
			return *f.Content, true
		}
		p, ok := m.Rendered.Payloads[f.Payload]
		if !ok || p.Data == nil {
			t.Fatalf("%s has no rendered payload for %s: %+v", id, path, f)
		}
		return string(p.Data), true
	}
	for _, c := range []struct{ device, path, want string }{
		{"gw-berlin-01", "/etc/edge/edge.conf", "# managed by gitopsd; changes made here are put back\nname=gw-berlin-01\nsite=berlin\nchannel=1\ndns=192.0.2.53\ntls=on\ncertificate=/etc/edge/tls/certificate\n"},
		{"gw-berlin-01", "/etc/edge/control", "https://git.example.com/fleet.git\n"},
		{"gw-berlin-01", "/etc/edge/site.conf", "site=berlin\nzone=Europe/Berlin\n"},
		{"gw-berlin-03", "/etc/edge/edge.conf", "# managed by gitopsd; changes made here are put back\nname=gw-berlin-03\nsite=berlin\nchannel=7\ndns=192.0.2.53\ntls=on\ncertificate=/etc/edge/tls/certificate\n"},
		{"gw-berlin-05", "/etc/edge/edge.conf", "# managed by gitopsd; changes made here are put back\nname=gw-berlin-05\nsite=berlin\nchannel=1\n"},
		{"gw-berlin-06", "/etc/edge/site.conf", ""},
		{"gw-oslo-02", "/etc/edge/extra.conf", "roof=yes\n"},
		{"bench-oslo-01", "/etc/bench/notice", "this machine may be switched off at any time\n"},
		{"bench-oslo-01", "/etc/edge/edge.conf", ""},
	} {
		if got, _ := file(c.device, c.path); got != c.want {
			t.Errorf("%s on %s is %q, want %q", c.path, c.device, got, c.want)
		}
	}
}

// TestPlanned moves every version to every device that it should reach, in a
// world in which an update takes no time and always works.
func TestPlanned(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	runs := map[string]planner.Target{}
	attempts := map[string][]planner.Attempt{}
	for _, version := range versions {
		fleet := at(t, version)
		in := sweep.PlannerInput(sweep.Scene{Fleet: fleet, Now: now, OwnVersion: "v9.9.9"})
		for _, p := range fleet.Policies {
			if got := p.Spec.MaxInFlight; p.Metadata.Name == "gateways" && (got == nil || got.Value != 1) {
				t.Errorf("maxInFlight is %v, the pages say 1", got)
			}
		}
		rest := false // of the gateways have begun to move
		for step := 0; ; step++ {
			if step > 2*len(fleet.Devices) {
				t.Fatalf("%s does not reach its devices in %d steps", version, step)
			}
			in.Devices = nil
			for _, m := range fleet.Devices {
				d := planner.Device{
					ID: m.ID, Policy: m.Policy, Rollout: m.Rollout, NoTarget: m.NoTarget, Pinned: m.Pinned,
					Wave: m.Wave, Labels: m.Labels(),
					Seen: true, Online: true, LastSeen: now, InstallID: m.ID, ProtocolVersion: 1,
					Version: "v0.0.0", Attempts: attempts[m.ID],
				}
				if m.Rendered != nil {
					d.Target = planner.Target{Version: m.Version, Digest: m.Rendered.Digest}
				}
				if r, ok := runs[m.ID]; ok {
					d.Version, d.Digest = r.Version, r.Digest
				}
				if h := m.Device.Spec.Hold; h != nil {
					d.AdminHeld, d.HeldReason = true, h.Reason
				}
				in.Devices = append(in.Devices, d)
			}
			moved := 0
			verdicts := planner.Plan(in).Verdicts
			for _, v := range verdicts {
				if v.Upgrade {
					moved++
					if v.Device.Wave == "" {
						rest = rest || v.Device.Policy == "gateways" && !v.Device.Pinned
					} else if rest {
						t.Errorf("%s: the canary %s moves after others", version, v.Device.ID)
					}
					runs[v.Device.ID] = v.Target
					n := int64(len(attempts[v.Device.ID]) + 1)
					attempts[v.Device.ID] = append(attempts[v.Device.ID], planner.Attempt{
						Number: n, Policy: v.Device.Policy, Target: v.Target, Rollout: v.Device.Rollout, InstallID: v.Device.ID,
						AssignedAt: now, StartedAt: now, OnTargetAt: now, EndedAt: now, Outcome: planner.OK,
					})
				}
			}
			if moved > 2 {
				t.Errorf("%s: %d devices in one step of two policies that allow one each", version, moved)
			}
			if moved > 0 {
				continue
			}
			for _, v := range verdicts {
				want := planner.Code("Current")
				if v.Device.ID == "gw-oslo-03" {
					want = "Held"
				}
				if v.Code != want {
					t.Errorf("%s: %s is %s (%s), want %s", version, v.Device.ID, v.Code, v.Reason, want)
				}
			}
			break
		}
	}
	for id, want := range map[string]string{"gw-berlin-01": "v1.2.1", "gw-berlin-05": "v1.0.0", "bench-oslo-01": "v0.1.0", "gw-oslo-03": ""} {
		if got := runs[id].Version; got != want {
			t.Errorf("%s ends on %q, want %q", id, got, want)
		}
	}
}
