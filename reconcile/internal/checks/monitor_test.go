package checks

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

func file(t *testing.T, content string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMemory(t *testing.T) {
	for _, c := range []struct {
		m    *schema.MemoryResource
		want schema.FailureClass
	}{
		{nil, ""}, {&schema.MemoryResource{}, ""}, {&schema.MemoryResource{MinAvailable: "1k"}, ""},
		{&schema.MemoryResource{MinAvailable: "9000000000G"}, schema.ClassRetryable}, {&schema.MemoryResource{MinAvailable: "much"}, schema.ClassPermanent},
	} {
		if err := Memory(c.m); (err == nil) != (c.want == "") || (err != nil && failure.From(err).Class != c.want) {
			t.Errorf("%+v: %v, want %q", c.m, err, c.want)
		}
	}
	total, available, err := memory(file(t, "MemTotal:        8000 kB\nMemFree:          1 kB\nMemAvailable:    2000 kB\nHugePages_Total:       0\n"))
	if total != 8000<<10 || available != 2000<<10 || err != nil {
		t.Errorf("%d, %d, %v", total, available, err)
	}
	for _, text := range []string{"", "MemTotal: 8000 kB\nMemFree: 1 kB\n", "MemTotal: x kB\nMemAvailable: 1 kB\n", "MemTotal: 99999999999999999999 kB\nMemAvailable: 1 kB\n", "MemTotal: -1 kB\nMemAvailable: 1 kB\n"} {
		if _, _, err := memory(file(t, text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	if _, _, err := memory("/no/such"); err == nil {
		t.Error("without the file: no error")
	}
}

func TestUsed(t *testing.T) {
	root, err := disk.Open(t.TempDir(), disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, m := range []schema.Monitor{{Of: "disk"}, {Of: "disk", Path: "/not/there/yet"}, {Of: "memory"}} {
		if n, err := Used(root, &m); err != nil || n < 1 || n > 100 {
			t.Errorf("%+v: %d, %v", m, n, err)
		}
	}
	if n, err := Used(root, &schema.Monitor{Of: "load"}); err != nil || n < 0 {
		t.Errorf("load: %d, %v", n, err)
	}
	for _, m := range []schema.Monitor{{}, {Of: "luck"}, {Of: "disk", Path: "relative"}} {
		if _, err := Used(root, &m); err == nil {
			t.Errorf("%+v: no error", m)
		}
	}
	for text, want := range map[string]int{"0.10 3.00 0.00 1/200 7\n": 150, "0 0.001 0": 1, "9 1e300 9": mostShare} {
		if n, err := load(file(t, text), 2); err != nil || n != want {
			t.Errorf("load %q: %d, %v, want %d", text, n, err, want)
		}
	}
	for _, text := range []string{"", "1", "1 x 1", "1 -1 1", "1 NaN 1"} {
		if n, err := load(file(t, text), 2); err == nil {
			t.Errorf("load %q: %d, and no error", text, n)
		}
	}
	if n := share(1, 0); n != 0 || share(math.Inf(1), 1) != mostShare || share(1, 3) != 34 {
		t.Error("shares")
	}
	if _, err := load("/no/such", 1); err == nil || !strings.Contains(err.Error(), "/no/such") {
		t.Errorf("%v", err)
	}
}
