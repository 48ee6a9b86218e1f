package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

const (
	benchDevice = "gw-bench-01"
	// benchInterval is between polls here, so that a run sees many of them.
	benchInterval = 100 * time.Millisecond
	// benchPolls is how many no-op polls are measured.
	benchPolls = 30
	// benchPatience bounds each wait for the agent.
	benchPatience = time.Minute
	// benchRest is after an update until all of it has been reported.
	benchRest = 2 * time.Second
	// benchRefs are the refs of other devices in the same repository.
	benchRefs = 10_000
)

// benchedAgent is an agent of one device in a repository with the refs of
// [benchRefs] others, over http, and a clone by git of what it reads.
type benchedAgent struct {
	*exec.Cmd
	b       *testing.B
	srv     *gitserver.Server
	path    string // of the repository
	install string
	clone   string
	fetch   []string // what a script would run instead of a poll
}

// startBenched gives an agent that has made its first update and is at rest.
func startBenched(b *testing.B) *benchedAgent {
	b.Helper()
	dir := b.TempDir()
	a := &benchedAgent{b: b, path: gitserver.Bare(b, dir, "fleet.git"), srv: gitserver.New(b, dir)}
	url := a.srv.URL + "/fleet.git"
	binary, root := filepath.Join(dir, "gitopsd"), filepath.Join(dir, "root")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		b.Fatalf("build the program: %v\n%s", err, out)
	}
	if err := os.Mkdir(root, 0o755); err != nil {
		b.Fatal(err)
	}
	var log bytes.Buffer
	a.Cmd = exec.Command(binary, "agent", "--device", benchDevice, "--root", root, "--repo", url, "--interval", benchInterval.String())
	a.Stdout, a.Stderr = &log, &log
	a.WaitDelay = time.Second
	if err := a.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = a.Process.Kill() // the end of the run, whatever its result
		_ = a.Wait()
		if b.Failed() {
			b.Logf("the agent said:\n%s", log.String())
		}
	})
	a.install = awaitReport(b, a.path, func(r *schema.Report) bool { return r.Phase == schema.PhaseUpdated }).InstallID
	a.assign(1, "a: 1\n", benchPayload())
	a.others()
	a.updated(1)

	a.clone = filepath.Join(dir, "clone")
	gitserver.Git(b, dir, "init", "-q", a.clone)
	a.fetch = []string{"fetch", "-q", "--no-tags", "--depth", "1", url, "+" + schema.DefaultDeviceRefs + benchDevice + ":refs/heads/assigned"}
	a.git(a.fetch...)
	return a
}

