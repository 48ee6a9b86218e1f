//go:build system

package systemtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// On a full disk a report of before stays whole, nothing is left beside it, and
// the error says which report it was; the summary of a step ends where it did.
func TestSystemReportsOnAFullDisk(t *testing.T) {
	b := newBench(t)
	disk := b.tmpfs("disk", "size=64k")
	fleet := b.path("fleet")
	if code, out := b.run("init", fleet); code != 0 {
		t.Fatalf("init: %d\n%s", code, out)
	}
	writeFile(t, filepath.Join(fleet, "policies/gateways.yaml"), strings.Repeat("wrong: [\n", 10), 0o644)
	report, summary := filepath.Join(disk, "report"), filepath.Join(disk, "summary")
	writeFile(t, report, "before", 0o644)
	const page = 4096 // what is behind it takes another page of the disk
	begun := strings.Repeat("begun\n", page/6)
	writeFile(t, summary, begun, 0o644)
	fill(b, disk)
	for _, form := range []string{"text", "junit", "sarif", "json"} {
		code, out := b.run("validate", fleet, "-o", form+"="+report)
		if code != 1 || !strings.Contains(out, "cannot write the "+form+" report to "+report) || !strings.Contains(out, "no space left on device") {
			t.Errorf("%s: exit code %d\n%s", form, code, out)
		}
		if data, err := os.ReadFile(report); err != nil || string(data) != "before" {
			t.Errorf("%s: the report of before is %q, %v", form, data, err)
		}
	}
	b.env = append(b.env, "GITHUB_STEP_SUMMARY="+summary)
	code, out := b.run("validate", fleet, "-o", "github")
	if data, err := os.ReadFile(summary); err != nil || string(data) != begun || code != 3 || !strings.Contains(out, "warning: no summary of the step: ") {
		t.Errorf("exit code %d, the summary has %d bytes of %d, %v\n%s", code, len(data), len(begun), err, out)
	}
	left, err := os.ReadDir(disk)
	if err != nil || len(left) > 3 {
		t.Errorf("left are %v, %v", left, err)
	}
}
