package protocoltest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// Operations of histories, beside those of schedules.
const (
	opRound       op = 100 + iota // everybody makes one pass
	opRounds                      // several, and time passes
	opEditTarget                  // the target of a policy is another one
	opRevert                      // the last change of a target is reverted
	opEditPause                   // a policy is paused, or the fleet, or they go on
	opEditHold                    // a device is held, or released
	opEditPin                     // a device is pinned, or not any more
	opEditWaves                   // the waves of a policy change
	opEditPilot                   // its pilot
	opEditBudgets                 // its budgets, or those of the fleet
	opEditWindows                 // its windows
	opEditFreezes                 // its freezes, or those of the fleet
	opEditPace                    // its minInterval
	opEditSlots                   // maxInFlight of a policy, or of the fleet
	opEditLimits                  // failureLimit and minAvailable
	opEditOverlay                 // what everybody gets
	opEditRole                    // a label moves a device to another wave
	opEditSite                    // a label moves a device to another group
	opEditPolicy                  // a label moves a device to another policy
	opInvalid                     // the head cannot be swept, or can be again
	opBrake                       // the brake is pulled
	opRelease                     // and released
	opSkew                        // the clock of a daemon jumps
	opEditGone                    // a device leaves the fleet repository, or comes back
)

// usual lists the operations of a history as often as they should happen.
var usual = func() []op {
	var all []op
	for _, l := range []struct {
		op
		times int
	}{
		{opRound, 34}, {opRounds, 26}, {opSwitch, 10}, {opCrash, 8}, {opStop, 2}, {opCutBefore, 3}, {opCutAfter, 5}, {opSleep, 4}, {opWake, 3},
		{opClock, 9}, {opBusy, 4}, {opHoldDevice, 2}, {opOffline, 4}, {opReinstall, 3}, {opCorrupt, 2}, {opStale, 4}, {opDropRef, 1}, {opDamage, 1},
		{opEditTarget, 11}, {opRevert, 4}, {opEditPause, 4}, {opEditHold, 4}, {opEditPin, 3}, {opEditWaves, 6}, {opEditPilot, 4},
		{opEditBudgets, 5}, {opEditWindows, 3}, {opEditFreezes, 3}, {opEditPace, 4}, {opEditSlots, 6}, {opEditLimits, 3}, {opEditOverlay, 4},
		{opEditRole, 4}, {opEditSite, 3}, {opEditPolicy, 2}, {opInvalid, 2}, {opBrake, 8}, {opRelease, 6}, {opSkew, 3}, {opEditGone, 6},
	} {
		for range l.times {
			all = append(all, l.op)
		}
	}
	return all
}()

func pick[T any](arg int, of ...T) T { return of[arg%len(of)] }

func someWaves(arg int) []waveModel {
	canary := waveModel{name: "canary", label: "role", value: "canary", threshold: 100, minSuccess: 1}
	soaked := waveModel{name: "canary", label: "role", value: "canary", threshold: 50, minSuccess: 1, soak: 15 * time.Minute}
	north := waveModel{name: "north", label: "site", value: "north", threshold: 60, minSuccess: 1, soak: 5 * time.Minute}
	half := waveModel{name: "half", label: "site", value: "north", threshold: 34, minSuccess: 1}
	nobody := waveModel{name: "lab", label: "role", value: "lab", threshold: 100, minSuccess: 1, optional: true}
	return pick(arg, nil, []waveModel{canary}, []waveModel{soaked}, []waveModel{canary, north}, []waveModel{half}, []waveModel{nobody, soaked, north},
		[]waveModel{{name: "south", label: "site", value: "south", threshold: 100, minSuccess: 2, optional: true}, canary})
}

func someWindows(arg int) []windowModel {
	daily := windowModel{start: 8 * time.Hour, duration: 4 * time.Hour, zone: "UTC"}
	night := windowModel{start: 22 * time.Hour, duration: 8 * time.Hour, zone: "Asia/Kolkata", east: 5*time.Hour + 30*time.Minute}
	sunday := windowModel{days: []time.Weekday{time.Sunday, time.Monday}, start: 10 * time.Hour, duration: 45 * time.Minute, zone: "UTC"}
	return pick(arg, nil, nil, nil, []windowModel{daily}, []windowModel{night}, []windowModel{daily, night}, []windowModel{sunday})
}

