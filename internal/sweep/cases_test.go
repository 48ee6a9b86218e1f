package sweep

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gitopsd/gitopsd/schema"
)

// The tests of this file are named after what has gone wrong with other tools.

// files gives the files of a commit, to be changed and pushed elsewhere.
func (w *world) files(commit string) map[string]string {
	files := map[string]string{}
	for p, f := range w.repo.commits[commit].tree.files() {
		files[p] = string(w.repo.blobs[f.blob])
	}
	return files
}

// A branch that was forced back to an older commit stops nothing by itself: it
// may be a replica that lags. Work on top of the old commit is a rewrite.
func TestB01_BranchForcedBack(t *testing.T) {
	w, d := done(t, 3)
	older := w.repo.ref("refs/heads/main")
	newer := w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	w.resumes(d)
	w.repo.set("refs/heads/main", older)
	before := w.commits()
	for _, d := range []*Daemon{d, w.daemon()} {
		for range 3 {
			wantNoStop(t, w.sweep(d))
		}
	}
	if w.commits() != before || w.on("v1.1.0") != 3 {
		t.Fatalf("%d commits, %d before; %d devices on v1.1.0", w.commits(), before, w.on("v1.1.0"))
	}
	head := w.push("on top of the old one", map[string]string{"files/motd": "hello\n"})
	s := wantStop(t, w.round(d), "HistoryRewritten")
	if !strings.Contains(s.Message, newer) || !strings.Contains(s.Message, head) {
		t.Errorf("the stop names not both commits: %+v", s)
	}
	w.untouched(d, "HistoryRewritten")
	w.repo.set("refs/heads/main", newer)
	wantNoStop(t, w.round(d))
}

// Each forced push is held until it is accepted, poll after poll, in the same
// words; nothing is merged.
func TestB02_ForcedPushesAreHeld(t *testing.T) {
	w, d := done(t, 3)
	base := w.repo.ref("refs/heads/main")
	for i := range 3 {
		files := w.files(base)
		w.policy["targetVersion"] = "v1.1.0"
		files["policies/gateways.yaml"] = w.policyYAML()
		files["files/motd"] = fmt.Sprintf("rewrite %d\n", i)
		w.repo.pushOn("main", "", fmt.Sprintf("rewrite %d", i), w.now, files)
		w.untouched(d, "HistoryRewritten")
		before := w.commits()
		for range 5 {
			wantStop(t, w.sweep(d), "HistoryRewritten")
		}
		if w.commits() != before {
			t.Fatalf("rewrite %d: a stop that stays makes commits", i)
		}
	}
	head := w.repo.ref("refs/heads/main")
	d = w.daemon(func(c *Config) { c.Accept.Rewrite = head })
	wantNoStop(t, w.round(d))
	w.resumes(d)
	if got := w.status().Fleet.SourceCommit; got != head {
		t.Errorf("swept is %s, want %s", got, head)
	}
}

// The source branch moves at every call of a pass in turn: what is recorded
// is what was read, never something in between.
func TestB21_RecordedCommitIsTheOneThatWasRead(t *testing.T) {
	for n := 1; ; n++ {
		w, _ := done(t, 2)
		w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
		w.pass(time.Minute)
		remote := w.remote()
		moved := false
		remote.onCall = func(call int, _ string) {
			if call == n {
				moved = true
				w.push("moved meanwhile", map[string]string{"releases/gateways/v1.1.0.yaml": strings.Replace(releaseYAML("v1.1.0"), "v1.1.0 {{", "v1.1.0 moved {{", 1)})
			}
		}
		d := w.daemon(func(c *Config) { c.Remote = remote })
		p := w.sweep(d)
		if !moved {
			if n < 6 {
				t.Fatalf("a pass has only %d calls", n-1)
			}
			return
		}
		swept := w.status().Fleet.SourceCommit
		if p.SourceCommit != swept {
			t.Fatalf("call %d: the pass names %s, fleet.yaml %s", n, p.SourceCommit, swept)
		}
		fleet, err := (&schema.Loader{}).Load(Source(t.Context(), w.remote(), swept))
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Assigned) != 1 {
			t.Fatalf("call %d: assigned %+v", n, p.Assigned)
		}
		doc := w.status().Devices[p.Assigned[0].Device].Assignment
		if want := fleet.Member(p.Assigned[0].Device).Rendered.Digest; doc.Digest != want || doc.Because.Commit != swept {
			t.Fatalf("call %d: assigned %s because of %s; %s renders to %s", n, doc.Digest, doc.Because.Commit, swept, want)
		}
	}
}

