package planner

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// soaks are the devices that are on their target, and how long they have been
// there.
type soaks struct {
	done   int    // have soaked, and a report shows it
	silent []soak // the time is over, but no report after it shows it; by id once they are sorted
	ends   []soak // under way; in their order once they are sorted
}

// soak is one that is not over.
type soak struct {
	id  string
	end time.Time
	out bool // of a device that nobody waits for
}

// add counts a device that is on its target since then; zero is since ever.
// It gives true if the device has soaked.
func (s *soaks) add(pl *plan, d *device, since time.Time, length time.Duration, out bool) bool {
	end := since.Add(length)
	switch {
	case length <= 0 || since.IsZero():
	case !pl.reached(end):
		s.ends = append(s.ends, soak{d.ID, end, out})
		return false
	case d.LastSeen.IsZero() || !d.HeardAt.Before(end):
	case d.LastSeen.Before(end):
		s.silent = append(s.silent, soak{d.ID, end, out})
		return false
	default:
		d.heard = true
	}
	s.done++
	return true
}

func (s *soaks) sort() {
	slices.SortFunc(s.ends, func(a, b soak) int { return a.end.Compare(b.end) })
	slices.SortFunc(s.silent, func(a, b soak) int { return strings.Compare(a.id, b.id) })
}

func (s *soaks) underway() int { return len(s.silent) + len(s.ends) }

// until is when the last soak under way ends; zero = none is.
func (s *soaks) until() time.Time { return s.after(len(s.ends)) }

// after is when so many of the soaks under way have ended; zero = that is not
// known.
func (s *soaks) after(n int) time.Time {
	if n < 1 || n > len(s.ends) {
		return time.Time{}
	}
	return s.ends[n-1].end
}

// text says how far those are that are under way, and who has to be heard.
func (s *soaks) text() []string {
	var parts []string
	if n := len(s.ends); n > 0 {
		parts = append(parts, fmt.Sprintf("%d soaking, the last until %s", n, at(s.until())))
	}
	if len(s.silent) > 0 {
		ids, since := make([]string, 0, len(s.silent)), time.Time{}
		for _, k := range s.silent {
			ids, since = append(ids, k.id), later(since, k.end)
		}
		parts = append(parts, fmt.Sprintf("waits for a report of %s since %s", few(ids), at(since)))
	}
	return parts
}
