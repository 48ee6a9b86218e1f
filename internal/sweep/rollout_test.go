package sweep

import (
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

func TestWholeRollout(t *testing.T) {
	w := newWorld(t, 5)
	d := w.daemon()
	w.until(d, "everybody on v1.0.0", func() bool { return w.on("v1.0.0") == 5 })
	w.rounds(d, 2)
	w.wantCodes(map[string]int{"Current": 5})

	source := w.change("gateways: v1.1.0", "targetVersion", "v1.1.0", "maxInFlight", "2")
	w.until(d, "everybody on v1.1.0", func() bool { return w.on("v1.1.0") == 5 })
	w.rounds(d, 2)
	w.wantCodes(map[string]int{"Current": 5})

	st := w.status()
	if st.Fleet.SourceCommit != source {
		t.Errorf("fleet.yaml names the source commit %s, want %s", st.Fleet.SourceCommit, source)
	}
	rec := st.Devices["gw-01"]
	if b := rec.Assignment.Because; b == nil || b.Commit != source || b.Subject != "gateways: v1.1.0" || b.Author != "op@example.com" || b.Policy != "gateways" {
		t.Errorf("the assignment gives the change %+v", b)
	}
	if got := st.Fleet.Rollouts[0]; got.State != stateDone || got.Done != 5 || got.Version != "v1.1.0" {
		t.Errorf("the rollout is %+v", got)
	}
	// The untemplated payload is one blob for all; templates differ.
	payloads := 0
	for path := range st.blobs {
		if strings.HasPrefix(path, payloadsDir) {
			payloads++
		}
	}
	if payloads != 6 {
		t.Errorf("%d payloads on the status branch, want 6: one shared, five rendered", payloads)
	}
	if st.blobs[payloadPath(schema.PayloadDigest([]byte("welcome\n")))] != sum("blob", "welcome\n") {
		t.Error("the untemplated payload is not the very blob of the source branch")
	}
}

func TestDeliveryCarriesPayloads(t *testing.T) {
	w := newWorld(t, 1)
	d := w.daemon()
	w.until(d, "an assignment", func() bool { return w.repo.ref(schema.DefaultDeviceRefs+"gw-01") != "" })
	for _, content := range []string{"welcome\n", "name=gw-01\n"} {
		path := payloadsDir + strings.TrimPrefix(schema.PayloadDigest([]byte(content)), digestPrefix)
		if got := string(w.repo.file(schema.DefaultDeviceRefs+"gw-01", path)); got != content {
			t.Errorf("the delivery has %q at %s, want %q", got, path, content)
		}
	}
}

func TestBadReleaseHalts(t *testing.T) {
	w := newWorld(t, 6)
	d := w.daemon()
	w.until(d, "everybody on v1.0.0", func() bool { return w.on("v1.0.0") == 6 })
	w.rounds(d, 2)
	for _, dev := range w.devices {
		dev.bad["v1.1.0"] = true
	}
	w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	w.rounds(d, 30)

	started := 0
	for _, dev := range w.devices {
		if len(dev.acted) > 1 {
			started++
		}
	}
	if started != 1 {
		t.Fatalf("I6: %d devices ever started the bad release, want 1\n%s", started, w.describe())
	}
	w.wantCodes(map[string]int{"Failed": 1, "Halted": 5})
	st := w.status()
	if len(st.Marks) != 1 || !st.Marks[0].Halted || len(st.Marks[0].Marks) != 1 || st.Marks[0].Marks[0].Message == "" {
		t.Errorf("failure marks are %+v", st.Marks)
	}
	failed := st.Fleet.Rollouts[0].Failed
	if len(failed) != 1 || st.Fleet.Rollouts[0].State != stateHalted {
		t.Fatalf("the rollout is %+v", st.Fleet.Rollouts[0])
	}
	if doc := st.Devices[failed[0]].Assignment; doc.Spec != nil || doc.Recalled == 0 {
		t.Errorf("the document of the failed attempt is still there to be begun: %+v", doc)
	}

	// The fix goes to the one that failed first.
	for _, dev := range w.devices {
		dev.bad = map[string]bool{}
	}
	w.push("fix v1.1.0", map[string]string{"releases/gateways/v1.1.0.yaml": strings.Replace(releaseYAML("v1.1.0"), "v1.1.0 {{", "v1.1.0 fixed {{", 1)})
	p := w.sweep(d)
	if len(p.Assigned) != 1 || p.Assigned[0].Device != failed[0] {
		t.Errorf("the fix was first assigned to %+v, want %s", p.Assigned, failed[0])
	}
	w.until(d, "everybody on the fixed v1.1.0", func() bool { return w.on("v1.1.0") == 6 })
	w.rounds(d, 2)
	w.wantCodes(map[string]int{"Current": 6})
}

func TestB17_NoChangeNoCommit(t *testing.T) {
	w := newWorld(t, 4)
	d := w.daemon()
	w.devices["gw-03"].held = true
	w.devices["gw-04"].off = true
	w.until(d, "two on v1.0.0", func() bool { return w.on("v1.0.0") == 2 })
	w.rounds(d, 10)
	before := w.commits()
	for i := range 1000 {
		w.pass(time.Minute)
		w.beat()
		if i == 500 {
			d = w.daemon() // a restart is no change either
		}
		if p := w.sweep(d); p.Committed {
			t.Fatalf("sweep %d committed without a change:\n%s", i, w.repo.commits[w.repo.ref(branchRef(schema.DefaultStatusBranch))].message)
		}
	}
	if after := w.commits(); after != before {
		t.Fatalf("%d commits after 1000 sweeps without change, %d before", after, before)
	}
}

func TestIdleSweepIsOneRequest(t *testing.T) {
	w := newWorld(t, 3)
	remote := w.remote()
	d := w.daemon(func(c *Config) { c.Remote = remote })
	w.until(d, "everybody on v1.0.0", func() bool { return w.on("v1.0.0") == 3 })
	w.rounds(d, 3)
	w.sweep(d)
	remote.log = nil
	w.pass(time.Minute)
	rest := d.rest
	if _, err := d.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rest == nil || d.rest != rest {
		t.Errorf("the fleet is at rest, but was planned again")
	}
	if got := strings.Join(remote.log, " "); got != "refs fetch" {
		t.Errorf("an idle sweep asked for %q", got)
	}
}

func TestStatusInMemoryIsStatusOnBranch(t *testing.T) {
	w := newWorld(t, 4)
	d := w.daemon()
	w.devices["gw-02"].bad["v1.0.0"] = true
	for range 15 {
		w.round(d)
		fresh := w.status()
		if len(fresh.blobs) != len(d.status.blobs) {
			t.Fatalf("in memory %d paths, on the branch %d", len(d.status.blobs), len(fresh.blobs))
		}
		for id, rec := range fresh.Devices {
			a, _ := schema.Encode(rec.Status)
			b, _ := schema.Encode(d.status.Devices[id].Status)
			if string(a) != string(b) {
				t.Fatalf("%s on the branch:\n%s\nin memory:\n%s", id, a, b)
			}
		}
	}
}

func TestCommitMessagesAreForPeople(t *testing.T) {
	w := newWorld(t, 2)
	d := w.daemon()
	w.sweep(d)
	tip := func() string { return w.repo.commits[w.repo.ref(branchRef(schema.DefaultStatusBranch))].message }
	if !strings.HasPrefix(tip(), "first sweep\n\n") || !strings.Contains(tip(), "\nGitopsd-Source: "+w.repo.ref("refs/heads/main")+"\n") {
		t.Errorf("first message:\n%s", tip())
	}
	w.until(d, "an assignment", func() bool {
		for range w.status().Devices {
			if w.repo.ref(schema.DefaultDeviceRefs+"gw-01") != "" || w.repo.ref(schema.DefaultDeviceRefs+"gw-02") != "" {
				return true
			}
		}
		return false
	})
	if !strings.Contains(tip(), " gets v1.0.0\n\n") {
		t.Errorf("message of an assignment:\n%s", tip())
	}
	for _, line := range strings.Split(tip(), "\n")[:1] {
		if len(line) > maxSubject {
			t.Errorf("the subject has %d characters: %s", len(line), line)
		}
	}
}

// A person who reads the log sees what each commit changed, also where no
// attempt moved.
func TestSubjectsSayWhatChanged(t *testing.T) {
	w, d := done(t, 4)
	want := func(subject string, change func()) {
		t.Helper()
		change()
		w.pass(time.Minute)
		before := w.commits()
		w.sweep(d)
		if w.commits() != before+1 || w.subjects(1)[0] != subject {
			t.Errorf("%d commits, subjects %q, want %q", w.commits()-before, w.subjects(w.commits()-before), subject)
		}
	}
	one, two := w.devices["gw-01"], w.devices["gw-02"]
	want("status: gw-01 is busy", func() { one.busy = true; one.heartbeat() })
	want("status: gw-01 is no longer busy; and 1 more device", func() { one.busy = false; one.heartbeat(); two.busy = true; two.heartbeat() })
	want("status: gw-02 is held on the device", func() { two.busy, two.held = false, true; two.heartbeat() })
	want("status: gw-01 is offline; and 3 more devices", func() { w.pass(time.Hour) })
}
