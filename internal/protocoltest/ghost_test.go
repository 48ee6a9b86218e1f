package protocoltest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/gitopsd/gitopsd/schema"
)

const (
	statusRef      = "refs/heads/" + schema.DefaultStatusBranch
	assignmentFile = "assignment.yaml"
	reportFile     = "report.yaml"

	devicesDir, assignedDir, retiredDir = "devices/", "assigned/", "retired/"
)

// ghost sees everything: what devices really do, and every state of the
// status branch and of the delivery refs. It holds the invariants after every
// step.
type ghost struct {
	w         *world
	git       trees
	violation string

	moves    []refMove // not looked at yet
	dirty    bool
	news     int // moves of refs that no daemon makes
	undo     undo
	blobs    map[string]string // of the status branch, by path
	places   map[string]string // device → path of its record there, retired ones too
	status   map[string]*recorded
	assigned map[string]*document // the newest, also of one that was removed since
	fleet    string               // the text of fleet.yaml
	highest  map[string]int64     // generation that a delivery ref ever carried
	absent   map[string]bool      // refs that were taken away since
	numbers  map[string]int64     // highest attempt ever handed out

	devices map[string]*ghostDevice
	started map[release]map[string]bool // devices that ever acted on it
	decoded map[string]any              // by blob
}

// release is a version as one policy hands it out.
type release struct{ policy, version string }

type refMove struct {
	ref, to string
	by      *daemon // nil = somebody else
}

// ghostDevice is what one device did.
type ghostDevice struct {
	acting     int64 // attempt by which it changes itself now; 0 = it does not
	acted      map[int64]bool
	done       map[int64]bool     // ended ok on the device
	comparedBy map[int64]bool     // ended observed on the device
	observing  bool               // it leaves itself as it is now
	reports    []string           // commits, oldest first
	lastSaid   moment             // when the newest of them came
	looked     *schema.Assignment // by the last look; nil = it saw nothing usable
	lookedAt   int                // point

	announcement int64 // attempt that this run of its program announced, accepted; 0 = none
	announcedAt  int   // point
	restedAt     int   // point at which it ended to act

	install    string
	generation int64 // newest that it knows
}

// moment is a time in the world, and the scheduling point at which it was.
type moment struct {
	at    time.Time
	point int
}

// trees reads the objects of a repository.
type trees interface {
	Files(commit string) map[string]string // path → blob
	Content(blob string) []byte
}

func newGhost(w *world, git trees) *ghost {
	return &ghost{
		w: w, git: git, blobs: map[string]string{}, places: map[string]string{}, status: map[string]*recorded{}, assigned: map[string]*document{},
		highest: map[string]int64{}, absent: map[string]bool{}, numbers: map[string]int64{}, devices: map[string]*ghostDevice{},
		started: map[release]map[string]bool{}, decoded: map[string]any{},
	}
}

func (g *ghost) device(id string) *ghostDevice {
	d := g.devices[id]
	if d == nil {
		d = &ghostDevice{acted: map[int64]bool{}, done: map[int64]bool{}, comparedBy: map[int64]bool{}}
		g.devices[id] = d
	}
	return d
}

func (g *ghost) violate(format string, args ...any) {
	if g.violation == "" {
		g.violation = fmt.Sprintf(format, args...)
		g.w.logf("!! %s", g.violation)
	}
}

// moved hears of every ref; it only remembers, as the repository is locked.
func (g *ghost) moved(ref, _, to string) {
	if ref == statusRef || strings.HasPrefix(ref, g.w.deliveryRefs) {
		g.moves = append(g.moves, refMove{ref, to, g.w.daemonAtWork()})
		return
	}
	g.news++
	if id, ok := strings.CutPrefix(ref, g.w.reportRefs); ok {
		d := g.device(id)
		d.reports = append(d.reports, to)
		d.lastSaid = moment{g.w.now, g.w.points}
	}
}

// announced says whether a start ever stood in git.
func (g *ghost) announced(id, install string, attempt int64) bool {
	reports := g.device(id).reports
	for i := len(reports) - 1; i >= 0; i-- { // it is most often the last one
		data := g.w.inbox.Content(g.w.inbox.Files(reports[i])[reportFile])
		if !strings.Contains(string(data), string(schema.PhaseStarting)) {
			continue // reading it whole costs more
		}
		r := &told{}
		if err := yaml.Unmarshal(data, r); err == nil && r.InstallID == install && r.Attempt == attempt && r.Phase == schema.PhaseStarting {
			return true
		}
	}
	return false
}

// looked tells what a device saw at its delivery ref.
func (g *ghost) looked(id string, doc *schema.Assignment, usable bool) {
	d := g.device(id)
	d.looked, d.lookedAt = nil, g.w.points
	if usable {
		d.looked = doc
	}
}

