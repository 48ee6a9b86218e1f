package planner

import (
	"slices"
	"time"
)

// passed says whether a time limit is over. A device that was heard from
// after the limit was not silent; of one that is silent only the time counts
// in which this daemon has listened.
func (pl *plan) passed(d *device, from time.Time, limit time.Duration) bool {
	if pl.NoTimeouts {
		return false
	}
	over := pl.reached(from.Add(limit))
	if d.LastSeen.Sub(from) < limit && pl.Watching.After(from) {
		over = pl.reached(pl.Watching.Add(limit))
	}
	return over
}

// reached says whether a time has come. All that a plan asks of the clock it
// asks here, so that it knows when it would be answered otherwise.
func (pl *plan) reached(t time.Time) bool {
	if !pl.Now.Before(t) {
		return true
	}
	if pl.next.IsZero() || t.Before(pl.next) {
		pl.next = t
	}
	return false
}

// speaksOf says whether the last report is of this attempt.
func speaksOf(d *device, a *Attempt) bool {
	return d.Seen && a.Number > 0 && d.Said.Attempt == a.Number && sameInstall(d, a)
}

// begins says whether the last report leaves it possible that the device
// acts on the attempt: of one that has not started, because it shows a start;
// of one that has, because it does not show that it was given up.
func begins(d *device, a *Attempt) bool {
	if !a.StartedAt.IsZero() {
		return !gaveUp(d, a)
	}
	return speaksOf(d, a) && (d.Said.Begun || d.Said.Starting || d.Said.endsWell() || d.Said.fails())
}

// gaveUp says whether the last report shows that the device has not begun
// the attempt and, unless it announces it again, is not about to.
func gaveUp(d *device, a *Attempt) bool {
	if !speaksOf(d, a) {
		return d.Seen && a.Number > 0 && d.Said.Recalled == a.Number && sameInstall(d, a)
	}
	return !d.Said.showsStart()
}

// beforeStart are the phases in which nothing has begun. An agent may be
// Degraded before it began, too, but a record of that does not say so.
var beforeStart = []string{"", phaseUpdated, phaseObserving, phasePreparing, phaseWaiting}

// showsStart says whether an attempt that was announced may have begun, by a
// report that names it. The phase is looked at as well, because a record of a
// report has nothing else.
func (s Said) showsStart() bool {
	if s.givesUp() {
		return s.Begun
	}
	return s.Begun || s.Starting || s.Outcome != "" || !slices.Contains(beforeStart, s.Phase)
}

func (s Said) endsWell() bool { return s.Outcome == string(OK) }

func (s Said) fails() bool { return s.Outcome == string(Failed) }

// givesUp says that the device ended the attempt by itself, as a rule before
// it began.
func (s Said) givesUp() bool {
	return s.Outcome == string(Refused) || s.Outcome == string(Exhausted) || s.Outcome == string(Observed)
}

// observing says whether a device leaves itself as it is since it was told to
// compare only: nothing that came after has begun, so that what it ran before is
// not looked after either.
func (d *device) observing() bool {
	if d.Said.Phase == phaseObserving {
		return true
	}
	for i := len(d.attempts) - 1; i >= 0; i-- {
		switch a := &d.attempts[i]; a.Outcome {
		case Observed:
			return sameInstall(d, a)
		case OK, Failed, Lost:
			return false
		}
	}
	return false
}

// sameInstall says whether the report and the attempt are of one
// installation. Where one of them does not tell, they are.
func sameInstall(d *device, a *Attempt) bool {
	return d.InstallID == "" || a.InstallID == "" || d.InstallID == a.InstallID
}

// matches says whether two targets are one as far as both tell.
func matches(a, b Target) bool {
	return a.Version == b.Version && (a.Digest == "" || b.Digest == "" || a.Digest == b.Digest)
}
