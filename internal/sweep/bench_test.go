package sweep

import (
	"fmt"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

const benchDevices = 10_000

// BenchmarkSweepInMemory is one pass over 10,000 devices of which n report
// something new, without the cost of git: what the pass itself takes.
func BenchmarkSweepInMemory(b *testing.B) {
	for _, n := range []int{0, 1, 100} {
		b.Run(fmt.Sprintf("changes=%d", n), func(b *testing.B) {
			now := epoch
			repo := newMemRepo()
			repo.push("main", "first", now, benchFleet(benchDevices))
			for i := range benchDevices {
				repo.force(schema.DefaultReportRefs+benchID(i), map[string][]byte{reportFile: benchReport(b, i, 1, false, now)})
			}
			d, err := New(Config{
				Remote: &memRemote{memRepo: repo}, Now: func() time.Time { return now },
				Uptime: func() (time.Duration, string, error) { return now.Sub(epoch), "boot", nil },
			})
			if err != nil {
				b.Fatal(err)
			}
			once := func() Pass {
				p, err := d.Once(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				return p
			}
			once()
			once() // finds nothing, and notes that the fleet is at rest
			round := int64(1)
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				round++
				now = now.Add(time.Second)
				for i := range n {
					repo.force(schema.DefaultReportRefs+benchID(i), map[string][]byte{reportFile: benchReport(b, i, round, round%2 == 0, now)})
				}
				b.StartTimer()
				if p := once(); p.Committed != (n > 0) {
					b.Fatalf("%d changes, committed %v", n, p.Committed)
				}
			}
		})
	}
}

func benchID(i int) string { return fmt.Sprintf("gw-%05d", i) }

func benchPath(i int) string { return fmt.Sprintf("devices/site-%03d/%s.yaml", i/100, benchID(i)) }

// benchFleet is a fleet with sites of a hundred devices.
func benchFleet(n int) map[string]string {
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
