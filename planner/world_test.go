package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// world is a small fleet with everything around the planner: a status branch
// with compare-and-swap, delivery refs, reports that overwrite each other,
// daemons that may stop after any step, and devices that announce, look
// again, and act. Every step is one that the others can come between.
type world struct {
	t        *rapid.T
	now      time.Time
	policy   Policy
	fleet    Fleet
	content  int // of the present release; another one is another digest
	bad      map[string]bool
	devices  []*simDevice
	daemons  []*simDaemon
	status   []branchRecord
	commits  int  // what compare-and-swap compares
	refusing bool // the server takes no delivery refs
	trace    []string

	ever map[string]map[string]bool // release → devices that acted on it
}

// branchRecord is what the status branch has of one device.
type branchRecord struct {
	doc      document
	attempts []Attempt
	seq      int64 // of the report last decided from
	install  int
}

type document struct {
	generation, attempt, recalled int64
	target                        Target
	install                       int
	release                       string
}

type report struct {
	seq     int64
	install int
	target  Target // what it runs
	said    Said
	busy    bool
	at      time.Time
}

type simDevice struct {
	id        string
	delivery  document
	sent      report
	pc        string // idle, preparing, announced, looked, acting
	runs      Target
	install   int
	seq       int64
	doing     document
	ended     int64 // the highest attempt that it ended
	seen      int64 // generation
	busy      bool
	silent    bool
	acted     map[int64]bool // attempts that it acted on, or found done
	sawRecall int64
}

type simDaemon struct {
	stage     int
	commits   int // of the status branch that it read
	status    []branchRecord
	delivery  []document
	delivered []bool
	reports   []report
}

func newWorld(t *rapid.T, devices, daemons int) *world {
	w := &world{t: t, now: caseNow, bad: map[string]bool{}, ever: map[string]map[string]bool{}}
	w.policy = Policy{
		Name: "p", Line: "p", Enabled: true, TargetVersion: "v1.5.0",
		MaxInFlight:  rapid.IntRange(1, 2).Draw(t, "maxInFlight"),
		FailureLimit: Limit{Count: rapid.IntRange(0, 1).Draw(t, "failureLimit")},
		MinAvailable: Limit{Set: true},
		MaxAttempts:  rapid.IntRange(1, 2).Draw(t, "maxAttempts"),
		OfflineAfter: 15 * time.Minute,
		RollbackFrom: []string{"v1.5.0", "v1.6.0"},
	}
	w.drawRollout()
	for i := range devices {
		d := &simDevice{id: fmt.Sprintf("d%d", i), pc: "idle", acted: map[int64]bool{}, install: 1, runs: Target{Version: "v1.4.0", Digest: "old"}}
		w.devices = append(w.devices, d)
		w.status = append(w.status, branchRecord{})
		w.report(d, Said{Phase: "Updated"})
	}
	for range daemons {
		w.daemons = append(w.daemons, &simDaemon{})
	}
	return w
}

// drawRollout draws what holds the policy back beyond slots; all of it ends.
func (w *world) drawRollout() {
	t := w.t
	soak := func() time.Duration {
		return rapid.SampledFrom([]time.Duration{0, 10 * time.Minute}).Draw(t, "soak")
	}
	if one(t, 2, "has waves") {
		w.policy.Waves = []Wave{{Name: "canary", Soak: soak()}}
	}
	if one(t, 3, "has pilot") {
		w.policy.Pilot = Pilot{Count: rapid.IntRange(1, 2).Draw(t, "pilot"), Soak: soak()}
	}
	if one(t, 3, "has pace") {
		w.policy.MinInterval = 2 * time.Minute
	}
	if one(t, 3, "has fleet") {
		w.fleet.MaxInFlight = rapid.IntRange(0, 2).Draw(t, "fleet maxInFlight")
		w.fleet.Budgets = []Budget{{GroupBy: []string{"site"}}}
	}
}

// wave is the first device's, which there always is.
func (w *world) wave(i int) string {
	if i == 0 {
		return "canary"
	}
	return ""
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, w.now.Format("15:04 ")+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(w.trace, "\n"))
}

func (w *world) release() string { return fmt.Sprintf("%s#%d", w.policy.TargetVersion, w.content) }

