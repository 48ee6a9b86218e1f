package preview_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/internal/view"
)

var update = flag.Bool("update", false, "write what is printed into the cases")

// TestCases compares what is printed of small fleets with what stands in the
// case: want.txt of the whole change, diff-<device>.txt of one device.
func TestCases(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) < 5 {
		t.Fatalf("the cases are not there: %v %v", paths, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			c := parseChange(t, archive)
			in := c.input(t)
			plan := preview.Compare(in)
			compared := false
			for i := range archive.Files {
				f := &archive.Files[i]
				var got string
				switch {
				case f.Name == "want.txt":
					got = planText(t, plan)
				case strings.HasPrefix(f.Name, "diff-"):
					got = diffText(t, preview.Look(in, strings.TrimSuffix(strings.TrimPrefix(f.Name, "diff-"), ".txt")))
				default:
					continue
				}
				compared = true
				if *update {
					f.Data = []byte(got)
				} else if d := cmp.Diff(string(f.Data), got); d != "" {
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
			data, err := json.Marshal(plan)
			if err != nil || bytes.Contains(data, []byte("null")) {
				t.Errorf("a list of the JSON is null, or there is none: %v\n%s", err, data)
			}
			again, err := json.Marshal(preview.Compare(c.input(t)))
			if err != nil || !bytes.Equal(data, again) {
				t.Errorf("not the same twice (%v):\n%s\n%s", err, data, again)
			}
		})
	}
}

func planText(t *testing.T, p *preview.Plan) string {
	t.Helper()
	var b bytes.Buffer
	if err := view.WritePlan(&b, p, view.Look{}, true); err != nil {
		t.Fatal(err)
	}
	for _, w := range p.Summary.Warnings {
		b.WriteString("warning: " + w + "\n")
	}
	return trimmed(b.String())
}

func diffText(t *testing.T, d *preview.Device) string {
	t.Helper()
	if d == nil {
		return "no such device\n"
	}
	var b bytes.Buffer
	if err := view.WriteDiff(&b, d, view.Look{}); err != nil {
		t.Fatal(err)
	}
	return trimmed(b.String())
}

// trimmed leaves out spaces at the ends of lines, which editors remove.
func trimmed(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
