//go:build system

package systemtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/schema"
)

// killedRuns is how often the daemon is killed in each of the two tests.
const killedRuns = 20

// history is what must hold in every commit of the status branch, read as it
// grows.
type history struct {
	f      *fleet
	limits map[string]int // policy → maxInFlight
	last   status
	seen   int // commits
	peak   map[string]int
	marks  map[string]mark // device → what only rises
}

type mark struct{ generation, attempt int64 }

func newHistory(f *fleet, limits map[string]int) *history {
	return &history{f: f, limits: limits, peak: map[string]int{}, marks: map[string]mark{}}
}

// check reads the commits since the last call, oldest first.
func (h *history) check() error {
	ctx := context.Background()
	refs, err := h.f.git.Refs(ctx, statusRef)
	if err != nil {
		return fmt.Errorf("read the status branch: %w", err)
	}
	tip := refs[statusRef]
	if tip == "" || tip == h.last.commit {
		return nil
	}
	var fresh []string
	found := h.last.commit == ""
	if err := h.f.git.Log(ctx, tip, "", func(commit, _ string, _ time.Time, _ string) bool {
		if found = found || commit == h.last.commit; commit == h.last.commit {
			return false
		}
		fresh = append(fresh, commit)
		return true
	}); err != nil {
		return fmt.Errorf("read the log of the status branch: %w", err)
	}
	if !found {
		return fmt.Errorf("the status branch at %s does not build on %s: it was rewritten", tip, h.last.commit)
	}
	for i := len(fresh) - 1; i >= 0; i-- {
		s, err := h.f.at(fresh[i], h.last)
		if err != nil {
			return fmt.Errorf("status commit %s: %w", fresh[i], err)
		}
		h.last = s
		h.seen++
		if err := h.judge(s); err != nil {
			return fmt.Errorf("status commit %s: %w", fresh[i], err)
		}
	}
	return nil
}

func (h *history) judge(s status) error {
	moving := map[string][]string{}
	for id, d := range s.devices {
		if a := open(d); a != nil {
			moving[a.Policy] = append(moving[a.Policy], id)
		}
		was, now := h.marks[id], mark{}
		if d.Assignment != nil {
			now.generation = d.Assignment.Generation
		}
		opened := 0
		for _, a := range d.Attempts {
			if a.Attempt < now.attempt {
				return fmt.Errorf("the attempts of %s are out of order", id)
			}
			now.attempt = a.Attempt
			if a.Outcome == "" {
				opened++
			}
		}
		if now.generation < was.generation || now.attempt < was.attempt {
			return fmt.Errorf("%s fell from %+v to %+v", id, was, now)
		}
		if opened > 1 {
			return fmt.Errorf("%s has %d open attempts", id, opened)
		}
		h.marks[id] = now
	}
	for policy, ids := range moving {
		h.peak[policy] = max(h.peak[policy], len(ids))
		if len(ids) > h.limits[policy] {
			return fmt.Errorf("%d devices of %s are in flight, %d may be: %v", len(ids), policy, h.limits[policy], ids)
		}
	}
	return nil
}

// started are the devices of which the last commit says that they began with
// a policy's version.
func (h *history) started(policy, version string) []string {
	var ids []string
	for id, d := range h.last.devices {
		for _, a := range d.Attempts {
			if a.Policy == policy && a.Version == version && (a.StartedAt != nil || a.Outcome == schema.OutcomeOK || a.Outcome == schema.OutcomeFailed || a.Outcome == schema.OutcomeLost) {
				ids = append(ids, id)
				break
			}
		}
	}
	return ids
}

// TestSystemDaemonKilled: a daemon that is killed at any moment, with agents
// around it, leaves a repository that is whole and goes on from it. Other
// git's litter of the same kind lies around, too.
func TestSystemDaemonKilled(t *testing.T) {
	t.Parallel()
	for _, over := range []string{"local", "http"} {
		t.Run(over, func(t *testing.T) { daemonKilled(t, over == "http") })
	}
}

func daemonKilled(t *testing.T, http bool) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	b := newBench(t)
	f := newFleet(b, b.dir)
	remote := f.bare
	if http {
		remote = gitserver.New(b, b.dir).URL + "/fleet.git"
	}
	ids := []string{"d1", "d2", "d3"}
	for _, id := range ids {
		f.device(id, "edge")
	}
	release := func(n int) string {
		v := fmt.Sprintf("v1.%d.0", n)
		f.release("edge", v, fmt.Sprintf("confirm: off\nfiles: {/etc/edge/release: {content: \"%s\\n\"}, /etc/edge/payload: {source: files/%s}}\n", v, v))
		f.write("files/"+v, strings.Repeat(v+" ", 20_000))
		f.policy("edge", v, 2, 0)
		f.push("edge: " + v)
		return v
	}
	version := release(0)
	serve := func() *process {
		return f.start("serve", "serve", "--repo", remote, "--state", b.path("state"), "--interval", "100ms", "--timeout", "15s")
	}
	for _, id := range ids {
		f.agent(id, "--repo", f.bare)
	}
	h := newHistory(f, map[string]int{"edge": 2})
	check := func() {
		t.Helper()
		if err := h.check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	p := serve()
	for run := 1; run <= killedRuns; run++ {
		if run%4 == 0 {
			version = release(run)
		}
		// Anywhere in a sweep, and anywhere between two of them.
		time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
		p.kill()
		check()
		litter(b, random, f.bare, http)
		p = serve()
	}
	for _, id := range ids {
		f.is(id, "Current", version)
		wantFile(t, b.path("roots", id, "etc/edge/release"), version+"\n")
		wantFile(t, b.path("roots", id, "etc/edge/payload"), strings.Repeat(version+" ", 20_000))
	}
	check()
	if h.seen < killedRuns/4 {
		t.Errorf("only %d commits were made", h.seen)
	}
	b.endAll() // git fsck takes what is written meanwhile for damage
	whole(b, f.bare)
	// Every ref has moved since the last kill: no lock of a dead daemon is left.
	for _, p := range leftovers(b, filepath.Join(f.bare, "refs")) {
		t.Errorf("%s was left behind", p)
	}
	if http {
		for _, p := range leftovers(b, b.path("state")) {
			t.Errorf("%s was left behind in the store", p)
		}
		stores, _ := filepath.Glob(b.path("state", "*", "fleet.git"))
		if len(stores) != 1 {
			t.Fatalf("the stores are %v", stores)
		}
		whole(b, stores[0])
	}
	t.Logf("%d commits on the status branch, at most %d in flight", h.seen, h.peak["edge"])
}

// litter is what a killed git leaves in a repository.
func litter(b *bench, random *rand.Rand, bare string, http bool) {
	b.Helper()
	pack := filepath.Join("objects", "pack")
	names := []string{
		filepath.Join(pack, "tmp_pack_a1b2c3"), filepath.Join(pack, "tmp_idx_a1b2c3"),
		filepath.Join(pack, "pack-0123456789012345678901234567890123456789.pack"),
		filepath.Join("objects", "00", "tmp_obj_x1y2z3"), "gc.log", "FETCH_HEAD.lock", "index.lock", "shallow.lock",
	}
	dirs := []string{bare}
	if http {
		stores, _ := filepath.Glob(b.path("state", "*", "fleet.git"))
		dirs = append(dirs, stores...)
	}
	for _, dir := range dirs {
		name := names[random.IntN(len(names))]
		if strings.HasSuffix(name, ".pack") && dir == bare {
			continue // a pack without its index is for git to complain about
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x09 and no more"), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}
