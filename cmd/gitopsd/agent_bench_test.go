package main

import (
	"bytes"
	"context"
	"fmt"
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
	// benchRefs are the refs of other devices in the same repository.
	benchRefs = 10_000
)

// BenchmarkIdleAgent measures the agent as it waits, after an update of a file
// and a payload: memory of its process, and what a poll that finds nothing new
// costs. Beside it stands what a script would do for each poll: git fetch of
// the same ref, which it has already. The goals are 12 MB of anonymous memory and 200 bytes of bodies.
func BenchmarkIdleAgent(b *testing.B) {
	dir := b.TempDir()
	path := gitserver.Bare(b, dir, "fleet.git")
	srv := gitserver.New(b, dir)
	url := srv.URL + "/fleet.git"
	binary := filepath.Join(dir, "gitopsd")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		b.Fatalf("build the program: %v\n%s", err, out)
	}
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		b.Fatal(err)
	}
	var log bytes.Buffer
	agent := exec.Command(binary, "agent", "--device", benchDevice, "--root", root, "--repo", url, "--interval", benchInterval.String())
	agent.Stdout, agent.Stderr = &log, &log
	agent.WaitDelay = time.Second
	if err := agent.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = agent.Process.Kill() // the end of the run, whatever its result
		_ = agent.Wait()
		if b.Failed() {
			b.Logf("the agent said:\n%s", log.String())
		}
	}()

	first := awaitReport(b, path, func(r *schema.Report) bool { return r.Phase == schema.PhaseUpdated })
	assign(b, path, first.InstallID)
	awaitReport(b, path, func(r *schema.Report) bool { return r.Attempt == 1 && r.Outcome == schema.OutcomeOK })
	time.Sleep(2 * time.Second) // what the update left to report has been reported

	ref := schema.DefaultDeviceRefs + benchDevice
	for b.Loop() {
		before, written := cpuTicks(b, agent.Process.Pid), diskWrites(b, agent.Process.Pid)
		srv.ResetTraffic()
		deadline := time.Now().Add(benchPatience)
		for requests := int64(0); requests < benchPolls; requests, _, _ = srv.Traffic() {
			if time.Now().After(deadline) {
				b.Fatalf("%d polls did not come", benchPolls)
			}
			time.Sleep(benchInterval)
		}
		requests, in, out := srv.Traffic()
		ticks := cpuTicks(b, agent.Process.Pid) - before
		b.ReportMetric(float64(in+out)/float64(requests), "B/poll")
		b.ReportMetric(float64(ticks)*1e3/clockTicks/float64(requests), "cpu-ms/poll")
		b.ReportMetric(float64(diskWrites(b, agent.Process.Pid)-written)/float64(requests), "disk-B/poll")
	}
	b.ReportMetric(statusKB(b, agent.Process.Pid, "RssAnon")/1e3, "MB-anonymous")
	b.ReportMetric(statusKB(b, agent.Process.Pid, "VmRSS")/1e3, "MB-resident")

	clone := filepath.Join(dir, "clone")
	gitserver.Git(b, dir, "init", "-q", clone)
	fetch := []string{"fetch", "-q", "--no-tags", "--depth", "1", url, ref}
	gitserver.Git(b, clone, fetch...)
	srv.ResetTraffic()
	git := exec.Command("git", fetch...)
	git.Dir = clone
	git.Env = append(os.Environ(), gitserver.Environ()...)
	if err := git.Run(); err != nil {
		b.Fatal(err)
	}
	_, in, out := srv.Traffic()
	b.ReportMetric(float64(in+out), "git-B/poll")
	if usage, ok := git.ProcessState.SysUsage().(*syscall.Rusage); ok {
		b.ReportMetric(float64(usage.Maxrss)/1e3, "git-MB-resident")
		b.ReportMetric(float64((git.ProcessState.UserTime() + git.ProcessState.SystemTime()).Milliseconds()), "git-cpu-ms/poll")
	}
	b.ReportMetric(0, "ns/op")
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

// assign gives the device a spec as the daemon would, among many others.
func assign(b *testing.B, path, install string) {
	b.Helper()
	payload := bytes.Repeat([]byte("payload\n"), 128<<10) // 1 MiB, the largest that is not warned of
	sum := schema.PayloadDigest(payload)
	doc := schema.Assignment{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindAssignment}, Metadata: schema.Metadata{Name: benchDevice},
		Generation: 1, For: install, Attempt: 1, Version: "v1.0.0",
		Spec: map[string]any{
			"files": map[string]any{
				"/etc/edge/edge.conf": map[string]any{"content": "a: 1\n"},
				"/opt/edge/data":      map[string]any{"payload": sum},
			},
			"confirm": map[string]any{"within": "10s"},
		},
	}
	var err error
	if doc.Digest, err = schema.Digest(doc.Spec); err != nil {
		b.Fatal(err)
	}
	data, err := schema.Encode(&doc)
	if err != nil {
		b.Fatal(err)
	}
	commit, err := openDevice(b, path).Write(b.Context(), schema.DefaultDeviceRefs+benchDevice, "", map[string][]byte{
		"assignment.yaml": data, "payloads/" + strings.TrimPrefix(sum, "sha256:"): payload,
	})
	if err != nil {
		b.Fatal(err)
	}
	var lines strings.Builder
	for n := range benchRefs {
		fmt.Fprintf(&lines, "create %sother-%05d %s\n", schema.DefaultDeviceRefs, n, commit)
	}
	update := exec.Command("git", "update-ref", "--stdin")
	update.Dir, update.Stdin = path, strings.NewReader(lines.String())
	if out, err := update.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	gitserver.Git(b, path, "pack-refs", "--all")
}
