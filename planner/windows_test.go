package planner

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// clock is what the clocks of a zone show, minute by minute, by nothing but
// what time.Time.In says. It is the start of an account of windows that is
// independent of the planner's.
type clock struct {
	from  time.Time
	shown []int64 // in seconds, as if it were UTC
}

// watchClock watches from a time until before another one, and a while around
// it: windows from before, and the next ones after.
func watchClock(zone *time.Location, from, to time.Time) clock {
	const before, after = 4 * day, 12 * day
	c := clock{from: from.Add(-before)}
	c.shown = make([]int64, int(to.Add(after).Sub(c.from)/time.Minute))
	for m := range c.shown {
		now := c.from.Unix() + int64(m)*60
		_, offset := time.Unix(now, 0).In(zone).Zone()
		c.shown[m] = now + int64(offset)
	}
	return c
}

// clockface is when windows are open by a clock.
type clockface struct {
	clock
	open    []bool
	changes []int32 // by minute: the next one at which open differs from it; -1 = none
	begins  []time.Time
}

func (c clock) face(windows ...Window) *clockface {
	minutes := len(c.shown)
	f := &clockface{clock: c, open: make([]bool, minutes), changes: make([]int32, minutes)}
	for _, w := range windows {
		f.watch(w)
	}
	f.changes[minutes-1] = -1
	for m := minutes - 2; m >= 0; m-- {
		if f.changes[m] = f.changes[m+1]; f.open[m] != f.open[m+1] {
			f.changes[m] = int32(m + 1)
		}
	}
	return f
}

// watch opens a window at the first minute at which the clocks have reached
// its time: that is the first of two, and the change where there is none.
func (c *clockface) watch(w Window) {
	const seconds = int64(day / time.Second)
	date := c.shown[0] / seconds
	for m, wall := range c.shown {
		for ; date*seconds+int64(w.Start/time.Second) <= wall; date++ {
			weekday := time.Weekday((date + 4) % 7) // the first of January 1970 was a Thursday
			if m == 0 || !slices.Contains(w.Days, weekday) {
				continue
			}
			c.begins = append(c.begins, c.at(m))
			for i := m; i < min(len(c.open), m+int(w.Duration/time.Minute)); i++ {
				c.open[i] = true
			}
		}
	}
}

func (c *clockface) at(minute int) time.Time {
	return c.from.Add(time.Duration(minute) * time.Minute)
}

// compare asks the planner about a time, and fails where it says otherwise.
func (c *clockface) compare(t *testing.T, windows []Window, now time.Time) {
	t.Helper()
	m := int(now.Sub(c.from) / time.Minute)
	want := calendar{open: c.open[m]}
	edge := c.changes[m]
	switch {
	case edge < 0:
	case want.open:
		want.until = c.at(int(edge))
		if again := c.changes[edge]; again >= 0 {
			want.next = c.at(int(again))
		}
	default:
		want.next = c.at(int(edge))
	}
	got := (&plan{Input: Input{Now: now}}).calendar(windows)
	// What is far away the clockface does not see.
	if got.open != want.open || !want.until.IsZero() && !got.until.Equal(want.until) || !want.next.IsZero() && !got.next.Equal(want.next) {
		t.Fatalf("%s (%s on the clocks): got open %v until %s next %s, want open %v until %s next %s", now.Format(time.RFC3339),
			now.In(windows[0].Zone).Format("Mon 15:04 -0700"), got.open, orNever(got.until), orNever(got.next), want.open, orNever(want.until), orNever(want.next))
	}
}

var everyDay = []time.Weekday{time.Sunday, time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday, time.Saturday}

// oddWindows are those that changes of the clocks trouble.
func oddWindows(zone *time.Location) []Window {
	return []Window{
		{Days: []time.Weekday{time.Saturday, time.Sunday}, Start: 2*time.Hour + 30*time.Minute, Duration: time.Hour, Zone: zone},
		{Days: []time.Weekday{time.Sunday, time.Monday, time.Friday}, Start: 0, Duration: 10 * time.Minute, Zone: zone},
		{Days: []time.Weekday{time.Monday}, Start: 22 * time.Hour, Duration: 6 * time.Hour, Zone: zone},
		{Days: []time.Weekday{time.Wednesday, time.Saturday}, Start: 23*time.Hour + 59*time.Minute, Duration: 24 * time.Hour, Zone: zone},
		{Days: everyDay, Start: 3 * time.Hour, Duration: time.Minute, Zone: zone},
	}
}