// announces tells that a device's announcement was accepted.
func (g *ghost) announces(id string, attempt int64) {
	d := g.device(id)
	d.announcement, d.announcedAt = attempt, g.w.points
}

// restarts tells that a device's program has ended.
func (g *ghost) restarts(id string) { g.device(id).announcement = 0 }

// begins judges the moment in which a device begins to change itself.
func (g *ghost) begins(id, install string, attempt int64) {
	d := g.device(id)
	if !g.announced(id, install, attempt) {
		g.violate("I2: %s acts on attempt %d, and its start stands nowhere in git", id, attempt)
	}
	if d.announcement != attempt || d.announcedAt < d.restedAt || d.lookedAt < d.announcedAt {
		g.violate("announce: %s acts on attempt %d, and has not announced it, and then looked, since it was started, or acted last", id, attempt)
	}
	if l := d.looked; l == nil || l.Attempt != attempt || l.Spec == nil || l.For != install || l.Hold != nil {
		g.violate("look again: %s acts on attempt %d, which it did not see when it looked last: %+v", id, attempt, l)
	}
	for _, dev := range g.w.devices {
		if m := dev.mark; dev.id == id && (m.busy && m.busyFrom < d.lookedAt || m.held && m.heldFrom < d.lookedAt) {
			g.violate("look again: %s acts on attempt %d, and was busy or held before it looked last", id, attempt)
		}
	}
}

// acts tells what a device's disk says: whether it is on its way somewhere,
// and by which attempt; 0 is one whose record was lost.
func (g *ghost) acts(id, install string, attempt int64, version string, on bool) {
	d := g.device(id)
	switch {
	case !on:
		if d.acting != 0 {
			d.restedAt = g.w.points
		}
		d.acting = 0
	case attempt != 0 && d.acting != attempt:
		d.acting = attempt
		d.acted[attempt] = true
		g.dirty = true
		g.w.logf("## %s begins to change itself by attempt %d (%s)", id, attempt, version)
		if g.w.kind(version) == observes {
			g.violate("observes: %s changes itself by attempt %d, whose spec is only to be compared with", id, attempt)
		}
		g.begins(id, install, attempt)
		if g.w.plans != nil {
			g.w.plans.begun(id, attempt)
		}
		if a := g.attempt(id, attempt); a != nil {
			g.starts(release{a.Policy, version}, id)
		}
	}
}

func (g *ghost) starts(r release, id string) {
	if g.started[r] == nil {
		g.started[r] = map[string]bool{}
	}
	g.started[r][id] = true
}

// did says that an attempt ended ok on a device.
func (g *ghost) did(id string, attempt int64) { g.device(id).done[attempt] = true }

// compared says that a device has compared itself by an attempt.
func (g *ghost) compared(id string, attempt int64) { g.device(id).comparedBy[attempt] = true }

// observes says whether a device leaves itself as it is.
func (g *ghost) observes(id string, on bool) { g.device(id).observing = on }

// stops says that the device is not there any more.
func (g *ghost) stops(id string) {
	d := g.device(id)
	d.acting, d.install, d.generation, d.observing = 0, "nobody", 0, false
}

// check holds the invariants, as far as something happened since it was
// called last.
func (g *ghost) check() {
	for len(g.moves) > 0 {
		m := g.moves[0]
		g.moves = g.moves[1:]
		g.dirty = true
		if m.ref == statusRef {
			g.newStatus(m.to, m.by)
			if g.w.plans != nil {
				g.w.plans.committed(m.by)
			}
		} else {
			g.newDelivery(strings.TrimPrefix(m.ref, g.w.deliveryRefs), m.to)
		}
	}
	if g.dirty {
		g.dirty = false
		g.hold()
	}
}

// knows tells what stands on a device's disk of who it is and what it has seen.
func (g *ghost) knows(id, install string, generation int64) {
	d := g.device(id)
	d.install, d.generation = install, generation
}

// newDelivery is I7: what a device can see never falls. Where its ref went, a
// push that was held up may bring back an older document, as long as that is
// nothing to the device.
func (g *ghost) newDelivery(id, commit string) {
	if commit == "" {
		g.w.logf("## delivery of %s: none", id)
		g.absent[id] = true
		return
	}
	a := decodeBlob[document](g, g.git.Files(commit)[assignmentFile])
	if a == nil {
		g.violate("the delivery of %s cannot be read", id)
		return
	}
	g.w.logf("## delivery of %s: generation %d attempt %d recalled %d removed %v spec %v", id, a.Generation, a.Attempt, a.Recalled, a.Removed, a.Spec != nil)
	d := g.device(id)
	nothing := g.absent[id] && (d.generation >= g.highest[id] || a.For != d.install)
	if a.Generation < g.highest[id] && !nothing {
		g.violate("I7: the delivery of %s falls from generation %d to %d", id, g.highest[id], a.Generation)
	}
	if a.Generation > g.highest[id] {
		g.highest[id], g.absent[id] = a.Generation, false
	}
	if s := g.assigned[id]; s == nil || a.Generation > s.Generation {
		g.violate("order of writing: the delivery of %s has generation %d, which the status branch does not know", id, a.Generation)
	}
}