func someBudgets(arg int) []budgetModel {
	return pick(arg, nil, []budgetModel{{"site", limitModel{1, false}}}, []budgetModel{{"role", limitModel{50, true}}},
		[]budgetModel{{"site", limitModel{2, false}}, {"role", limitModel{1, false}}}, []budgetModel{{"site", limitModel{40, true}}}, nil,
		[]budgetModel{{"role", limitModel{0, false}}})
}

func someSlots(arg int) limitModel {
	return pick(arg, limitModel{1, false}, limitModel{2, false}, limitModel{3, false}, limitModel{50, true}, limitModel{34, true})
}

// newFleetModel is the fleet that a history begins with.
func newFleetModel(rng *rand.Rand, devices int) *fleetModel {
	m := &fleetModel{}
	for i := range m.policies {
		m.policies[i] = policyModel{
			name: string(rune('a' + i)), target: versions[rng.IntN(2)], down: rng.IntN(2) == 0, max: someSlots(rng.IntN(8)),
			minAvailable: rng.IntN(2), failureLimit: rng.IntN(2), waves: someWaves(rng.IntN(8)), budgets: someBudgets(rng.IntN(12)),
			windows: someWindows(rng.IntN(14)),
		}
		if rng.IntN(3) == 0 {
			m.policies[i].pilot, m.policies[i].pilotSoak = 1+rng.IntN(2), pick(rng.IntN(2), 0, 10*time.Minute)
		}
		if rng.IntN(4) == 0 {
			m.policies[i].minInterval = 5 * time.Minute
		}
	}
	for i := range devices {
		d := deviceModel{id: fmt.Sprintf("gw-%d", i+1), policy: "a", site: pick(rng.IntN(2), "north", "south"), role: "plain"}
		if rng.IntN(3) == 0 {
			d.policy = "b"
		}
		if i == 0 || rng.IntN(4) == 0 {
			d.role = "canary"
		}
		m.devices = append(m.devices, d)
	}
	if rng.IntN(3) == 0 {
		m.max = limitModel{1 + rng.IntN(2), false}
	}
	if rng.IntN(3) == 0 {
		m.budgets = someBudgets(1 + rng.IntN(4))
	}
	return m
}

// hurry makes it a fleet with a wave that is enough when a third of it is done,
// while others of it may still be on their way.
func (m *fleetModel) hurry() {
	m.max, m.budgets = limitModel{}, nil
	for i := range m.policies {
		p := &m.policies[i]
		*p = policyModel{name: p.name, target: p.target, down: p.down, max: limitModel{2, false}, failureLimit: p.failureLimit, waves: someWaves(4)}
	}
	for i := range m.devices {
		d := &m.devices[i]
		if d.policy, d.site = "a", "north"; i == 0 {
			d.site = "south"
		}
	}
}

// edit commits what an operator changes.
func (w *world) edit(message string, change func(m *fleetModel)) {
	p := w.plans
	m := p.now.clone()
	change(m)
	w.logf("OPERATOR: %s", message)
	old, files := p.now.files(w), m.files(w)
	for path, data := range files {
		if string(old[path]) == string(data) && (old[path] == nil) == (data == nil) {
			delete(files, path)
		}
	}
	if len(files) == 0 {
		return
	}
	p.noted(w.repo.Push("main", message, w.now, files), m)
}

