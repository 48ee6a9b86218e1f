package view

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// history tells what happened, newest first, from the earlier versions of the
// status, where they were read, and from the attempts, which remember the
// rest. The order is that of the commits, and in one of them the cause comes
// before the effect: times are whole seconds, and clocks are set.
func history(d *schema.DeviceStatus, changes []Change) []Event {
	list := []Event{}
	told := map[step]bool{}
	tell := func(attempts []schema.Attempt) {
		for _, a := range attempts {
			for _, s := range steps(a) {
				if !told[s.step] {
					told[s.step] = true
					list = append(list, s.event)
				}
			}
		}
	}
	var before *schema.DeviceStatus
	for _, c := range slices.Backward(changes) {
		if c.Status == nil {
			before = nil
			continue
		}
		// What happened to an attempt is why the verdict is another one.
		tell(c.Status.Attempts)
		if text := difference(before, c.Status); text != "" {
			list = append(list, Event{Time: c.Time, Text: text, Commit: c.Commit})
		}
		before = c.Status
	}
	tell(d.Attempts)
	slices.Reverse(list)
	return list
}

// step is one thing that happens to an attempt once.
type step struct {
	attempt int64
	what    string
}

// happened is a step with what is told of it.
type happened struct {
	step  step
	event Event
}

// steps are what happened to one attempt, in order.
func steps(a schema.Attempt) []happened {
	var list []happened
	add := func(at time.Time, what, text string) {
		list = append(list, happened{step{a.Attempt, what}, Event{Time: at, Text: fmt.Sprintf("attempt %d: %s", a.Attempt, text)}})
	}
	add(a.AssignedAt, "assigned", a.Version+" was assigned")
	if a.StartedAt != nil {
		add(*a.StartedAt, "started", "started")
	}
	if a.Recall != nil {
		add(a.Recall.At, "recalled", "recalled, "+or(a.Recall.Because, string(a.Recall.Outcome)))
	}
	if a.EndedAt != nil {
		text := string(a.Outcome)
		if why := said(a.Message, a.Stage); why != "" {
			text += ": " + why
		}
		add(*a.EndedAt, string(a.Outcome), text)
	}
	slices.SortStableFunc(list, func(a, b happened) int { return cmp.Compare(a.event.Time.Unix(), b.event.Time.Unix()) })
	return list
}

// difference says what changed between two versions of a status, in the words
// of the verdict; "" when it is nothing that a person follows.
func difference(before, after *schema.DeviceStatus) string {
	was, is := "", after.Verdict.Code
	wanted := ""
	if before != nil {
		was, wanted = before.Verdict.Code, before.Verdict.Target
	}
	text := ""
	switch {
	case was == "":
		text = is
	case was != is:
		text = was + " → " + is
	}
	if t := after.Verdict.Target; t != "" && t != wanted {
		if text != "" {
			text += ", "
		}
		text += "wanted " + t
	}
	return text
}

// stamps writes the times of events: with seconds where two of them are in
// one minute.
func stamps(events []Event) []string {
	const minutes, seconds = "2006-01-02 15:04Z", "2006-01-02 15:04:05Z"
	in := map[string]int{}
	for _, e := range events {
		in[e.Time.UTC().Format(minutes)]++
	}
	list := make([]string, len(events))
	for i, e := range events {
		list[i] = e.Time.UTC().Format(minutes)
		if in[list[i]] > 1 {
			list[i] = e.Time.UTC().Format(seconds)
		}
	}
	return list
}
