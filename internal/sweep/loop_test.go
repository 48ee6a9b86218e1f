package sweep

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// safeBuffer is for logs that are read while they are written.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// take gives what was written since the last time.
func (s *safeBuffer) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.b.Reset()
	return s.b.String()
}

func TestRunSweepsUntilItsContextEnds(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.state = ""
		var passes atomic.Int64
		var broken atomic.Bool
		remote := w.remote()
		remote.onCall = func(_ int, op string) {
			if op == "refs" {
				passes.Add(1)
			}
			remote.failAt = 0
			if broken.Load() {
				remote.failAt = remote.calls
			}
		}
		logs := &safeBuffer{}
		d := w.daemon(func(c *Config) {
			c.Remote = remote
			c.Logger = slog.New(slog.NewTextHandler(logs, nil))
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.Run(ctx) }()
		time.Sleep(2*time.Minute + time.Second)
		if n := passes.Load(); n != 3 {
			t.Fatalf("in two minutes it looked %d times", n)
		}
		d.Announce(Announcement{})
		synctest.Wait()
		if n := passes.Load(); n != 4 {
			t.Fatalf("a wake-up did not bring a sweep: %d", n)
		}

		// A broken remote is tried again with growing waits, and said once.
		broken.Store(true)
		logs.take()
		before := passes.Load()
		time.Sleep(30 * time.Minute)
		if tries := passes.Load() - before; tries < 5 || tries > 40 {
			t.Errorf("%d tries in half an hour of errors", tries)
		}
		if said := logs.take(); strings.Count(said, "could not be done") != 1 {
			t.Errorf("one error was not said once:\n%s", said)
		}
		broken.Store(false)
		time.Sleep(10 * time.Minute)
		if said := logs.take(); !strings.Contains(said, "works again") {
			t.Errorf("the end of the trouble is not said:\n%s", said)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
}

func TestQuietSweepLogsNothing(t *testing.T) {
	w := newWorld(t, 2)
	var logs bytes.Buffer
	d := w.daemon(func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&logs, nil)) })
	w.until(d, "everybody on v1.0.0", func() bool { return w.on("v1.0.0") == 2 })
	w.rounds(d, 2)
	if !strings.Contains(logs.String(), "msg=assigned device=gw-0") {
		t.Errorf("assignments are not logged:\n%s", logs.String())
	}
	logs.Reset()
	for range 20 {
		w.pass(time.Minute)
		w.beat()
		w.sweep(d)
	}
	if logs.Len() > 0 {
		t.Errorf("a quiet fleet says:\n%s", logs.String())
	}
}