// git runs the git program in the clone.
func (a *benchedAgent) git(args ...string) *exec.Cmd {
	a.b.Helper()
	git := exec.Command("git", args...)
	git.Dir = a.clone
	git.Env = append(os.Environ(), gitserver.Environ()...)
	if out, err := git.CombinedOutput(); err != nil {
		a.b.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return git
}

// updated waits until an attempt has ended well and nothing is left to report.
func (a *benchedAgent) updated(attempt int64) {
	a.b.Helper()
	awaitReport(a.b, a.path, func(r *schema.Report) bool { return r.Attempt == attempt && r.Outcome == schema.OutcomeOK })
	time.Sleep(benchRest)
}

// bytes are those that its requests and the answers take in f: of their bodies,
// and with all headers.
func (a *benchedAgent) bytes(f func()) (requests, bodies, wire int64) {
	a.srv.ResetTraffic()
	f()
	requests, in, out := a.srv.Traffic()
	return requests, in + out, a.srv.Wire()
}

// BenchmarkIdleAgent measures the agent as it waits, after an update of a file
// and a payload: memory of its process, and what a poll that finds nothing new
// costs. Beside it stands what a script would do for each poll: git fetch of
// the same ref, which it has already, or git ls-remote. The goals are 12 MB of
// anonymous memory and 200 bytes of bodies.
func BenchmarkIdleAgent(b *testing.B) {
	a := startBenched(b)
	pid, wire := a.Process.Pid, 0.0
	for b.Loop() {
		before, written := cpuTicks(b, pid), diskWrites(b, pid)
		deadline := time.Now().Add(benchPatience)
		requests, bodies, all := a.bytes(func() {
			for requests := int64(0); requests < benchPolls; requests, _, _ = a.srv.Traffic() {
				if time.Now().After(deadline) {
					b.Fatalf("%d polls did not come", benchPolls)
				}
				time.Sleep(benchInterval)
			}
		})
		wire = float64(all) / float64(requests)
		b.ReportMetric(float64(bodies)/float64(requests), "B/poll")
		b.ReportMetric(wire, "wire-B/poll")
		b.ReportMetric(float64(cpuTicks(b, pid)-before)*1e3/clockTicks/float64(requests), "cpu-ms/poll")
		b.ReportMetric(float64(diskWrites(b, pid)-written)/float64(requests), "disk-B/poll")
	}
	b.ReportMetric(statusKB(b, pid, "RssAnon")/1e3, "MB-anonymous")
	b.ReportMetric(statusKB(b, pid, "VmRSS")/1e3, "MB-resident")
	a.signal(syscall.SIGSTOP)

	for name, args := range map[string][]string{"git-fetch": a.fetch, "git-ls-remote": {"ls-remote", "-q", a.srv.URL + "/fleet.git", schema.DefaultDeviceRefs + benchDevice}} {
		var git *exec.Cmd
		_, bodies, all := a.bytes(func() { git = a.git(args...) })
		b.ReportMetric(float64(bodies), name+"-B/poll")
		b.ReportMetric(float64(all), name+"-wire-B/poll")
		b.ReportMetric(float64(all)/wire, name+"-wire-ratio")
		if usage, ok := git.ProcessState.SysUsage().(*syscall.Rusage); ok {
			b.ReportMetric(float64(usage.Maxrss)/1e3, name+"-MB-resident")
			b.ReportMetric(float64((git.ProcessState.UserTime() + git.ProcessState.SystemTime()).Milliseconds()), name+"-cpu-ms/poll")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// signal stops the agent while another is measured, and lets it go on.
func (a *benchedAgent) signal(s syscall.Signal) {
	a.b.Helper()
	if err := a.Process.Signal(s); err != nil {
		a.b.Fatal(err)
	}
}

// BenchmarkAgentUpdate measures what an update takes over the network, with its
// two reports, where a few bytes of a file have changed, and where there is a
// payload beside it that has not. git fetch of the same change, into a clone of
// what was before, stands beside each.
func BenchmarkAgentUpdate(b *testing.B) {
	a := startBenched(b)
	attempt := int64(1)
	update := func(name string, payload []byte) {
		attempt++
		a.assign(attempt, "a: before\n", payload)
		a.updated(attempt)
		a.git(a.fetch...)
		attempt++
		_, _, wire := a.bytes(func() {
			a.assign(attempt, "a: after\n", payload)
			a.updated(attempt)
		})
		_, _, idle := a.bytes(func() { time.Sleep(benchRest) })
		a.signal(syscall.SIGSTOP)
		_, _, git := a.bytes(func() { a.git(a.fetch...) })
		a.signal(syscall.SIGCONT)
		b.ReportMetric(float64(wire-idle), name+"-wire-B/update")
		b.ReportMetric(float64(git), name+"-git-fetch-wire-B/update")
	}
	for b.Loop() {
		update("spec", nil)
		update("payload", benchPayload())
	}
	b.ReportMetric(0, "ns/op")
}

// benchPayload is 1 MiB, the largest that is not warned of, and cannot be
// compressed.
func benchPayload() []byte {
	payload := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(payload) // never fails
	return payload
}

// clockTicks is USER_HZ of Linux, in which /proc counts processor time.
const clockTicks = 100

func cpuTicks(b *testing.B, pid int) int {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err1 != nil || err2 != nil {
		b.Fatalf("cannot read %s", data)
	}
	return user + system
}

// diskWrites is what the process has written to disks, in bytes.
func diskWrites(b *testing.B, pid int) int {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "write_bytes:"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(rest))
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
	}
	b.Fatal("there is no write_bytes")
	return 0
}

// statusKB reads a line of /proc/<pid>/status, which is in units of 1,024
// bytes, and gives it in units of 1,000.
func statusKB(b *testing.B, pid int, key string) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			n, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return n * 1.024
		}
	}
	b.Fatalf("there is no %s", key)
	return 0
}

