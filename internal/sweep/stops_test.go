package sweep

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

func wantStop(t *testing.T, p Pass, reason string) schema.Condition {
	t.Helper()
	for _, s := range p.Stops {
		if s.Reason == reason {
			if s.Message == "" || s.Remedy == "" {
				t.Fatalf("the stop %s says too little: %+v", reason, s)
			}
			return s
		}
	}
	t.Fatalf("stops are %+v, want %s", p.Stops, reason)
	return schema.Condition{}
}

func wantNoStop(t *testing.T, p Pass) {
	t.Helper()
	if len(p.Stops) > 0 {
		t.Fatalf("stops are %+v, want none", p.Stops)
	}
}

// untouched checks that sweeping on assigns nothing, and that fleet.yaml says
// why.
func (w *world) untouched(d *Daemon, reason string) {
	w.t.Helper()
	for range 5 {
		p := w.round(d)
		wantStop(w.t, p, reason)
		if len(p.Assigned) > 0 {
			w.t.Fatalf("assigned %+v while stopped", p.Assigned)
		}
	}
	for _, c := range w.status().Fleet.Conditions {
		if c.Reason == reason {
			return
		}
	}
	w.t.Fatalf("fleet.yaml does not say %s: %+v", reason, w.status().Fleet.Conditions)
}

func (w *world) resumes(d *Daemon) {
	w.t.Helper()
	w.until(d, "everybody on v1.1.0", func() bool { return w.on("v1.1.0") == len(w.devices) })
	p := w.round(d)
	wantNoStop(w.t, p)
	if c := w.status().Fleet.Conditions; len(c) > 0 {
		w.t.Fatalf("conditions are left over: %+v", c)
	}
}

func done(t *testing.T, n int) (*world, *Daemon) {
	w := newWorld(t, n)
	d := w.daemon()
	w.until(d, "everybody on v1.0.0", func() bool { return w.on("v1.0.0") == n })
	w.rounds(d, 2)
	return w, d
}

func TestStopHistoryRewritten(t *testing.T) {
	w, d := done(t, 3)
	old := w.repo.ref("refs/heads/main")
	w.policy["targetVersion"] = "v1.1.0"
	files := map[string]string{}
	for p, f := range w.repo.commits[old].tree.files() {
		files[p] = string(w.repo.blobs[f.blob])
	}
	files["policies/gateways.yaml"] = w.policyYAML()
	head := w.repo.pushOn("main", "", "rewritten", w.now, files)

	s := wantStop(t, w.round(d), "HistoryRewritten")
	if !strings.Contains(s.Message, old) || !strings.Contains(s.Message, head) || !strings.Contains(s.Remedy, "--accept-rewrite "+head) {
		t.Errorf("the stop names not both hashes: %+v", s)
	}
	w.untouched(d, "HistoryRewritten")
	wantStop(t, w.round(w.daemon(func(c *Config) { c.Accept.Rewrite = old })), "HistoryRewritten")
	d = w.daemon(func(c *Config) { c.Accept.Rewrite = head[:12] })
	wantNoStop(t, w.round(d))
	w.resumes(d)
}

func TestB03_SweptCommitIsGone(t *testing.T) {
	w, _ := done(t, 3)
	old := w.repo.ref("refs/heads/main")
	files := map[string]string{}
	for p, f := range w.repo.commits[old].tree.files() {
		files[p] = string(w.repo.blobs[f.blob])
	}
	w.repo.pushOn("main", "", "rewritten", w.now, files)
	delete(w.repo.commits, old)
	d := w.daemon()
	w.untouched(d, "HistoryRewritten")
}

func TestStaleReadIsNoRewrite(t *testing.T) {
	w, d := done(t, 3)
	old := w.repo.ref("refs/heads/main")
	w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	w.pass(time.Minute)
	w.sweep(d)
	w.repo.set("refs/heads/main", old) // a replica that lags
	before := w.commits()
	for range 3 {
		p := w.sweep(d)
		wantNoStop(t, p)
	}
	if w.commits() != before {
		t.Error("a stale read was committed")
	}
	w.resumes(d) // by the fleet that was swept, whatever this replica says
}