func (w *world) target(id string) Target {
	return Target{Version: w.policy.TargetVersion, Digest: w.release() + "-" + id}
}

// report overwrites what the device said before.
func (w *world) report(d *simDevice, said Said) {
	d.seq++
	said.Sequence, said.Recalled = d.seq, d.sawRecall
	d.sent = report{seq: d.seq, install: d.install, target: d.runs, said: said, busy: d.busy, at: w.now}
}

// --- the daemon ---

// step does the next part of a daemon's sweep.
func (w *world) stepDaemon(k int) {
	m := w.daemons[k]
	switch m.stage {
	case 0:
		m.commits = w.commits
		m.status = cloneStatus(w.status)
		m.delivery = nil
		for _, d := range w.devices {
			m.delivery = append(m.delivery, d.delivery)
		}
	case 1: // repair: with the old value that was read, never to a lower generation
		m.delivered = make([]bool, len(w.devices))
		for i, d := range w.devices {
			doc := m.status[i].doc
			if !w.refusing && m.delivery[i] != doc && m.delivery[i].generation < doc.generation && d.delivery == m.delivery[i] {
				d.delivery = doc
			}
			m.delivered[i] = d.delivery == doc
		}
	case 2:
		m.reports = nil
		for _, d := range w.devices {
			m.reports = append(m.reports, d.sent)
		}
	case 3:
		in := w.input(m)
		r := Plan(in)
		if m.commits != w.commits {
			w.note("daemon %d loses the race", k)
		} else {
			w.commit(k, in, r, m)
		}
	}
	m.stage = (m.stage + 1) % 4
}

func cloneStatus(s []branchRecord) []branchRecord {
	c := slices.Clone(s)
	for i := range c {
		c[i].attempts = slices.Clone(c[i].attempts)
	}
	return c
}

func (w *world) input(m *simDaemon) Input {
	in := Input{Now: w.now, OwnVersion: "v1.5.0", Fleet: w.fleet, Policies: []Policy{w.policy}}
	for i, d := range w.devices {
		st, rep := m.status[i], m.reports[i]
		dev := Device{
			ID: d.id, Policy: "p", Target: w.target(d.id), Rollout: w.release(), Seen: true, Online: true, ProtocolVersion: 1,
			Version: rep.target.Version, Digest: rep.target.Digest, Busy: rep.busy, LastSeen: rep.at,
			InstallID: fmt.Sprint(rep.install), Said: rep.said, Attempts: st.attempts,
			Wave: w.wave(i), Labels: map[string]string{"site": fmt.Sprint(i % 2)},
		}
		dev.Said.Fresh = rep.seq > st.seq || rep.install != st.install
		for j := range dev.Attempts {
			a := &dev.Attempts[j]
			a.RecallDelivered = m.delivered[i] && st.doc.recalled == a.Number
		}
		in.Devices = append(in.Devices, dev)
	}
	return in
}

func (w *world) commit(k int, in Input, r Result, m *simDaemon) {
	changed := false
	for i, d := range w.devices {
		st := &w.status[i]
		decided := false
		for _, dec := range r.Decisions {
			if dec.Device != d.id {
				continue
			}
			decided = true
			j := slices.IndexFunc(st.attempts, func(a Attempt) bool { return a.Number == dec.Attempt })
			a := &st.attempts[j]
			w.note("daemon %d: %s/%d %s%s%s %s", k, d.id, dec.Attempt, dec.End, dec.Recall, map[bool]string{true: "started"}[dec.Started], dec.Because)
			if (dec.End == OK || dec.End == Failed) && !d.acted[a.Number] {
				w.fail("attempt %s/%d ends as %s, but the device never acted on it", d.id, a.Number, dec.End)
			}
			record(a, dec, w.now)
			back := st.doc
			switch {
			case dec.Recall != "", dec.End == Failed, dec.End == Lost, dec.End == Refused, dec.End == Exhausted:
				st.doc = document{generation: st.doc.generation + 1, recalled: a.Number}
			case dec.End == OK && back.attempt != a.Number:
				st.doc = document{generation: st.doc.generation + 1, attempt: a.Number, target: a.Target, install: m.reports[i].install, release: a.Release}
			}
		}
		if v := r.Verdicts[i]; v.Upgrade {
			decided = true
			number := int64(len(st.attempts) + 1)
			st.attempts = append(st.attempts, Attempt{
				Number: number, Policy: "p", Line: "p", Target: v.Target, Rollout: w.release(), Release: w.release(),
				InstallID: fmt.Sprint(m.reports[i].install), AssignedAt: w.now,
			})
			st.doc = document{generation: st.doc.generation + 1, attempt: number, target: v.Target, install: m.reports[i].install, release: w.release()}
			w.note("daemon %d: assigns %s/%d %s", k, d.id, number, v.Target.Digest)
		}
		if decided {
			changed = true
			st.seq, st.install = m.reports[i].seq, m.reports[i].install
		}
	}
	if changed {
		w.commits++
	}
}

