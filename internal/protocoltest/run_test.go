package protocoltest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// realEvery is how many schedules have one with real agents among them;
// GITOPSD_REAL_EVERY is another number, 1 for nothing else.
const realEvery = 12

// restRounds bounds how long a fleet may take to come to rest, in rounds of
// restStep: every timeout of the policy several times over.
const (
	restRounds = 60
	restStep   = 11 * time.Minute
)

// memoryDir is a folder without a real disk below, where there is one:
// thousands of schedules sync hundreds of thousands of times.
func memoryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "gitopsd-protocol-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// play runs a schedule and gives what it violated, "" = nothing. It is called
// in a bubble of time.
func play(dir string, s schedule, trace *strings.Builder) string {
	defer func() { _ = os.RemoveAll(dir) }()
	must(os.MkdirAll(dir, 0o755))
	w := newWorld(dir, s, trace)
	defer w.end()
	for _, st := range s.steps {
		w.advance(st.points())
		if w.failed() {
			break
		}
		w.apply(st)
	}
	if !w.failed() {
		w.rest()
	}
	return w.ghost.violation
}

// rest lets everything run fairly and without faults, and expects the fleet
// to come to where it should be (I4).
func (w *world) rest() {
	w.logf("== from here on everything runs fairly")
	for _, a := range w.actors {
		a.asleep, a.fault, a.fuse, a.lag = false, noFault, 0, replicas{}
	}
	for i, dev := range w.devices {
		dev.busy, dev.held, dev.offline = false, false, false
		w.hold(i, w.places[i].hold && w.heldInTheEnd)
		if w.places[i].gone && !w.goneAtLast {
			w.remove(i, true)
		}
	}
	w.paused, w.target = false, w.last
	w.pushPolicy("in the end the target is " + w.target + acceptDeletions)
	for _, a := range w.actors {
		w.finish(a)
	}
	why := ""
	for round := range restRounds {
		for _, dev := range w.devices {
			w.whole(dev.actor)
		}
		w.whole(w.daemons[round%len(w.daemons)].actor)
		if w.failed() {
			return
		}
		if round > 0 {
			if why = w.ghost.atRest(); why == "" {
				if w.lookQuiet {
					w.quiet()
				}
				return
			}
		}
		w.now = w.now.Add(restStep)
		w.logf("-- it is %s; not at rest: %s", w.now.Format(time.TimeOnly), why)
	}
	w.ghost.violate("I4: after %s the fleet has not come to rest: %s", restRounds*restStep, why)
}

// quiet holds that a sweep which finds nothing new commits nothing.
func (w *world) quiet() {
	for _, d := range w.daemons { // that may still hear a heartbeat
		w.whole(d.actor)
	}
	before := w.repo.Ref(statusRef)
	for _, d := range w.daemons {
		w.whole(d.actor)
	}
	if after := w.repo.Ref(statusRef); after != before && !w.failed() {
		for path, blob := range w.repo.Files(after) {
			if old := w.repo.Files(before)[path]; old != blob {
				w.logf("-- %s was\n%s-- and is\n%s", path, w.repo.Content(old), w.repo.Content(blob))
			}
		}
		w.ghost.violate("a sweep commits although nothing has changed: %s", w.repo.Message(after))
	}
}

// heap is how far the heap may grow before rubbish is looked for: every
// schedule leaves a whole repository behind, and nothing else lives long.
const heap = 256 << 20

func TestMain(m *testing.M) {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(heap)
	os.Exit(m.Run())
}

// game makes of a schedule what happens, and gives what that violated.
type game func(dir string, s schedule, trace *strings.Builder) string

// try plays a schedule in its own bubble.
func try(t *testing.T, play game, dir string, s schedule, trace *strings.Builder) (violation string) {
	synctest.Test(t, func(*testing.T) { violation = play(dir, s, trace) })
	return violation
}

var runs atomic.Int64

func expectGood(t *testing.T, dir, name string, s schedule) {
	t.Helper()
	expect(t, play, dir, name, s)
}

// expect plays a schedule; a failing one is made shorter and told.
func expect(t *testing.T, play game, dir, name string, s schedule) {
	t.Helper()
	scratch := func() string { return filepath.Join(dir, fmt.Sprintf("run-%d", runs.Add(1))) }
	violation := try(t, play, scratch(), s, nil)
	if violation == "" {
		return
	}
	kind, _, _ := strings.Cut(violation, ":")
	tries := shrinkTries
	if s.isReal() {
		tries /= 4
	}
	short := shrink(s, tries, func(s schedule) bool {
		return strings.HasPrefix(try(t, play, scratch(), s, nil), kind)
	})
	var trace strings.Builder
	again := try(t, play, scratch(), short, &trace)
	if again == "" {
		t.Fatalf("%s: %s\nand not again: something in this run does not depend on its schedule\nschedule: %s", name, violation, s)
	}
	t.Fatalf("%s: %s\nas short as it could be made (%d steps): %s\nschedule: %s\n%s", name, violation, len(short.steps), again, short, trace.String())
}

// shrinkTries bounds the search for a shorter schedule.
const shrinkTries = 400

func number(t *testing.T, name string, def uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return def
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestSchedules plays schedules one after the other, each a function of its
// seed.
func TestSchedules(t *testing.T) {
	every := number(t, "GITOPSD_REAL_EVERY", realEvery)
	if os.Getenv("GITOPSD_SEED") != "" {
		seed := number(t, "GITOPSD_SEED", 0)
		expectGood(t, memoryDir(t), fmt.Sprintf("seed %d", seed), fromSeed(seed, seed%every == 0))
		return
	}
	count := number(t, "GITOPSD_SCHEDULES", Schedules)
	if testing.Short() {
		count = min(count, 300)
	}
	from := number(t, "GITOPSD_FROM", 0)
	dir := memoryDir(t)
	var next atomic.Uint64
	var wg sync.WaitGroup
	defer wg.Wait()
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for n := next.Add(1) - 1; n < count && !t.Failed(); n = next.Add(1) - 1 {
				seed := from + n
				expectGood(t, dir, fmt.Sprintf("seed %d", seed), fromSeed(seed, seed%every == 0))
			}
		})
	}
}

// TestSeeds plays the schedules that once found a fault.
func TestSeeds(t *testing.T) { playSeeds(t, "testdata/seeds/*.txt", play) }

// playSeeds plays what stands in files, one schedule a line.
func playSeeds(t *testing.T, pattern string, play game) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no seeds: %v", err)
	}
	dir := memoryDir(t)
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for n := 1; lines.Scan(); n++ {
			s, ok, err := parseSeed(lines.Text())
			if err != nil {
				t.Fatalf("%s:%d: %v", file, n, err)
			}
			if ok {
				t.Run(fmt.Sprintf("%s:%d", filepath.Base(file), n), func(t *testing.T) {
					expect(t, play, dir, fmt.Sprintf("%s:%d", file, n), s)
				})
			}
		}
		if err := errors.Join(lines.Err(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzSchedules goes on where the seeds end. What it varies is a seed and not
// the schedule itself: a fuzzer that makes inputs shorter while it looks at
// coverage would do little else, and a schedule that fails is made shorter
// here.
func FuzzSchedules(f *testing.F) {
	dir := memoryDir(f)
	for seed := range uint64(4) {
		f.Add(seed, seed%2 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, real bool) {
		expectGood(t, dir, fmt.Sprintf("seed %d", seed), fromSeed(seed, real))
	})
}
