package protocoltest

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/agentsync"
	"github.com/gitopsd/gitopsd/internal/memremote"
	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/schema"
)

// epoch is when every run begins.
var epoch = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

// heartbeat of the devices, and what the policy waits for.
const (
	heartbeat     = 10 * time.Minute
	pickupTimeout = time.Hour
	updateTimeout = 30 * time.Minute
	settleTime    = 2 * time.Minute
)

// kind is what becomes of a version on a device.
type kind int

const (
	good       kind = iota
	fails           // after it has begun, for good
	failsAgain      // the same, but it is tried again
	refuses         // before anything has changed
)

var versions = []string{"v1.0.0", "v1.1.0", "v1.2.0"}

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
	uncertain                kind   // of v1.1.0
	target                   string // as it stands on main
	last                     string // target, in the end
	paused, heldInTheEnd     bool
	lookQuiet                bool   // whether a fleet at rest is left alone is looked at, too
	holds                    []bool // in git
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
		uncertain: kind(b[4] % 4), target: versions[b[5]%2], last: versions[2*(b[6]%2)], heldInTheEnd: b[6]&4 != 0, lookQuiet: b[7]%4 == 0,
		deliveryRefs: schema.DefaultDeviceRefs, reportRefs: schema.DefaultReportRefs,
	}
	w.watch(b[3]&4 != 0)
	devices := 2 + int(b[0])%3
	if w.real {
		devices = 2 + int(b[0])%2
	}
	w.holds = make([]bool, devices)
	files := map[string][]byte{"policies/gateways.yaml": w.policyYAML()}
	for i := range devices {
		id := fmt.Sprintf("gw-%d", i+1)
		files["devices/"+id+".yaml"] = w.deviceYAML(i)
		w.addDevice(id)
	}
	for _, v := range versions {
		files["releases/gateways/"+v+".yaml"] = w.releaseYAML(v)
	}
	w.repo.Push("main", "first commit", w.now, files)
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
	w.repo.History = 12
	w.repo.Moved = w.ghost.moved
	w.inbox = w.repo
	if otherInbox {
		w.inbox = memremote.New()
		w.inbox.Moved = w.ghost.moved
	}
}

func (w *world) logf(format string, args ...any) {
	if w.trace != nil {
		fmt.Fprintf(w.trace, format+"\n", args...)
	}
}

func (w *world) kind(version string) kind {
	if version == versions[1] {
		return w.uncertain
	}
	return good
}

func (w *world) policyYAML() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: gitopsd.dev/v1alpha1
kind: Policy
metadata: {name: gateways}
spec:
  enabled: true
  selector: {matchLabels: {role: gateway}}
  targetVersion: %s
  rollbackFrom: [%s]
  maxInFlight: %d
  minAvailable: 0
  failureLimit: %d
  refusalLimit: 10
  maxAttempts: %d
  backoff: {base: 1m, factor: 1}
  pickupTimeout: %s
  updateTimeout: %s
`, w.target, strings.Join(versions, ", "), w.maxInFlight, w.failLimit, w.maxAttempts, schema.Duration(pickupTimeout), schema.Duration(updateTimeout))
	if w.settle {
		fmt.Fprintf(&b, "  settle: %s\n", schema.Duration(settleTime))
	}
	if w.paused {
		b.WriteString("  paused: {reason: look}\n")
	}
	return []byte(b.String())
}

// deviceYAML is a device with a digest of its own.
func (w *world) deviceYAML(i int) []byte {
	hold := ""
	if w.holds[i] {
		hold = "  hold: {reason: disk being replaced}\n"
	}
	return fmt.Appendf(nil, "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata:\n  name: gw-%d\n  labels: {role: gateway}\nspec:\n  vars: {serial: \"%d\"}\n%s", i+1, i+1, hold)
}

func (w *world) releaseYAML(version string) []byte {
	more := ""
	switch w.kind(version) {
	case fails:
		more = "  hooks: {afterUpdating: {check: {run: [/nonexistent/check]}}}\n"
	case failsAgain:
		more = fmt.Sprintf("  onDevice: {retries: %d}\n", w.retries)
	case refuses:
		more = "  requires: {paths: [/nonexistent]}\n"
	}
	return fmt.Appendf(nil, `apiVersion: gitopsd.dev/v1alpha1