// A server that refuses the status commit: its words are told, what devices
// report is not lost, nothing new begins, and each verdict is written once.
func TestB22_RefusedStatusCommit(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w, d, dev := settled(t, 3)
		w.until(d, "it acts", func() bool { return dev.acting() != 0 })
		w.repo.refuse = func(ref string) string {
			if ref == branchRef(schema.DefaultStatusBranch) {
				return "signed commits only"
			}
			return ""
		}
		deliveries := maps.Clone(w.repo.refs)
		before := w.commits()
		for range 20 {
			for _, id := range w.ids() {
				w.devices[id].poll()
			}
			w.pass(time.Minute)
			w.beat()
			p, err := d.Once(t.Context())
			if err != nil && !strings.Contains(err.Error(), "signed commits only") {
				t.Fatalf("the error does not repeat the server: %v", err)
			}
			if len(p.Assigned) > 0 && err == nil {
				t.Fatalf("assigned %+v", p.Assigned)
			}
		}
		if dev.acting() != 0 {
			t.Fatal("the device did not end its update")
		}
		for ref, commit := range w.repo.refs {
			if !strings.HasPrefix(ref, schema.DefaultReportRefs) && deliveries[ref] != commit {
				t.Errorf("%s moved to %s without a status commit", ref, commit)
			}
		}
		w.repo.refuse = nil
		w.sweep(d)
		if a := w.attempt(dev.id, 2); a.Outcome != schema.OutcomeOK {
			t.Fatalf("the verdict was lost: %+v", a)
		}
		if w.commits() != before+1 {
			t.Errorf("%d commits for what was held up, want 1", w.commits()-before)
		}
		w.resumes(d)
		for _, id := range w.ids() {
			if n := len(w.status().Devices[id].Status.Attempts); n != 2 {
				t.Errorf("%s has %d attempts, want 2", id, n)
			}
		}
	})
}

