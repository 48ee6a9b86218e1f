package protocoltest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/gitopsd/gitopsd/schema"
)

const (
	statusRef      = "refs/heads/" + schema.DefaultStatusBranch
	assignmentFile = "assignment.yaml"
	reportFile     = "report.yaml"
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
	blobs    map[string]string // of the status branch, by path
	status   map[string]*schema.DeviceStatus
	assigned map[string]*schema.Assignment
	fleet    string           // the text of fleet.yaml
	highest  map[string]int64 // generation that a delivery ref ever carried
	numbers  map[string]int64 // highest attempt ever handed out

	devices map[string]*ghostDevice
	started map[string]map[string]bool // version → devices that ever acted on it
	decoded map[string]any             // by blob
}

type refMove struct {
	ref, to string
	by      *actor
}

// ghostDevice is what one device did.
type ghostDevice struct {
	acting   int64 // attempt by which it changes itself now; 0 = it does not
	acted    map[int64]bool
	done     map[int64]bool     // ended ok on the device
	reports  []string           // commits, oldest first
	looked   *schema.Assignment // by the last look; nil = it saw nothing usable
	lookedAt int                // point
}

// trees reads the objects of a repository.
type trees interface {
	Files(commit string) map[string]string // path → blob
	Content(blob string) []byte
}

func newGhost(w *world, git trees) *ghost {
	return &ghost{
		w: w, git: git, blobs: map[string]string{}, status: map[string]*schema.DeviceStatus{}, assigned: map[string]*schema.Assignment{},
		highest: map[string]int64{}, numbers: map[string]int64{}, devices: map[string]*ghostDevice{},
		started: map[string]map[string]bool{}, decoded: map[string]any{},
	}
}

func (g *ghost) device(id string) *ghostDevice {
	d := g.devices[id]
	if d == nil {
		d = &ghostDevice{acted: map[int64]bool{}, done: map[int64]bool{}}
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
		m := refMove{ref: ref, to: to}
		if g.w.scheduler != nil {
			m.by = g.w.token
		}
		g.moves = append(g.moves, m)
	} else if id, ok := strings.CutPrefix(ref, g.w.reportRefs); ok {
		d := g.device(id)
		d.reports = append(d.reports, to)
	}
}

