package agreement

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// benchDevices is how many devices are validated.
const benchDevices = 10_000

// measureEnv names the file into which a measuring process writes its figures.
const measureEnv = "GITOPSD_AGREEMENT_MEASURE"

// cost is what one run of a program took.
type cost struct {
	Wall, CPU time.Duration
	// Anonymous is the most memory in KiB that it took from the machine, and
	// Resident that with the pages of its executable: those belong to the page
	// cache, which has them once for all processes and gives them back.
	Anonymous, Resident int64
}

// TestMain lets this binary stand between the tests and what they measure: the
// peak that Linux gives of a process begins with that of the one which started
// it, and one that only does this is small.
func TestMain(m *testing.M) {
	file := os.Getenv(measureEnv)
	if file == "" {
		os.Exit(m.Run())
	}
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Env = append(os.Environ(), measureEnv+"=")
	figures, err := costOf(cmd)
	if err == nil {
		err = os.WriteFile(file, figures, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// costOf runs a program and gives its cost as JSON.
func costOf(cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended, peak := make(chan struct{}), make(chan int64)
	go func() { peak <- anonymous(cmd.Process.Pid, ended) }()
	err := cmd.Wait()
	wall := time.Since(start)
	close(ended)
	c := cost{Wall: wall, CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), Anonymous: <-peak}
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, &out)
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.Resident = usage.Maxrss
	}
	return json.Marshal(c)
}

