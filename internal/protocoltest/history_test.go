package protocoltest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/memremote"
	"github.com/gitopsd/gitopsd/schema"
)

const (
	// Histories is how many histories one ordinary run of the tests plays; ten
	// times as many are a system test, because each is a whole fleet's story.
	Histories = 200

	// realHistoryEvery is how many of them have one with real agents.
	realHistoryEvery = 100

	// endRounds bounds how long a fleet may take to converge once the
	// operators leave it alone, in rounds: each of twelve devices after the
	// other, with every pause between them that the policies may ask for.
	endRounds = 400

	// soakedBy is longer than any soak.
	soakedBy = 16 * time.Minute

	// retryRounds is how often an operator of a fleet that stands still lets
	// it try again: a clock that jumped may have cost attempts.
	retryRounds = 40
)

// ending is what the operators of a history come to.
type ending struct {
	targets [2]string
	windows bool // those that come every day stay
	branch  bool // the brake branch is deleted, not emptied
	gone    bool // who left the fleet does not come back
}

// newHistory makes a fleet with operators; the first bytes of the schedule
// are the seed of what it is like in the beginning.
func newHistory(dir string, s schedule, trace *strings.Builder) (*world, ending) {
	rng := rand.New(rand.NewPCG(binary.BigEndian.Uint64(s.setup[:]), 0x666c6565))
	devices := 3 + rng.IntN(2)
	if rng.IntN(10) == 0 {
		devices = 5 + rng.IntN(8)
	}
	w := &world{
		dir: dir, now: epoch, trace: trace, repo: memremote.New(), real: s.isReal(),
		maxAttempts: 1 + rng.IntN(2), retries: rng.IntN(2), settle: rng.IntN(3) == 0,
		atomic: rng.IntN(2) == 0, reverse: rng.IntN(2) == 0, onDisk: rng.IntN(4) == 0,
		uncertain: kind(rng.IntN(4)), lookQuiet: rng.IntN(6) == 0,
		deliveryRefs: schema.DefaultDeviceRefs, reportRefs: schema.DefaultReportRefs,
	}
	if rand.New(rand.NewPCG(binary.BigEndian.Uint64(s.setup[:]), 0x6f627365)).IntN(8) == 0 {
		w.uncertain = observes
	}
	if w.real {
		devices = 3
	}
	w.watch(rng.IntN(3) == 0)
	m := newFleetModel(rng, devices)
	if s.setup[setupBytes-1]%8 == 0 {
		m.hurry()
	}
	w.plans = newPlans(w, m)
	for i := range m.devices {
		w.addDevice(m.devices[i].id)
	}
	w.places = make([]place, len(m.devices))
	files := m.files(w)
	for _, v := range versions {
		files["releases/gateways/"+v+".yaml"] = w.releaseYAML(v)
	}
	w.plans.noted(w.repo.Push("main", "first commit", w.now, files), m)
	for i := range 1 + rng.IntN(2) {
		w.addDaemon(fmt.Sprintf("daemon-%d", i+1))
	}
	return w, ending{[2]string{versions[2*rng.IntN(2)], versions[2*rng.IntN(2)]}, rng.IntN(4) == 0, rng.IntN(2) == 0, rng.IntN(2) == 0}
}

// playHistory plays a schedule as a history and gives what it violated.
func playHistory(dir string, s schedule, trace *strings.Builder) string {
	defer func() { _ = os.RemoveAll(dir) }()
	must(os.MkdirAll(dir, 0o755))
	w, end := newHistory(dir, s, trace)
	defer w.end()
	for _, st := range s.steps {
		w.advance(st.points())
		if w.failed() {
			break
		}
		w.play1(st)
	}
	if !w.failed() {
		w.converge(end)
	}
	return w.ghost.violation
}

// converge lets everything run without trouble and obstacles, and expects
// every device to become current and the status branch to be quiet then.
func (w *world) converge(end ending) {
	w.logf("== from here on there is no trouble")
	for _, a := range w.actors {
		a.asleep, a.fault, a.fuse = false, noFault, 0
	}
	for _, dev := range w.devices {
		dev.busy, dev.held, dev.offline = false, false, false
		dev.machine.marks()
	}
	for _, d := range w.daemons {
		d.actor.lag, d.skew = replicas{}, 0
		if d.accept {
			w.crash(slices.Index(w.actors, d.actor)) // a person sets the clock right
		}
	}
	w.release(end.branch)
	w.edit(fmt.Sprintf("in the end the targets are %v", end.targets)+acceptDeletions, func(m *fleetModel) { w.sane(m, end) })
	for _, a := range w.actors {
		w.finish(a)
	}
	why, still := "", 0
	for round := range endRounds {
		before := w.repo.Ref(statusRef)
		for _, dev := range w.devices {
			w.whole(dev.actor)
		}
		w.whole(w.daemons[round%len(w.daemons)].actor)
		if w.failed() {
			return
		}
		if why = w.ghost.atRest(); round > 0 && why == "" {
			if w.lookQuiet {
				w.pass(soakedBy)
				w.quiet()
			}
			return
		}
		if w.repo.Ref(statusRef) != before {
			still = 0
		}
		still++
		if still%retryRounds == 0 {
			w.edit("try again", func(m *fleetModel) { m.retry = w.now })
		}
		w.pass(pick(min(still/2, 3), 3*time.Minute, 11*time.Minute, 21*time.Minute, time.Hour))
		w.logf("-- it is %s; not at rest: %s", w.now.Format(time.TimeOnly), why)
	}
	w.ghost.violate("liveness: the fleet does not converge: %s", why)
}

// historyFromSeed makes a history: a step of one does more than one of a
// schedule, so it has fewer.
func historyFromSeed(seed uint64, real bool) schedule {
	s := fromSeed(seed, real)
	s.steps = s.steps[:len(s.steps)*2/3]
	return s
}

func expectHistory(t *testing.T, dir, name string, s schedule) {
	t.Helper()
	expect(t, playHistory, dir, name, s)
}

// TestHistories plays seeded histories of daemons, devices, git and operators,
// each a function of its seed.
func TestHistories(t *testing.T) {
	every := number(t, "GITOPSD_REAL_EVERY", realHistoryEvery)
	if os.Getenv("GITOPSD_SEED") != "" {
		seed := number(t, "GITOPSD_SEED", 0)
		expectHistory(t, memoryDir(t), fmt.Sprintf("seed %d", seed), historyFromSeed(seed, seed%every == 0))
		return
	}
	playHistories(t, number(t, "GITOPSD_HISTORIES", Histories), every)
}

// playHistories plays so many, one in every with real agents.
func playHistories(t *testing.T, count, every uint64) {
	from := number(t, "GITOPSD_FROM", 0)
	dir := memoryDir(t)
	var next atomic.Uint64
	var wg sync.WaitGroup
	defer wg.Wait()
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for n := next.Add(1) - 1; n < count && !t.Failed(); n = next.Add(1) - 1 {
				seed := from + n
				expectHistory(t, dir, fmt.Sprintf("seed %d", seed), historyFromSeed(seed, seed%every == 0))
			}
		})
	}
}

// TestHistorySeeds plays the histories that once found a fault.
func TestHistorySeeds(t *testing.T) { playSeeds(t, "testdata/histories/*.txt", playHistory) }

// FuzzHistories goes on where the seeds end; see [FuzzSchedules].
func FuzzHistories(f *testing.F) {
	dir := memoryDir(f)
	for seed := range uint64(4) {
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, seed uint64, real bool) {
		expectHistory(t, dir, fmt.Sprintf("seed %d", seed), historyFromSeed(seed, real))
	})
}
