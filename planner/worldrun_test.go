package planner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func (w *world) disturb() {
	i := rapid.IntRange(0, len(w.devices)-1).Draw(w.t, "whom")
	d := w.devices[i]
	switch what := rapid.SampledFrom([]string{"busy", "busy", "silent", "silent", "restart", "reinstall", "reinstall", "content", "version", "pause", "pause", "crash", "refuse", "refuse"}).Draw(w.t, "what"); what {
	case "busy":
		d.busy = !d.busy
		w.note("%s busy %v", d.id, d.busy)
	case "silent":
		d.silent = !d.silent
		w.note("%s silent %v", d.id, d.silent)
	case "restart":
		if d.pc == "announced" || d.pc == "looked" {
			d.pc = "preparing"
			w.note("%s restarts", d.id)
		}
	case "reinstall":
		if d.silent {
			return
		}
		acted := d.acted
		*d = simDevice{
			id: d.id, delivery: d.delivery, seen: d.seen, install: d.install + 1, pc: "idle", acted: acted, sent: d.sent,
			runs: Target{Version: "v0.0.0", Digest: "none"},
		}
		w.report(d, Said{Phase: "Updated"})
		w.note("%s is installed anew", d.id)
	case "content":
		w.content++
		w.note("content %d", w.content)
	case "version":
		w.policy.TargetVersion = map[string]string{"v1.5.0": "v1.6.0", "v1.6.0": "v1.5.0"}[w.policy.TargetVersion]
		w.note("target %s", w.policy.TargetVersion)
	case "pause":
		paused := &w.policy.Paused
		if one(w.t, 2, "of the fleet") {
			paused = &w.fleet.Paused
		}
		*paused = map[string]string{"": "incident", "incident": ""}[*paused]
		w.note("paused %q, the fleet %q", w.policy.Paused, w.fleet.Paused)
	case "refuse":
		w.refusing = !w.refusing
		w.note("delivery refs are refused: %v", w.refusing)
	case "crash":
		w.daemons[rapid.IntRange(0, len(w.daemons)-1).Draw(w.t, "which")].stage = 0
	}
}

func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	w.heartbeat()
}

// --- what must hold at every step ---

func (w *world) verify() {
	open, acting := 0, 0
	for i, d := range w.devices {
		for _, a := range w.status[i].attempts {
			if a.Outcome == "" {
				open++
			}
		}
		if d.pc != "acting" {
			continue
		}
		j := slices.IndexFunc(w.status[i].attempts, func(a Attempt) bool { return a.Number == d.doing.attempt })
		switch w.status[i].attempts[j].Outcome {
		case "":
			acting++
		case Lost:
		default:
			w.fail("%s acts on attempt %d, which ended as %s", d.id, d.doing.attempt, w.status[i].attempts[j].Outcome)
		}
	}
	if open > w.policy.MaxInFlight || acting > w.policy.MaxInFlight {
		w.fail("%d slots are taken and %d devices act, maxInFlight is %d", open, acting, w.policy.MaxInFlight)
	}
	for release, devices := range w.ever {
		if w.bad[release] && len(devices) > w.policy.FailureLimit.Count+w.policy.MaxInFlight {
			w.fail("%s was started on %d devices", release, len(devices))
		}
	}
}

// settle lets everybody be well again and waits until nothing moves.
func (w *world) settle() {
	w.policy.Paused, w.fleet.Paused, w.refusing = "", "", false
	w.note("all is well from here")
	for _, d := range w.devices {
		d.busy, d.silent = false, false
	}
	// Long enough for a pickup timeout and some backoffs, one after another.
	quiet := 0 // rounds in a row; one may be lost to a race
	for range 200 {
		w.pass(5 * time.Minute)
		before := w.commits
		for i := range w.devices {
			for range 3 {
				w.stepDevice(i)
				w.verify()
			}
		}
		for k := range w.daemons {
			for range 4 {
				w.stepDaemon(k)
				w.verify()
			}
		}
		if quiet++; before != w.commits || !w.isQuiet() {
			quiet = 0
		}
		if quiet == 3 {
			break
		}
	}
	m := &simDaemon{}
	w.daemons = []*simDaemon{m}
	for range 3 {
		w.stepDaemon(0)
	}
	r := Plan(w.input(m))
	if len(r.Decisions) > 0 {
		w.fail("still undecided: %+v", r.Decisions)
	}
	for i, v := range r.Verdicts {
		if w.bad[w.release()] && slices.Contains([]Code{CodeFailed, Halted, CodeWave, CodePilot}, v.Code) {
			continue
		}
		if v.Code != Current {
			w.fail("%s ends as %s: %s; %s", v.Device.ID, v.Code, v.Reason, v.Detail)
		}
		if w.devices[i].delivery != w.status[i].doc {
			w.fail("%s: the delivery is %+v, the record %+v", v.Device.ID, w.devices[i].delivery, w.status[i].doc)
		}
	}
}

// isQuiet says whether every device is idle on the present target, and the
// record knows.
func (w *world) isQuiet() bool {
	for i, d := range w.devices {
		open := slices.ContainsFunc(w.status[i].attempts, func(a Attempt) bool { return a.Outcome == "" })
		if open || d.pc != "idle" || d.runs != w.target(d.id) || d.delivery != w.status[i].doc {
			return false
		}
	}
	return true
}

func (w *world) run(steps int) {
	for range steps {
		switch rapid.IntRange(0, 11).Draw(w.t, "next") {
		case 0:
			w.disturb()
		case 1:
			w.pass(time.Duration(rapid.SampledFrom([]int{1, 1, 5, 20, 45}).Draw(w.t, "minutes")) * time.Minute)
		case 2, 3, 4, 5, 6:
			i := rapid.IntRange(0, len(w.devices)-1).Draw(w.t, "device")
			for range rapid.IntRange(1, 5).Draw(w.t, "steps of it") {
				w.stepDevice(i)
				w.verify()
			}
		default:
			k := rapid.IntRange(0, len(w.daemons)-1).Draw(w.t, "daemon")
			for range rapid.IntRange(1, 6).Draw(w.t, "steps of it") {
				w.stepDaemon(k)
				w.verify()
			}
		}
		w.verify()
	}
}

// Whatever comes between two daemons and their devices: no slot is given
// twice, nobody acts on what was taken back, and when all is well everybody
// ends on the target.
func TestProperty15_TwoPlanners(t *testing.T) { rapid.Check(t, twoPlanners) }

func twoPlanners(t *rapid.T) {
	w := newWorld(t, rapid.IntRange(1, 4).Draw(t, "devices"), 2)
	w.run(rapid.IntRange(10, 250).Draw(t, "steps"))
	w.settle()
}

// Where nothing untoward happens, everybody ends on the target at the first
// try.
func TestProperty14_AFleetConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.IntRange(1, 6).Draw(t, "devices"), 1)
		w.settle()
		for i := range w.devices {
			if as := w.status[i].attempts; len(as) != 1 || as[0].Outcome != OK {
				w.fail("attempts %+v", as)
			}
		}
	})
}

// A release that always fails is started on at most failureLimit +
// maxInFlight devices, however their digests differ.
func TestB54_Property14_BlastRadius(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 6, 2)
		w.bad["v1.5.0#0"] = true
		if rapid.Bool().Draw(t, "all is bad") {
			for i := range 50 {
				w.bad[fmt.Sprintf("v1.5.0#%d", i)], w.bad[fmt.Sprintf("v1.6.0#%d", i)] = true, true
			}
		}
		w.run(rapid.IntRange(10, 250).Draw(t, "steps"))
		w.settle()
	})
}