func TestStopBranchMissing(t *testing.T) {
	w, d := done(t, 3)
	head := w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	w.repo.set("refs/heads/main", "")
	w.repo.set("refs/heads/master", head)
	s := wantStop(t, w.round(d), "BranchMissing")
	if !strings.Contains(s.Message, "main") || !strings.Contains(s.Message, "master") {
		t.Errorf("B07: the stop does not name the branches: %s", s.Message)
	}
	w.untouched(d, "BranchMissing")
	w.repo.set("refs/heads/main", head)
	w.resumes(d)
}

func TestB07_DefaultBranchRenamed(t *testing.T) {
	w, d := done(t, 2)
	head := w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	w.repo.set("refs/heads/trunk", head)
	w.repo.set("refs/heads/main", "")
	w.repo.head = "trunk"
	wantNoStop(t, w.round(d))
	w.resumes(d)
}

func TestB06_EmptyRepository(t *testing.T) {
	w := newWorld(t, 1)
	head := w.repo.ref("refs/heads/main")
	w.repo.set("refs/heads/main", "")
	d := w.daemon()
	for range 2 {
		p := w.sweep(d)
		wantStop(t, p, "NoCommits")
		if p.Committed {
			t.Fatal("the daemon made the first branch of an empty repository")
		}
	}
	w.repo.set("refs/heads/main", head)
	w.until(d, "the device on v1.0.0", func() bool { return w.on("v1.0.0") == 1 })
}

func TestStopTooManyDeletions(t *testing.T) {
	w, d := done(t, 6)
	gone := map[string]string{}
	for i := 1; i <= 3; i++ {
		gone[fmt.Sprintf("devices/berlin/gw-%02d.yaml", i)] = ""
	}
	w.policy["targetVersion"] = "v1.1.0"
	gone["policies/gateways.yaml"] = w.policyYAML()
	w.push("remove three", gone)
	w.untouched(d, "TooManyDeletions")
	w.push("too few\n\nGitopsd-Accept-Deletions: 2", nil)
	w.untouched(d, "TooManyDeletions")
	w.push("yes\n\nGitopsd-Accept-Deletions: 3", nil)
	wantNoStop(t, w.round(d))
	w.until(d, "the rest on v1.1.0", func() bool { return w.on("v1.1.0") == 3 })
	for i := 1; i <= 3; i++ {
		if v := w.devices[fmt.Sprintf("gw-%02d", i)].current.Version; v != "v1.0.0" {
			t.Errorf("a removed device went to %s", v)
		}
	}
}

// What fleet.yaml says of deletions is what holds, whether it is more or less
// than the default.
func TestDeletionLimitOfTheFleet(t *testing.T) {
	for limit, stops := range map[string]bool{"3": false, "0": true, "50%": false} {
		w, d := done(t, 6)
		gone := map[string]string{"fleet.yaml": "apiVersion: gitopsd.dev/v1alpha1\nkind: Fleet\nspec: {deletionLimit: " + limit + "}\n"}
		w.push("a limit", gone)
		wantNoStop(t, w.round(d))
		for i := range 3 {
			gone[fmt.Sprintf("devices/berlin/gw-%02d.yaml", i+1)] = ""
			if stops {
				break // one is too many
			}
		}
		w.push("remove some", gone)
		if stops {
			w.untouched(d, "TooManyDeletions")
		} else {
			wantNoStop(t, w.round(d))
		}
	}
}

// The change that takes devices away does not lift its own limit, also for a
// daemon that has just begun.
func TestDeletionsDoNotLiftTheirOwnLimit(t *testing.T) {
	const doc = "apiVersion: gitopsd.dev/v1alpha1\nkind: Fleet\nspec: {deletionLimit: %s}\n"
	for name, lift := range map[string]string{"another limit": fmt.Sprintf(doc, "100%"), "no limit": ""} {
		t.Run(name, func(t *testing.T) {
			w, d := done(t, 6)
			w.push("a limit", map[string]string{"fleet.yaml": fmt.Sprintf(doc, "0")})
			wantNoStop(t, w.round(d))
			w.push("remove one", map[string]string{"fleet.yaml": lift, "devices/berlin/gw-01.yaml": ""})
			w.untouched(w.daemon(), "TooManyDeletions")
		})
	}
}