func TestLocalChangeBringsASweep(t *testing.T) {
	git := filepath.Join(t.TempDir(), "fleet.git")
	for _, dir := range []string{"refs/heads/gitopsd", "refs/gitopsd/devices", "refs/gitopsd/reports"} {
		if err := os.MkdirAll(filepath.Join(git, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t, 1)
	d := w.daemon(func(c *Config) { c.WatchPath = git })
	ctx, cancel := context.WithCancel(t.Context())
	changes, stopped, err := d.watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string) {
		t.Helper()
		file := filepath.Join(git, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file+".lock", []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".lock", file); err != nil {
			t.Fatal(err)
		}
	}
	comes := func() bool {
		select {
		case <-changes:
			return true
		case <-time.After(5 * settleAfter):
			return false
		}
	}
	for _, name := range []string{"refs/heads/main", "refs/gitopsd/reports/gw-01", "packed-refs"} {
		write(name)
		if !comes() {
			t.Errorf("a change of %s went unseen", name)
		}
	}
	for _, name := range []string{"refs/heads/gitopsd/status", "refs/gitopsd/devices/gw-01"} {
		write(name)
		if comes() {
			t.Errorf("the daemon's own %s brings a sweep", name)
		}
	}
	cancel()
	<-stopped
}

func TestStateFolder(t *testing.T) {
	w, d := done(t, 2)
	seen := d.state.seen["gw-01"].At
	since := d.state.watch.Since
	w.pass(4 * time.Minute)
	d = w.daemon()
	w.sweep(d)
	if got := d.state.seen["gw-01"].At; !got.Equal(seen) {
		t.Errorf("after a restart the device was last seen at %v, before it was %v", got, seen)
	}
	if !d.state.watch.Since.Equal(since) {
		t.Error("a short gap broke the series of sweeps")
	}
	w.pass(31 * time.Minute)
	d = w.daemon()
	w.sweep(d)
	if !d.state.watch.Since.Equal(stamp(w.now)) {
		t.Errorf("after a gap longer than offlineAfter the series began at %v", d.state.watch.Since)
	}

	// Whatever lies there, the daemon starts.
	for _, name := range []string{watchFile, seenFile} {
		if err := os.WriteFile(filepath.Join(w.state, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.sweep(w.daemon())
	aside, err := filepath.Glob(filepath.Join(w.state, "*.json.2*"))
	if err != nil || len(aside) != 2 {
		t.Errorf("the unreadable files were set aside as %v", aside)
	}
}

func TestSilenceCountsOnlyWhileWatched(t *testing.T) {
	w, d, dev := settled(t, 3)
	w.until(d, "it acts", func() bool { return dev.acting() != 0 })
	for _, other := range w.devices {
		other.off = true
	}
	// The daemon sleeps over updateTimeout; the device was not silent to
	// anybody who listened.
	w.pass(2 * time.Hour)
	d = w.daemon()
	w.sweep(d)
	if a := w.attempt(dev.id, 2); a.Outcome != "" {
		t.Fatalf("after a gap the attempt is %+v", a)
	}
	for range 31 {
		w.pass(time.Minute)
		w.sweep(d)
	}
	if a := w.attempt(dev.id, 2); a.Outcome != schema.OutcomeLost {
		t.Fatalf("after half an hour of watching the attempt is %+v", a)
	}
}

func TestReportsInARepositoryOfTheirOwn(t *testing.T) {
	w := newWorld(t, 2)
	reports := newMemRepo()
	for _, dev := range w.devices {
		dev.reports = reports
	}
	d := w.daemon(func(c *Config) { c.Reports = &memRemote{memRepo: reports} })
	w.until(d, "everybody on v1.0.0", func() bool { return w.on("v1.0.0") == 2 })
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("a daemon without a repository was made")
	}
	if _, err := New(Config{Remote: &memRemote{memRepo: newMemRepo()}, Branch: "x", StatusBranch: "x"}); err == nil {
		t.Error("one branch was accepted for both sides")
	}
	for _, c := range []Config{
		{DeviceRefs: "refs/heads/"},
		{DeviceRefs: "refs/heads/gitopsd/"},
		{ReportRefs: "refs/heads/gitopsd/"},
		{ReportRefs: "refs/heads/"},
		{DeviceRefs: "refs/heads/gitopsd/status/"},
		{DeviceRefs: "refs/x/", ReportRefs: "refs/x/"},
		{DeviceRefs: "refs/x/", ReportRefs: "refs/x/y/"},
		{DeviceRefs: "refs/x/y/", ReportRefs: "refs/x/"},
		{DeviceRefs: "refs/x/gw"},
		{DeviceRefs: "x/"},
		{DeviceRefs: "refs/"},
		{Branch: "fleet", DeviceRefs: "refs/heads/fleet/"},
		{Branch: "fleet/main", DeviceRefs: "refs/heads/fleet/"},
		{Branch: "fleet", StatusBranch: "fleet/status"},
		{Branch: "fleet/status/x", StatusBranch: "fleet/status"},
	} {
		c.Remote = &memRemote{memRepo: newMemRepo()}
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), "refs") && !strings.Contains(err.Error(), "branch") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, c := range []Config{
		{},
		{Branch: "main", DeviceRefs: "refs/heads/devices/", ReportRefs: "refs/heads/reports/"},
		{Branch: "fleet", StatusBranch: "fleet-status", DeviceRefs: "refs/heads/fleet-devices/"},
		{ReportRefs: "refs/heads/", Reports: &memRemote{memRepo: newMemRepo()}},
	} {
		c.Remote = &memRemote{memRepo: newMemRepo()}
		if _, err := New(c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestDefaultBranchAmongTheDeliveries(t *testing.T) {
	w := newWorld(t, 1)
	d := w.daemon(func(c *Config) { c.DeviceRefs = "refs/heads/ma/" })
	w.sweep(d)
	w.repo.head = "ma/gw-01"
	d = w.daemon(func(c *Config) { c.DeviceRefs = "refs/heads/ma/" })
	if _, err := d.Once(t.Context()); err == nil || !strings.Contains(err.Error(), "--branch") {
		t.Errorf("a default branch among the deliveries gives %v", err)
	}
}