// A version that a device failed is not offered to it again because time
// passes or a commit is made; only because its content changes, or because a
// person says so.
func TestB55_FailedVersionIsNotOfferedAgain(t *testing.T) {
	for name, again := range map[string]func(w *world){
		"content": func(w *world) {
			w.push("fix", map[string]string{"releases/gateways/v1.1.0.yaml": strings.Replace(releaseYAML("v1.1.0"), "v1.1.0 {{", "v1.1.0 fixed {{", 1)})
		},
		"forgotten": func(w *world) {
			w.change("try again", "forgetFailuresBefore", w.now.Format(`"2006-01-02T15:04:05Z"`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, d := done(t, 2)
			for _, dev := range w.devices {
				dev.bad["v1.1.0"] = true
			}
			w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
			w.until(d, "one failed", func() bool { return w.codes()["Failed"] == 1 })
			tries := func() int {
				n := 0
				for _, rec := range w.status().Devices {
					for _, a := range rec.Status.Attempts {
						if a.Version == "v1.1.0" {
							n++
						}
					}
				}
				return n
			}
			for i := range 50 {
				switch i {
				case 10:
					w.push("a comment", map[string]string{"releases/gateways/v1.1.0.yaml": "# better\n" + releaseYAML("v1.1.0")})
				case 20:
					w.push("elsewhere", map[string]string{"README.md": "hello\n"})
				case 30:
					d = w.daemon()
				}
				w.round(d)
				if n := tries(); n != 1 {
					t.Fatalf("round %d: v1.1.0 was offered %d times", i, n)
				}
			}
			for _, dev := range w.devices {
				dev.bad = map[string]bool{}
			}
			again(w)
			w.resumes(d)
		})
	}
}

// Several markers say what was done; that one of them matches is no reason to
// leave the others as they are. What failed for good is not done again, on
// the other hand.
func TestB57_AllMarkersCount(t *testing.T) {
	w, d := done(t, 3)
	swept := w.status().Fleet.SourceCommit
	for what, edit := range map[string]func(old string) string{
		"verdict":  func(old string) string { return strings.Replace(old, "code: Current", "code: Queued", 1) },
		"observed": func(old string) string { return strings.Replace(old, "version: v1.0.0", "version: v0.9.0", 1) },
	} {
		path := "devices/berlin/gw-02.yaml"
		old := string(w.repo.file(branchRef(schema.DefaultStatusBranch), path))
		if edit(old) == old {
			t.Fatalf("%s: nothing to change in\n%s", what, old)
		}
		w.repo.push(schema.DefaultStatusBranch, what, w.now, map[string]string{path: edit(old)})
		if got := w.status().Fleet.SourceCommit; got != swept {
			t.Fatalf("%s: fleet.yaml says %s", what, got)
		}
		w.rounds(d, 2)
		// What is written anew takes the newest report.
		sequence := regexp.MustCompile(`sequence: \d+`)
		got := sequence.ReplaceAllString(string(w.repo.file(branchRef(schema.DefaultStatusBranch), path)), sequence.FindString(old))
		if got != old {
			t.Errorf("%s: the file is (+), want (-):\n%s", what, cmp.Diff(old, got))
		}
	}

	for _, dev := range w.devices {
		dev.refuses["v1.1.0"] = true
	}
	w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	w.until(d, "all refused it", func() bool { return w.codes()["Refused"] == 3 })
	w.rounds(d, 2)
	before := w.commits()
	for range 50 {
		w.round(d)
	}
	if w.commits() != before {
		t.Errorf("%d commits after nothing happened: %s", w.commits()-before, w.repo.commits[w.repo.ref(branchRef(schema.DefaultStatusBranch))].message)
	}
	for _, id := range w.ids() {
		if n := len(w.status().Devices[id].Status.Attempts); n != 2 {
			t.Errorf("%s has %d attempts, want 2", id, n)
		}
	}
}

// A rollout in which nobody has done anything does not look finished.
func TestB59_NothingDoneIsNotDone(t *testing.T) {
	state := func(w *world) schema.RolloutStatus { return w.status().Fleet.Rollouts[0] }
	for name, c := range map[string]struct {
		devices int
		prepare func(w *world)
		want    string
		done    int
		code    string
	}{
		"all offline": {3, func(w *world) {
			for _, dev := range w.devices {
				dev.off = true
			}
		}, stateWaiting, 0, "NeverSeen"},
		"all held": {3, func(w *world) {
			for _, dev := range w.devices {
				dev.held = true
			}
		}, stateWaiting, 0, "Held"},
		"cannot tell": {3, func(w *world) {
			for _, dev := range w.devices {
				dev.current.Version = "unknown"
			}
		}, stateWaiting, 0, "UnknownVersion"},
		"selects nobody": {2, func(w *world) {
			w.push("other labels", map[string]string{
				"devices/berlin/gw-01.yaml": strings.Replace(deviceYAML("gw-01", ""), "role: gateway", "role: none", 1),
				"devices/berlin/gw-02.yaml": strings.Replace(deviceYAML("gw-02", ""), "role: gateway", "role: none", 1),
			})
		}, stateWaiting, 0, "Excluded"},
		"already there": {3, func(w *world) {
			fleet, err := (&schema.Loader{}).Load(Source(w.t.Context(), w.remote(), w.repo.ref("refs/heads/main")))
			if err != nil {
				w.t.Fatal(err)
			}
			for id, dev := range w.devices {
				dev.current = schema.SpecRef{Version: "v1.0.0", Digest: fleet.Member(id).Rendered.Digest}
			}
		}, stateDone, 3, "Current"},
		"already beyond": {3, func(w *world) {
			for _, dev := range w.devices {
				dev.current.Version = "v9.0.0"
			}
		}, stateDone, 0, "Newer"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.devices)
			c.prepare(w)
			d := w.daemon()
			w.rounds(d, 5)
			w.wantCodes(map[string]int{c.code: c.devices})
			if got := state(w); got.State != c.want || got.Done != c.done {
				t.Errorf("the rollout is %s with %d done, want %s with %d", got.State, got.Done, c.want, c.done)
			}
		})
	}
}

