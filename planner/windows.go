package planner

import (
	"slices"
	"time"
)

const (
	day = 24 * time.Hour
	// lookBack are the local days before the present one on which a window
	// that is still open can have begun: it lasts up to a day, and the clocks
	// may have been put forward meanwhile.
	lookBack = 2
	// maxOffset is more than any zone was ever away from UTC.
	maxOffset = 26 * time.Hour
	// maxZonePeriods is more than a zone has within twice maxOffset.
	maxZonePeriods = 10
	// aWeek is how many days are looked at as a rule: every window opens once
	// in it, and the days at its ends may be incomplete.
	aWeek = 9
	// aYear is looked at where windows follow each other without a gap, until
	// the clocks are changed; longerThanAYear is looked at to know how long
	// that answer holds.
	aYear           = 370
	longerThanAYear = 400
)

// calendar is when the windows of a policy are open.
type calendar struct {
	windows []Window
	open    bool
	until   time.Time // when they close; zero = closed, or no end in sight
	next    time.Time // when they open the next time; zero = none in sight
}

// calendar asks the windows about the present.
func (pl *plan) calendar(windows []Window) calendar {
	c := calendar{windows: windows, open: true}
	if len(windows) == 0 {
		return c
	}
	spans := openings(windows, pl.Now, aWeek)
	c.open = len(spans) > 0 && !spans[0].begin.After(pl.Now)
	if !c.open {
		if len(spans) > 0 {
			c.next = spans[0].begin
			pl.reached(c.next)
		}
		return c
	}
	sure := pl.Now.Add((aWeek - 1) * day) // later openings may not be among them
	if len(spans) == 1 || spans[1].begin.After(sure) {
		spans = openings(windows, pl.Now, longerThanAYear)
		sure = pl.Now.Add(aYear * day)
		if len(spans) == 1 || spans[1].begin.After(sure) {
			// What is out of sight now comes into it.
			inSight := pl.Now.Add((longerThanAYear - 1 - aYear) * day)
			if len(spans) > 1 {
				inSight = earlier(inSight, spans[1].begin.Add(-aYear*day))
			}
			pl.reached(later(inSight, pl.Now.Add(1)))
			return c
		}
	}
	c.until, c.next = spans[0].end, spans[1].begin
	pl.reached(c.until)
	return c
}

// from is the first time from t on at which a window is open.
func (c calendar) from(t time.Time) time.Time {
	if len(c.windows) == 0 {
		return t
	}
	spans := openings(c.windows, t, aWeek)
	switch {
	case len(spans) == 0:
		return time.Time{}
	case spans[0].begin.After(t):
		return spans[0].begin
	}
	return t
}

func (c calendar) summary() *WindowSummary {
	if len(c.windows) == 0 {
		return nil
	}
	return &WindowSummary{Open: c.open, Until: c.until, Next: c.next}
}

// stretch is a time in which windows are open: from begin until before end.
type stretch struct{ begin, end time.Time }

// openings lists when windows are open that have not closed at a time, in
// their order, those that touch as one, for openings on this day and the next
// days.
func openings(windows []Window, now time.Time, days int) []stretch {
	var all []stretch
	for i := range windows {
		w := &windows[i]
		year, month, today := now.In(w.zone()).Date()
		for n := -lookBack; n <= days; n++ {
			date := time.Date(year, month, today+n, 0, 0, 0, 0, time.UTC)
			if !slices.Contains(w.Days, date.Weekday()) {
				continue
			}
			begin := w.begins(date)
			if end := begin.Add(w.Duration); end.After(now) {
				all = append(all, stretch{begin, end})
			}
		}
	}
	slices.SortFunc(all, func(a, b stretch) int { return a.begin.Compare(b.begin) })
	merged := all[:0]
	for _, s := range all {
		if n := len(merged); n > 0 && !s.begin.After(merged[n-1].end) {
			merged[n-1].end = later(merged[n-1].end, s.end)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// begins is the instant at which a window opens on a local date, which is
// given as its midnight in UTC. A local time that the clocks skip is the
// instant of the change; of one that they show twice it is the first.
func (w *Window) begins(date time.Time) time.Time {
	wall := date.Add(w.Start) // what the clocks show, as if they showed UTC
	t := wall.Add(-maxOffset).In(w.zone())
	for range maxZonePeriods {
		_, offset := t.Zone()
		begin, end := t.ZoneBounds()
		shows := wall.Add(-time.Duration(offset) * time.Second)
		switch {
		case !begin.IsZero() && shows.Before(begin):
			return begin.UTC()
		case end.IsZero() || shows.Before(end):
			return shows
		}
		t = end
	}
	return t.UTC()
}

func (w *Window) zone() *time.Location {
	if w.Zone == nil {
		return time.UTC
	}
	return w.Zone
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
