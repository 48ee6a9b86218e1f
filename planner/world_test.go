package planner

import (
	"fmt"
	"slices"
	"strings"
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