kind: Release
metadata: {name: %s}
spec:
  files:
    /etc/version: {content: "%[1]s {{.vars.serial}}\n", template: true}
    /etc/%[1]s: {content: "only of this one\n"}
%s`, version, more)
}

// targetOf is where a device is to go, by what stands on main.
func (w *world) targetOf(id string) string {
	if w.plans != nil {
		return w.plans.now.target(w.plans.now.device(id))
	}
	return w.target
}

func (w *world) push(message string, files map[string][]byte) {
	w.logf("OPERATOR: %s", message)
	w.repo.Push("main", message, w.now, files)
}

func (w *world) pushPolicy(message string) {
	w.push(message, map[string][]byte{"policies/gateways.yaml": w.policyYAML()})
}

// device is one device: a machine, the program on it, and its way to git.
type device struct {
	w       *world
	id      string
	actor   *actor
	client  *memremote.Client // of the fleet repository
	outbox  *memremote.Client // of the reports
	machine machine
	program program // nil = none is running
	offline bool
	mark
}

// mark is what a device's surroundings say of it, and since which point.
type mark struct {
	busy, held         bool
	busyFrom, heldFrom int
}

// machine is a device's hardware: what survives its programs.
type machine interface {
	start(control) (program, error)
	reinstall()
	corrupt(n int) string
	marks() // puts on the machine what its surroundings say
}

// program is an agent.
type program interface {
	pass(ctx context.Context) error
	close()
}

func (w *world) addDevice(id string) {
	d := &device{w: w, id: id}
	d.actor = &actor{name: id, resume: make(chan struct{}), pass: d.pass, drop: d.drop}
	w.actors = append(w.actors, d.actor)
	w.devices = append(w.devices, d)
	d.client = w.client(d.actor, w.repo, func() bool { return d.offline })
	d.outbox = w.client(d.actor, w.inbox, func() bool { return d.offline })
	if w.real {
		d.machine = newReal(w, d)
	} else {
		d.machine = newLight(w, d)
	}
}

// client is an actor's access to a repository, with a point before and after
// each exchange.
func (w *world) client(a *actor, repo *memremote.Repo, cut func() bool) *memremote.Client {
	c := &memremote.Client{Repo: repo, Atomic: w.atomic, Reverse: w.reverse, Reports: w.reportRefs}
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

// point is a scheduling point in the middle of a program on this device.
func (d *device) point(what string) error {
	d.w.logf("%s: %s …", d.id, what)
	if err := d.w.tick(d.actor); err != nil {
		return err
	}
	return d.w.point(d.actor)
}

func (d *device) pass(ctx context.Context) error {
	if d.program == nil {
		ctl, err := d.control()
		if err != nil {
			return err
		}
		p, err := d.machine.start(ctl)
		if err != nil {
			return err
		}
		d.program = p
	}
	return d.program.pass(ctx)
}

// noTimeout is longer than any run takes: time is the scheduler's business.
const noTimeout = 1000 * time.Hour

func (d *device) control() (control, error) {
	inbox := agentsync.Fixed(d.outbox)
	ctl, err := agentsync.New(agentsync.Config{
		Remote: agentsync.Fixed(d.client), Reports: &inbox, Device: d.id, Timeout: noTimeout,
	})
	if err != nil {
		return nil, err
	}
	return &witness{Control: ctl, dev: d}, nil
}

// witness remembers what a device saw when it looked last.
type witness struct {
	*agentsync.Control
	dev *device
}

func (c *witness) Look(ctx context.Context) (schema.Delivery, string, error) {
	d, problem, err := c.Control.Look(ctx)
	c.dev.w.ghost.looked(c.dev.id, d.Assignment, err == nil && problem == "")
	return d, problem, err
}

func (c *witness) Report(ctx context.Context, r *schema.Report) error {
	c.dev.w.logf("%s: reports %d: attempt %d %s begun=%v outcome=%q at %s, generation %d, recalled %d %s", c.dev.id, r.Sequence, r.Attempt, r.Phase, r.Begun,
		r.Outcome, r.Current.Version, r.Generation, r.Recalled, r.Reason)
	return c.Control.Report(ctx, r)
}

func (d *device) drop() {
	if d.program != nil {
		d.program.close()
		d.program = nil
	}
}

// daemon is one daemon with its state folder.
type daemon struct {
	w       *world
	name    string
	actor   *actor
	client  *memremote.Client
	inbox   *memremote.Client
	state   string // folder; "" = none
	running *sweep.Daemon
	behind  int // states ago that its next listing is from

	skew   time.Duration // of its wall clock
	accept bool          // a person says that the clock is right
	read   view          // what it knows of the operators
}

func (w *world) addDaemon(name string) {
	d := &daemon{w: w, name: name}
	d.actor = &actor{name: name, resume: make(chan struct{}), pass: d.pass, drop: func() { d.running = nil }}
	w.actors = append(w.actors, d.actor)
	w.daemons = append(w.daemons, d)
	d.client = w.client(d.actor, w.repo, nil)
	d.client.Behind = func() int {
		n := d.behind
		d.behind = 0
		if n > 0 {
			w.logf("%s: is served the refs of %d moves ago", d.name, n)
		}
		return n
	}
	if w.inbox != w.repo {
		d.inbox = w.client(d.actor, w.inbox, nil)
	}
	if w.onDisk {
		d.state = filepath.Join(w.dir, name)
	}
}

func (d *daemon) pass(ctx context.Context) error {
	w := d.w
	w.now = w.now.Add(time.Second)
	if d.running == nil {
		cfg := sweep.Config{
			Remote: &viewer{d.client, d}, Branch: "main", State: d.state, OwnVersion: "v0.1.0",
			Now:    func() time.Time { return w.now.Add(d.skew) },
			Uptime: func() (time.Duration, string, error) { return w.now.Sub(epoch) + time.Hour, "boot-1", nil },
		}
		cfg.Accept.Clock = d.accept
		if d.inbox != nil {
			cfg.Reports = d.inbox
		}
		if w.trace != nil {
			cfg.Logger = slog.New(slog.NewTextHandler(w.trace, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.String("by", d.name)
				}
				return a
			}}))
		}
		running, err := sweep.New(cfg)
		if err != nil {
			return err
		}
		d.running = running
	}
	_, err := d.running.Once(ctx)
	return err
}

// kill ends a daemon as power does: what it would have written to its state
// folder afterwards is not there.
func (d *daemon) kill() {
	saved := map[string][]byte{}
	d.eachState(func(file string) {
		if data, err := os.ReadFile(file); err == nil {
			saved[file] = data
		}
	})
	d.w.scheduler.kill(d.actor)
	d.eachState(func(file string) { _ = os.Remove(file) }) // and written again below
	for file, data := range saved {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			panic(err)
		}
	}
}

func (d *daemon) eachState(f func(file string)) {
	if d.state == "" {
		return
	}
	_ = filepath.WalkDir(d.state, func(p string, e fs.DirEntry, err error) error { // absent before the first pass
		if err == nil && e.Type().IsRegular() {
			f(p)
		}
		return nil
	})
}

// damage makes a daemon's state folder unreadable, or takes it away.
func (d *daemon) damage(n int) {
	d.kill()
	d.eachState(func(file string) {
		switch n % 2 {
		case 0:
			_ = os.Remove(file)
		case 1:
			_ = os.WriteFile(file, []byte("{"), 0o600)
		}
	})
}
