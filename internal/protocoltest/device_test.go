package protocoltest

import (
	"context"
	"time"

	"github.com/gitopsd/gitopsd/agentsync"
	"github.com/gitopsd/gitopsd/internal/memremote"
	"github.com/gitopsd/gitopsd/schema"
)

// device is one device: a machine, the program on it, and its way to git.
type device struct {
	w         *world
	id        string
	actor     *actor
	client    *memremote.Client // of the fleet repository
	outbox    *memremote.Client // of the reports
	machine   machine
	program   program // nil = none is running
	offline   bool
	goingDown bool // the program has asked for a reboot
	announced bool // and has not looked again yet
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
	boot(old bool) // into what is staged, unless it comes up as the old system
	marks()        // puts on the machine what its surroundings say
}

// program is an agent.
type program interface {
	pass(ctx context.Context) error
	close()
}

// control is what an agent needs of package agentsync.
type control interface {
	Look(ctx context.Context) (schema.Delivery, string, error)
	Report(ctx context.Context, r *schema.Report) error
	Answers(ctx context.Context) error
}

func (w *world) addDevice(id string) {
	d := &device{w: w, id: id}
	d.actor = &actor{name: id, pass: d.pass, drop: d.drop}
	w.actors = append(w.actors, d.actor)
	w.devices = append(w.devices, d)
	d.client = w.client(d.actor, w.repo, func() bool { return d.offline })
	d.outbox = w.client(d.actor, w.inbox, func() bool { return d.offline })
	w.lagging(d.actor, d.client, d.readOf)
	w.lagging(d.actor, d.outbox, d.readOf)
	if w.real {
		d.machine = newReal(w, d)
	} else {
		d.machine = newLight(w, d)
	}
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
	if d.goingDown {
		d.boot(false)
	}
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
	err := d.program.pass(ctx)
	if d.goingDown {
		d.drop()
	}
	return err
}

// boot is the machine coming up again; nothing of its programs is left.
func (d *device) boot(old bool) {
	d.w.logf("-- %s boots (old=%v)", d.id, old)
	d.goingDown = false
	d.busy, d.busyFrom = false, d.w.points
	d.machine.boot(old)
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
	c.dev.announced = false
	c.dev.w.ghost.looked(c.dev.id, d.Assignment, err == nil && problem == "")
	return d, problem, err
}

func (c *witness) Report(ctx context.Context, r *schema.Report) error {
	c.dev.w.logf("%s: reports %d: attempt %d %s begun=%v outcome=%q at %s, generation %d, recalled %d %s", c.dev.id, r.Sequence, r.Attempt, r.Phase, r.Begun,
		r.Outcome, r.Current.Version, r.Generation, r.Recalled, r.Reason)
	err := c.Control.Report(ctx, r)
	c.dev.announced = err == nil && r.Phase == schema.PhaseStarting
	if c.dev.announced {
		c.dev.w.ghost.announces(c.dev.id, r.Attempt)
	}
	return err
}

func (d *device) drop() {
	if d.program != nil {
		d.program.close()
		d.program = nil
	}
	d.announced = false
	d.w.ghost.restarts(d.id)
}
