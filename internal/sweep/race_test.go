package sweep

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// withFakeTime runs a test where waits cost nothing.
func withFakeTime(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

func TestB04_LostRaceIsTriedAgain(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newWorld(t, 3)
		w.sweep(w.daemon())
		for _, id := range w.ids() {
			w.devices[id].poll()
		}
		remote := w.remote()
		lost := 0
		remote.onCall = func(_ int, op string) {
			if op == "publish" && lost < 3 {
				lost++
				w.repo.push(schema.DefaultStatusBranch, "by another hand", w.now, map[string]string{fmt.Sprintf("notes/%d", lost): "kept\n"})
			}
		}
		d := w.daemon(func(c *Config) { c.Remote = remote })
		p := w.sweep(d)
		if p.Lost != 3 || !p.Committed || len(p.Assigned) != 1 {
			t.Fatalf("after three lost races the pass is %+v", p)
		}
		for i := 1; i <= 3; i++ {
			if w.repo.file(branchRef(schema.DefaultStatusBranch), fmt.Sprintf("notes/%d", i)) == nil {
				t.Errorf("somebody else's commit %d was lost", i)
			}
		}
		if a := w.attempt(p.Assigned[0].Device, 1); a.Outcome != "" {
			t.Errorf("the attempt is %+v", a)
		}
	})
}

func TestRacesAreBounded(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newWorld(t, 1)
		remote := w.remote()
		n := 0
		remote.onCall = func(_ int, op string) {
			if op == "publish" {
				n++
				w.repo.push(schema.DefaultStatusBranch, "again", w.now, map[string]string{"notes": fmt.Sprint(n)})
			}
		}
		d := w.daemon(func(c *Config) { c.Remote = remote })
		if _, err := d.Once(t.Context()); err == nil || kindOf(err) != kindRace {
			t.Fatalf("got %v, want a race that was lost too often", err)
		}
		if n != maxRaces {
			t.Errorf("%d tries, want %d", n, maxRaces)
		}
		remote.onCall = nil
		w.sweep(d)
	})
}

func TestStaleDaemonWritesNoOldDelivery(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w, d, dev := settled(t, 3)
		// The other daemon recalls between this one's listing and its repair.
		remote := w.remote()
		other := d
		did := false
		remote.onCall = func(_ int, op string) {
			if op == "publish" && !did {
				did = true
				w.change("pause", "paused", "{reason: wait}")
				w.pass(time.Minute)
				w.sweep(other)
			}
		}
		w.repo.set(schema.DefaultDeviceRefs+dev.id, "")
		other.uncertain()
		late := w.daemon(func(c *Config) { c.Remote = remote })
		if _, err := late.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !did {
			t.Fatal("the late daemon repaired nothing")
		}
		for range 3 {
			dev.poll() // fails the test if a generation falls
			w.pass(time.Minute)
			w.sweep(late)
			w.sweep(other)
		}
		if len(dev.acted) != 1 {
			t.Fatalf("the device began what was recalled: %v", dev.acted)
		}
	})
}

// TestCutAnywhere lets the n-th call fail, for every n, before and after it
// had its effect; a new daemon then brings the fleet to its target.
func TestCutAnywhere(t *testing.T) {
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after=%v", after), func(t *testing.T) {
			for n := 1; ; n++ {
				reached := false
				withFakeTime(t, func(t *testing.T) { reached = cutAt(t, n, after) })
				if t.Failed() {
					t.Fatalf("with call %d cut", n)
				}
				if !reached {
					if n < 30 {
						t.Fatalf("the scenario has only %d calls", n)
					}
					return
				}
			}
		})
	}
}

