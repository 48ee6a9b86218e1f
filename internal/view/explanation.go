package view

import (
	"fmt"
	"strings"
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
	AlsoHeld []Hold           `json:"alsoHeld,omitempty"`
	Position int              `json:"position"` // in the queue, from 1; 0 = not among the next
	// Assignment is what the device may act on.
	Assignment *schema.AssignmentRef `json:"assignment,omitempty"`
	// AssignedBecause is the change of the source branch that led to that.
	AssignedBecause *schema.Because `json:"assignedBecause,omitempty"`
	// Report is what the device itself said last, where it could be read.
	Report *schema.Report `json:"report,omitempty"`
	// Live is what the next sweep would decide, where that could be planned.
	// Where it does not differ, Because, Until, Passed and Position are its.
	Live *Live `json:"live,omitempty"`
	// NotBefore is the earliest moment at which what keeps the device can be
	// over, where that is known.
	NotBefore *time.Time `json:"notBefore,omitempty"`
	// Checks are what Passed says, by code; empty where nothing was planned.
	Checks []Check `json:"checks"`
	// Standing is how those stand that it goes with, by the next sweep.
	Standing *GroupStanding `json:"standing,omitempty"`
	Marks    []DeviceMark   `json:"marks"`   // of this device
	Earlier  bool           `json:"earlier"` // History does not reach back to its beginning
}

// Cause is one reason, and where it is written.
type Cause struct {
	Text    string `json:"text"`
	Branch  string `json:"branch,omitempty"` // of the file; "" = the source branch, at the commit that was planned by
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Setting string `json:"setting,omitempty"` // what stands there: "failureLimit: 0"
}

// Question is what [Explain] answers.
type Question struct {
	Path   string // of the device's status
	Status Status
	// Source finds where a setting of a document stands, as [Setting] does;
	// nil = unknown.
	Source func(file string, field string) (setting string, line int)
	Brake  []byte     // the brake's document; nil = there is none
	Next   *NextSweep // nil = it could not be planned
	// Assignment is the device's; nil = it has none.
	Assignment *schema.Assignment
	// Changes are what the status branch recorded of the device, newest first,
	// as far as they were read.
	Changes []Change
	Earlier bool // there are older ones
	Report  *schema.Report
}

// Explain says why a device is where it is; nil when it has no status.
func Explain(q Question) *Explanation {
	d := q.Status.Devices[q.Path]
	if d == nil {
		return nil
	}
	fleet := NewFleet("", q.Status)
	dv := device(q.Path, d, fleet.rollout(d.Policy), q.holdInGit())
	e := &Explanation{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: KindExplanation},
		Device:   d.Metadata.Name, Path: q.Path, Policy: d.Policy, Version: dv.Version, Target: d.Verdict.Target,
		Verdict: d.Verdict, Position: dv.Position, Assignment: d.Assignment, Observed: d.Observed, Report: q.Report,
		Attempts: append([]schema.Attempt{}, d.Attempts...),
		Passed:   passed(d.Verdict.Code), Checks: []Check{},
		History: q.history(d), Earlier: q.Earlier, AlsoHeld: dv.AlsoHeld,
	}
	if doc := q.Assignment; doc != nil {
		e.AssignedBecause = doc.Because
	}
	if q.Next != nil {
		e.Live, e.Standing = q.Next.live(d), q.Next.standing()
	}
	next := q.agreed(e.Live)
	e.Marks = q.marks(d, next)
	if next != nil {
		e.Checks, e.NotBefore, e.Position = next.checks(), e.Live.NotBefore, next.Verdict.Position
		dv.Position, e.Passed = e.Position, []string{}
		for _, c := range e.Checks {
			e.Passed = append(e.Passed, c.Text)
		}
	}
	e.Until = q.until(d, next)
	e.Because = q.causes(d, dv, fleet, next)
	return e
}

// history is what was read, or what the record itself remembers.
func (q *Question) history(d *schema.DeviceStatus) []Event {
	if len(q.Changes) > 0 {
		return Events(q.Changes)
	}
	return eventsOf(d)
}

// holdInGit is the hold that the device's document has now, or had when its
// assignment was written.
func (q *Question) holdInGit() string {
	if reason := q.Status.Holds[q.Path]; reason != "" || q.Source == nil {
		return reason
	}
	if setting, line := q.Source(q.Path, fieldHold); line > 0 {
		return strings.TrimPrefix(setting, fieldHold+": ")
	}
	return ""
}

// Fields of a Device that decide about it instead of its policy.
const (
	fieldHold = "hold"
	fieldPin  = "pin"
)

// pinned says whether a pin, and not the policy, names the device's target.
func (q *Question) pinned(d *schema.DeviceStatus) bool {
	if wordOf(d.Verdict.Code).field != fieldTarget {
		return false
	}
	if q.Source != nil {
		_, line := q.Source(q.Path, fieldPin)
		return line > 0
	}
	n := len(d.Attempts)
	return n > 0 && d.Attempts[n-1].Pinned && d.Attempts[n-1].Version == d.Verdict.Target
}