// A rollout that went through with failures within the limit says so.
func TestB63_DoneWithFailures(t *testing.T) {
	w := newWorld(t, 10)
	w.policy["failureLimit"], w.policy["maxInFlight"] = "20%", "3"
	w.change("limits")
	bad := []string{"gw-04", "gw-07"}
	for _, id := range bad {
		w.devices[id].bad["v1.0.0"] = true
	}
	d := w.daemon()
	w.until(d, "all had their turn", func() bool { return w.codes()["Failed"] == 2 && w.codes()["Current"] == 8 })
	w.rounds(d, 2)
	r := w.status().Fleet.Rollouts[0]
	if r.State == stateDone || r.Done != 8 || r.Attention != 2 || !slices.Equal(r.Failed, bad) {
		t.Errorf("the rollout is %+v", r)
	}
}

// However many devices have something new, a pass is one commit.
func TestB131_OneCommitForAllDevices(t *testing.T) {
	const n = 40
	w := newWorld(t, n)
	w.policy["maxInFlight"], w.policy["minAvailable"] = fmt.Sprint(n), "0"
	w.change("all at once")
	d := w.daemon()
	for i := range 12 {
		for _, id := range w.ids() {
			w.devices[id].poll()
		}
		w.pass(time.Minute)
		before := w.commits()
		w.sweep(d)
		if made := w.commits() - before; made > 1 {
			t.Fatalf("pass %d made %d commits", i, made)
		}
	}
	if got := w.on("v1.0.0"); got != n {
		t.Fatalf("%d devices on v1.0.0", got)
	}
	if c := w.commits(); c > 8 {
		t.Errorf("%d commits for a rollout of %d devices at once", c, n)
	}
}

// While passes fail, the log says since when, when one worked last, and why,
// once for each reason; then that it works again.
func TestB135_FailingSince(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.state = ""
		remote := w.remote()
		var logs bytes.Buffer
		// The daemon reads the clock in every pass: what the test changed in
		// between happens before that, for the race detector too.
		var between sync.Mutex
		now := func() time.Time {
			between.Lock()
			defer between.Unlock()
			return time.Now()
		}
		change := func(onCall func(int, string)) {
			between.Lock()
			defer between.Unlock()
			remote.onCall, remote.failAt = onCall, 0
			logs.Reset()
		}
		d := w.daemon(func(c *Config) {
			c.Remote, c.Now = remote, now
			c.Uptime = func() (time.Duration, string, error) { return time.Since(epoch), "boot", nil }
			c.Logger = slog.New(slog.NewTextHandler(&logs, nil))
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.Run(ctx) }()
		time.Sleep(150 * time.Second)
		synctest.Wait()
		good := time.Now().Truncate(time.Minute).UTC().Format(time.RFC3339)
		change(func(int, string) { remote.failAt = remote.calls })
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		since := logs.String()
		if strings.Count(since, "\n") != 1 || !strings.Contains(since, errCut.text) || !strings.Contains(since, "last_good="+good) || !strings.Contains(since, " since=") {
			t.Errorf("half an hour of failures (last good one %s) are told as\n%s", good, since)
		}
		_, from, _ := strings.Cut(since, " since=")
		from, _, _ = strings.Cut(from, " ")
		change(nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := logs.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "works again") || !strings.Contains(got, "since="+from) {
			t.Errorf("the end of it (since %s) is told as\n%s", from, got)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
}
