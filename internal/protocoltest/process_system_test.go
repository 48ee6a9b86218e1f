//go:build system

package protocoltest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

const (
	processRuns = 100
	// processTime bounds them all together, so that a slow machine makes
	// fewer of them and says so.
	processTime = 4 * time.Minute
	// Lengths of the two halves of one run.
	stormTime = 1500 * time.Millisecond
	calmTime  = 60 * time.Second
)

// TestSystemProcesses lets two daemons and three devices, all of them real
// processes, meet on one repository. Daemons and agents are killed at any
// moment or stand still, and operators change their minds. Then the history of
// the status branch and the devices' own logs are held against each other.
func TestSystemProcesses(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "gitopsd")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "github.com/gitopsd/gitopsd/cmd/gitopsd").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	from := number(t, "GITOPSD_SEED", 0)
	until := time.Now().Add(processTime)
	var mu sync.Mutex
	done, kills, begun, outcomes := 0, 0, 0, map[schema.Outcome]int{}
	t.Run("runs", func(t *testing.T) {
		for n := range uint64(processRuns) {
			t.Run(fmt.Sprintf("seed=%d", from+n), func(t *testing.T) {
				t.Parallel()
				if time.Now().After(until) {
					return // counted below
				}
				f := newField(t, bin, from+n)
				f.storm()
				f.calm()
				mu.Lock()
				defer mu.Unlock()
				f.audit(outcomes)
				done++
				kills += f.kills
				begun += f.begun
				f.clear()
			})
		}
	})
	t.Logf("%d of %d runs: %d processes killed, %d attempts begun, outcomes %v", done, processRuns, kills, begun, outcomes)
	for _, o := range []schema.Outcome{schema.OutcomeOK, schema.OutcomeLost, schema.OutcomeDeferred, schema.OutcomeUnreached} {
		if outcomes[o] == 0 {
			t.Errorf("no attempt of all runs ended as %s: they have not shown what they are for", o)
		}
	}
	if kills == 0 {
		t.Error("no process was killed")
	}
}

// field is one fleet of processes.
type field struct {
	t    *testing.T
	bin  string
	dir  string
	seed uint64
	repo *repo.Repo
	w    *world // for its documents only
	head string

	mu    sync.Mutex
	kills int
	begun int
}

var fieldDevices = []string{"gw-1", "gw-2", "gw-3"}

func newField(t *testing.T, bin string, seed uint64) *field {
	t.Helper()
	f := &field{t: t, bin: bin, dir: memoryDir(t), seed: seed}
	rng := rand.New(rand.NewPCG(seed, 2))
	git := filepath.Join(f.dir, "fleet.git")
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", "--bare", "-b", "main", git).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	var err error
	if f.repo, err = repo.Open(repo.Config{URL: git}); err != nil {
		t.Fatal(err)
	}
	f.w = &world{
		maxInFlight: 1 + rng.IntN(2), failLimit: rng.IntN(2), maxAttempts: 1, uncertain: []kind{good, fails, refuses}[rng.IntN(3)],
		target: versions[0], last: versions[2*rng.IntN(2)], places: make([]place, len(fieldDevices)),
	}
	files := map[string][]byte{"policies/gateways.yaml": f.policy()}
	for i, id := range fieldDevices {
		files[f.w.places[i].path(i)] = f.w.deviceYAML(i)
		must(os.MkdirAll(filepath.Join(f.dir, id, "etc"), 0o755))
	}
	for _, v := range versions {
		files["releases/gateways/"+v+".yaml"] = f.release(v)
	}
	f.push("first commit", files)
	return f
}

func (f *field) clear() {
	if err := f.repo.Close(); err != nil {
		f.t.Error(err)
	}
	_ = os.RemoveAll(f.dir) // removed again when the test ends
}

