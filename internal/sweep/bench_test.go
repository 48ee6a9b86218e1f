package sweep

import (
	"fmt"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// BenchmarkSweepInMemory is one pass over a fleet of which n devices report
// something new, without the cost of git. plan-ns/op is what planning alone
// takes, which goes over all devices; else-ns/op is all the rest.
func BenchmarkSweepInMemory(b *testing.B) {
	for _, size := range []int{1000, 10_000, 20_000} {
		f := newBenchFleet(b, size)
		for _, n := range []int{0, 1, 100} {
			b.Run(fmt.Sprintf("devices=%d/changes=%d", size, n), func(b *testing.B) {
				b.ReportAllocs()
				var planned time.Duration
				for range b.N {
					b.StopTimer()
					f.report(b, n)
					b.StartTimer()
					p, err := f.daemon.Once(b.Context())
					b.StopTimer()
					if err != nil || p.Committed != (n > 0) {
						b.Fatalf("%d changes, committed %v: %v", n, p.Committed, err)
					}
					if n > 0 {
						planned += f.plan()
					}
					b.StartTimer()
				}
				b.ReportMetric(float64(planned)/float64(b.N), "plan-ns/op")
				b.ReportMetric(float64(b.Elapsed()-planned)/float64(b.N), "else-ns/op")
			})
		}
	}
}

// benchFleet is a fleet at rest: all devices are on their target.
type benchFleet struct {
	repo   *memRepo
	daemon *Daemon
	now    time.Time
	round  int64
	busy   bool
}

func newBenchFleet(b *testing.B, size int) *benchFleet {
	f := &benchFleet{repo: newMemRepo(), now: epoch}
	f.repo.push("main", "first", f.now, benchFiles(size))
	f.report(b, size)
	var err error
	f.daemon, err = New(Config{
		Remote: &memRemote{memRepo: f.repo}, Now: func() time.Time { return f.now },
		Uptime: func() (time.Duration, string, error) { return f.now.Sub(epoch), "boot", nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	for range 2 { // the second finds nothing, and notes that the fleet is at rest
		if _, err := f.daemon.Once(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	return f
}

// report lets n devices say that they became busy, or idle again.
func (f *benchFleet) report(b *testing.B, n int) {
	f.round++
	f.now = f.now.Add(time.Second)
	if n > 0 {
		f.busy = !f.busy
	}
	for i := range n {
		f.repo.force(schema.DefaultReportRefs+benchID(i), map[string][]byte{reportFile: benchReport(b, i, f.round, f.busy, f.now)})
	}
}

// plan is how long it takes to plan what the daemon planned last.
func (f *benchFleet) plan() time.Duration {
	s := Scene{Fleet: f.daemon.valid.fleet, Now: f.now}
	in := s.input()
	in.Devices = f.daemon.memory.devices
	start := time.Now()
	planner.Plan(in)
	return time.Since(start)
}

func benchID(i int) string { return fmt.Sprintf("gw-%05d", i) }

func benchPath(i int) string { return fmt.Sprintf("devices/site-%03d/%s.yaml", i/100, benchID(i)) }

// benchFiles is a fleet with sites of a hundred devices.
func benchFiles(n int) map[string]string {
	files := map[string]string{
		"policies/gateways.yaml":        "apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: gateways}\nspec: {enabled: true, targetVersion: v1.0.0}\n",
		"releases/gateways/v1.0.0.yaml": "apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.0.0}\nspec:\n  files:\n    /etc/version: {content: \"v1.0.0\\n\"}\n",
	}
	for i := range n {
		files[benchPath(i)] = fmt.Sprintf("apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: %s, labels: {role: gateway}}\nspec: {}\n", benchID(i))
	}
	return files
}

// benchReport is of a device on its target.
func benchReport(tb testing.TB, i int, seq int64, busy bool, now time.Time) []byte {
	data, err := schema.Encode(&schema.Report{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindReport},
		Metadata: schema.Metadata{Name: benchID(i)}, InstallID: "install", Sequence: seq, AgentVersion: "v0.1.0", ProtocolVersion: 1,
		Capabilities: []string{"files"}, HeartbeatInterval: schema.Duration(24 * time.Hour),
		Current: schema.SpecRef{Version: "v1.0.0"}, Phase: schema.PhaseUpdated, Busy: busy, ReportedAt: now,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return data
}