// newStatus takes in a commit of the status branch, and judges what it
// changed.
func (g *ghost) newStatus(commit string, by *daemon) {
	blobs := g.git.Files(commit)
	places := map[string]string{}
	for _, p := range slices.Sorted(maps.Keys(blobs)) {
		switch id := strings.TrimSuffix(path.Base(p), ".yaml"); {
		case strings.HasPrefix(p, devicesDir), strings.HasPrefix(p, retiredDir):
			if places[id] != "" {
				g.violate("%s has two records: %s and %s", id, places[id], p)
			}
			places[id] = p
			if g.blobs[p] == blobs[p] {
				break
			}
			if s := decodeBlob[recorded](g, blobs[p]); s != nil {
				g.judge(g.status[id], s, by)
				g.status[id] = s
			}
		case strings.HasPrefix(p, assignedDir) && g.blobs[p] != blobs[p]:
			if a := decodeBlob[document](g, blobs[p]); a != nil {
				g.newDocument(id, a)
			}
		case p == "fleet.yaml" && g.w.plans != nil:
			g.fleet = string(g.git.Content(blobs[p]))
		}
	}
	for id, old := range g.status {
		switch {
		case places[id] != "":
		case len(old.Attempts) > 0 || g.assigned[id] != nil:
			g.violate("I7: the record of %s is gone, and with it what its next generation and attempt have to be above", id)
		default:
			delete(g.status, id)
		}
	}
	g.blobs, g.places = blobs, places
	if g.w.plans != nil {
		g.undo.committed(g, by, blobs)
	}
}

// newDocument is I7 for the status branch, also where a device was away or
// its file moves.
func (g *ghost) newDocument(id string, a *document) {
	if old := g.assigned[id]; old != nil && old != a && a.Generation <= old.Generation {
		g.violate("I7: the assignment of %s changes, and its generation goes from %d to %d", id, old.Generation, a.Generation)
	}
	g.assigned[id] = a
}

// hold is I1, I2, I3 and I6.
func (g *ghost) hold() {
	taken, acting := map[string]int{}, map[string]int{}
	for _, id := range slices.Sorted(maps.Keys(g.status)) {
		open := 0
		for _, a := range g.status[id].Attempts {
			if a.Outcome == "" {
				open++
				taken[a.Policy]++
			}
		}
		if open > 1 {
			g.violate("I1: %s has %d open attempts", id, open)
		}
		if open > 0 && strings.HasPrefix(g.places[id], retiredDir) {
			g.violate("I1: %s was put away with an open attempt", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(g.devices)) {
		n := g.devices[id].acting
		if n == 0 {
			continue
		}
		a := g.attempt(id, n)
		if a == nil {
			g.violate("I2: %s acts on attempt %d, which the status branch does not know", id, n)
			continue
		}
		switch a.Outcome {
		case schema.OutcomeDeferred, schema.OutcomeUnreached:
			g.violate("I3: %s acts on attempt %d, which ended as %s", id, n, a.Outcome)
		case "":
			acting[a.Policy]++
		case schema.OutcomeLost:
		default:
			g.violate("I2: %s acts on attempt %d, which ended as %s", id, n, a.Outcome)
		}
	}
	if g.w.plans != nil {
		return // what they limit is judged by commits
	}
	for _, name := range policies {
		if n := taken[name]; n > g.w.maxInFlight {
			g.violate("I1: %d slots of %s are taken, maxInFlight is %d", n, name, g.w.maxInFlight)
		}
		if n := acting[name]; n > g.w.maxInFlight {
			g.violate("I2: %d devices of %s act, maxInFlight is %d", n, name, g.w.maxInFlight)
		}
		if k := g.w.uncertain; k == fails || k == failsAgain {
			if on, most := g.started[release{name, versions[1]}], g.w.failLimit+g.w.maxInFlight; len(on) > most {
				g.violate("I6: %d devices of %s were started on a release that always fails, want at most %d", len(on), name, most)
			}
		}
	}
}

func (g *ghost) attempt(id string, number int64) *attempt {
	if s := g.status[id]; s != nil {
		for i := range s.Attempts {
			if s.Attempts[i].Attempt == number {
				return &s.Attempts[i]
			}
		}
	}
	return nil
}

// awaits says whether the outcome of some attempt depends on what is read
// behind a delivery.
func (g *ghost) awaits() bool {
	for _, s := range g.status {
		for i := range s.Attempts {
			if a := &s.Attempts[i]; a.Outcome == "" && a.Recall != nil || a.Outcome == schema.OutcomeLost {
				return true
			}
		}
	}
	return false
}
