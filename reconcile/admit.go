package reconcile

import (
	"fmt"

	"github.com/gitopsd/gitopsd/schema"
)

// admission is what a document at the delivery ref means for this device.
type admission int

const (
	admitNothing admission = iota // nothing is known or wanted: all stays as it is
	admitDrop                     // what has not started is dropped; the device keeps what it has
	admitHold                     // the same, and an attempt waits for the hold to be lifted
	admitSame                     // nothing new: the attempt has ended, or is the current one
	admitDone                     // a new attempt of what the device is already
	admitBegin                    // a new attempt to begin
	admitGoOn                     // the attempt that is desired already
)

// LeftFleet is why a report says that a device acts on nothing any more.
const LeftFleet = "the device was removed from the fleet; it keeps what it runs"

// facts is what the device knows of itself when it reads a document.
type facts struct {
	device         string
	install        string
	generation     int64 // newest seen
	ended          int64 // highest attempt that ended
	currentAttempt int64
	version        string // current
	digest         string // current
	onCurrent      bool   // it really is on it: no rollback is incomplete, and it is looked after
	desired        int64  // attempt of desired.json, 0 = none
	desiredDigest  string
}

// admit says what may begin: a document for this installation, without a
// hold, of an attempt above all that this device has ended. why is for the
// report when it is not acted on.
func admit(f facts, d schema.Delivery, problem string) (v admission, why string) {
	a := d.Assignment
	switch {
	case problem != "":
		return admitNothing, problem
	case (d.Revision == "" || a == nil) && f.generation == 0:
		return admitNothing, "nothing is assigned to this device yet"
	case d.Revision == "" || a == nil:
		return admitNothing, "the delivery ref does not exist; the device keeps what it runs"
	case a.Metadata.Name != "" && a.Metadata.Name != f.device:
		return admitNothing, fmt.Sprintf("the document is for device %q", a.Metadata.Name)
	case a.Generation < f.generation:
		return admitNothing, fmt.Sprintf("generation %d is older than %d, which was seen before", a.Generation, f.generation)
	case a.Removed:
		return admitDrop, LeftFleet
	case a.For != f.install && a.For != "":
		return admitDrop, "the document is for another installation"
	case a.Spec == nil:
		return admitDrop, ""
	case a.For == "":
		return admitDrop, "the document names no installation"
	case a.Attempt <= f.ended || a.Attempt <= f.currentAttempt:
		if f.desired != 0 {
			return admitDrop, ""
		}
		if a.Attempt < f.ended && a.Attempt != f.currentAttempt {
			return admitSame, fmt.Sprintf("attempt %d is not above %d, which this device has ended", a.Attempt, f.ended)
		}
		return admitSame, ""
	case a.Attempt == f.desired && a.Digest != f.desiredDigest:
		return admitNothing, fmt.Sprintf("attempt %d was assigned with another digest before", a.Attempt)
	case a.Hold != nil:
		return admitHold, ""
	case a.Version == f.version && a.Digest == f.digest && f.onCurrent:
		return admitDone, ""
	case a.Attempt == f.desired:
		return admitGoOn, ""
	}
	return admitBegin, ""
}

func (a *Agent) facts() facts {
	s := a.store
	f := facts{
		device: a.cfg.Device, install: s.seq.id(), generation: s.attempts.Generation, ended: s.attempts.highest(),
		currentAttempt: s.current.Attempt, version: s.current.Version, digest: s.current.Digest,
		onCurrent: s.attempts.Direction == steady && !s.current.Unknown && s.attempts.Observes == 0,
	}
	if s.desired != nil {
		f.desired, f.desiredDigest = s.desired.Attempt, s.desired.Digest
	}
	return f
}
