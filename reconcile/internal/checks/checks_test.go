package checks

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

func TestRequires_TellsAllThatIsMissing(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	good := &schema.Requires{
		Commands: []string{"sh", "/bin/sh"}, Paths: []string{"/etc", "/link"}, Arch: []string{"none", runtime.GOARCH},
		MinAgentVersion: "v0.1.0", Kernel: "2.6",
	}
	if err := Requires(root, "v0.1.0", good); err != nil {
		t.Errorf("all is there: %v", err)
	}
	if err := Requires(root, "", nil); err != nil {
		t.Errorf("nothing is required: %v", err)
	}
	bad := &schema.Requires{
		Commands: []string{"no-such-command", "/no/such/command", "./x"}, Paths: []string{"/no/such/path", "/etc/passwd", "relative"},
		Arch: []string{"z80"}, MinAgentVersion: "v2.0.0", Kernel: "999.1",
	}
	err := Requires(root, "v1.9.9", bad)
	if failure.From(err).Class != schema.ClassPermanent {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"no-such-command", "/no/such/command", "./x", "/no/such/path", "/etc/passwd", "relative", "z80", runtime.GOARCH, "v2.0.0", "v1.9.9", "999.1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not told: %v", want, err)
		}
	}
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		have, least string
		old         bool
	}{
		{"v1.10.0", "v1.9.0", false}, {"v1.9.0", "v1.10.0", true}, {"v1.0.0-rc.1", "v1.0.0", true}, {"1.0.0", "v1.0.0", false},
		{"dev", "v1.0.0", true}, {"v1.0.0", "newest", true}, {"", "v0.0.1", true},
	} {
		if got := tooOld(c.have, c.least) != ""; got != c.old {
			t.Errorf("agent %q for %q: too old is %v", c.have, c.least, got)
		}
	}
	for _, c := range []struct {
		have, least string
		old         bool
	}{
		{"6.8.0-31-generic", "6.8", false}, {"6.8.0-31-generic", "6.8.1", true}, {"6.8.0-31-generic", "6.10", true}, {"6.10", "6.8", false},
		{"6.1.0+rpt", "6.1", false}, {"5", "5.0", false}, {"5.10.3", "5.10.3.1", true}, {"6.8", "6.x", true}, {"6.8", "", true},
		{"6.8", "6.8-rc1", true}, {"", "1", true}, {"6.99999999999999999999", "6.1", true},
	} {
		if got := kernelTooOld(c.have, c.least) != ""; got != c.old {
			t.Errorf("kernel %q for %q: too old is %v", c.have, c.least, got)
		}
	}
}

func TestB67_RoomIsAskedBeforeAnUpdate(t *testing.T) {
	root := t.TempDir()
	if err := Disk(root, nil, 0); err != nil {
		t.Skipf("this machine is full itself: %v", err)
	}
	for _, c := range []struct {
		d    *schema.DiskResource
		need int64
		want schema.FailureClass
	}{
		{nil, math.MaxInt64, schema.ClassRetryable},
		{nil, math.MinInt64, ""},
		{&schema.DiskResource{MinFree: "1k", Path: "/not/there/yet"}, 1, ""},
		{&schema.DiskResource{MinFree: "1k"}, 1, ""},
		{&schema.DiskResource{}, 1, ""},
		{&schema.DiskResource{MinFree: "9000000000G"}, 0, schema.ClassRetryable},
		{&schema.DiskResource{MinFree: "much"}, 0, schema.ClassPermanent},
		{&schema.DiskResource{MinFree: "1k", Path: "var"}, 0, schema.ClassPermanent},
	} {
		err := Disk(root, c.d, c.need)
		if got := failure.From(err); (err == nil) != (c.want == "") || (err != nil && got.Class != c.want) {
			t.Errorf("%+v, need %d: %v, want %q", c.d, c.need, err, c.want)
		}
	}
	if Free(root) <= 0 || Free(root+"/no/such") != 0 {
		t.Errorf("free: %d, %d", Free(root), Free(root+"/no/such"))
	}
}