// The zones and years in which the windows are watched: those to come, and
// some of the past in which clocks were changed at midnight, by half an hour,
// by two hours, or past a whole day.
func TestB61_WindowsAgreeWithTheClocks(t *testing.T) {
	type span struct {
		zone     string
		from, to int // years
		step     time.Duration
	}
	var spans []span
	for _, zone := range []string{
		"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Casablanca", "America/St_Johns", "Pacific/Apia", "Asia/Kathmandu",
	} {
		spans = append(spans, span{zone, 2026, 2029, time.Hour})
	}
	for _, s := range []span{
		{"Pacific/Apia", 2011, 2012, 0}, {"America/Sao_Paulo", 2018, 2019, 0}, {"America/St_Johns", 2011, 2012, 0},
		{"America/Havana", 2026, 2027, 0}, {"Antarctica/Troll", 2026, 2027, 0}, {"Africa/Cairo", 2010, 2011, 0},
	} {
		s.step = 90 * time.Minute
		spans = append(spans, s)
	}
	for _, s := range spans {
		t.Run(fmt.Sprintf("%s %d", s.zone, s.from), func(t *testing.T) {
			t.Parallel()
			windows := oddWindows(zoneNamed(t, s.zone))
			from, to := time.Date(s.from, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(s.to, 1, 1, 0, 0, 0, 0, time.UTC)
			clock := watchClock(windows[0].Zone, from, to)
			all := clock.face(windows...)
			for now := from; now.Before(to); now = now.Add(s.step) {
				all.compare(t, windows, now)
			}
			for i := range windows {
				one := clock.face(windows[i])
				opened := 0
				for _, begin := range one.begins {
					if begin.Before(from) || !begin.Before(to) {
						continue
					}
					opened++
					for _, edge := range []time.Time{begin, begin.Add(windows[i].Duration)} {
						one.compare(t, windows[i:i+1], edge.Add(-1))
						one.compare(t, windows[i:i+1], edge)
						one.compare(t, windows[i:i+1], edge.Add(30*time.Minute))
					}
				}
				if opened < 50*(s.to-s.from) {
					t.Fatalf("window %d opened %d times only", i, opened)
				}
			}
		})
	}
}

// A window that begins in the hour that is there twice has begun once.
func TestB61_OnceInTheHourThatIsTwice(t *testing.T) {
	w := Window{Days: everyDay, Start: 2*time.Hour + 30*time.Minute, Duration: time.Minute, Zone: zoneNamed(t, "Europe/Berlin")}
	from := time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC)
	var opened []string
	for _, s := range openings([]Window{w}, from, aWeek) {
		if s.begin.Before(from.Add(day)) {
			opened = append(opened, s.begin.Format(time.RFC3339))
		}
	}
	if got := fmt.Sprint(opened); got != "[2026-10-25T00:30:00Z]" {
		t.Errorf("it opens at %s", got)
	}
}

// What is open around the clock says so, until the clocks leave a gap.
func TestWindowsWithoutAGap(t *testing.T) {
	for zone, want := range map[string]string{
		"UTC": "never", "Asia/Kolkata": "never", "Europe/Berlin": "2027-10-31T22:00Z", "America/New_York": "2027-11-08T04:00Z",
	} {
		w := Window{Days: everyDay, Duration: day, Zone: zoneNamed(t, zone)}
		pl := &plan{Input: Input{Now: caseNow}}
		c := pl.calendar([]Window{w})
		if !c.open || orNever(c.until) != want {
			t.Errorf("%s: open %v until %s, want %s", zone, c.open, orNever(c.until), want)
		}
		if c.until.IsZero() != c.next.IsZero() || pl.next.IsZero() {
			t.Errorf("%s: next %s, changes %s", zone, c.next, pl.next)
		}
	}
}

// However many windows are written, a plan is made at once.
func TestWindowsAreBounded(t *testing.T) {
	var windows []Window
	for i := range MaxWindows {
		windows = append(windows, Window{Days: everyDay, Start: time.Duration(i) * day / MaxWindows, Duration: day / MaxWindows, Zone: zoneNamed(t, "Europe/Berlin")})
	}
	p := Policy{Name: "p", Enabled: true, TargetVersion: "v1.5.0", Windows: windows}
	in := Input{Now: caseNow, Policies: []Policy{p}, Devices: []Device{idle("a")}}
	if v := Plan(in).Verdicts[0]; v.Code != Upgrade {
		t.Errorf("got %s: %s", v.Code, v.Reason)
	}
	in.Policies[0].Windows = append(windows, windows[0])
	if v := Plan(in).Verdicts[0]; v.Code != BadPolicy {
		t.Errorf("got %s: %s", v.Code, v.Reason)
	}
}
