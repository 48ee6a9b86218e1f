package view

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// Explanation is why one device is where it is.
type Explanation struct {
	schema.TypeMeta
	Device   string           `json:"device"`
	Path     string           `json:"path"`
	Policy   string           `json:"policy"`
	Version  string           `json:"version"` // that it reports
	Target   string           `json:"target"`
	Verdict  schema.Verdict   `json:"verdict"`
	Because  []Cause          `json:"because"`
	Until    []string         `json:"until"`
	Passed   []string         `json:"passed"`
	History  []Event          `json:"history"` // newest first
	Attempts []schema.Attempt `json:"attempts"`
	Observed *schema.Observed `json:"observed,omitempty"`
	Position int              `json:"position"` // in the queue, from 1; 0 = not among the next
	// Assignment is what the device may act on.
	Assignment *schema.AssignmentRef `json:"assignment,omitempty"`
	// Report is what the device itself said last, where it could be read.
	Report *schema.Report `json:"report,omitempty"`
}

// Cause is one reason, and where it is written.
type Cause struct {
	Text    string `json:"text"`
	File    string `json:"file,omitempty"` // of the fleet repository, at the commit that was swept
	Line    int    `json:"line,omitempty"`
	Setting string `json:"setting,omitempty"` // what stands there: "failureLimit: 0"
}

// Event is something that happened to the device.
type Event struct {
	Time   time.Time `json:"time"`
	Text   string    `json:"text"`
	Commit string    `json:"commit,omitempty"` // of the status branch or, for a wish, of the source branch
}

// Question is what [Explain] answers.
type Question struct {
	Path   string // of the device's status
	Status Status
	// Source finds where a setting of a document stands; nil = unknown.
	Source func(file string, field string) (setting string, line int)
	// Changes are earlier versions of the device's status, newest first, as
	// far as they were read.
	Changes []Change
	Report  *schema.Report
}

// Change is one version of a device's status with the commit that wrote it.
type Change struct {
	Commit string
	Time   time.Time
	Status *schema.DeviceStatus // nil: the device had none
}

// Explain says why a device is where it is; nil when it has no status.
func Explain(q Question) *Explanation {
	d := q.Status.Devices[q.Path]
	if d == nil {
		return nil
	}
	fleet := NewFleet("", q.Status)
	dv := device(q.Path, d, fleet.rollout(d.Policy))
	e := &Explanation{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: KindExplanation},
		Device:   d.Metadata.Name, Path: q.Path, Policy: d.Policy, Version: dv.Version, Target: d.Verdict.Target,
		Verdict: d.Verdict, Position: dv.Position, Assignment: d.Assignment, Observed: d.Observed, Report: q.Report,
		Attempts: append([]schema.Attempt{}, d.Attempts...),
		Until:    append([]string{}, wordOf(d.Verdict.Code).until...),
		Passed:   passed(d.Verdict.Code),
		Because:  causes(q, d, dv, fleet),
		History:  history(d, q.Changes),
	}
	return e
}

// causes names who or what stands in the way, and the setting that decides.
func causes(q Question, d *schema.DeviceStatus, dv DeviceView, fleet *FleetView) []Cause {
	list := []Cause{}
	switch code := d.Verdict.Code; code {
	case string(planner.Halted):
		for _, m := range q.Status.Marks {
			if m.Policy != d.Policy || !m.Halted {
				continue
			}
			for _, mark := range m.Marks {
				text := fmt.Sprintf("%s %s %s at %s", mark.Device, mark.Outcome, m.Version, clock(mark.At, fleet.SweptAt))
				if why := firstLine(mark.Message); why != "" {
					text += ": " + why
				}
				list = append(list, Cause{Text: text})
			}
		}
	case string(planner.CodeFailed), string(planner.CodeRefused):
		if f := dv.Failure; f != nil {
			text := fmt.Sprintf("attempt %d of %s %s at %s", f.Attempt, f.Version, f.Outcome, clock(f.At, fleet.SweptAt))
			if f.Stage != "" {
				text += " in " + f.Stage
			}
			if why := firstLine(f.Message); why != "" {
				text += ": " + why
			}
			list = append(list, Cause{Text: text})
		}
	case string(planner.Stopped):
		if c := stopOf(fleet.Conditions); c != nil {
			list = append(list, Cause{Text: c.Message})
		}
	case string(planner.Queued):
		if dv.Position > 0 {
			list = append(list, Cause{Text: fmt.Sprintf("it is number %d in the queue of %s", dv.Position, d.Policy)})
		}
		if r := fleet.rollout(d.Policy); r != nil {
			for _, f := range r.InFlight {
				list = append(list, Cause{Text: fmt.Sprintf("%s has a slot since %s, for %s", f.Device, clock(f.Since, fleet.SweptAt), f.Version)})
			}
		}
	}
	if len(list) == 0 {
		list = append(list, Cause{Text: d.Verdict.Reason})
	}
	code := d.Verdict.Code
	if code == string(planner.Queued) && wordOf(dv.Limit).field != "" {
		code = dv.Limit // the queue is one word for several limits
	}
	if q.Source == nil {
		return list
	}
	if field := wordOf(code).field; field != "" && d.Policy != "" {
		locate(&list[0], q, PolicyPath(d.Policy), field)
	}
	if code == string(planner.Held) {
		locate(&list[0], q, q.Path, "hold")
	}
	return list
}

func locate(c *Cause, q Question, file, field string) {
	setting, line := q.Source(file, field)
	if setting == "" {
		return
	}
	c.File, c.Line, c.Setting = file, line, setting
}

// PolicyPath is where a policy stands in the fleet repository.
func PolicyPath(name string) string { return "policies/" + name + ".yaml" }

// history tells what happened from the earlier versions of the status, where
// they were read, and from the attempts, which remember the rest.
func history(d *schema.DeviceStatus, changes []Change) []Event {
	list := []Event{}
	var before *schema.DeviceStatus
	for _, c := range slices.Backward(changes) {
		if c.Status == nil {
			before = nil
			continue
		}
		if text := difference(before, c.Status); text != "" {
			list = append(list, Event{Time: c.Time, Text: text, Commit: c.Commit})
		}
		before = c.Status
	}
	for _, a := range d.Attempts {
		list = append(list, Event{Time: a.AssignedAt, Text: fmt.Sprintf("attempt %d: %s was assigned", a.Attempt, a.Version)})
		if a.StartedAt != nil {
			list = append(list, Event{Time: *a.StartedAt, Text: fmt.Sprintf("attempt %d: started", a.Attempt)})
		}
		if a.Recall != nil {
			list = append(list, Event{Time: a.Recall.At, Text: fmt.Sprintf("attempt %d: recalled, %s", a.Attempt, or(a.Recall.Because, string(a.Recall.Outcome)))})
		}
		if a.EndedAt != nil {
			text := fmt.Sprintf("attempt %d: %s", a.Attempt, a.Outcome)
			if a.Stage != "" {
				text += " in " + a.Stage
			}
			if why := firstLine(a.Message); why != "" {
				text += ": " + why
			}
			list = append(list, Event{Time: *a.EndedAt, Text: text})
		}
	}
	// Times are whole seconds: what happened in one stays in its order.
	slices.SortStableFunc(list, func(a, b Event) int { return cmp.Compare(a.Time.Unix(), b.Time.Unix()) })
	slices.Reverse(list)
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