// anonymous looks at a process until it has ended: the kernel remembers a peak
// of its resident memory only. 0: not on Linux.
func anonymous(pid int, ended <-chan struct{}) (peak int64) {
	for {
		select {
		case <-ended:
			return peak
		case <-time.After(lookEvery):
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if _, after, ok := bytes.Cut(status, []byte("RssAnon:")); ok {
			var now int64
			if _, err := fmt.Sscan(string(after), &now); err == nil {
				peak = max(peak, now)
			}
		}
	}
}

// lookEvery is a thousandth of what a run takes.
const lookEvery = time.Millisecond

func measure(b *testing.B, program string, args ...string) (c cost) {
	b.Helper()
	file := filepath.Join(b.TempDir(), "cost")
	cmd := exec.Command(os.Args[0], append([]string{program}, args...)...)
	cmd.Env = append(os.Environ(), measureEnv+"="+file)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", program, err, out)
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// benchFleet writes a fleet of 10,000 devices at 100 sites, each with an
// overlay of its own.
func benchFleet(b *testing.B, dir string) {
	b.Helper()
	write := func(name, kind, metadata, spec string) {
		writeFile(b, filepath.Join(dir, name), []byte("apiVersion: gitopsd.dev/v1alpha1\nkind: "+kind+"\nmetadata:\n  name: "+metadata+"\nspec:\n"+spec))
	}
	write("policies/gateways.yaml", "Policy", "gateways", "  enabled: true\n  targetVersion: v1.5.0\n  maxInFlight: 10%\n")
	write("releases/gateways/v1.5.0.yaml", "Release", "v1.5.0", "  files:\n    /etc/edge/edge.conf: {source: files/edge.conf, template: true}\n")
	writeFile(b, filepath.Join(dir, "files/edge.conf"), []byte("name = {{ .device.name }}\ndns = {{ .vars.dns }}\n"))
	for i := range 100 {
		site := fmt.Sprintf("site-%02d", i)
		write("overlays/"+site+".yaml", "Overlay", site, fmt.Sprintf("  selector: {matchLabels: {site: %s}}\n  order: 10\n  vars: {dns: 192.0.2.%d}\n", site, i))
	}
	for i := range benchDevices {
		site, id := fmt.Sprintf("site-%02d", i%100), fmt.Sprintf("gw-%05d", i)
		write("devices/"+site+"/"+id+".yaml", "Device", id+"\n  labels:\n    role: gateway\n    site: "+site+"\n    ring: stable\n    model: edge-300",
			fmt.Sprintf("  vars:\n    channel: \"7\"\n    rack: \"%d\"\n  desired:\n    files:\n      /etc/edge/local.conf:\n        content: |\n          name=%s\n          number=%d\n        mode: \"0644\"\n        owner: root\n        group: root\n", i%20, id, i))
	}
}

// BenchmarkValidateBesideKubeconform runs both over the same files with the
// same schema, one after the other, and gives the ratios: files per second,
// the same by the processors' time, and the memory. Kubeconform only
// compares each file with its schema; validate also renders all devices.
func BenchmarkValidateBesideKubeconform(b *testing.B) {
	theirs, ours := kubeconform(b), gitopsd(b)
	dir := b.TempDir()
	benchFleet(b, dir)
	location := filepath.Join(writeSchemas(b, b.TempDir()), "{{.ResourceKind}}.json")
	var mine, other cost
	add := func(to *cost, c cost) {
		to.Wall, to.CPU = to.Wall+c.Wall, to.CPU+c.CPU
		to.Anonymous, to.Resident = max(to.Anonymous, c.Anonymous), max(to.Resident, c.Resident)
	}
	runs := 0
	for b.Loop() {
		add(&other, measure(b, theirs, "-strict", "-summary", "-schema-location", location, filepath.Join(dir, "devices")))
		add(&mine, measure(b, ours, "validate", dir))
		runs++
	}
	perSecond := func(c cost) float64 { return float64(benchDevices*runs) / c.Wall.Seconds() }
	b.ReportMetric(perSecond(mine), "files/s")
	b.ReportMetric(perSecond(other), "kubeconform-files/s")
	b.ReportMetric(perSecond(mine)/perSecond(other), "times-its-speed")
	b.ReportMetric(other.CPU.Seconds()/mine.CPU.Seconds(), "times-less-CPU")
	b.ReportMetric(float64(mine.Anonymous)/1024, "MiB")
	b.ReportMetric(float64(other.Anonymous)/1024, "kubeconform-MiB")
	b.ReportMetric(float64(mine.Anonymous)/float64(other.Anonymous), "of-its-memory")
	b.ReportMetric(float64(mine.Resident)/1024, "MiB-resident")
	b.ReportMetric(float64(other.Resident)/1024, "kubeconform-MiB-resident")
}

// BenchmarkWarmBesideKubeconform is a loader that knows the revision before,
// as the daemon and plan do, when one of the devices has changed.
func BenchmarkWarmBesideKubeconform(b *testing.B) {
	theirs := kubeconform(b)
	dir := b.TempDir()
	benchFleet(b, dir)
	location := filepath.Join(writeSchemas(b, b.TempDir()), "{{.ResourceKind}}.json")
	other := measure(b, theirs, "-strict", "-summary", "-schema-location", location, filepath.Join(dir, "devices"))
	src, err := schema.DirSource(dir)
	if err != nil {
		b.Fatal(err)
	}
	entries, err := src.Entries()
	if err != nil {
		b.Fatal(err)
	}
	var loader schema.Loader
	loaded := func() {
		fleet, err := loader.Load(listed{src, entries})
		if err != nil || !fleet.Valid() {
			b.Fatal(err, fleet)
		}
	}
	start := time.Now()
	loaded()
	cold := time.Since(start)
	for n := 0; b.Loop(); n++ {
		entries[len(entries)/2].ID = fmt.Sprint(n) // of a device
		loaded()
	}
	warm := b.Elapsed() / time.Duration(b.N)
	b.ReportMetric(cold.Seconds()/warm.Seconds(), "times-a-cold-load")
	b.ReportMetric(other.Wall.Seconds()/warm.Seconds(), "times-kubeconform")
}

// listed is a source whose entries are known, as those of git are.
type listed struct {
	schema.Source
	entries []schema.Entry
}

func (l listed) Entries() ([]schema.Entry, error) { return l.entries, nil }
