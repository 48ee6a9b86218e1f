//go:build unix

package sweep_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

// BenchmarkSweepOnGit is one pass over the devices of a bare repository on
// disk of which n report something new, and beside it stock git making the
// same commit: as many files of the same size, on the same branch. user-ns/op
// is the processor time of this process, without what the kernel needs; it says
// more on a machine that does other things as well.
func BenchmarkSweepOnGit(b *testing.B) {
	if _, err := exec.LookPath("git"); err != nil {
		b.Skip("git is not installed")
	}
	for _, devices := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("devices=%d", devices), func(b *testing.B) { benchmarkSweepOnGit(b, devices) })
	}
}

func benchmarkSweepOnGit(b *testing.B, devices int) {
	f := newGitFleet(b, devices)
	for _, n := range []int{0, 1, 100} {
		b.Run(fmt.Sprintf("changes=%d/gitopsd", n), func(b *testing.B) {
			var used time.Duration
			for range b.N {
				b.StopTimer()
				f.report(n)
				before := userTime()
				b.StartTimer()
				p, err := f.daemon.Once(b.Context())
				b.StopTimer()
				used += userTime() - before
				if err != nil {
					b.Fatal(err)
				}
				if p.Committed != (n > 0) {
					b.Fatalf("%d changes, committed %v", n, p.Committed)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(used)/float64(b.N), "user-ns/op")
		})
		if n == 0 {
			continue
		}
		b.Run(fmt.Sprintf("changes=%d/git", n), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				stream := f.sameCommit(n)
				b.StartTimer()
				f.git(stream, "fast-import", "--quiet", "--force")
			}
		})
	}
}

// BenchmarkBecauseOnGit is one pass over a fleet of which one device gets
// another spec by a commit that others came after: the history is gone back
// through for it. With none after it, the pass is what it costs without.
func BenchmarkBecauseOnGit(b *testing.B) {
	if _, err := exec.LookPath("git"); err != nil {
		b.Skip("git is not installed")
	}
	f := newGitFleet(b, 10_000)
	device := 0
	for _, later := range []int{0, 100, 900} {
		b.Run(fmt.Sprintf("commits=%d", later), func(b *testing.B) {
			var used time.Duration
			for range b.N {
				b.StopTimer()
				f.assign(device, later)
				device++
				before := userTime()
				b.StartTimer()
				p, err := f.daemon.Once(b.Context())
				b.StopTimer()
				used += userTime() - before
				if err != nil || len(p.Assigned) != 1 {
					b.Fatalf("assigned %+v: %v", p.Assigned, err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(used)/float64(b.N), "user-ns/op")
		})
	}
}

// assign gives a device another spec, lets it be idle, which the others are
// not, and makes commits that change nothing after that.
func (f *gitFleet) assign(device, later int) {
	f.round++
	f.now = f.now.Add(time.Second)
	var s bytes.Buffer
	f.commit(&s, "refs/heads/main", strings.TrimSpace(f.git(nil, "rev-parse", "refs/heads/main")), "another file")
	f.file(&s, devicePath(device), fmt.Sprintf("apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: %s, labels: {role: gateway}}\nspec: {desired: {files: {/etc/own: {content: own}}}}\n", deviceID(device)))
	f.file(&s, "policies/gateways.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: gateways}\nspec: {enabled: true, targetVersion: v1.0.0, maxInFlight: 100%}\n")
	for i := range later {
		f.commit(&s, "refs/heads/main", "", "a word")
		f.file(&s, "docs/word.md", fmt.Sprintf("%d %d\n", f.round, i))
	}
	f.says(&s, device, "v0.9.0", false)
	f.git(&s, "fast-import", "--quiet", "--force")
}

func userTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano())
}

type gitFleet struct {
	b      *testing.B
	dir    string
	now    time.Time
	round  int
	busy   bool
	daemon *sweep.Daemon
}

