package sweep

import (
	"context"
	"time"
)

// rest is what a pass that had nothing to do was made of. While nothing of it
// changes, and no time comes that its plan waited for, the next pass would
// come to the same, and need not be made: most passes over most fleets are
// such, and planning is the part whose cost grows with the fleet.
type rest struct {
	branch, head, tip, brake string
	source                   string    // commit that was planned by
	at                       time.Time // of the pass
	watching                 time.Time
	until                    time.Time // when something may be due; zero = never
}

// isAtRest ends a pass that would come to what the last one came to: nothing
// was heard, nothing moved, nothing is due, and no delivery is in doubt.
func (p *pass) isAtRest(context.Context) error {
	d := p.d
	p.watching = d.state.watching(p.now)
	r := d.rest
	d.rest = nil
	if r == nil || p.mute || p.full || p.relist || p.rebuilt || p.heard || len(p.stops) > 0 || len(p.delivery) > 0 || d.accept != (Accept{}) {
		return nil
	}
	same := r.branch == p.branch && r.head == p.head && r.tip == p.tip && r.brake == p.brakeTip && r.watching.Equal(p.watching)
	due := p.now.Before(r.at) || !r.until.IsZero() && !p.now.Before(r.until)
	if !same || due {
		return nil
	}
	d.rest = r
	p.resting = true
	p.result.SourceCommit, p.result.StatusCommit = r.source, p.tip
	return nil
}

// noteRest remembers a pass that found nothing to do. Two installations under
// one name are looked at in every pass, by what this daemon remembers of them.
func (p *pass) noteRest() {
	d := p.d
	busy := p.mute || p.resting || p.rebuilt || p.stale || p.wrote || p.fleet == nil || p.fleet.commit != p.head ||
		len(p.stops) > 0 || d.brake.commit != p.brakeTip || len(d.refused) > 0 || len(d.unsure) > 0 || len(d.duplicates) > 0 || len(p.final.Decisions) > 0
	if busy {
		return
	}
	d.rest = &rest{
		branch: p.branch, head: p.head, tip: p.tip, brake: p.brakeTip, source: p.fleet.commit,
		at: p.now, watching: p.watching, until: earlier(p.due, p.final.NextChange),
	}
}

// earlier is the earlier of two times, where zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