func (q *Question) until(d *schema.DeviceStatus, next *NextSweep) []string {
	if q.pinned(d) {
		return []string{"the pin changes"}
	}
	if d.Verdict.Code == string(planner.Excluded) && (&Standing{Path: q.Path, Status: d, Assignment: q.Assignment}).gone() {
		return []string{"its file is in the fleet repository again"}
	}
	code := d.Verdict.Code
	if next != nil && next.limit() != "" {
		code = string(next.Verdict.Code)
	}
	return append([]string{}, wordOf(code).until...)
}

// causes names who or what stands in the way, and the setting that decides.
// next is the plan that comes to the same verdict; nil = there is none.
func (q *Question) causes(d *schema.DeviceStatus, dv DeviceView, fleet *FleetView, next *NextSweep) []Cause {
	list := q.culprits(d, dv, fleet, next)
	if next != nil {
		if text := next.Verdict.Detail; text != "" && d.Verdict.Code != string(planner.Halted) {
			list = append([]Cause{{Text: next.Verdict.Reason + ": " + next.limit() + text}}, list...)
		}
	}
	if len(list) == 0 {
		list = append(list, Cause{Text: d.Verdict.Reason})
	}
	pinned := q.pinned(d)
	if pinned {
		list[0].Text = "pinned, " + list[0].Text
	}
	own := len(list)
	for _, h := range dv.AlsoHeld {
		list = append(list, Cause{Text: "also held: " + h.text()})
	}
	if q.Source == nil {
		return list
	}
	if place, ok := q.place(d, dv, next, pinned); ok {
		place.Text = list[0].Text
		list[0] = place
	}
	for i, h := range dv.AlsoHeld {
		if h.Where == heldInGit {
			q.locateHold(&list[own+i], d.Metadata.Name)
		}
	}
	return list
}

// limit names the limit that binds where one code in git stands for several.
func (n *NextSweep) limit() string {
	switch code := n.Verdict.Code; code {
	case planner.FleetGuard, planner.CodeBudget:
		return string(code) + ": "
	}
	return ""
}

// culprits are the devices and events that a verdict comes from.
func (q *Question) culprits(d *schema.DeviceStatus, dv DeviceView, fleet *FleetView, next *NextSweep) []Cause {
	list := []Cause{}
	switch code := d.Verdict.Code; code {
	case string(planner.Halted):
		for _, m := range q.Status.Marks {
			if m.Policy != d.Policy {
				continue
			}
			for _, mark := range newestMarks(m, next) {
				text := fmt.Sprintf("%s %s at %s", mark.Device, did(mark.Outcome, m.Version), clock(mark.At, fleet.SweptAt))
				if why := said(mark.Message, mark.Stage); why != "" {
					text += ": " + why
				}
				list = append(list, Cause{Text: text})
			}
		}
	case string(planner.CodeFailed), string(planner.CodeRefused):
		if f := dv.Failure; f != nil {
			text := fmt.Sprintf("attempt %d %s at %s", f.Attempt, did(f.Outcome, f.Version), clock(f.At, fleet.SweptAt))
			if why := said(f.Message, f.Stage); why != "" {
				text += ": " + why
			}
			list = append(list, Cause{Text: text})
		}
	case string(planner.Stopped):
		for _, c := range fleet.Conditions {
			if isStop(c) {
				list = append(list, Cause{Text: c.Message})
			}
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
	return list
}

// isStop says whether a condition lets no sweep assign anything.
func isStop(c schema.Condition) bool { return c.Type == "Stopped" || c.Type == "Invalid" }

// place finds the setting that decides: the one that the plan names, or else
// the one that mostly decides about the verdict.
func (q *Question) place(d *schema.DeviceStatus, dv DeviceView, next *NextSweep, pinned bool) (Cause, bool) {
	if next != nil {
		if c, ok := q.decidingPlace(next); ok {
			return c, true
		}
	}
	code := d.Verdict.Code
	if code == string(planner.Queued) && wordOf(dv.Limit).field != "" {
		code = dv.Limit // the queue is one word for several limits
	}
	var c Cause
	switch field := wordOf(code).field; {
	case pinned:
		q.locate(&c, q.Path, fieldPin)
	case code == string(planner.Held):
		// A hold on the device stands in no document.
		if _, line := q.Source(q.Path, fieldHold); line > 0 {
			q.locate(&c, q.Path, fieldHold)
		}
	case field != "" && d.Policy != "":
		q.locate(&c, PolicyPath(d.Policy), field)
	}
	return c, c.File != ""
}

// locate notes where a setting stands, if it does.
func (q *Question) locate(c *Cause, file, field string) {
	setting, line := q.Source(file, field)
	if setting == "" {
		return
	}
	c.File, c.Line, c.Setting = file, line, setting
}

// locateHold notes where a hold of the fleet repository stands: in the brake, or
// in the device's document.
func (q *Question) locateHold(c *Cause, device string) {
	if strings.Contains(c.Text, byTheBrake) {
		if place, ok := q.brakePlace([]string{"devices", device}); ok {
			place.Text = c.Text
			*c = place
		}
		return
	}
	if _, line := q.Source(q.Path, fieldHold); line > 0 {
		q.locate(c, q.Path, fieldHold)
	}
}

// PolicyPath is where a policy stands in the fleet repository.
func PolicyPath(name string) string { return "policies/" + name + ".yaml" }
