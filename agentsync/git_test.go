package agentsync

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

// realTarget opens a repository as the agent does.
func realTarget(url func() (string, error)) Target {
	return Target{URL: url, Open: func(_ context.Context, url string) (Remote, error) {
		return repo.OpenDevice(repo.Config{URL: url, Timeout: 20 * time.Second})
	}}
}

func at(url string) func() (string, error) { return func() (string, error) { return url, nil } }

// deliver writes a delivery ref as the daemon does.
func deliver(t *testing.T, path string, files map[string][]byte) string {
	t.Helper()
	d, err := repo.OpenDevice(repo.Config{URL: path})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	old, _, err := d.Read(t.Context(), deviceRef, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	commit, err := d.Write(t.Context(), deviceRef, old, files)
	if err != nil {
		t.Fatal(err)
	}
	return commit
}

// TestControl_WithGit goes through a device's life against real repositories.
func TestControl_WithGit(t *testing.T) {
	for _, way := range []string{"local path", "http"} {
		t.Run(way, func(t *testing.T) {
			dir := t.TempDir()
			fleet, reports := filepath.Join(dir, "fleet.git"), filepath.Join(dir, "reports.git")
			fleetURL, reportsURL := fleet, reports
			if way == "http" {
				gitserver.Bare(t, dir, "fleet.git")
				gitserver.Bare(t, dir, "reports.git")
				srv := gitserver.New(t, dir)
				fleetURL, reportsURL = srv.URL+"/fleet.git", srv.URL+"/reports.git"
			} else {
				for _, p := range []string{fleet, reports} {
					if err := repo.Init(p, "main"); err != nil {
						t.Fatal(err)
					}
				}
			}
			to := realTarget(at(reportsURL))
			c, err := New(Config{Remote: realTarget(at(fleetURL)), Reports: &to, Device: device, Timeout: 20 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if d, problem, err := c.Look(t.Context()); err != nil || problem != "" || d.Revision != "" {
				t.Fatalf("nothing assigned: %+v %q %v", d, problem, err)
			}
			commit := deliver(t, fleet, delivery(t, nil, "one", strings.Repeat("x", 1<<20)))
			d, problem, err := c.Look(t.Context())
			if err != nil || problem != "" || d.Revision != commit || d.Assignment == nil || len(d.Payloads) != 2 {
				t.Fatalf("assigned: %+v %q %v", d.Assignment, problem, err)
			}
			if d, _, err := c.Look(t.Context()); err != nil || d.Revision != commit || d.Assignment == nil || d.Payloads != nil {
				t.Errorf("unchanged: %+v %v", d, err)
			}
			if err := c.Answers(t.Context()); err != nil {
				t.Errorf("answers: %v", err)
			}
			for seq := int64(1); seq <= 2; seq++ {
				if err := c.Report(t.Context(), report(seq, "mine")); err != nil {
					t.Fatal(err)
				}
			}
			// A second agent under the same id, started from nothing.
			second, err := New(Config{Remote: realTarget(at(fleetURL)), Reports: &to, Device: device})
			if err != nil {
				t.Fatal(err)
			}
			defer second.Close()
			for seq := int64(1); seq <= 2; seq++ {
				if err := second.Report(t.Context(), report(seq, "other")); err != nil {
					t.Fatal(err)
				}
				if err := c.Report(t.Context(), report(seq+2, "mine")); err != nil {
					t.Fatal(err)
				}
			}
			r, err := repo.OpenDevice(repo.Config{URL: reportsURL})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			_, files, err := r.Read(t.Context(), reportRef, "", 0)
			var got schema.Report
			if err != nil || !noErrors(schema.Decode("report.yaml", files["report.yaml"], &got)) || got.Sequence != 4 || got.InstallID != "mine" || len(files) != 1 {
				t.Errorf("the last report: %+v, %v", got, err)
			}
			deliver(t, fleet, map[string][]byte{"assignment.yaml": []byte("kind: nonsense\n")})
			if d, problem, err := c.Look(t.Context()); err != nil || problem == "" || d.Assignment != nil {
				t.Errorf("nonsense: %+v %q %v", d, problem, err)
			}
		})
	}
}

func TestControl_RepositoryGoneAndBack(t *testing.T) {
	dir := t.TempDir()
	where := filepath.Join(dir, "missing.git")
	c, err := New(Config{Remote: realTarget(func() (string, error) { return where, nil }), Device: device})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, err := c.Look(t.Context()); err == nil {
		t.Error("a repository that is missing was read")
	}
	if err := c.Answers(t.Context()); err == nil {
		t.Error("a repository that is missing answers")
	}
	if err := repo.Init(where, "main"); err != nil {
		t.Fatal(err)
	}
	deliver(t, where, delivery(t, nil))
	if d, _, err := c.Look(t.Context()); err != nil || d.Assignment == nil {
		t.Errorf("the repository came back: %+v, %v", d, err)
	}
}

// maxPoll is what a poll that finds nothing new may cost, in bytes of bodies
// in both directions: a thousand devices poll every minute.
const maxPoll = 200

// TestLook_CostsTheSameWhateverTheFleet: a poll that finds nothing new is one
// small request, with few and with many refs.
func TestLook_CostsTheSameWhateverTheFleet(t *testing.T) {
	var cost [2]int64
	for i, refs := range []int{10, 10_000} {
		dir := t.TempDir()
		path := gitserver.Bare(t, dir, "fleet.git")
		commit := deliver(t, path, delivery(t, nil, "one"))
		crowd(t, path, commit, refs)
		srv := gitserver.New(t, dir)
		c, err := New(Config{Remote: realTarget(at(srv.URL + "/fleet.git")), Device: device})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, _, err := c.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		srv.ResetTraffic()
		if d, _, err := c.Look(t.Context()); err != nil || d.Revision != commit {
			t.Fatalf("%+v %v", d, err)
		}
		requests, in, out := srv.Traffic()
		if cost[i] = in + out; cost[i] > maxPoll || requests != 1 {
			t.Errorf("with %d refs a poll costs %d requests and %d bytes of bodies, want 1 and at most %d: %v", refs, requests, cost[i], maxPoll, srv.Log())
		}
	}
	if cost[0] != cost[1] {
		t.Errorf("a poll costs %d bytes with few refs and %d with many", cost[0], cost[1])
	}
}

// crowd gives a repository other devices' refs, packed as a server keeps them.
func crowd(t *testing.T, path, commit string, n int) {
	t.Helper()
	var b strings.Builder
	b.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	for i := range n {
		fmt.Fprintf(&b, "%s refs/gitopsd/devices/other-%05d\n", commit, i)
	}
	if err := os.WriteFile(filepath.Join(path, "packed-refs"), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What a power cut leaves of a local repository keeps nobody from reporting:
// an empty ref file, or a ref whose commit was never written.
func TestReport_OverWhatAPowerCutLeft(t *testing.T) {
	for name, damage := range map[string]string{"an empty ref file": "", "a commit that is not there": strings.Repeat("5", 40) + "\n"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "fleet.git")
			if err := repo.Init(path, "main"); err != nil {
				t.Fatal(err)
			}
			start := func() *Control {
				c, err := New(Config{Remote: realTarget(at(path)), Device: device, Timeout: 20 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(c.Close)
				return c
			}
			send := func(c *Control, sequence int64) {
				t.Helper()
				if err := c.Report(t.Context(), report(sequence, "i1")); err != nil {
					t.Fatalf("report %d: %v", sequence, err)
				}
			}
			c := start()
			send(c, 1)
			file := filepath.Join(path, filepath.FromSlash(reportRef))
			for n, c := range []*Control{start(), c} { // started afterwards, and before
				if err := os.WriteFile(file, []byte(damage), 0o644); err != nil {
					t.Fatal(err)
				}
				send(c, int64(2+n))
				if got := gitserver.Git(t, path, "show", reportRef+":"+reportFile); !strings.Contains(got, fmt.Sprintf("sequence: %d", 2+n)) {
					t.Fatalf("the ref holds %s", got)
				}
			}
		})
	}
}

// What the device keeps does not come again, unless it turns out to be needed.
func TestLook_LeavesOutWhatTheDeviceKeeps(t *testing.T) {
	dir := t.TempDir()
	fleet := gitserver.Bare(t, dir, "fleet.git")
	url := gitserver.New(t, dir).URL + "/fleet.git"
	large, other := strings.Repeat("large\n", 1000), "other"
	kept := []string{schema.PayloadDigest([]byte(large)), schema.PayloadDigest([]byte("of before"))}
	c, err := New(Config{Remote: realTarget(at(url)), Device: device, Kept: func() []string { return kept }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	look := func(when string, want int) {
		t.Helper()
		d, problem, err := c.Look(t.Context())
		if err != nil || problem != "" || d.Assignment == nil || len(d.Payloads) != want {
			t.Errorf("%s: %d payloads of %v, %q %v; want %d", when, len(d.Payloads), d.Assignment, problem, err, want)
		}
	}
	deliver(t, fleet, delivery(t, nil, large, other))
	look("first", 1)
	look("again", 0)
	c.Forget()
	look("when all is needed", 2)
	deliver(t, fleet, delivery(t, func(a *schema.Assignment) { a.Generation++ }, large, other))
	look("the next one", 1)
	kept = nil
	deliver(t, fleet, delivery(t, func(a *schema.Assignment) { a.Generation += 2 }, large, other))
	look("when nothing is kept", 2)
}
