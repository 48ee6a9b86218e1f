package sweep

import (
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

func (w *world) remove(id string) {
	w.push("remove "+id, map[string]string{"devices/berlin/" + id + ".yaml": ""})
}

func TestRemovedDevice(t *testing.T) {
	w, d := done(t, 4)
	generation := w.status().Devices["gw-02"].Assignment.Generation
	w.remove("gw-02")
	w.pass(time.Minute)
	wantNoStop(t, w.sweep(d))
	doc := w.status().Devices["gw-02"].Assignment
	if !doc.Removed || doc.Spec != nil || doc.Generation != generation+1 {
		t.Fatalf("the document of a removed device is %+v", doc)
	}
	if w.devices["gw-02"].read().Generation != generation+1 {
		t.Fatal("it was not delivered")
	}
	w.until(d, "its delivery ref goes", func() bool { return w.repo.ref(schema.DefaultDeviceRefs+"gw-02") == "" })
	st := w.status()
	if st.Devices["gw-02"] != nil || st.Retired["gw-02"] == nil {
		t.Fatalf("the record is %+v, retired %+v", st.Devices["gw-02"], st.Retired["gw-02"])
	}
	for path := range st.blobs {
		if strings.Contains(path, "gw-02") && path != "retired/gw-02.yaml" {
			t.Errorf("%s is left over", path)
		}
	}
	if v := w.devices["gw-02"].current.Version; v != "v1.0.0" {
		t.Errorf("the removed device runs %s", v)
	}
	before := w.commits()
	for range 20 {
		w.pass(time.Minute)
		w.beat()
		w.sweep(d)
	}
	if w.commits() != before {
		t.Error("a retired device makes commits")
	}

	// It comes back, elsewhere: generation and attempt go on.
	w.push("gw-02 is back", map[string]string{"devices/oslo/gw-02.yaml": deviceYAML("gw-02", "")})
	w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	w.resumes(d)
	rec := w.status().Devices["gw-02"]
	if rec.Path != "devices/oslo/gw-02.yaml" || rec.Assignment.Attempt != 2 || rec.Assignment.Generation <= generation+1 {
		t.Fatalf("the returned device has generation %d, attempt %d at %s", rec.Assignment.Generation, rec.Assignment.Attempt, rec.Path)
	}
	if w.status().Retired["gw-02"] != nil {
		t.Error("it is still retired")
	}
}

func TestRemovedWhileAssigned(t *testing.T) {
	w, d, dev := settled(t, 4)
	w.remove(dev.id)
	w.pass(time.Minute)
	p := w.sweep(d)
	if len(p.Recalled) != 1 || len(p.Assigned) != 0 {
		t.Fatalf("a removed device's slot: %+v", p)
	}
	doc := w.status().Devices[dev.id].Assignment
	if !doc.Removed || doc.Recalled != 2 || doc.Spec != nil {
		t.Fatalf("the document is %+v", doc)
	}
	w.until(d, "the others on v1.1.0", func() bool { return w.on("v1.1.0") == 3 })
	w.rounds(d, 2)
	if dev.acted[2] {
		t.Fatal("the removed device was upgraded")
	}
	if rec := w.status().Retired[dev.id]; rec == nil || lastAttempt(rec.Status).Outcome != schema.OutcomeDeferred {
		t.Fatalf("what is left of it: %+v", rec)
	}
}

func TestRemovedWhileActingHoldsItsSlot(t *testing.T) {
	w, d, dev := settled(t, 4)
	w.until(d, "it acts", func() bool { return dev.acting() != 0 })
	w.remove(dev.id)
	w.pass(time.Minute)
	if p := w.sweep(d); len(p.Assigned) != 0 {
		t.Fatalf("its slot was given away: %+v", p.Assigned)
	}
	w.until(d, "everybody on v1.1.0", func() bool { return w.on("v1.1.0") == 4 })
}

func TestFailureOfRemovedDeviceHaltsOn(t *testing.T) {
	w, d, dev := settled(t, 4)
	dev.bad["v1.1.0"] = true
	w.until(d, "it failed", func() bool { return w.code(dev.id) == "Failed" })
	w.remove(dev.id)
	w.until(d, "it is retired", func() bool { return w.status().Retired[dev.id] != nil })
	w.rounds(d, 5)
	w.wantCodes(map[string]int{"Halted": 3})
	if m := w.status().Marks; len(m) != 1 || m[0].Marks[0].Device != dev.id {
		t.Errorf("marks are %+v", m)
	}
}

func TestDeviceBackBeforeItWasRetired(t *testing.T) {
	w, d := done(t, 4)
	w.devices["gw-02"].off = true // online, and does not see that it left
	w.remove("gw-02")
	w.pass(time.Minute)
	w.sweep(d)
	w.push("it is back", map[string]string{"devices/berlin/gw-02.yaml": deviceYAML("gw-02", "")})
	w.pass(time.Minute)
	w.sweep(d)
	doc := w.status().Devices["gw-02"].Assignment
	if doc.Removed || doc.Spec == nil || doc.Attempt != 1 || doc.Generation != 3 {
		t.Fatalf("the document of the returned device is %+v", doc)
	}
	w.devices["gw-02"].off = false
	w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	w.resumes(d)
}

func TestBadReportsBecomeProblems(t *testing.T) {
	for _, c := range []struct {
		name, want string
		break_     func(w *world, dev *fakeDevice)
	}{
		{"no YAML", "report.yaml:", func(w *world, dev *fakeDevice) {
			w.repo.force(schema.DefaultReportRefs+dev.id, map[string][]byte{reportFile: []byte("kind: [\n")})
		}},
		{"no file", "holds no report.yaml", func(w *world, dev *fakeDevice) {
			w.repo.force(schema.DefaultReportRefs+dev.id, map[string][]byte{"x": []byte("y")})
		}},
		{"too large", "larger than", func(w *world, dev *fakeDevice) {
			w.repo.force(schema.DefaultReportRefs+dev.id, map[string][]byte{reportFile: make([]byte, maxReport+1)})
		}},
		{"of another device", "another device", func(w *world, dev *fakeDevice) {
			other := *dev
			other.id = "gw-02"
			data := w.repo.file(schema.DefaultReportRefs+other.id, reportFile)
			w.repo.force(schema.DefaultReportRefs+dev.id, map[string][]byte{reportFile: data})
		}},
		{"an old sequence", "below", func(_ *world, dev *fakeDevice) {
			dev.seq = 0
			dev.heartbeat()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, d := done(t, 2)
			dev := w.devices["gw-01"]
			before := w.status().Devices["gw-01"].Status.Observed
			seq := dev.seq
			c.break_(w, dev)
			for range 2 {
				w.pass(time.Minute)
				w.sweep(d)
				got := w.status().Devices["gw-01"].Status.Observed
				if !strings.Contains(got.Problem, c.want) || strings.Contains(got.Problem, "\n") {
					t.Fatalf("the problem reads %q, want %q in it", got.Problem, c.want)
				}
				if got.Version != before.Version || got.InstallID != before.InstallID {
					t.Fatalf("a bad report replaced a good one: %+v", got)
				}
				d = w.daemon()
			}
			dev.seq = seq + 10
			dev.heartbeat()
			w.pass(time.Minute)
			w.sweep(d)
			if got := w.status().Devices["gw-01"].Status.Observed; got.Problem != "" {
				t.Fatalf("the problem stays: %q", got.Problem)
			}
		})
	}
}

func TestBadReportFreesNoSlot(t *testing.T) {
	w, d, dev := settled(t, 3)
	dev.poll()
	dev.poll() // announced
	dev.poll() // acts
	w.repo.force(schema.DefaultReportRefs+dev.id, map[string][]byte{reportFile: []byte("torn")})
	w.change("pause", "paused", "{reason: wait}")
	for range 3 {
		w.pass(time.Minute)
		w.sweep(d) // holds I2 and I3 while the device acts
	}
	if a := w.attempt(dev.id, 2); a.Outcome != "" {
		t.Fatalf("an attempt was freed by a report that nobody could read: %+v", a)
	}
}

func TestNeverGoodReport(t *testing.T) {
	w := newWorld(t, 1)
	w.repo.force(schema.DefaultReportRefs+"gw-01", map[string][]byte{reportFile: []byte("x: 1\n")})
	d := w.daemon()
	w.sweep(d)
	rec := w.status().Devices["gw-01"]
	if rec.Status.Verdict.Code != "NeverSeen" || rec.Status.Observed == nil || rec.Status.Observed.Problem == "" {
		t.Fatalf("status is %+v, observed %+v", rec.Status.Verdict, rec.Status.Observed)
	}
}

func TestOfflineAndBack(t *testing.T) {
	w, d := done(t, 2)
	dev := w.devices["gw-01"]
	dev.off = true
	seen := w.now
	w.rounds(d, 31)
	o := w.status().Devices["gw-01"].Status.Observed
	if o.Online || o.OfflineSince == nil || o.OfflineSince.After(seen) {
		t.Fatalf("after 31 minutes of silence: %+v (last heard before %v)", o, seen)
	}
	// Another daemon, which heard of the device only now, agrees.
	before := w.commits()
	other := w.daemon(func(c *Config) { c.State = "" })
	for range 3 {
		w.sweep(other)
		other.state.seen["gw-01"].At = w.now
		w.sweep(d)
	}
	if w.commits() != before {
		t.Fatal("two daemons take turns about a silent device")
	}
	w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	w.until(d, "the other one on v1.1.0", func() bool {
		return w.on("v1.1.0") == 1 || w.code("gw-02") == "FleetGuard" || w.code("gw-02") == "Queued"
	})
	if c := w.code("gw-01"); c != "Offline" {
		t.Fatalf("the silent device is %s", c)
	}
	dev.off = false
	dev.heartbeat()
	w.resumes(d)
}

func TestSettle(t *testing.T) {
	w := newWorld(t, 2)
	w.policy["settle"] = "5m"
	w.change("settle")
	d := w.daemon()
	w.until(d, "one is on target", func() bool {
		for _, rec := range w.status().Devices {
			if a := lastAttempt(rec.Status); a != nil && a.OnTargetAt != nil {
				return true
			}
		}
		return false
	})
	dev := w.moving()
	if doc := w.status().Devices[dev.id].Assignment; doc.Settle.D(0) != 5*time.Minute {
		t.Fatalf("the assignment says settle %v", doc.Settle)
	}
	w.rounds(d, 3)
	if a := w.attempt(dev.id, 1); a.Outcome != "" || w.on("v1.0.0") != 1 {
		t.Fatalf("it did not hold its slot while it settles: %+v", a)
	}
	dev.last.Settled = true
	dev.heartbeat()
	w.rounds(d, 1)
	if a := w.attempt(dev.id, 1); a.Outcome != schema.OutcomeOK {
		t.Fatalf("after it settled: %+v", a)
	}
}

func TestB19_FailuresOfTwoDevicesStandTogether(t *testing.T) {
	w := newWorld(t, 4)
	w.policy["maxInFlight"], w.policy["failureLimit"] = "2", "4"
	w.change("limits")
	d := w.daemon()
	for _, dev := range w.devices {
		dev.bad["v1.0.0"] = true
	}
	w.until(d, "all failed", func() bool { return w.codes()["Failed"] == 4 })
	if m := w.status().Marks; len(m) != 1 || len(m[0].Marks) != 4 || m[0].Halted {
		t.Fatalf("marks are %+v", m)
	}
}

func TestPlanNow(t *testing.T) {
	w, d := done(t, 3)
	w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	head := w.repo.ref("refs/heads/main")
	fleet, err := (&schema.Loader{}).Load(Source(t.Context(), w.remote(), head))
	if err != nil {
		t.Fatal(err)
	}
	res := PlanNow(fleet, w.status(), nil, w.now, "v0.1.0")
	want := ""
	for _, v := range res.Verdicts {
		if v.Upgrade {
			want = v.Device.ID
		}
	}
	if want == "" {
		t.Fatalf("the plan upgrades nobody: %+v", res.Verdicts)
	}
	if p := w.sweep(d); len(p.Assigned) != 1 || p.Assigned[0].Device != want {
		t.Errorf("the plan said %s, the sweep assigned %+v", want, p.Assigned)
	}

	res = PlanNow(fleet, nil, nil, w.now, "v0.1.0")
	codes := map[planner.Code]int{}
	for _, v := range res.Verdicts {
		codes[v.Code]++
	}
	if codes[planner.Upgrade] != 1 || codes[planner.Queued] != 2 {
		t.Errorf("without a status the codes are %v", codes)
	}
}

func TestAttemptsAreBounded(t *testing.T) {
	d := &draft{status: &schema.DeviceStatus{}}
	now := epoch
	for i := int64(1); i <= 200; i++ {
		o := schema.OutcomeDeferred
		if i%3 == 0 {
			o = schema.OutcomeFailed
		}
		d.status.Attempts = append(d.status.Attempts, schema.Attempt{Attempt: i, Outcome: o, EndedAt: &now})
		d.trim()
	}
	failures := 0
	for i, a := range d.status.Attempts {
		if isFailure(a.Outcome) {
			failures++
		}
		if i > 0 && a.Attempt <= d.status.Attempts[i-1].Attempt {
			t.Fatal("out of order")
		}
	}
	if failures != keptFailures || len(d.status.Attempts) > keptFailures+keptAttempts {
		t.Errorf("kept %d attempts with %d failures", len(d.status.Attempts), failures)
	}
	if d.lastNumber() != 200 {
		t.Errorf("the last number is %d", d.lastNumber())
	}
}

func TestRefOfRetiredDeviceGoesInTheEnd(t *testing.T) {
	w, d := done(t, 4)
	w.remove("gw-02")
	ref := schema.DefaultDeviceRefs + "gw-02"
	left := false
	w.repo.refuse = func(r string) string {
		if r == ref && left {
			return "no deletions"
		}
		return ""
	}
	for range 5 {
		w.pass(time.Minute)
		w.devices["gw-02"].poll()
		left = w.status().Devices["gw-02"].Assignment.Removed
		if _, err := d.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w.status().Devices["gw-02"] == nil {
			break
		}
	}
	w.repo.refuse = nil
	if w.status().Retired["gw-02"] == nil || w.repo.ref(ref) == "" {
		t.Fatal("the device was not retired with its ref left behind")
	}
	again := w.daemon()
	w.sweep(again) // which reads what the device has seen
	w.pass(repairEvery)
	w.sweep(again)
	if w.repo.ref(ref) != "" {
		t.Fatal("the repair left the ref of a retired device")
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"a\nGitopsd-Accept-Deletions: 9": "a Gitopsd-Accept-Deletions: 9",
		"\x1b[31mred\x00":                "?[31mred?",
		" a\t b ":                        "a b",
		"gr\u00fcn \xff":                 "gr\u00fcn ?",
	} {
		if got := oneLine(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := oneLine(strings.Repeat("ä", 1000)); len(got) > 510 {
		t.Errorf("%d bytes are left of a long one", len(got))
	}
}