func openDevice(b *testing.B, path string) *repo.Device {
	b.Helper()
	d, err := repo.OpenDevice(repo.Config{URL: path})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	return d
}

// awaitReport reads the device's report until it is as wanted.
func awaitReport(b *testing.B, path string, ready func(*schema.Report) bool) schema.Report {
	b.Helper()
	d := openDevice(b, path)
	ctx, cancel := context.WithTimeout(b.Context(), benchPatience)
	defer cancel()
	for {
		_, files, err := d.Read(ctx, schema.DefaultReportRefs+benchDevice, "", 0)
		if err != nil {
			b.Fatal(err)
		}
		var r schema.Report
		if data, ok := files["report.yaml"]; ok {
			if problems := schema.Decode("report.yaml", data, &r); len(problems) > 0 {
				b.Fatalf("report: %v", problems)
			}
			if ready(&r) {
				return r
			}
		}
		time.Sleep(benchInterval)
	}
}

// assign gives the device a spec as the daemon would.
func (a *benchedAgent) assign(attempt int64, content string, payload []byte) {
	a.b.Helper()
	files := map[string]any{"/etc/edge/edge.conf": map[string]any{"content": content}}
	delivery := map[string][]byte{}
	if payload != nil {
		sum := schema.PayloadDigest(payload)
		files["/opt/edge/data"] = map[string]any{"payload": sum}
		delivery["payloads/"+strings.TrimPrefix(sum, "sha256:")] = payload
	}
	doc := schema.Assignment{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindAssignment}, Metadata: schema.Metadata{Name: benchDevice},
		Generation: attempt, For: a.install, Attempt: attempt, Version: fmt.Sprintf("v1.0.%d", attempt),
		Spec: map[string]any{"files": files, "confirm": map[string]any{"within": "10s"}},
	}
	var err error
	if doc.Digest, err = schema.Digest(doc.Spec); err != nil {
		a.b.Fatal(err)
	}
	if delivery["assignment.yaml"], err = schema.Encode(&doc); err != nil {
		a.b.Fatal(err)
	}
	d, ref := openDevice(a.b, a.path), schema.DefaultDeviceRefs+benchDevice
	before, _, err := d.Read(a.b.Context(), ref, "", 0)
	if err != nil {
		a.b.Fatal(err)
	}
	if _, err := d.Write(a.b.Context(), ref, before, delivery); err != nil {
		a.b.Fatal(err)
	}
}

// others are the refs of other devices.
func (a *benchedAgent) others() {
	a.b.Helper()
	commit := gitserver.Git(a.b, a.path, "rev-parse", schema.DefaultDeviceRefs+benchDevice)
	var lines strings.Builder
	for n := range benchRefs {
		fmt.Fprintf(&lines, "create %sother-%05d %s\n", schema.DefaultDeviceRefs, n, commit)
	}
	update := exec.Command("git", "update-ref", "--stdin")
	update.Dir, update.Stdin = a.path, strings.NewReader(lines.String())
	if out, err := update.CombinedOutput(); err != nil {
		a.b.Fatalf("%v\n%s", err, out)
	}
	gitserver.Git(a.b, a.path, "pack-refs", "--all")
}
