package protocoltest

import (
	"fmt"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// Directions in which a device is on its way.
const (
	forward = "forward"
	back    = "back"
)

// lightDisk is what survives the programs of a device.
type lightDisk struct {
	install    string
	sequence   int64
	generation int64 // newest seen
	held       bool  // so said the newest document
	last       lightEnd
	again      int64 // the last attempt, if what the device runs was assigned again since
	taken      int64 // the highest that was taken back, when an end is told instead of it
	current    schema.SpecRef
	unknown    bool // what the device runs was lost
	okAt       time.Time
	desired    *schema.Assignment
	direction  string
	begun      int64 // attempt that changed something
	tries      int   // of the desired attempt that failed
	dropped    int64
	observes   int64 // attempt whose spec it is only compared with; 0 = none

	booted, staged string // operating systems
	osFrom         string // what was booted before the desired attempt; "" = nothing was staged
	pending        lightBoot
}

// lightBoot is a reboot that was asked for; the zero value is none.
type lightBoot struct {
	attempt int64
	image   string
	bootID  string // of the boot in which it was asked for
}

// lightEnd is the attempt with the highest number that ended here.
type lightEnd struct {
	attempt int64
	outcome schema.Outcome
	begun   bool
	digest  string
	stage   string
}

// ended is the highest number that nothing begins with any more.
func (d *lightDisk) ended() int64 { return max(d.last.attempt, d.taken) }

// lightMachine is a device that follows the protocol and has no files.
type lightMachine struct {
	w        *world
	dev      *device
	disk     lightDisk
	installs int
	boots    int
}

func newLight(w *world, dev *device) *lightMachine {
	m := &lightMachine{w: w, dev: dev}
	m.reinstall()
	return m
}

func (m *lightMachine) newInstall() string {
	m.installs++
	return fmt.Sprintf("%s-install-%d", m.dev.id, m.installs)
}

func (m *lightMachine) reinstall() {
	m.disk = lightDisk{install: m.newInstall(), current: schema.SpecRef{Version: "v0.0.0"}, booted: firstOS}
}

// firstOS is what a machine is set up with.
const firstOS = "os-0"

// boot leaves the disk as it is. What was staged is booted once, or not at all.
func (m *lightMachine) boot(old bool) {
	m.boots++
	if d := &m.disk; d.staged != "" {
		if !old {
			d.booted = d.staged
		}
		d.staged = ""
	}
}

func (m *lightMachine) bootID() string { return fmt.Sprintf("%s-boot-%d", m.dev.id, m.boots) }

// corrupt makes one of the state files unreadable: the next program finds out.
func (m *lightMachine) corrupt(n int) string {
	d := &m.disk
	was := *d
	what := []string{"install.json", "attempts.json", "current.json"}[n%3]
	switch n % 3 {
	case 1:
		d.last, d.taken, d.direction, d.dropped, d.held = lightEnd{}, 0, "", 0, false
		if was.desired != nil && !was.unknown {
			d.direction = back
		}
	case 2:
		d.current, d.unknown, d.okAt = schema.SpecRef{Version: "v0.0.0"}, true, time.Time{}
	}
	if d.direction == forward {
		d.direction = back
	}
	d.install, d.sequence = m.newInstall(), 0
	d.generation, d.desired, d.begun, d.tries, d.pending = 0, nil, 0, 0, lightBoot{}
	if n%3 == 1 {
		d.osFrom = ""
	}
	m.tellGhost()
	return what
}

// tellGhost says what the disk says. A way back that is blocked is over as
// far as anybody waits for it.
func (m *lightMachine) tellGhost() {
	d := &m.disk
	if d.last.outcome == schema.OutcomeOK {
		m.w.ghost.did(m.dev.id, d.last.attempt)
	}
	if d.last.outcome == schema.OutcomeObserved {
		m.w.ghost.compared(m.dev.id, d.last.attempt)
	}
	m.w.ghost.observes(m.dev.id, d.observes != 0)
	version := ""
	if d.desired != nil {
		version = d.desired.Version
	}
	on := d.direction == forward || d.direction == back && !d.unknown
	m.w.ghost.knows(m.dev.id, d.install, d.generation)
	m.w.ghost.acts(m.dev.id, d.install, d.begun, version, on)
}

func (m *lightMachine) marks() {} // its programs ask the device itself

func (m *lightMachine) start(ctl control) (program, error) {
	return &lightAgent{m: m, ctl: ctl}, nil
}
