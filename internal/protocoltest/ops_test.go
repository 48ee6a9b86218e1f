package protocoltest

import "time"

// op is something that happens to the world.
type op int

const (
	opSwitch     op = iota // another program goes on
	opCrash                // a program is killed where it is, or a device's some steps on
	opStop                 // a program is asked to end
	opCutBefore            // the next exchange of a program fails
	opCutAfter             // the same, after it had its effect
	opSleep                // a program stands still until it is woken
	opWake                 // all go on
	opClock                // time passes
	opTarget               // the target changes
	opPause                // the policy is paused, or goes on
	opHold                 // a device is held in git, or released
	opBusy                 // a device is busy, or is not any more
	opHoldDevice           // a device is held on the spot, or released
	opOffline              // a device loses its network, or has it again
	opReinstall            // a device is set up anew
	opCorrupt              // a device's state file cannot be read any more
	opStale                // a daemon's next listing is an old one
	opDropRef              // somebody deletes a delivery ref
	opDamage               // a daemon's state folder is lost or damaged
	opReboot               // a device goes down and comes up again, perhaps as the old system
	opRemove               // a device leaves the fleet repository, or comes back
	opMove                 // a device gets another policy, none, or another folder
	opLag                  // an actor's next reads are those of a replica
	opVigil                // time passes, in which nobody but the daemons goes on
)

// likely lists the operations as often as they should happen.
var likely = func() []op {
	var all []op
	for _, l := range []struct {
		op
		times int
	}{
		{opSwitch, 22}, {opCrash, 8}, {opStop, 2}, {opCutBefore, 3}, {opCutAfter, 5}, {opSleep, 8}, {opWake, 4}, {opClock, 13},
		{opTarget, 7}, {opPause, 4}, {opHold, 4}, {opBusy, 6}, {opHoldDevice, 2}, {opOffline, 3}, {opReinstall, 3}, {opCorrupt, 3},
		{opStale, 3}, {opDropRef, 1}, {opDamage, 1},
		{opReboot, 6}, {opRemove, 5}, {opMove, 4}, {opLag, 8}, {opVigil, 3},
	} {
		for range l.times {
			all = append(all, l.op)
		}
	}
	return all
}()

// leaps are the amounts by which time passes: below and above every limit
// that the policy sets.
var leaps = []time.Duration{
	time.Minute, 2 * time.Minute, 6 * time.Minute, 11 * time.Minute, updateTimeout + time.Minute, updateTimeout + time.Minute,
	pickupTimeout + time.Minute, 3 * time.Hour,
}

// vigil is a time that is longer than every limit of the policies, in passes
// between which no daemon's series is broken.
const (
	vigil     = 3
	vigilStep = 21 * time.Minute
)

// apply does what a step says.
func (w *world) apply(s step) { w.do(likely[int(s.op)%len(likely)], int(s.arg)) }

func (w *world) do(o op, arg int) {
	dev := w.devices[arg%len(w.devices)]
	dmn := w.daemons[arg%len(w.daemons)]
	any := arg % len(w.actors)
	a := w.actors[any]
	switch o {
	case opSwitch:
		w.switchTo(any)
		w.logf("-- %s goes on", w.actors[any].name)
	case opCrash:
		if in := arg / len(w.actors); in%2 == 1 && any < len(w.devices) {
			a.fuse = in
			return
		}
		w.logf("-- %s is killed", a.name)
		w.crash(any)
	case opStop:
		w.logf("-- %s is asked to end", a.name)
		w.stop(a)
	case opCutBefore:
		a.fault = faultBefore
	case opCutAfter:
		a.fault = faultAfter
	case opSleep:
		w.logf("-- %s stands still", a.name)
		a.asleep = true
		if w.cur == any {
			w.next()
		}
	case opWake:
		w.logf("-- all go on")
		for _, a := range w.actors {
			a.asleep = false
		}
	case opClock:
		w.now = w.now.Add(leaps[arg%len(leaps)])
		w.logf("-- it is %s", w.now.Format(time.TimeOnly))
	case opTarget:
		w.target = versions[arg%len(versions)]
		w.pushPolicy("the target is " + w.target)
	case opPause:
		w.paused = !w.paused
		w.pushPolicy(map[bool]string{true: "pause", false: "go on"}[w.paused])
	case opHold:
		w.hold(arg%len(w.devices), !w.places[arg%len(w.devices)].hold)
	case opBusy:
		dev.busy, dev.busyFrom = !dev.busy, w.points
		dev.machine.marks()
		w.logf("-- %s busy=%v", dev.id, dev.busy)
	case opHoldDevice:
		dev.held, dev.heldFrom = !dev.held, w.points
		dev.machine.marks()
		w.logf("-- %s held on the spot=%v", dev.id, dev.held)
	case opOffline:
		dev.offline = !dev.offline
		w.logf("-- %s offline=%v", dev.id, dev.offline)
	case opReinstall:
		w.logf("-- %s is set up anew", dev.id)
		w.kill(dev.actor)
		dev.machine.reinstall()
		w.ghost.stops(dev.id)
	case opCorrupt:
		w.kill(dev.actor)
		w.logf("-- %s: its %s cannot be read any more", dev.id, dev.machine.corrupt(arg/len(w.devices)))
	case opStale:
		dmn.actor.lag = replicas{moves: 1 + arg/len(w.daemons)%8, reads: 1, but: true}
	case opDropRef:
		w.logf("-- somebody deletes the delivery ref of %s", dev.id)
		w.repo.Set(w.deliveryRefs+dev.id, "")
	case opDamage:
		w.logf("-- the state folder of %s is damaged", dmn.name)
		dmn.damage(arg / len(w.daemons))
	case opReboot:
		w.kill(dev.actor)
		dev.boot(arg/len(w.devices)%4 == 3)
	case opRemove:
		w.remove(arg%len(w.devices), arg/len(w.devices)%2 == 1)
	case opMove:
		w.move(arg%len(w.devices), arg/len(w.devices))
	case opLag:
		n := arg / len(w.actors)
		a.lag = replicas{moves: 1 + n%8, reads: 1 + n/8}
		w.logf("-- the next %d reads of %s are %d moves behind", a.lag.reads, a.name, a.lag.moves)
	case opVigil:
		for range vigil {
			w.now = w.now.Add(vigilStep)
			w.logf("-- it is %s, and only %s goes on", w.now.Format(time.TimeOnly), dmn.name)
			w.whole(dmn.actor)
		}
	}
}

// crash kills an actor; a daemon's folder stays as it was.
func (w *world) crash(i int) {
	for _, d := range w.daemons {
		if d.actor == w.actors[i] {
			d.kill()
			return
		}
	}
	w.kill(w.actors[i])
}