func cutAt(t *testing.T, n int, after bool) bool {
	w, _, _ := settled(t, 2)
	w.state = ""                   // its memory goes with the daemon
	w.devices["gw-01"].busy = true // a recall is part of it
	remote := w.remote()
	remote.failAt, remote.after = n, after
	d := w.daemon(func(c *Config) { c.Remote = remote })
	for range 8 {
		w.pass(time.Minute)
		for _, id := range w.ids() {
			w.devices[id].poll()
		}
		_, err := d.Once(t.Context())
		w.checkStatus()
		if errors.Is(err, errCut) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.devices["gw-01"].busy = false
	d = w.daemon()
	w.until(d, "everybody on v1.1.0", func() bool { return w.on("v1.1.0") == 2 })
	w.rounds(d, 2)
	w.wantCodes(map[string]int{"Current": 2})
	return remote.calls >= n // some of what fails is done without
}

// TestTwoDaemonsInterleaved lets two daemons, their crashes, devices and
// operators take turns at every call; the invariants are looked at after
// every step, and in the end everybody is where they should be.
func TestTwoDaemonsInterleaved(t *testing.T) {
	seeds := uint64(25)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		withFakeTime(t, func(t *testing.T) { interleave(t, seed) })
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

func interleave(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t, 4)
	w.policy["maxInFlight"] = fmt.Sprint(1 + rng.IntN(2))
	w.policy["backoff"] = "{base: 1m}"
	w.policy["pickupTimeout"] = "20m"
	w.change("limits")
	bad := seed%2 == 0
	for _, dev := range w.devices {
		dev.bad["v1.1.0"] = bad
	}
	daemons := make([]*Daemon, 2)
	state := func(i int) string { // every fourth run keeps its state on disk
		if seed%4 != 0 {
			return ""
		}
		return fmt.Sprintf("%s/%d", w.state, i)
	}
	depth := 0
	var start func(i int)
	step := func() {
		id := w.ids()[rng.IntN(len(w.devices))]
		switch k := rng.IntN(40); {
		case k < 30:
			w.devices[id].poll()
		case k < 34:
			w.devices[id].heartbeat()
		case k < 36:
			w.pass(time.Duration(rng.IntN(3)) * time.Minute)
		case k < 38 && depth == 0:
			w.devices[id].busy = !w.devices[id].busy
		case k == 38 && depth == 0:
			w.devices[id].off = !w.devices[id].off
		}
	}
	start = func(i int) {
		remote := w.remote()
		remote.onCall = func(int, string) {
			for range rng.IntN(3) {
				step()
			}
			if depth == 1 && rng.IntN(8) == 0 {
				depth++
				other := daemons[1-i]
				if _, err := other.Once(context.Background()); err != nil && kindOf(err) != kindRace && !errors.Is(err, errCut) {
					t.Errorf("seed %d: the other daemon: %v", seed, err)
				}
				depth--
			}
			if rng.IntN(60) == 0 {
				remote.failAt, remote.after = remote.calls, rng.IntN(2) == 0
			}
			w.checkStatus()
		}
		daemons[i] = w.daemon(func(c *Config) {
			c.Remote, c.State = remote, state(i)
		})
	}
	start(0)
	start(1)
	for k := range 60 {
		if k == 15 {
			w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
		}
		if k == 35 && rng.IntN(2) == 0 {
			w.change("gateways: v1.2.0", "targetVersion", "v1.2.0")
		}
		i := rng.IntN(2)
		if rng.IntN(10) == 0 {
			start(i)
		}
		w.pass(time.Minute)
		depth = 1
		_, err := daemons[i].Once(t.Context())
		depth = 0
		if err != nil && kindOf(err) != kindRace && !errors.Is(err, errCut) {
			t.Fatalf("seed %d: %v\n%s", seed, err, w.describe())
		}
		for range rng.IntN(6) {
			step()
		}
		w.checkStatus()
	}
	if bad {
		started := map[string]bool{}
		for id, rec := range w.status().Devices {
			for _, a := range rec.Status.Attempts {
				if a.Version == "v1.1.0" && w.devices[id].acted[a.Attempt] {
					started[id] = true
				}
			}
		}
		if limit := w.slots(); len(started) > limit {
			t.Fatalf("I6: seed %d: %d devices started the bad release, want at most %d", seed, len(started), limit)
		}
	}
	// Everything calms down: the fleet comes to v1.2.0.
	for _, dev := range w.devices {
		dev.busy, dev.off, dev.held = false, false, false
	}
	w.change("gateways: v1.2.0", "targetVersion", "v1.2.0")
	d := w.daemon(func(c *Config) { c.State = state(0) })
	w.until(d, "everybody on v1.2.0", func() bool { return w.on("v1.2.0") == 4 })
	w.rounds(d, 2)
	w.wantCodes(map[string]int{"Current": 4})
}