// announced says whether a start ever stood in git.
func (g *ghost) announced(id, install string, attempt int64) bool {
	reports := g.device(id).reports
	for i := len(reports) - 1; i >= 0; i-- { // it is most often the last one
		r := &schema.Report{}
		data := g.w.inbox.Content(g.w.inbox.Files(reports[i])[reportFile])
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

// begins judges the moment in which a device begins to change itself.
func (g *ghost) begins(id, install string, attempt int64) {
	d := g.device(id)
	if !g.announced(id, install, attempt) {
		g.violate("I2: %s acts on attempt %d, and its start stands nowhere in git", id, attempt)
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
		d.acting = 0
	case attempt != 0 && d.acting != attempt:
		d.acting = attempt
		d.acted[attempt] = true
		g.dirty = true
		g.w.logf("## %s begins to change itself by attempt %d (%s)", id, attempt, version)
		g.begins(id, install, attempt)
		if g.w.plans != nil {
			g.w.plans.begun(id, attempt)
		}
		if g.started[version] == nil {
			g.started[version] = map[string]bool{}
		}
		g.started[version][id] = true
	}
}

// did says that an attempt ended ok on a device.
func (g *ghost) did(id string, attempt int64) { g.device(id).done[attempt] = true }

// stops says that the device is not there any more.
func (g *ghost) stops(id string) { g.device(id).acting = 0 }

// check holds the invariants, as far as something happened since it was
// called last.
func (g *ghost) check() {
	for len(g.moves) > 0 {
		m := g.moves[0]
		g.moves = g.moves[1:]
		g.dirty = true
		if m.ref == statusRef {
			g.newStatus(m.to)
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

// newDelivery is I7: what a device can see never falls.
func (g *ghost) newDelivery(id, commit string) {
	if commit == "" {
		return
	}
	a := decodeBlob[schema.Assignment](g, g.git.Files(commit)[assignmentFile])
	if a == nil {
		g.violate("the delivery of %s cannot be read", id)
		return
	}
	g.w.logf("## delivery of %s: generation %d attempt %d recalled %d spec %v", id, a.Generation, a.Attempt, a.Recalled, a.Spec != nil)
	if a.Generation < g.highest[id] {
		g.violate("I7: the delivery of %s falls from generation %d to %d", id, g.highest[id], a.Generation)
	}
	g.highest[id] = a.Generation
	if s := g.assigned[id]; s == nil || a.Generation > s.Generation {
		g.violate("order of writing: the delivery of %s has generation %d, which the status branch does not know", id, a.Generation)
	}
}

// newStatus takes in a commit of the status branch, and judges what it
// changed.
func (g *ghost) newStatus(commit string) {
	blobs := g.git.Files(commit)
	for _, p := range slices.Sorted(maps.Keys(blobs)) {
		if g.blobs[p] == blobs[p] {
			continue
		}
		switch {
		case strings.HasPrefix(p, "devices/"):
			if s := decodeBlob[schema.DeviceStatus](g, blobs[p]); s != nil {
				g.judge(g.status[s.Metadata.Name], s)
				g.status[s.Metadata.Name] = s
			}
		case strings.HasPrefix(p, "assigned/"):
			if a := decodeBlob[schema.Assignment](g, blobs[p]); a != nil {
				if old := g.assigned[a.Metadata.Name]; old != nil && a.Generation <= old.Generation {
					g.violate("I7: the assignment of %s changes, and its generation goes from %d to %d", a.Metadata.Name, old.Generation, a.Generation)
				}
				g.assigned[a.Metadata.Name] = a
			}
		case p == "fleet.yaml":
			g.fleet = string(g.git.Content(blobs[p]))
		}
	}
	g.blobs = blobs
}

func decodeBlob[T any](g *ghost, blob string) *T {
	if v, ok := g.decoded[blob].(*T); ok {
		return v
	}
	v := new(T)
	if err := yaml.Unmarshal(g.git.Content(blob), v); err != nil {
		g.violate("a document cannot be read: %v", err)
		return nil
	}
	g.decoded[blob] = v
	return v
}

// may are the outcomes that an attempt of one outcome may get later.
var may = map[schema.Outcome][]schema.Outcome{
	schema.OutcomeLost: {schema.OutcomeOK, schema.OutcomeFailed, schema.OutcomeUnreached},
	schema.OutcomeOK:   {schema.OutcomeFailed},
}

// judge compares two records of one device.
func (g *ghost) judge(old, now *schema.DeviceStatus) {
	id := now.Metadata.Name
	before := map[int64]schema.Attempt{}
	if old != nil {
		for _, a := range old.Attempts {
			before[a.Attempt] = a
		}
	}
	for _, a := range now.Attempts {
		was, known := before[a.Attempt]
		if !known {
			if a.Attempt <= g.numbers[id] {
				g.violate("attempt %d of %s is handed out, after %d was", a.Attempt, id, g.numbers[id])
			}
			g.numbers[id] = a.Attempt
			g.w.logf("## status: %s is assigned attempt %d (%s)", id, a.Attempt, a.Version)
			if g.w.plans != nil {
				g.w.plans.assigned(id, a)
			}
		}
		if was.StartedAt == nil && a.StartedAt != nil {
			g.w.logf("## status: %s started attempt %d", id, a.Attempt)
		}
		if was.Recall == nil && a.Recall != nil {
			g.w.logf("## status: attempt %d of %s is recalled: %s", a.Attempt, id, a.Recall.Because)
		}
		if known && was.Outcome != a.Outcome {
			g.w.logf("## status: attempt %d of %s: %q → %q %s", a.Attempt, id, was.Outcome, a.Outcome, a.Message)
			if was.Outcome != "" && !slices.Contains(may[was.Outcome], a.Outcome) {
				g.violate("attempt %d of %s goes from %q to %q", a.Attempt, id, was.Outcome, a.Outcome)
			}
			g.ended(id, a)
		}
	}
}

// ended is I5, and the other half of I3: what ended without having begun has
// not begun.
func (g *ghost) ended(id string, a schema.Attempt) {
	d := g.device(id)
	switch a.Outcome {
	case schema.OutcomeOK:
		if !d.done[a.Attempt] {
			g.violate("I5: attempt %d of %s is ok, and the device did not do it", a.Attempt, id)
		}
	case schema.OutcomeFailed:
		if !d.acted[a.Attempt] && !d.done[a.Attempt] {
			g.violate("I5: attempt %d of %s is failed, and the device never began it", a.Attempt, id)
		}
	case schema.OutcomeDeferred, schema.OutcomeUnreached, schema.OutcomeRefused, schema.OutcomeExhausted:
		if d.acted[a.Attempt] {
			g.violate("I3: attempt %d of %s is %s, and the device has begun it", a.Attempt, id, a.Outcome)
		}
	}
}

// hold is I1, I2, I3 and I6.
func (g *ghost) hold() {
	taken, acting := 0, 0
	for _, id := range slices.Sorted(maps.Keys(g.status)) {
		open := 0
		for _, a := range g.status[id].Attempts {
			if a.Outcome == "" {
				open++
			}
		}
		if open > 1 {
			g.violate("I1: %s has %d open attempts", id, open)
		}
		taken += open
	}
	if g.w.plans == nil && taken > g.w.maxInFlight {
		g.violate("I1: %d slots are taken, maxInFlight is %d", taken, g.w.maxInFlight)
	}
	for _, id := range slices.Sorted(maps.Keys(g.devices)) {
		n := g.devices[id].acting
		if n == 0 {
			continue
		}
		switch outcome, known := g.outcome(id, n); {
		case !known:
			g.violate("I2: %s acts on attempt %d, which the status branch does not know", id, n)
		case outcome == schema.OutcomeDeferred || outcome == schema.OutcomeUnreached:
			g.violate("I3: %s acts on attempt %d, which ended as %s", id, n, outcome)
		case outcome == "":
			acting++
		case outcome != schema.OutcomeLost:
			g.violate("I2: %s acts on attempt %d, which ended as %s", id, n, outcome)
		}
	}
	if g.w.plans != nil {
		return // what they limit is judged by commits
	}
	if acting > g.w.maxInFlight {
		g.violate("I2: %d devices act, maxInFlight is %d", acting, g.w.maxInFlight)
	}
	if k := g.w.uncertain; k == fails || k == failsAgain {
		if on, most := g.started[versions[1]], g.w.failLimit+g.w.maxInFlight; len(on) > most {
			g.violate("I6: %d devices were started on a release that always fails, want at most %d", len(on), most)
		}
	}
}

func (g *ghost) outcome(id string, number int64) (schema.Outcome, bool) {
	if s := g.status[id]; s != nil {
		for _, a := range s.Attempts {
			if a.Attempt == number {
				return a.Outcome, true
			}
		}
	}
	return "", false
}

// atRest says whether the fleet has come to where it should be (I4); why says
// what is missing.
func (g *ghost) atRest() (why string) {
	w := g.w
	for _, dev := range w.devices {
		s, a := g.status[dev.id], g.assigned[dev.id]
		if s == nil {
			return dev.id + " is not on the status branch"
		}
		for _, at := range s.Attempts {
			if at.Outcome == "" {
				return fmt.Sprintf("attempt %d of %s is open", at.Attempt, dev.id)
			}
		}
		if d := g.devices[dev.id]; d != nil && d.acting != 0 {
			return dev.id + " is still acting"
		}
		if a != nil {
			here, there := g.blobs["assigned/"+dev.id+".yaml"], w.repo.Files(w.repo.Ref(w.deliveryRefs + dev.id))[assignmentFile]
			if here != there {
				return "the delivery of " + dev.id + " is not what the status branch says"
			}
		}
		switch s.Verdict.Code {
		case "Current":
			if s.Observed == nil || s.Observed.Version != w.targetOf(dev.id) {
				return dev.id + " is said to be current, and is not on the target"
			}
			if n := len(s.Attempts); n > 0 && s.Attempts[n-1].Outcome == schema.OutcomeOK && (a == nil || a.Spec == nil || a.Attempt != s.Attempts[n-1].Attempt) {
				return "what " + dev.id + " runs is not what its document says"
			}
		case "Failed", "Halted", "Held":
			if w.plans != nil {
				return fmt.Sprintf("%s is %s: %s", dev.id, s.Verdict.Code, s.Verdict.Reason)
			}
		default:
			return fmt.Sprintf("%s is %s: %s", dev.id, s.Verdict.Code, s.Verdict.Reason)
		}
	}
	return ""
}