func newGitFleet(b *testing.B, devices int) *gitFleet {
	f := &gitFleet{b: b, dir: filepath.Join(b.TempDir(), "fleet.git"), now: time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)}
	f.git(nil, "init", "--quiet", "--bare", "-b", "main", f.dir)
	var s bytes.Buffer
	f.commit(&s, "refs/heads/main", "", "first")
	f.file(&s, "policies/gateways.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: gateways}\nspec: {enabled: true, targetVersion: v1.0.0}\n")
	f.file(&s, "releases/gateways/v1.0.0.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.0.0}\nspec:\n  files:\n    /etc/version: {content: \"v1.0.0\\n\"}\n")
	for i := range devices {
		f.file(&s, devicePath(i), fmt.Sprintf("apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: %s, labels: {role: gateway}}\nspec: {}\n", deviceID(i)))
	}
	f.git(&s, "fast-import", "--quiet")
	f.report(devices)
	f.git(nil, "pack-refs", "--all")
	r, err := repo.Open(repo.Config{URL: f.dir})
	if err != nil {
		b.Fatal(err)
	}
	f.daemon, err = sweep.New(sweep.Config{
		Remote: r, Now: func() time.Time { return f.now },
		Uptime: func() (time.Duration, string, error) { return time.Duration(f.round) * time.Second, "boot", nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	for range 2 { // the second finds nothing, and notes that the fleet is at rest
		if p, err := f.daemon.Once(b.Context()); err != nil || len(p.Stops) > 0 {
			b.Fatalf("the first sweeps: %v, %+v", err, p.Stops)
		}
	}
	return f
}

func deviceID(i int) string { return fmt.Sprintf("gw-%05d", i) }

func devicePath(i int) string { return fmt.Sprintf("devices/site-%03d/%s.yaml", i/100, deviceID(i)) }

// report lets n devices say that they became busy, or idle again.
func (f *gitFleet) report(n int) {
	f.round++
	f.now = f.now.Add(time.Second)
	if n == 0 {
		return
	}
	f.busy = !f.busy
	var s bytes.Buffer
	for i := range n {
		f.says(&s, i, "v1.0.0", f.busy)
	}
	f.git(&s, "fast-import", "--quiet", "--force")
}

// says writes a device's report.
func (f *gitFleet) says(s *bytes.Buffer, device int, version string, busy bool) {
	data, err := schema.Encode(&schema.Report{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindReport},
		Metadata: schema.Metadata{Name: deviceID(device)}, InstallID: "install", Sequence: int64(f.round), AgentVersion: "v0.1.0", ProtocolVersion: 1,
		Capabilities: []string{"files"}, HeartbeatInterval: schema.Duration(24 * time.Hour),
		Current: schema.SpecRef{Version: version}, Phase: schema.PhaseUpdated, Busy: busy, ReportedAt: f.now,
	})
	if err != nil {
		f.b.Fatal(err)
	}
	ref := schema.DefaultReportRefs + deviceID(device)
	fmt.Fprintf(s, "reset %s\n\n", ref)
	f.commit(s, ref, "", "report")
	f.file(s, "report.yaml", string(data))
}

// sameCommit changes n status files on a branch of its own, which starts as
// the status branch.
func (f *gitFleet) sameCommit(n int) *bytes.Buffer {
	f.round++
	from := strings.TrimSpace(f.git(nil, "rev-parse", "refs/heads/"+schema.DefaultStatusBranch))
	old := f.git(nil, "show", from+":"+devicePath(0))
	var s bytes.Buffer
	f.commit(&s, "refs/heads/reference", from, "status")
	for i := range n {
		f.file(&s, devicePath(i), old+fmt.Sprintf("# %d\n", f.round))
	}
	f.file(&s, "fleet.yaml", fmt.Sprintf("# %d\n", f.round))
	return &s
}

func (f *gitFleet) commit(s *bytes.Buffer, ref, from, message string) {
	fmt.Fprintf(s, "commit %s\ncommitter bench <bench@example.com> %d +0000\ndata %d\n%s\n", ref, f.now.Unix()+int64(f.round), len(message), message)
	if from != "" {
		fmt.Fprintf(s, "from %s\n", from)
	}
}

func (f *gitFleet) file(s *bytes.Buffer, path, content string) {
	fmt.Fprintf(s, "M 100644 inline %s\ndata %d\n%s\n", path, len(content), content)
}

func (f *gitFleet) git(in *bytes.Buffer, args ...string) string {
	f.b.Helper()
	cmd := exec.Command("git", args...)
	if args[0] != "init" {
		cmd = exec.Command("git", append([]string{"-C", f.dir}, args...)...)
	}
	if in != nil {
		cmd.Stdin = in
	}
	out, err := cmd.Output()
	if err != nil {
		f.b.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}
