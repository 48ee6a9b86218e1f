package simulate_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/gitopsd/gitopsd/internal/simulate"
	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

var update = flag.Bool("update", false, "write what is printed into the cases")

// TestCases compares what is printed of small fleets with what stands in the
// case: want.txt without a limit of the width, want-<width>.txt with one,
// want.json the document.
func TestCases(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) < 6 {
		t.Fatalf("the cases are not there: %v %v", paths, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			doc := simulated(t, archive)
			compared := false
			for i := range archive.Files {
				f := &archive.Files[i]
				name, isWant := strings.CutPrefix(f.Name, "want")
				if !isWant {
					continue
				}
				compared = true
				var b bytes.Buffer
				if name == ".json" {
					enc := json.NewEncoder(&b)
					enc.SetIndent("", " ")
					err = enc.Encode(doc)
				} else {
					width, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(name, "-"), ".txt"))
					err = view.WriteSimulation(&b, doc, view.Look{Width: width})
				}
				if err != nil {
					t.Fatal(err)
				}
				if *update {
					f.Data = b.Bytes()
				} else if d := cmp.Diff(string(f.Data), b.String()); d != "" {
					t.Errorf("%s (-want +got)\n%s", f.Name, d)
				}
			}
			if !compared {
				t.Fatal("the case wants nothing")
			}
			if *update {
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

var goldenNow = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC) // a Sunday

// simulated reads a case: policies/<name>.yaml and fleet.yaml, of each only the
// spec; devices.txt with a line for each device, "id label=value … : what it is
// now"; and assumptions.yaml.
func simulated(t *testing.T, archive *txtar.Archive) *simulate.Simulation {
	t.Helper()
	const head = "apiVersion: gitopsd.dev/v1alpha1\nkind: %s\n"
	files := memory{}
	cfg := simulate.Config{BadRelease: true}
	states := map[string][]string{}
	for _, f := range archive.Files {
		text := string(f.Data)
		switch {
		case f.Name == "fleet.yaml":
			files[f.Name] = fmt.Sprintf(head, "Fleet") + text
		case strings.HasPrefix(f.Name, "policies/"):
			name := strings.TrimSuffix(filepath.Base(f.Name), ".yaml")
			files[f.Name] = fmt.Sprintf(head+"metadata: {name: %s}\n", "Policy", name) + text
			files["releases/"+name+"/v1.5.0.yaml"] = fmt.Sprintf(head+"metadata: {name: v1.5.0}\nspec: {files: {/etc/a: {content: a}}}\n", "Release")
		case f.Name == "devices.txt":
			for line := range strings.Lines(text) {
				id, what := device(t, files, strings.TrimSpace(line))
				states[id] = what
			}
		case f.Name == "assumptions.yaml":
			if err := yaml.UnmarshalStrict(f.Data, &cfg.Assume); err != nil {
				t.Fatal(err)
			}
		}
	}
	var loader schema.Loader
	fleet, err := loader.Load(files)
	if err != nil || !fleet.Valid() {
		t.Fatalf("the fleet of the case is not valid: %v %+v", err, fleet.Problems)
	}
	cfg.Input = sweep.PlannerInput(sweep.Scene{Fleet: fleet, Now: goldenNow, OwnVersion: "v1.5.0"})
	for i := range cfg.Input.Devices {
		set(t, &cfg.Input.Devices[i], states[cfg.Input.Devices[i].ID])
	}
	doc, err := simulate.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// device adds the document of a device, and gives what it is now.
func device(t *testing.T, files memory, line string) (id string, what []string) {
	t.Helper()
	left, right, _ := strings.Cut(line, ":")
	words := strings.Fields(left)
	var labels []string
	for _, label := range words[1:] {
		key, value, _ := strings.Cut(label, "=")
		labels = append(labels, fmt.Sprintf("%s: %q", key, value))
	}
	id = words[0]
	files["devices/"+id+".yaml"] = fmt.Sprintf("apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: %s, labels: {%s}}\n", id, strings.Join(labels, ", "))
	return id, strings.Fields(right)
}

func set(t *testing.T, d *planner.Device, what []string) {
	t.Helper()
	for _, word := range what {
		switch word {
		case "offline":
			d.Online, d.LastSeen = false, goldenNow.Add(-2*time.Hour)
		case "busy":
			d.Busy = true
		case "held":
			d.HeldReason = "disk being replaced"
		case "current":
			d.Version, d.Digest = d.Target.Version, d.Target.Digest
		case "observes":
			d.Observes = true
		case "newer":
			d.Version = "v1.6.0"
		default:
			t.Fatalf("a device cannot be %q", word)
		}
	}
}

// memory is a fleet repository in memory.
type memory map[string]string

func (m memory) Entries() ([]schema.Entry, error) {
	var entries []schema.Entry
	for path, content := range m {
		entries = append(entries, schema.Entry{Path: path, ID: strings.TrimPrefix(schema.PayloadDigest([]byte(content)), "sha256:"), Size: int64(len(content))})
	}
	slices.SortFunc(entries, func(a, b schema.Entry) int { return strings.Compare(a.Path, b.Path) })
	return entries, nil
}

func (m memory) Read(e schema.Entry, _ int64) ([]byte, error) { return []byte(m[e.Path]), nil }
