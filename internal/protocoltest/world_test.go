package protocoltest

import (
	"fmt"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/internal/memremote"
	"github.com/gitopsd/gitopsd/schema"
)

// epoch is when every run begins.
var epoch = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

// heartbeat of the devices, and what the policies wait for.
const (
	heartbeat     = 10 * time.Minute
	silence       = 3 * heartbeat // after it a device is offline, and a daemon's series is broken
	pickupTimeout = time.Hour
	updateTimeout = 30 * time.Minute
	settleTime    = 2 * time.Minute
)

// farthestLag is how far a replica can be behind, in moves of refs.
const farthestLag = 12

// world is one fleet with all that acts on it.
type world struct {
	*scheduler
	dir   string // for state folders and roots
	repo  *memremote.Repo
	inbox *memremote.Repo // of reports; the same one, or another
	now   time.Time
	ghost *ghost
	trace *strings.Builder // nil = nobody reads it

	devices []*device
	daemons []*daemon

	real                     bool
	atomic, reverse, onDisk  bool
	maxInFlight, failLimit   int
	maxAttempts, retries     int
	settle                   bool
	boots                    bool    // releases bring an operating system, which takes a reboot
	uncertain                kind    // of v1.1.0
	target                   string  // as it stands on main
	last                     string  // target, in the end
	paused                   bool    // so are the policies
	places                   []place // of the devices on main
	heldInTheEnd, goneAtLast bool    // what was held or removed stays so
	lookQuiet                bool    // whether a fleet at rest is left alone is looked at, too
	lags                     read    // where replicas are behind
	deliveryRefs, reportRefs string
	plans                    *plans // of a history; nil = this is a schedule
}

// setReal chooses the kind of devices.
func (s *schedule) setReal(real bool) {
	s.setup[0] &^= 0x80
	if real {
		s.setup[0] |= 0x80
	}
}

func (s *schedule) isReal() bool { return s.setup[0]&0x80 != 0 }

func newWorld(dir string, s schedule, trace *strings.Builder) *world {
	b := s.setup
	w := &world{
		dir: dir, now: epoch, trace: trace, repo: memremote.New(), real: s.isReal(),
		maxInFlight: 1 + int(b[1]>>4)%2, failLimit: int(b[2]) % 2,
		maxAttempts: 1 + int(b[2]>>1)%2, retries: int(b[2]>>2) % 2,
		settle: b[3]&1 != 0, atomic: b[3]&2 != 0, onDisk: b[3]&0x68 == 8, reverse: b[3]&16 != 0,
		uncertain: kind(b[4] % 4), target: versions[b[5]%2], last: versions[2*(b[6]%2)],
		heldInTheEnd: b[6]&4 != 0, goneAtLast: b[6]&8 != 0, boots: b[6]&0x30 == 0x30, lookQuiet: b[7]%4 == 0,
		lags:         s.lags,
		deliveryRefs: schema.DefaultDeviceRefs, reportRefs: schema.DefaultReportRefs,
	}
	if b[4]>>4 == 0xf {
		w.uncertain = observes
	}
	w.watch(b[3]&4 != 0)
	devices := 2 + int(b[0])%3
	if w.real {
		devices = 2 + int(b[0])%2
	}
	w.places = make([]place, devices)
	for i := range devices {
		w.addDevice(fmt.Sprintf("gw-%d", i+1))
	}
	w.repo.Push("main", "first commit", w.now, w.fleet())
	for i := range 1 + min(int(b[1])%4, 1) {
		w.addDaemon(fmt.Sprintf("daemon-%d", i+1))
	}
	return w
}

// watch lets the ghost see everything, be the reports in the same repository
// or in another one.
func (w *world) watch(otherInbox bool) {
	w.scheduler = &scheduler{back: make(chan struct{}), log: w.logf}
	w.ghost = newGhost(w, w.repo)
	w.scheduler.check = w.ghost.check
	w.scheduler.failed = func() bool { return w.ghost.violation != "" }
	w.inbox = w.repo
	if otherInbox {
		w.inbox = memremote.New()
	}
	for _, r := range []*memremote.Repo{w.repo, w.inbox} {
		r.History = farthestLag
		r.Moved = w.ghost.moved
	}
}

func (w *world) logf(format string, args ...any) {
	if w.trace != nil {
		fmt.Fprintf(w.trace, format+"\n", args...)
	}
}

// client is an actor's access to a repository, with a point before and after
// each exchange.
func (w *world) client(a *actor, repo *memremote.Repo, cut func() bool) *memremote.Client {
	c := &memremote.Client{Repo: repo, Atomic: w.atomic, Reverse: w.reverse}
	c.Before = func(op, what string) error {
		w.logf("%s: %s %s …", a.name, op, what)
		if err := w.point(a); err != nil {
			return err
		}
		if a.fault == faultBefore {
			a.fault = noFault
			w.logf("%s: … the connection is cut before it", a.name)
			return memremote.NewError("network", "cut before")
		}
		if cut != nil && cut() {
			return memremote.NewError("network", "offline")
		}
		return nil
	}
	c.After = func(op, what string) error {
		w.logf("%s: … %s done", a.name, op)
		if err := w.point(a); err != nil {
			return err
		}
		if a.fault == faultAfter {
			a.fault = noFault
			w.logf("%s: … the connection is cut after it", a.name)
			return memremote.NewError("network", "cut after")
		}
		return nil
	}
	c.Pause = func(op, what string) error {
		w.logf("%s: %s, next %s …", a.name, op, what)
		return w.point(a)
	}
	return c
}