// play1 does what a step of a history says.
func (w *world) play1(s step) {
	arg := int(s.arg)
	m := w.plans.now
	half, d := arg%2, arg%len(m.devices)
	name, id := m.policies[half].name, m.devices[d].id
	more := arg / 2
	edit := func(what string, change func(p *policyModel)) {
		w.edit(what+" of policy "+name, func(m *fleetModel) { change(&m.policies[half]) })
	}
	device := func(what string, change func(d *deviceModel)) {
		w.edit(what+" of "+id, func(m *fleetModel) { change(&m.devices[d]) })
	}
	switch o := usual[int(s.op)%len(usual)]; o {
	case opRound:
		w.round(arg/4%2 == 1)
		w.pass(pick(arg, time.Minute, 2*time.Minute, 4*time.Minute, 11*time.Minute))
	case opRounds:
		for range 2 {
			w.round(arg/6%2 == 1)
			w.pass(pick(arg/2, time.Minute, 3*time.Minute, 6*time.Minute))
		}
	case opEditTarget:
		w.plans.bumped[half] = m.policies[half]
		edit("target "+pick(more, versions...), func(p *policyModel) { p.target, p.down = pick(more, versions...), more%4 != 0 })
	case opRevert:
		if old := w.plans.bumped[half]; old.name != "" {
			edit("revert of the target", func(p *policyModel) { p.target, p.down = old.target, old.down })
		}
	case opEditPause:
		if more%4 == 0 {
			w.edit("pause of the fleet, or its end", func(m *fleetModel) { m.paused = !m.paused })
			return
		}
		edit("pause, or its end,", func(p *policyModel) { p.paused = !p.paused })
	case opEditHold:
		device("hold, or its end,", func(d *deviceModel) { d.hold = !d.hold })
	case opEditPin:
		device("pin", func(d *deviceModel) { d.pin = pick(arg/len(m.devices), "", versions[0], versions[2], versions[1]) })
	case opEditWaves:
		edit("waves", func(p *policyModel) { p.waves = someWaves(more) })
	case opEditPilot:
		edit("pilot", func(p *policyModel) {
			p.pilot, p.pilotSoak = pick(more, 0, 1, 2, 1), pick(more/4, 0, 10*time.Minute)
		})
	case opEditBudgets:
		if more%3 == 0 {
			w.edit("budgets of the fleet", func(m *fleetModel) { m.budgets = someBudgets(more / 3) })
			return
		}
		edit("budgets", func(p *policyModel) { p.budgets = someBudgets(more / 3) })
	case opEditWindows:
		edit("windows", func(p *policyModel) { p.windows = someWindows(more) })
	case opEditFreezes:
		from := w.now.Add(pick(more, -time.Hour, 0, 10*time.Minute)).Truncate(time.Second)
		freezes := []freezeModel{{from, from.Add(pick(more/3, 30*time.Minute, 3*time.Hour))}}
		if more%4 == 0 {
			freezes = nil
		}
		if more%5 == 0 {
			w.edit("freezes of the fleet", func(m *fleetModel) { m.freezes = freezes })
			return
		}
		edit("freezes", func(p *policyModel) { p.freezes = freezes })
	case opEditPace:
		edit("minInterval", func(p *policyModel) { p.minInterval = pick(more, 0, time.Minute, 5*time.Minute, 20*time.Minute) })
	case opEditSlots:
		if more%4 == 0 {
			w.edit("maxInFlight of the fleet", func(m *fleetModel) { m.max = pick(more/4, limitModel{}, limitModel{1, false}, limitModel{34, true}) })
			return
		}
		edit("maxInFlight", func(p *policyModel) { p.max = someSlots(more / 4) })
	case opEditLimits:
		edit("failureLimit and minAvailable", func(p *policyModel) { p.failureLimit, p.minAvailable = more%2, more/2%3 })
	case opEditOverlay:
		w.edit("what all get", func(m *fleetModel) { m.overlay = arg % 3 })
	case opEditRole:
		device("role", func(d *deviceModel) { d.role = pick(arg/len(m.devices), "canary", "plain") })
	case opEditSite:
		device("site", func(d *deviceModel) { d.site = pick(arg/len(m.devices), "north", "south") })
	case opEditPolicy:
		device("policy", func(d *deviceModel) { d.policy = pick(arg/len(m.devices), "a", "b") })
	case opEditGone:
		w.removal(d, more%2 == 0)
	case opInvalid:
		w.edit("something that is no policy, or its end", func(m *fleetModel) { m.invalid = !m.invalid })
	case opBrake:
		b := brakeModel{}
		switch more % 8 {
		case 0, 1:
			b.all = true
		case 2, 3, 4:
			b.policies = []string{name}
		default:
			b.devices = []string{id}
		}
		w.brake(b, more%16 == 0)
	case opRelease:
		w.release(arg%2 == 0)
	case opSkew:
		d := w.daemons[half%len(w.daemons)]
		for _, d := range w.daemons {
			d.accept = true // when it starts again: times on record may be ahead of all
		}
		d.skew = pick(more, 0, 20*time.Minute, 2*time.Hour, -20*time.Minute, -2*time.Hour, 0)
		w.logf("-- the clock of %s is %s off", d.name, d.skew)
	default:
		w.do(o, arg)
	}
}