// --- the device ---

func (w *world) stepDevice(i int) {
	d := w.devices[i]
	if d.silent && d.pc != "acting" && d.pc != "looked" {
		return // without the network nothing begins, but what has begun goes on
	}
	switch d.pc {
	case "idle", "preparing":
		doc := w.look(d)
		switch {
		case d.pc == "preparing" && doc == d.doing:
			if d.busy {
				w.report(d, Said{Attempt: d.doing.attempt, Phase: "Waiting"})
				return
			}
			w.report(d, Said{Attempt: d.doing.attempt, Phase: "Starting", Starting: true})
			d.pc = "announced"
			w.note("%s announces %d", d.id, d.doing.attempt)
		case doc.attempt > d.ended && doc.target.Version != "" && doc.install == d.install:
			if doc.target == d.runs { // found done
				d.ended, d.pc = doc.attempt, "idle"
				d.acted[doc.attempt] = true
				w.report(d, Said{Attempt: doc.attempt, Phase: "Updated", Outcome: "ok"})
				return
			}
			d.doing, d.pc = doc, "preparing"
			w.report(d, Said{Attempt: doc.attempt, Phase: "Preparing"})
		case d.pc == "preparing":
			w.drop(d)
		}
	case "announced":
		switch doc := w.look(d); {
		case doc != d.doing:
			w.drop(d)
		case d.busy:
			d.pc = "preparing"
			w.report(d, Said{Attempt: d.doing.attempt, Phase: "Waiting"})
		default:
			d.pc = "looked"
		}
	case "looked":
		d.pc = "acting"
		d.acted[d.doing.attempt] = true
		w.note("%s acts on %d", d.id, d.doing.attempt)
		if w.ever[d.doing.release] == nil {
			w.ever[d.doing.release] = map[string]bool{}
		}
		w.ever[d.doing.release][d.id] = true
		if !d.silent {
			w.report(d, Said{Attempt: d.doing.attempt, Phase: "Applying", Begun: true})
		}
	case "acting":
		if d.silent && !w.bad[d.doing.release] {
			return // it is done when it is back; before, nobody can tell
		}
		d.ended, d.pc = d.doing.attempt, "idle"
		said := Said{Attempt: d.doing.attempt, Begun: true, Phase: "Error", Outcome: "failed"}
		if !w.bad[d.doing.release] {
			d.runs = d.doing.target
			said.Phase, said.Outcome = "Updated", "ok"
		}
		w.report(d, said)
		w.note("%s reports %d %s", d.id, said.Attempt, said.Outcome)
	}
}

// look reads the delivery ref.
func (w *world) look(d *simDevice) document {
	if d.delivery.generation < d.seen {
		w.fail("%s sees generation %d after %d", d.id, d.delivery.generation, d.seen)
	}
	d.seen = d.delivery.generation
	return d.delivery
}

func (w *world) drop(d *simDevice) {
	w.note("%s drops %d", d.id, d.doing.attempt)
	d.sawRecall = d.delivery.recalled
	d.pc = "idle"
	w.report(d, Said{Attempt: d.doing.attempt, Phase: "Updated"})
}

// heartbeat says again what was said last.
func (w *world) heartbeat() {
	for _, d := range w.devices {
		if !d.silent {
			w.report(d, d.sent.said)
		}
	}
}

// --- what else happens ---

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
func TestProperty15_TwoPlanners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.IntRange(1, 4).Draw(t, "devices"), 2)
		w.run(rapid.IntRange(10, 250).Draw(t, "steps"))
		w.settle()
	})
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
