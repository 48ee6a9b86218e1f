package sweep

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// twins are two machines that report under the name of one device.
func twins(t *testing.T, n int) (*world, [2]*fakeDevice) {
	w := newWorld(t, n)
	w.state = ""
	a := w.devices["gw-01"]
	b := newFakeDevice(t, w.repo, func() time.Time { return w.now }, "gw-01")
	b.install = "install-b"
	delete(w.devices, "gw-01") // it takes its turns by hand
	return w, [2]*fakeDevice{a, b}
}

// turn is a whole run of one machine's agent.
func turn(dev *fakeDevice) {
	dev.heartbeat()
	for range 5 {
		dev.poll()
	}
}

// others lets the rest of the fleet go on.
func (w *world) others() {
	for _, id := range w.ids() {
		w.devices[id].poll()
	}
	w.beat()
}

// A daemon that forgets everything between two passes, as in a pipeline, finds
// two machines under one name all the same, says so in few commits, and lets
// the others go on; once one of them is gone the other one is itself again.
func TestDuplicateIsFoundWithoutMemory(t *testing.T) {
	w, pair := twins(t, 2)
	step := func(dev *fakeDevice) {
		turn(dev)
		w.others()
		w.pass(time.Minute)
		w.sweep(w.daemon())
	}
	for i := range 6 {
		step(pair[i%2])
	}
	if w.code("gw-01") != "Duplicate" {
		t.Fatalf("two machines under one name are %s\n%s", w.code("gw-01"), w.describe())
	}
	for i := range 30 {
		step(pair[i%2])
		if got := w.code("gw-01"); got != "Duplicate" {
			t.Fatalf("turn %d: %s\n%s", i, got, w.describe())
		}
	}
	if w.on("v1.0.0") != 1 || w.code("gw-02") != "Current" {
		t.Fatalf("the other device is %s\n%s", w.code("gw-02"), w.describe())
	}
	before := w.commits()
	for i := range 60 {
		step(pair[i%2])
	}
	if n := w.commits() - before; n > 4 {
		t.Fatalf("%d commits in an hour of turns, want one in a quarter of an hour at most", n)
	}

	single := pair[1]
	for range 59 {
		step(single)
		if got := w.code("gw-01"); got != "Duplicate" {
			t.Fatalf("%s before an hour of one machine alone", got)
		}
	}
	for range 60 {
		step(single)
	}
	if w.code("gw-01") != "Current" || single.current.Version != "v1.0.0" {
		t.Fatalf("the one that is left is %s at %s\n%s", w.code("gw-01"), single.current.Version, w.describe())
	}
}

// A daemon that remembers and one that does not are of one mind.
func TestDuplicateForEveryDaemon(t *testing.T) {
	w, pair := twins(t, 2)
	long := w.daemon()
	for i := range 8 {
		turn(pair[i%2])
		w.others()
		w.pass(time.Minute)
		w.sweep(long)
	}
	w.sweep(w.daemon()) // it keeps no payloads of what was taken back
	before := w.commits()
	for i := range 5 {
		w.pass(time.Minute)
		if p := w.sweep(w.daemon()); len(p.Assigned) > 0 {
			t.Fatalf("assigned %+v", p.Assigned)
		}
		w.sweep(long)
		if w.code("gw-01") != "Duplicate" {
			t.Fatalf("pass %d: %s\n%s", i, w.code("gw-01"), w.describe())
		}
	}
	if w.commits() != before {
		t.Fatalf("commits although nothing was reported:\n%s", strings.Join(w.subjects(w.commits()-before), "\n"))
	}
}

// A machine that is alone but silent proves nothing.
func TestDuplicateIsKeptWhileNobodyReports(t *testing.T) {
	w, pair := twins(t, 2)
	for i := range 6 {
		turn(pair[i%2])
		w.pass(time.Minute)
		w.sweep(w.daemon())
	}
	w.pass(5 * time.Hour)
	w.sweep(w.daemon())
	if w.code("gw-01") != "Duplicate" {
		t.Fatalf("it is %s\n%s", w.code("gw-01"), w.describe())
	}
}

func TestOneNewInstallationIsNoDuplicate(t *testing.T) {
	w, d, dev := settled(t, 2)
	w.until(d, "everybody on v1.1.0", func() bool { return w.on("v1.1.0") == 2 })
	dev.install, dev.seq = "install-new", 0
	dev.current = schema.SpecRef{Version: AssumedVersion}
	for range 20 {
		w.round(w.daemon())
		if w.code(dev.id) == "Duplicate" {
			t.Fatal(w.describe())
		}
	}
}

// Two machines with copies of one disk have one installation id; they are told
// apart by their boots, in few commits, and in the end the one that is left is
// itself again.
func TestClonedDiskIsFound(t *testing.T) {
	for name, ahead := range map[string]int64{"both count on": 0, "an old copy": 40} {
		t.Run(name, func(t *testing.T) {
			w, pair := twins(t, 2)
			w.state = t.TempDir()
			pair[0].boot = "boot-a"
			step := func(dev *fakeDevice) {
				turn(dev)
				w.others()
				w.pass(time.Minute)
				w.sweep(w.daemon())
			}
			for range 12 {
				step(pair[0])
			}
			if got := w.code("gw-01"); got != "Current" {
				t.Fatalf("one machine is %s\n%s", got, w.describe())
			}
			clone := *pair[0]
			clone.boot = "boot-b"
			clone.acted = map[int64]bool{}
			pair[0].seq += ahead
			pair[1] = &clone
			for i := range 4 {
				step(pair[i%2])
			}
			if got := w.code("gw-01"); got != "Duplicate" {
				t.Fatalf("two machines are %s\n%s", got, w.describe())
			}
			before := w.commits()
			for i := range 120 {
				step(pair[i%2])
				if got := w.code("gw-01"); got != "Duplicate" {
					t.Fatalf("turn %d: %s\n%s", i, got, w.describe())
				}
			}
			if n := w.commits() - before; n > 8 {
				t.Fatalf("%d commits in two hours: %q", n, w.subjects(n))
			}
			single := pair[0]
			single.boot = "boot-c"
			for range 80 {
				step(single)
			}
			if got := w.code("gw-01"); got != "Current" {
				t.Fatalf("the one that is left is %s\n%s", got, w.describe())
			}
		})
	}
}

// A machine that is started again and again is one machine, also where a
// report is read late.
func TestRestartsAreNoDuplicate(t *testing.T) {
	w, _ := done(t, 2)
	dev := w.devices["gw-01"]
	ref := schema.DefaultReportRefs + dev.id
	for i := range 12 {
		late := w.repo.file(ref, reportFile)
		dev.boot = fmt.Sprintf("boot-%d", i)
		dev.heartbeat()
		w.pass(time.Minute)
		w.sweep(w.daemon())
		newest := w.repo.file(ref, reportFile)
		for _, text := range [][]byte{late, newest} { // a replica that lags
			w.repo.force(ref, map[string][]byte{reportFile: text})
			w.pass(time.Minute)
			w.sweep(w.daemon())
			if got := w.code(dev.id); got != "Current" {
				t.Fatalf("restart %d: %s\n%s", i, got, w.describe())
			}
		}
	}
}