// removal takes a device out of the fleet, or brings it back. One always stays.
func (w *world) removal(i int, accepted bool) {
	m := w.plans.now
	if gone := m.devices[i].gone; !gone && len(m.present()) == 1 {
		return
	}
	message := m.devices[i].id + " leaves, or comes back"
	if accepted {
		message += acceptDeletions
	}
	w.places[i].gone = !w.places[i].gone
	w.edit(message, func(m *fleetModel) { m.devices[i].gone = !m.devices[i].gone })
}

// brake pushes a brake; one that nobody can read stops everything.
func (w *world) brake(b brakeModel, unreadable bool) {
	text := "apiVersion: gitopsd.dev/v1alpha1\nkind: Brake\n"
	switch {
	case unreadable:
		text = "everything: [\n"
		b = brakeModel{all: true}
	case b.all:
		text += "all: {reason: smoke}\n"
	case len(b.policies) > 0:
		text += "policies: {" + strings.Join(b.policies, ": {reason: smoke}, ") + ": {reason: smoke}}\n"
	default:
		text += "devices: {" + strings.Join(b.devices, ": {reason: smoke}, ") + ": {reason: smoke}}\n"
	}
	w.logf("OPERATOR: brake: %+v", b)
	w.plans.brakes[w.repo.Push(schema.BrakeBranch, "brake", w.now, map[string][]byte{"brake.yaml": []byte(text)})] = b
}

// release takes the brake off: an empty document, or no branch.
func (w *world) release(branch bool) {
	if w.repo.Ref(brakeRef) == "" {
		return
	}
	w.logf("OPERATOR: brake off")
	if branch {
		w.repo.Set(brakeRef, "")
		return
	}
	w.plans.brakes[w.repo.Push(schema.BrakeBranch, "brake off", w.now, map[string][]byte{"brake.yaml": nil})] = brakeModel{}
}

// pass lets time pass.
func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }

// round lets everybody make one pass, the sleeping aside; the daemons come
// last, or before the devices have taken up what was assigned to them.
func (w *world) round(first bool) {
	actors := w.actors
	if n := len(w.devices); first {
		actors = slices.Concat(actors[n:], actors[:n])
	}
	for _, a := range actors {
		if !a.asleep && !w.failed() {
			w.whole(a)
		}
	}
}

// sane is the fleet without lasting obstacles: what the operators leave it
// with in the end.
func (w *world) sane(m *fleetModel, end ending) {
	m.paused, m.invalid, m.freezes, m.retry = false, false, nil, w.now
	for i := range m.devices {
		m.devices[i].hold, m.devices[i].pin = false, ""
		if m.devices[i].gone = m.devices[i].gone && end.gone; !m.devices[i].gone {
			w.places[i].gone = false
		}
	}
	able := func(list []budgetModel) []budgetModel {
		return slices.DeleteFunc(slices.Clone(list), func(b budgetModel) bool { return b.max.n == 0 })
	}
	m.budgets = able(m.budgets)
	for i := range m.policies {
		p := &m.policies[i]
		p.paused, p.target, p.down, p.freezes = false, end.targets[i], true, nil
		p.budgets = able(p.budgets)
		p.windows = slices.DeleteFunc(slices.Clone(p.windows), func(v windowModel) bool { return !end.windows || len(v.days) > 0 })
		p.waves = slices.Clone(p.waves)
		for k := range p.waves {
			members := 0
			for _, d := range m.present() {
				if d.policy == p.name && p.wave(d) == k {
					members++
				}
			}
			p.waves[k].optional = p.waves[k].optional || members == 0
			p.waves[k].minSuccess = max(1, min(p.waves[k].minSuccess, members))
		}
	}
}