// policy waits for seconds where a world waits for minutes.
func (f *field) policy() []byte {
	text := string(f.w.policyYAML(policies[0]))
	for old, now := range map[string]string{
		"pickupTimeout: " + schema.Duration(pickupTimeout).String(): "pickupTimeout: 1s",
		"updateTimeout: " + schema.Duration(updateTimeout).String(): "updateTimeout: 300ms",
		"backoff: {base: 1m, factor: 1}":                            "backoff: {base: 200ms, factor: 1}",
	} {
		if !strings.Contains(text, old) {
			f.t.Fatalf("the policy has no %q:\n%s", old, text)
		}
		text = strings.Replace(text, old, now, 1)
	}
	return []byte(text)
}

// release takes a moment to prove itself.
func (f *field) release(version string) []byte {
	text := string(f.w.releaseYAML(version))
	if !strings.Contains(text, "hooks:") {
		text += "  hooks: {afterUpdating: {settle: {run: [/bin/sleep, \"0.12\"]}}}\n"
	}
	return []byte(text)
}

func (f *field) push(message string, files map[string][]byte) {
	f.t.Helper()
	changes := map[string]string{}
	for p, data := range files {
		blob, err := f.repo.PutBlob(f.t.Context(), data)
		if err != nil {
			f.t.Fatal(err)
		}
		changes[p] = blob
	}
	commit, err := f.repo.Commit(f.t.Context(), f.head, changes, time.Now(), message)
	if err == nil {
		_, err = f.repo.Publish(f.t.Context(), map[string][2]string{"refs/heads/main": {f.head, commit}}, nil)
	}
	if err != nil {
		f.t.Fatalf("push: %v", err)
	}
	f.head = commit
}

// process runs the program once, its log at the end of a file. It is killed
// or halted as the generator says.
func (f *field) process(name string, rng *rand.Rand, calm bool, args ...string) {
	log, err := os.OpenFile(filepath.Join(f.dir, name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		f.t.Error(err)
		return
	}
	defer log.Close()
	c := exec.Command(f.bin, append(args, "--repo", filepath.Join(f.dir, "fleet.git"), "--once", "--log-format", "json", "--log-level", "debug")...)
	c.Stdout, c.Stderr = log, log
	c.Env = append(os.Environ(), "HOME="+f.dir)
	if err := c.Start(); err != nil {
		f.t.Error(err)
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	if !calm {
		moment := time.Duration(rng.IntN(200)) * time.Millisecond
		still := time.Duration(300+rng.IntN(700)) * time.Millisecond
		switch rng.IntN(6) {
		case 0:
			select {
			case <-ended:
				return
			case <-time.After(moment):
				if c.Process.Signal(syscall.SIGKILL) == nil {
					f.mu.Lock()
					f.kills++
					f.mu.Unlock()
				}
			}
		case 1:
			select {
			case <-ended:
				return
			case <-time.After(moment):
				_ = c.Process.Signal(syscall.SIGSTOP) // it may have ended just now
				time.Sleep(still)
				_ = c.Process.Signal(syscall.SIGCONT)
			}
		}
	}
	select {
	case <-ended:
	case <-time.After(calmTime):
		_ = c.Process.Kill()
		<-ended
		f.t.Errorf("run %d: %s has not ended within %s", f.seed, name, calmTime)
	}
}

// play runs everybody, again and again, until the context ends.
func (f *field) play(ctx context.Context, calm bool) {
	var wg sync.WaitGroup
	loop := func(name string, salt uint64, args ...string) {
		rng := rand.New(rand.NewPCG(f.seed, salt))
		wg.Go(func() {
			for ctx.Err() == nil {
				f.process(name, rng, calm, args...)
				select {
				case <-ctx.Done():
				case <-time.After(time.Duration(rng.IntN(120)) * time.Millisecond):
				}
			}
		})
	}
	for i := range 2 {
		name := fmt.Sprintf("daemon-%d", i+1)
		loop(name, uint64(10+i), "serve", "--state", filepath.Join(f.dir, name))
	}
	for i, id := range fieldDevices {
		loop(id, uint64(20+i), "agent", "--device", id, "--root", filepath.Join(f.dir, id))
	}
	wg.Wait()
}

// storm is the first half: operators change their minds while everything
// fails.
func (f *field) storm() {
	ctx, cancel := context.WithTimeout(f.t.Context(), stormTime)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { f.play(ctx, false) })
	rng := rand.New(rand.NewPCG(f.seed, 3))
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(100+rng.IntN(400)) * time.Millisecond):
			f.operator(rng)
		}
	}
	wg.Wait()
}