func TestAllDevicesGoneAlwaysStops(t *testing.T) {
	w, d := done(t, 2)
	w.push("empty", map[string]string{"devices/berlin/gw-01.yaml": "", "devices/berlin/gw-02.yaml": ""})
	w.untouched(d, "TooManyDeletions")
}

func TestMovedFileIsNoDeletion(t *testing.T) {
	w, d := done(t, 4)
	files := map[string]string{}
	for i := 1; i <= 4; i++ {
		id := fmt.Sprintf("gw-%02d", i)
		files["devices/berlin/"+id+".yaml"] = ""
		files["devices/oslo/rack/"+id+".yaml"] = deviceYAML(id, "")
	}
	generation := w.status().Devices["gw-01"].Assignment.Generation
	w.push("move", files)
	p := w.round(d)
	wantNoStop(t, p)
	st := w.status()
	if rec := st.Devices["gw-01"]; rec.Path != "devices/oslo/rack/gw-01.yaml" || rec.Assignment == nil || rec.Assignment.Generation != generation {
		t.Fatalf("the moved device's record is %+v", rec)
	}
	for path := range st.blobs {
		if strings.Contains(path, "berlin") {
			t.Errorf("%s is left over", path)
		}
	}
	w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	w.resumes(d)
}

func TestStopClock(t *testing.T) {
	for _, c := range []struct {
		name  string
		wrong func(w *world)
		right func(w *world)
	}{
		{"a year ahead", func(w *world) { w.now = w.now.AddDate(1, 0, 0) }, func(w *world) { w.now = w.now.AddDate(-1, 0, 0) }},
		{"ten minutes back", func(w *world) { w.now = w.now.Add(-10 * time.Minute) }, func(w *world) { w.now = w.now.Add(10 * time.Minute) }},
		{"two hours back after a boot", func(w *world) { w.now, w.boot, w.up = w.now.Add(-2*time.Hour), "boot-2", 0 }, func(w *world) { w.now = w.now.Add(2 * time.Hour) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, d := done(t, 3)
			w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
			c.wrong(w)
			for range 3 {
				p := w.sweep(d)
				wantStop(t, p, "ClockJumped")
				if len(p.Assigned)+len(p.Recalled)+len(p.Ended) > 0 {
					t.Fatalf("a wrong clock moved %+v", p)
				}
			}
			for id, rec := range w.status().Devices {
				if !rec.Status.Observed.Online {
					t.Errorf("%s is offline by a wrong clock", id)
				}
			}
			c.right(w)
			w.resumes(d)
		})
	}
	t.Run("accepted", func(t *testing.T) {
		w, d := done(t, 3)
		w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
		w.now, w.boot = w.now.Add(-48*time.Hour), "boot-2"
		wantStop(t, w.sweep(d), "ClockJumped")
		d = w.daemon(func(c *Config) { c.Accept.Clock = true })
		wantNoStop(t, w.sweep(d))
		w.resumes(w.daemon())
	})
}

