package simulate

import (
	"time"

	"github.com/gitopsd/gitopsd/planner"
)

// tally counts what is under way.
type tally struct {
	open, working    int
	inFlight, atWork Peak
	sites            map[string]*siteTally
	arrived, pending int
}

type siteTally struct {
	of, open int
	peak     Peak
}

func newTally(r *run) tally {
	t := tally{sites: map[string]*siteTally{}}
	for _, d := range r.devices {
		s := t.site(d)
		if !d.at.Removed {
			s.of++
		}
		for i := range d.at.Attempts {
			if d.at.Attempts[i].Outcome == "" {
				t.takes(d)
			}
		}
	}
	return t
}

func (t *tally) site(d *device) *siteTally {
	s := t.sites[d.record.Site]
	if s == nil {
		s = &siteTally{}
		t.sites[d.record.Site] = s
	}
	return s
}

// takes and frees count slots.
func (t *tally) takes(d *device) {
	t.open++
	t.site(d).open++
}

func (t *tally) frees(d *device) {
	t.open--
	t.site(d).open--
}

// begins and ends count work.
func (t *tally) begins(now time.Time, d *device, a *planner.Attempt) {
	t.working++
	t.atWork.see(t.working, now)
	if d.record.StartedAt.IsZero() {
		d.record.StartedAt = a.StartedAt
	}
}

func (t *tally) ends() { t.working-- }

// peak looks at the slots once a sweep is done: what it frees and what it
// takes are one step.
func (t *tally) peak(now time.Time) {
	t.inFlight.see(t.open, now)
	for _, s := range t.sites {
		s.peak.see(s.open, now)
	}
}

func (p *Peak) see(n int, now time.Time) {
	if n > p.Devices {
		p.Devices, p.At = n, now
	}
}