func (f *field) operator(rng *rand.Rand) {
	w := f.w
	i := rng.IntN(len(fieldDevices))
	busy := filepath.Join(f.dir, fieldDevices[i], "run/gitopsd/busy")
	switch rng.IntN(5) {
	case 0, 1:
		w.target = versions[rng.IntN(len(versions))]
	case 2:
		w.paused = !w.paused
	case 3:
		w.places[i].hold = !w.places[i].hold
		f.push("hold or release", map[string][]byte{w.places[i].path(i): w.deviceYAML(i)})
		return
	case 4:
		if os.Remove(busy) != nil {
			must(os.MkdirAll(filepath.Dir(busy), 0o755))
			must(os.WriteFile(busy, nil, 0o644))
		}
		return
	}
	f.push("the operator's mind changed", map[string][]byte{"policies/gateways.yaml": f.policy()})
}

// calm is the second half: nothing fails any more, and the fleet has to come
// to rest.
func (f *field) calm() {
	w := f.w
	w.paused, w.target = false, w.last
	clear(w.places)
	files := map[string][]byte{"policies/gateways.yaml": f.policy()}
	for i, id := range fieldDevices {
		files[w.places[i].path(i)] = w.deviceYAML(i)
		_ = os.Remove(filepath.Join(f.dir, id, "run/gitopsd/busy")) // most are not busy
	}
	f.push("in the end", files)
	ctx, cancel := context.WithTimeout(f.t.Context(), calmTime)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { f.play(ctx, true) })
	why := "never looked"
	for ctx.Err() == nil && why != "" {
		time.Sleep(50 * time.Millisecond)
		why = f.atRest()
	}
	cancel()
	wg.Wait()
	if why != "" {
		f.t.Errorf("I4: run %d: within %s the fleet has not come to rest: %s", f.seed, calmTime, why)
	}
}

// atRest reads the status branch as anybody would.
func (f *field) atRest() (why string) {
	st, err := sweep.ReadStatus(f.t.Context(), f.repo, "")
	if err != nil {
		return err.Error()
	}
	for _, id := range fieldDevices {
		rec := st.Devices[id]
		if rec == nil {
			return id + " is not on the status branch"
		}
		for _, a := range rec.Status.Attempts {
			if a.Outcome == "" {
				return fmt.Sprintf("attempt %d of %s is open", a.Attempt, id)
			}
		}
		switch v := rec.Status.Verdict; v.Code {
		case "Current":
			if rec.Status.Observed.Version != f.w.target {
				return id + " is not on the target"
			}
		case "Failed", "Halted":
		default:
			return fmt.Sprintf("%s is %s: %s", id, v.Code, v.Reason)
		}
		refs, err := f.repo.Refs(f.t.Context(), schema.DefaultDeviceRefs+id)
		if err != nil {
			return err.Error()
		}
		tips, err := f.repo.Tips(f.t.Context(), refs, 1<<20)
		if err != nil {
			return err.Error()
		}
		delivered := tips[schema.DefaultDeviceRefs+id][assignmentFile]
		assigned, err := schema.Encode(rec.Assignment)
		if err != nil {
			return err.Error()
		}
		if rec.Assignment != nil && !bytes.Equal(delivered, assigned) {
			return "the delivery of " + id + " is not what the status branch says"
		}
	}
	return ""
}