func TestStopStatusMissing(t *testing.T) {
	w, d := done(t, 3)
	source := w.repo.ref("refs/heads/main")
	generation := w.status().Devices["gw-01"].Assignment.Generation
	w.repo.set(branchRef(schema.DefaultStatusBranch), "")
	for _, d := range []*Daemon{d, w.daemon()} {
		for range 2 {
			p, err := d.Once(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			wantStop(t, p, "StatusMissing")
			if p.Committed || w.repo.ref(branchRef(schema.DefaultStatusBranch)) != "" {
				t.Fatal("a lost status branch was written to")
			}
		}
	}
	w.rebuilds(source, generation)
}

// rebuilds accepts the loss and goes on to v1.1.0.
func (w *world) rebuilds(source string, generation int64) {
	w.t.Helper()
	d := w.daemon(func(c *Config) { c.Accept.StatusLoss = source })
	p := w.round(d)
	wantNoStop(w.t, p)
	st := w.status()
	for _, id := range w.ids() {
		rec := st.Devices[id]
		if rec == nil || rec.Assignment == nil || rec.Assignment.Generation != generation+1 {
			w.t.Fatalf("%s was rebuilt as %+v, want generation %d", id, rec, generation+1)
		}
		if a := lastAttempt(rec.Status); a == nil || a.Attempt != 1 || a.Outcome != schema.OutcomeOK {
			w.t.Fatalf("%s was rebuilt with the attempt %+v", id, a)
		}
	}
	w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	w.resumes(d)
	for _, id := range w.ids() {
		if a := w.attempt(id, 2); a.Outcome != schema.OutcomeOK {
			w.t.Fatalf("%s has attempt %+v", id, a)
		}
	}
}

func TestStopStatusRewound(t *testing.T) {
	w := newWorld(t, 3)
	d := w.daemon()
	w.sweep(d)
	old := w.repo.ref(branchRef(schema.DefaultStatusBranch))
	w.until(d, "everybody on v1.0.0", func() bool { return w.on("v1.0.0") == 3 })
	w.rounds(d, 2)
	source := w.repo.ref("refs/heads/main")
	w.repo.set(branchRef(schema.DefaultStatusBranch), old)
	for _, d := range []*Daemon{d, w.daemon()} {
		for range 2 {
			p, err := d.Once(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			wantStop(t, p, "StatusRewound")
			if w.repo.ref(branchRef(schema.DefaultStatusBranch)) != old {
				t.Fatal("a rewound status branch was written to")
			}
		}
	}
	w.rebuilds(source, 1)
}

func TestStopStatusFormat(t *testing.T) {
	w, d := done(t, 2)
	tip := w.repo.ref(branchRef(schema.DefaultStatusBranch))
	w.repo.push(schema.DefaultStatusBranch, "from the future", w.now, map[string]string{
		fleetFile: "apiVersion: gitopsd.dev/v9\nkind: FleetStatus\nformat: 2\nsomething: new\n",
	})
	newer := w.repo.ref(branchRef(schema.DefaultStatusBranch))
	for _, d := range []*Daemon{d, w.daemon(), w.daemon(func(c *Config) { c.Accept.StatusLoss = w.repo.ref("refs/heads/main") })} {
		p, err := d.Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wantStop(t, p, "StatusFormat")
		if w.repo.ref(branchRef(schema.DefaultStatusBranch)) != newer {
			t.Fatal("a newer status branch was written to")
		}
	}
	w.repo.set(branchRef(schema.DefaultStatusBranch), tip)
	w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	w.resumes(d)
}

func TestStopStatusUnreadable(t *testing.T) {
	w, d := done(t, 2)
	tip := w.repo.ref(branchRef(schema.DefaultStatusBranch))
	w.repo.push(schema.DefaultStatusBranch, "by hand", w.now, map[string]string{"devices/berlin/gw-01.yaml": "kind: [\n"})
	p, err := d.Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s := wantStop(t, p, "StatusUnreadable"); !strings.Contains(s.Message, "devices/berlin/gw-01.yaml") {
		t.Errorf("the stop does not name the file: %s", s.Message)
	}
	w.repo.set(branchRef(schema.DefaultStatusBranch), tip)
	w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	w.resumes(d)
}

// TestHandMadeStatusIsSaid: an edit of the status branch that can be read stops
// nobody, and is not written over without a word; commits of daemons are none.
func TestHandMadeStatusIsSaid(t *testing.T) {
	w, _ := done(t, 2)
	const file, said = "devices/berlin/gw-01.yaml", "no daemon made the commit"
	var one, two bytes.Buffer
	logTo := func(b *bytes.Buffer) func(*Config) {
		return func(c *Config) { c.Logger, c.State = slog.New(slog.NewTextHandler(b, nil)), t.TempDir() }
	}
	d, other := w.daemon(logTo(&one)), w.daemon(logTo(&two))
	w.sweep(d)
	w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	w.sweep(other)
	w.sweep(d)
	if text := one.String() + two.String(); strings.Contains(text, said) {
		t.Fatalf("the commit of a daemon is taken for one by hand:\n%s", text)
	}
	status := branchRef(schema.DefaultStatusBranch)
	before := string(w.repo.file(status, file))
	edited := strings.Replace(before, "code: ", "code: Held # was ", 1)
	if edited == before {
		t.Fatalf("there is no verdict to edit in\n%s", before)
	}
	w.repo.push(schema.DefaultStatusBranch, "gw-01: hands off", w.now, map[string]string{file: edited})
	for range 3 {
		w.sweep(d)
	}
	if got := string(w.repo.file(status, file)); got != before {
		t.Errorf("the edit was not written over:\n%s", got)
	}
	if n := strings.Count(one.String(), said); n != 1 || !strings.Contains(one.String(), "by=op@example.com") {
		t.Errorf("said %d times:\n%s", n, one.String())
	}
}

func TestStopInvalidHead(t *testing.T) {
	w, d := done(t, 3)
	w.policy["targetVersion"] = "v1.1.0"
	w.policy["maxInFlght"] = "3"
	w.push("typo", map[string]string{"policies/gateways.yaml": w.policyYAML()})
	s := wantStop(t, w.round(d), "InvalidFleet")
	if s.Type != conditionInvalid || !strings.Contains(s.Message, "policies/gateways.yaml:") {
		t.Errorf("the stop gives no position: %+v", s)
	}
	w.untouched(d, "InvalidFleet")
	w.untouched(w.daemon(), "InvalidFleet")
	delete(w.policy, "maxInFlght")
	w.push("corrected", map[string]string{"policies/gateways.yaml": w.policyYAML()})
	w.resumes(d)
}

func TestInvalidFirstHeadIsSaid(t *testing.T) {
	w := newWorld(t, 1)
	w.push("broken", map[string]string{"policies/gateways.yaml": "kind: Policy\n"})
	d := w.daemon()
	w.untouched(d, "InvalidFleet")
	w.push("corrected", map[string]string{"policies/gateways.yaml": w.policyYAML()})
	w.until(d, "the device on v1.0.0", func() bool { return w.on("v1.0.0") == 1 })
}

func TestInvalidHeadRestrictsAtOnce(t *testing.T) {
	w, d, dev := settled(t, 3)
	w.push("hold it, and break something else", map[string]string{
		"devices/berlin/" + dev.id + ".yaml": deviceYAML(dev.id, "  hold: {reason: stop}\n"),
		"releases/gateways/v1.2.0.yaml":      "kind: [\n",
	})
	w.pass(time.Minute)
	p := w.sweep(d)
	wantStop(t, p, "InvalidFleet")
	if len(p.Recalled) != 1 || p.Recalled[0].Device != dev.id {
		t.Fatalf("recalled %+v, want %s", p.Recalled, dev.id)
	}
	if doc := w.status().Devices[dev.id].Assignment; doc.Hold == nil || doc.Hold.Reason != "stop" {
		t.Fatalf("the hold of an invalid head does not reach the device: %+v", doc)
	}
	w.push("lift it, still broken", map[string]string{"devices/berlin/" + dev.id + ".yaml": deviceYAML(dev.id, "")})
	w.pass(time.Minute)
	w.sweep(d)
	w.push("corrected", map[string]string{"releases/gateways/v1.2.0.yaml": releaseYAML("v1.2.0")})
	w.resumes(d)
}

func TestInvalidHeadPauses(t *testing.T) {
	for _, kv := range [][2]string{{"paused", "{reason: wait}"}, {"enabled", "false"}} {
		t.Run(kv[0], func(t *testing.T) {
			w, d := done(t, 3)
			w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
			w.pass(time.Minute)
			w.sweep(d)
			w.policy[kv[0]] = kv[1]
			w.push("restrict, and break", map[string]string{
				"policies/gateways.yaml":        w.policyYAML(),
				"releases/gateways/v1.2.0.yaml": "kind: [\n",
			})
			w.rounds(d, 10)
			if n := w.on("v1.1.0"); n > 1 {
				t.Fatalf("%d devices moved on\n%s", n, w.describe())
			}
			state := w.status().Fleet.Rollouts[0].State
			if want := map[string]string{"paused": statePaused, "enabled": stateOff}[kv[0]]; state != want {
				t.Errorf("the rollout is %s, want %s", state, want)
			}
		})
	}
}

func TestB22_RefusedDeliveriesAreACondition(t *testing.T) {
	w := newWorld(t, 3)
	w.repo.refuse = func(ref string) string {
		if strings.HasPrefix(ref, schema.DefaultDeviceRefs) {
			return "only branches here"
		}
		return ""
	}
	d := w.daemon()
	w.rounds(d, 180)
	st := w.status()
	found := false
	for _, c := range st.Fleet.Conditions {
		found = found || (c.Type == conditionRefused && strings.Contains(c.Message, "only branches here") && c.Remedy != "")
	}
	if !found {
		t.Fatalf("conditions are %+v", st.Fleet.Conditions)
	}
	for id, rec := range st.Devices {
		if n := len(rec.Status.Attempts); n > 1 {
			t.Errorf("%s had %d attempts that it could not see", id, n)
		}
	}
	w.repo.refuse = nil
	w.until(d, "everybody on v1.0.0", func() bool { return w.on("v1.0.0") == 3 })
	w.rounds(d, 2)
	if c := w.status().Fleet.Conditions; len(c) > 0 {
		t.Fatalf("conditions are left over: %+v", c)
	}
}

// Who accepts what does not stop anything is told so, once.
func TestNothingToAcceptIsSaid(t *testing.T) {
	w, _ := done(t, 1)
	var logs bytes.Buffer
	head := w.repo.ref("refs/heads/main")
	d := w.daemon(func(c *Config) {
		c.Logger = slog.New(slog.NewTextHandler(&logs, nil))
		c.Accept = Accept{Rewrite: head, StatusLoss: head, Clock: true}
	})
	w.sweep(d)
	w.sweep(d)
	for _, flag := range []string{"--accept-rewrite", "--accept-status-loss", "--accept-clock"} {
		if n := strings.Count(logs.String(), "nothing to accept for "+flag); n != 1 {
			t.Errorf("%s: said %d times:\n%s", flag, n, logs.String())
		}
	}
}

// The remedy for a lost status branch can be copied: it names the commit that
// was swept last, also after a merge since, and the head where that is not known.
func TestTheRemedyNamesTheSweptCommit(t *testing.T) {
	w, _ := done(t, 2)
	swept := w.repo.ref("refs/heads/main")
	head := w.push("more", map[string]string{"files/motd": "hello\n"})
	w.repo.set(branchRef(schema.DefaultStatusBranch), "")
	p, err := w.daemon().Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s := wantStop(t, p, "StatusMissing"); !strings.Contains(s.Remedy, "--accept-status-loss="+swept+" ") {
		t.Errorf("with a state folder: %s", s.Remedy)
	}
	if p, err = w.daemon(func(c *Config) { c.State = "" }).Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := wantStop(t, p, "StatusMissing"); !strings.Contains(s.Remedy, "--accept-status-loss="+head+" ") {
		t.Errorf("without one: %s", s.Remedy)
	}
}

// gitopsd init makes no commit, so the remedy does not say so.
func TestTheRemedyForAnEmptyRepository(t *testing.T) {
	w := newWorld(t, 1)
	w.repo.set("refs/heads/main", "")
	p, err := w.daemon().Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s := wantStop(t, p, "NoCommits"); !strings.Contains(s.Remedy, "commit the fleet's files and push them") {
		t.Errorf("the remedy is %q", s.Remedy)
	}
}

// A daemon that starts on a fleet at rest reads the status branch once.
func TestStatusIsReadOnceAtRest(t *testing.T) {
	w, _ := done(t, 3)
	r := w.remote()
	d := w.daemon(func(c *Config) { c.Remote = r })
	w.sweep(d)
	r.log = nil
	w.pass(time.Second)
	w.sweep(d)
	if slices.Contains(r.log, "walk") {
		t.Errorf("the second pass did %v", r.log)
	}
}

// Whoever is told of passes hears of the head that stopped one, not only of
// the commit that is planned by.
func TestPassesAreTold(t *testing.T) {
	w := newWorld(t, 1)
	var heard []Pass
	d := w.daemon(func(c *Config) { c.Swept = func(p Pass) { heard = append(heard, p) } })
	w.until(d, "the device on v1.0.0", func() bool { return w.on("v1.0.0") == 1 })
	planned := heard[len(heard)-1]
	if head := w.repo.ref(branchRef("main")); planned.Head != head || planned.SourceCommit != head || len(planned.Stops) != 0 {
		t.Errorf("a pass over %s told of %+v", head, planned)
	}
	broken := w.push("broken", map[string]string{"policies/gateways.yaml": "kind: Policy\n"})
	w.sweep(d)
	if last := heard[len(heard)-1]; last.Head != broken || last.SourceCommit == broken || len(last.Stops) != 1 {
		t.Errorf("a pass over the invalid %s told of %+v", broken, last)
	}
}
