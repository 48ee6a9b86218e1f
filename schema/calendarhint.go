package schema

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// calendarHint is for days, times of day and points in time that are written
// otherwise than their fields want; "" is for all other fields.
func calendarHint(node map[string]any, text string) string {
	switch {
	case node["format"] == "date-time":
		return timeHint(text)
	case fitsPattern(node, "x"):
		return ""
	case fitsPattern(node, "Mon-Fri"):
		return dayHint(text)
	case fitsPattern(node, "22:00"):
		return clockHint(text)
	}
	return ""
}

// dayHint is for what is no day. Numbers are not guessed: a week of seven days
// begins with 0 or 1, and with Sunday or Monday.
func dayHint(text string) string {
	const short = 3 // letters
	word := strings.ToLower(strings.TrimSpace(text))
	switch word {
	case "daily", "everyday", "every day", "always", "all", "any", "*":
		return "leave days out for every day"
	case "weekday", "weekdays", "workday", "workdays", "mon..fri", "mon–fri", "mon - fri":
		return "did you mean Mon-Fri?"
	case "weekend", "weekends":
		return "did you mean Sat-Sun?"
	}
	if strings.ContainsAny(word, ",;") {
		return "give each day an item of its own, as [Mon, Tue]"
	}
	if len(word) > short {
		if d, ok := day(word[:short]); ok && !strings.ContainsAny(word, "-. ") {
			return fmt.Sprintf("did you mean %s?", d.String()[:short])
		}
	}
	return "a day is Mon, Tue, Wed, Thu, Fri, Sat or Sun; a range is written Mon-Fri"
}

// clockHint is for a time of day.
func clockHint(text string) string {
	const hours = 24
	word := strings.ToLower(strings.ReplaceAll(text, " ", ""))
	for _, form := range []string{"15:04", "15:04:05", "3:04pm", "3pm"} {
		if t, err := time.Parse(form, word); err == nil {
			return fmt.Sprintf("did you mean %q?", t.Format("15:04"))
		}
	}
	if h, err := strconv.Atoi(word); err == nil && h >= 0 && h < hours {
		return fmt.Sprintf("did you mean %q?", fmt.Sprintf("%02d:00", h))
	}
	if word == "24:00" || word == "24" {
		return `a day ends where the next begins: write "00:00" of the next day`
	}
	return `hours and minutes from "00:00" to "23:59"`
}

// timeHint is for a point in time without its hour or its zone.
func timeHint(text string) string {
	if _, err := time.Parse(time.DateOnly, text); err == nil {
		return fmt.Sprintf("it lacks its hour and its zone; did you mean %q?", text+"T00:00:00Z")
	}
	for _, form := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		if t, err := time.Parse(form, text); err == nil {
			return fmt.Sprintf("it lacks its zone; did you mean %q?", t.Format(time.RFC3339))
		}
	}
	return ""
}