// audit walks the history of the status branch, with what the devices wrote
// down themselves at hand.
func (f *field) audit(outcomes map[schema.Outcome]int) {
	ctx := f.t.Context()
	g := newGhost(f.w, &archive{ctx: ctx, repo: f.repo})
	var spans []span
	for _, id := range fieldDevices {
		spans = append(spans, f.ownLog(g, id)...)
		f.begun += len(g.device(id).acted)
	}
	refs, err := f.repo.Refs(ctx, statusRef)
	if err != nil {
		f.t.Fatal(err)
	}
	var commits []string
	if err := f.repo.Log(ctx, refs[statusRef], "", func(hash, _ string, _ time.Time, _ string) bool {
		commits = append(commits, hash)
		return true
	}); err != nil {
		f.t.Fatal(err)
	}
	lost := map[string]bool{}
	for i := len(commits) - 1; i >= 0; i-- {
		g.newStatus(commits[i], nil)
		g.hold()
		for id, s := range g.status {
			for _, a := range s.Attempts {
				if a.Outcome == schema.OutcomeLost {
					lost[attemptKey(id, a.Attempt)] = true
				}
			}
		}
	}
	f.together(g, spans, lost)
	outcomes[schema.OutcomeLost] += len(lost) // also those that came back
	for _, id := range fieldDevices {
		for _, a := range g.status[id].Attempts {
			if a.Outcome != schema.OutcomeLost {
				outcomes[a.Outcome]++
			}
		}
	}
	if g.violation != "" {
		f.t.Errorf("run %d: %s\n%s", f.seed, g.violation, f.logs())
	}
}

// span is a time in which a device changed itself by an attempt, by its own
// clock, which is everybody's here.
type span struct {
	id       string
	attempt  int64
	from, to time.Time
}

// ownLog reads what a device's agents logged, and tells the ghost; it gives
// the times in which the device was at work, as far as their ends were logged.
func (f *field) ownLog(g *ghost, id string) []span {
	data, err := os.ReadFile(filepath.Join(f.dir, id+".log"))
	if err != nil {
		f.t.Fatal(err)
	}
	d := g.device(id)
	var spans []span
	var now span
	version := ""
	for line := range strings.Lines(string(data)) {
		var l struct {
			Time    time.Time
			Msg     string
			Phase   string
			Attempt int64
			Version string
		}
		if json.Unmarshal([]byte(line), &l) != nil {
			continue // a line of a killed process, or what it says to people
		}
		switch {
		case l.Msg == "new version assigned":
			now, version = span{id: id, attempt: l.Attempt}, l.Version
		case l.Msg == "phase" && l.Phase == string(schema.PhaseApplying) && now.attempt != 0:
			d.acted[now.attempt] = true
			d.done[now.attempt] = f.w.kind(version) == good
			g.starts(release{policies[0], version}, id)
			if now.from.IsZero() {
				now.from = l.Time
			}
		case l.Msg == "already there":
			d.done[l.Attempt] = true
		case (l.Msg == "updated" || l.Msg == "rolled back") && !now.from.IsZero():
			now.to = l.Time
			spans = append(spans, now)
			now.from = time.Time{}
		}
	}
	return spans
}

// together is I2 for the times that are known: how many devices were at work
// at once whose attempts were never given up as lost.
func (f *field) together(g *ghost, spans []span, lost map[string]bool) {
	for _, s := range spans {
		n := 0
		for _, o := range spans {
			if !lost[attemptKey(o.id, o.attempt)] && !o.from.After(s.from) && o.to.After(s.from) {
				n++
			}
		}
		if n > f.w.maxInFlight {
			g.violate("I2: %d devices were at work at %s, maxInFlight is %d", n, s.from, f.w.maxInFlight)
		}
	}
}

func attemptKey(id string, attempt int64) string { return fmt.Sprintf("%s/%d", id, attempt) }

func (f *field) logs() string {
	var b strings.Builder
	files, _ := filepath.Glob(filepath.Join(f.dir, "*.log")) // the pattern is right
	for _, file := range files {
		data, _ := os.ReadFile(file) // what can be shown
		fmt.Fprintf(&b, "== %s\n%s", filepath.Base(file), data)
	}
	return b.String()
}

// archive gives the ghost the commits of a real repository.
type archive struct {
	ctx  context.Context
	repo *repo.Repo
}

func (a *archive) Files(commit string) map[string]string {
	files := map[string]string{}
	must(a.repo.Walk(a.ctx, commit, func(path, blob string, _ uint32) error {
		files[path] = blob
		return nil
	}))
	return files
}

func (a *archive) Content(blob string) []byte {
	data, err := a.repo.Blob(a.ctx, blob, 0)
	must(err)
	return data
}
