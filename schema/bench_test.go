package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// bigFleet writes a fleet of n devices on 100 sites, each site with an overlay.
func bigFleet(n int) *fakeSource {
	s := &fakeSource{files: map[string]string{}, modes: map[string]EntryMode{}}
	head := func(kind, name string) string {
		return fmt.Sprintf("apiVersion: gitopsd.dev/v1alpha1\nkind: %s\nmetadata:\n  name: %s\n", kind, name)
	}
	s.files["policies/gateways.yaml"] = head("Policy", "gateways") + "spec:\n  enabled: true\n  targetVersion: v1.5.0\n  maxInFlight: 10%\n"
	s.files["releases/gateways/v1.5.0.yaml"] = head("Release", "v1.5.0") + `spec:
  files:
    /etc/edge/edge.conf: {source: files/edge.conf, mode: "0640", template: true}
    /etc/edge/static.conf: {source: files/static.conf}
  hooks:
    afterUpdating:
      check: {run: [/usr/bin/edge-check], timeout: 30s}
`
	s.files["files/edge.conf"] = "name = {{ .device.name }}\ndns = {{ .vars.dns }}\n"
	s.files["files/static.conf"] = "static\n"
	for i := range 100 {
		name := fmt.Sprintf("site-%02d", i)
		s.files["overlays/"+name+".yaml"] = head("Overlay", name) + fmt.Sprintf("spec:\n  selector: {matchLabels: {site: %s}}\n  order: 10\n  vars: {dns: 192.0.2.%d}\n", name, i)
	}
	for i := range n {
		id := fmt.Sprintf("gw-%05d", i)
		site := fmt.Sprintf("site-%02d", i%100)
		s.files["devices/"+site+"/"+id+".yaml"] = fmt.Sprintf(`# gateway %d
apiVersion: gitopsd.dev/v1alpha1
kind: Device
metadata:
  name: %s
  labels:
    role: gateway
    site: %s
    ring: stable
    model: edge-300
spec:
  vars:
    channel: "7"
    rack: "%d"
  desired:
    files:
      /etc/edge/local.conf:
        content: |
          name=%s
          number=%d
        mode: "0644"
        owner: root
        group: root
`, i, id, site, i%20, id, i)
	}
	return s
}

func writeTree(b *testing.B, s *fakeSource) string {
	b.Helper()
	dir := b.TempDir()
	for p, text := range s.files {
		full := filepath.Join(dir, p)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

// BenchmarkRead10000 is the reference: the same files, only read.
func BenchmarkRead10000(b *testing.B) {
	dir := writeTree(b, bigFleet(10_000))
	for b.Loop() {
		src, err := DirSource(dir)
		if err != nil {
			b.Fatal(err)
		}
		entries, err := src.Entries()
		if err != nil {
			b.Fatal(err)
		}
		for _, e := range entries {
			if _, err := src.Read(e, maxDocument); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkValidate10000 reads, checks and renders 10,000 devices from
// nothing, from a folder.
func BenchmarkValidate10000(b *testing.B) {
	dir := writeTree(b, bigFleet(10_000))
	b.ReportAllocs()
	for b.Loop() {
		src, err := DirSource(dir)
		if err != nil {
			b.Fatal(err)
		}
		f, err := new(Loader).Load(src)
		if err != nil || !f.Valid() || f.Files != 10_102 {
			b.Fatalf("%d files, %v, %s", f.Files, err, lines(f.Problems))
		}
	}
}

// BenchmarkLoadOneChanged is a Load after one of 10,000 devices changed.
func BenchmarkLoadOneChanged(b *testing.B) {
	src := bigFleet(10_000)
	var l Loader
	if _, err := l.Load(src); err != nil {
		b.Fatal(err)
	}
	const changed = "devices/site-07/gw-00007.yaml"
	text := src.files[changed]
	entries, err := src.Entries()
	if err != nil {
		b.Fatal(err)
	}
	at := 0
	for i := range entries {
		if entries[i].Path == changed {
			at = i
		}
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		src.files[changed] = fmt.Sprintf("# %d\n%s", n, text)
		entries[at].ID = gitID(src.files[changed])
		entries[at].Size = -1
		f, err := l.Load(listed{src, entries})
		if err != nil || !f.Valid() {
			b.Fatal(err, lines(f.Problems))
		}
	}
}

// listed is a source whose entries are known, as those of git are.
type listed struct {
	*fakeSource
	entries []Entry
}

func (s listed) Entries() ([]Entry, error) { return s.entries, nil }

// BenchmarkProblems10000 is BenchmarkValidate10000 for those who keep nothing.
func BenchmarkProblems10000(b *testing.B) {
	dir := writeTree(b, bigFleet(10_000))
	b.ReportAllocs()
	for b.Loop() {
		src, err := DirNames(dir)
		if err != nil {
			b.Fatal(err)
		}
		f, err := (&Loader{ProblemsOnly: true, Readers: runtime.GOMAXPROCS(0)}).Load(src)
		if err != nil || !f.Valid() || f.Files != 10_102 {
			b.Fatalf("%d files, %v, %s", f.Files, err, lines(f.Problems))
		}
	}
}
