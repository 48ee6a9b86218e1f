package sweep

import (
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// memory is what a daemon keeps of its devices from pass to pass, so that a
// pass makes anew only what changed. Its promise: what is kept of a device is
// what a pass without a memory would make of it now. Nobody has to tell it what
// changed: what was known of a device is compared with what is known, which
// costs a few lookups for each, and a time that comes ends what was made. The
// zero memory keeps nothing.
type memory struct {
	fleet   *schema.Fleet
	clock   clock            // of the last pass
	index   map[string]int   // places of the fleet's devices, by id
	entries []entry          // in the order of the fleet, and behind them those that left it
	devices []planner.Device // of the entries, as plans take them
	heard   int              // how many of the fleet were ever heard
}

// entry is what is kept of one device.
type entry struct {
	known known
	look
	isNew   bool          // made in this pass
	stands  bool          // it is among the devices of the status branch
	silence time.Duration // after which it counts as offline; 0 = it was never heard
	// idle: if it keeps the verdict that is on record, nothing about it is to
	// be written.
	idle bool
}

// input is what [PlannerInput] makes of the same scene.
func (m *memory) input(s *Scene) planner.Input {
	if m.fleet != s.Fleet {
		m.follow(s.Fleet)
	}
	c := s.clock()
	holds := !c.now.Before(m.clock.now) && c.noTimeouts == m.clock.noTimeouts
	m.clock = c
	members := s.Fleet.Devices
	m.entries, m.devices = m.entries[:len(members)], m.devices[:len(members)]
	standing := 0
	m.heard = 0
	for i, member := range members {
		e := &m.entries[i]
		if k := s.known(member); holds && e.holds(&k, c.now) {
			e.isNew = false
		} else {
			*e, m.devices[i] = newEntry(k, c)
		}
		if h := &e.known.heard; h.Report != nil || h.Problem != "" {
			m.heard++
		}
		if e.stands {
			standing++
		}
	}
	for _, k := range s.removed(standing) {
		e, d := newEntry(k, c)
		m.entries, m.devices = append(m.entries, e), append(m.devices, d)
	}
	in := s.input()
	in.Devices = m.devices
	return in
}

// follow puts what is kept into the order of another fleet.
func (m *memory) follow(fleet *schema.Fleet) {
	entries, devices := make([]entry, len(fleet.Devices)), make([]planner.Device, len(fleet.Devices))
	index := make(map[string]int, len(fleet.Devices))
	for i, member := range fleet.Devices {
		index[member.ID] = i
		if j, ok := m.index[member.ID]; ok {
			entries[i], devices[i] = m.entries[j], m.devices[j]
		}
	}
	m.fleet, m.index, m.entries, m.devices = fleet, index, entries, devices
}

func newEntry(k known, c clock) (entry, planner.Device) {
	d, l := k.look(c)
	e := entry{known: k, look: l, isNew: true, stands: k.stands()}
	if d.Seen {
		e.silence = offlineLimit(l.facts.Report, k.offlineAfter())
	}
	return e, d
}

// holds says whether the entry is what would be made now of what is known.
func (e *entry) holds(k *known, now time.Time) bool {
	return e.known == *k && !e.fleeting && (e.until.IsZero() || now.Before(e.until))
}

// find is the place of a device in plans.
func (m *memory) find(id string) (int, bool) {
	if i, ok := m.index[id]; ok {
		return i, true
	}
	for i := len(m.fleet.Devices); i < len(m.entries); i++ {
		if m.devices[i].ID == id && m.entries[i].stands {
			return i, true
		}
	}
	return 0, false
}
