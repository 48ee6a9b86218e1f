package schema

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The length of a window: one that is shorter would be over before a sweep
// sees it, and what is open longer than a day needs no window on that day.
const (
	MinWindow = time.Minute
	MaxWindow = 24 * time.Hour
)

// Window is a time in which upgrades may start: on each of Days, from Start on
// the clocks of TimeZone, for Duration that really passes.
type Window struct {
	Days     []string `json:"days,omitempty"` // Mon, Monday, Mon-Fri; none = every day
	Start    string   `json:"start"`          // 22:00
	Duration Duration `json:"duration"`
	TimeZone string   `json:"timeZone"` // see [Fleet.Location]
}

// Freeze is a time in which nobody starts, whatever the windows say: from From
// until before To.
type Freeze struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Note string    `json:"note,omitempty"`
}

const daysOfWeek = 7

// Weekdays are the days of a window in the order of the week, from Sunday.
// What is no day is left out; validation has told of it.
func (w *Window) Weekdays() []time.Weekday {
	var on [daysOfWeek]bool
	for _, text := range w.Days {
		first, last, ok := dayRange(text)
		for d := first; ok; d = (d + 1) % daysOfWeek {
			on[d] = true
			ok = d != last
		}
	}
	var days []time.Weekday
	for d := range on {
		if on[d] || len(w.Days) == 0 {
			days = append(days, time.Weekday(d))
		}
	}
	return days
}

// dayRange reads a day, or a range of days whose end may come before its
// beginning: Fri-Mon.
func dayRange(text string) (first, last time.Weekday, ok bool) {
	from, to, isRange := strings.Cut(text, "-")
	first, ok = day(from)
	last = first
	if ok && isRange {
		last, ok = day(to)
	}
	return first, last, ok
}

// day reads the English name of a day, or its first three letters.
func day(text string) (time.Weekday, bool) {
	const short = 3 // letters
	for d := time.Sunday; d < daysOfWeek; d++ {
		if name := d.String(); strings.EqualFold(text, name) || strings.EqualFold(text, name[:short]) {
			return d, true
		}
	}
	return 0, false
}

// StartOfDay is Start as what the clock has shown since midnight.
func (w *Window) StartOfDay() time.Duration {
	hours, minutes, _ := strings.Cut(w.Start, ":")
	h, _ := strconv.Atoi(hours)
	m, _ := strconv.Atoi(minutes)
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
}

// windowFindings is what a schema cannot say of a policy's windows.
func windowFindings(windows []Window, at string) []finding {
	var found []finding
	for i := range windows {
		w := &windows[i]
		here := fmt.Sprintf("%s/%d", at, i)
		if d := time.Duration(w.Duration); d < MinWindow || d > MaxWindow {
			found = append(found, finding{pointer: here + "/duration", rule: ruleRange,
				msg:  fmt.Sprintf("a window is open for %s to %s, not for %s", Duration(MinWindow), Duration(MaxWindow), w.Duration),
				hint: windowHint(d)})
		}
		if _, err := location(w.TimeZone); err != nil {
			found = append(found, finding{pointer: here + "/timeZone", rule: ruleZone,
				msg: fmt.Sprintf("there is no time zone %s", quote(w.TimeZone)), hint: zoneHint(w.TimeZone)})
		}
	}
	return found
}

func windowHint(d time.Duration) string {
	if d > MaxWindow {
		return "list more days, or a window for each part; without windows a policy is always open"
	}
	return ""
}

func freezeFindings(freezes []Freeze, at string) []finding {
	var found []finding
	for i := range freezes {
		f := &freezes[i]
		if f.To.After(f.From) || f.To.IsZero() || f.From.IsZero() {
			continue // in order, or one is no time: that is told already
		}
		found = append(found, finding{pointer: fmt.Sprintf("%s/%d/to", at, i), rule: ruleFreezeOrder,
			msg:  fmt.Sprintf("the freeze ends %s, which is not after its beginning %s", instant(f.To), instant(f.From)),
			hint: "exchange from and to, or correct one of them"})
	}
	return found
}

// instant is a time as documents have it.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
