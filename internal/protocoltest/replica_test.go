package protocoltest

import (
	"strings"

	"github.com/gitopsd/gitopsd/internal/memremote"
)

// replicas is what serves one actor's reads: a mirror behind a load balancer
// shows what was true some moves of refs ago, also to somebody who has been
// shown more before.
type replicas struct {
	moves int  // that the replica is behind
	reads int  // that it serves; 0 = everything is up to date
	but   bool // report refs are up to date all the same
}

// read is a kind of read.
type read int

const (
	anyRead      read = iota
	secondLook        // of a device, behind its announcement
	behindRecall      // of a daemon, which lists the reports behind a delivery that it has read
)

// lagging makes a client's reads those of a replica, but for those on which
// the protocol rests: what they do not show has not been said. Where w.lags
// names one of them, that one is behind, and no other.
func (w *world) lagging(a *actor, c *memremote.Client, kind func(op, what string) read) {
	c.Behind = func(op, what string) memremote.Lag {
		l := &a.lag
		if l.reads == 0 || l.but && op != "refs" || kind(op, what) != w.lags {
			return memremote.Lag{}
		}
		l.reads--
		a.blurred = a.blurred || !l.but
		w.logf("%s: is served by a replica that is %d moves behind", a.name, l.moves)
		lag := memremote.Lag{Moves: l.moves}
		if l.but {
			lag.But = w.reportRefs
		}
		return lag
	}
}

// readOf tells the listings of reports behind a delivery. In a repository of
// its own there is no other listing of reports, so it depends on whether there
// is anything that they could decide.
func (d *daemon) readOf(op, what string) read {
	if w := d.w; op == "refs" && what == w.reportRefs && (w.inbox == w.repo || w.ghost.awaits()) {
		return behindRecall
	}
	return anyRead
}

func (d *device) readOf(op, what string) read {
	if op == "read" && strings.HasPrefix(what, d.w.deliveryRefs) && d.announced {
		return secondLook
	}
	return anyRead
}
