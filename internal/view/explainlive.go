package view

import (
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// NextSweep is what a sweep would decide now about a device.
type NextSweep struct {
	Commit  string // of the source branch that it was planned by
	At      time.Time
	Verdict planner.Verdict
	Result  planner.Result
	Limits  planner.Limits // of its policy
	// Ahead says that Commit was not swept yet.
	Ahead bool
	// Unheard says that no report of the device could be read, as where
	// devices report to the daemon alone.
	Unheard bool
}

// Live is the verdict of the next sweep.
type Live struct {
	Commit    string         `json:"commit"` // of the source branch that it was planned by
	At        time.Time      `json:"at"`
	Verdict   schema.Verdict `json:"verdict"`
	Detail    string         `json:"detail,omitempty"` // what moves with other devices
	Field     string         `json:"field,omitempty"`  // that decides
	FieldIn   string         `json:"fieldIn,omitempty"`
	NotBefore *time.Time     `json:"notBefore,omitempty"`
	// Differs says that the status branch has another verdict, and Why why.
	Differs bool   `json:"differs"`
	Why     string `json:"why,omitempty"`
}

// Check is one that a device came past.
type Check struct {
	Code string `json:"code"` // what its verdict would be, had it not
	Text string `json:"text"`
}

// DeviceMark is a failure mark of the device.
type DeviceMark struct {
	Policy  string             `json:"policy"`
	Version string             `json:"version"`
	Halted  bool               `json:"halted"` // the policy is, by this version
	Halts   bool               `json:"halts"`  // it is, and this is the device's newest mark that counts for it
	Mark    schema.FailureMark `json:"mark"`
}

// knowsLess says that a verdict on record comes from what a daemon alone has
// heard, so that a plan without it is no contradiction.
func (n *NextSweep) knowsLess(code string) bool {
	switch planner.Code(code) {
	case planner.Duplicate:
		return true
	case planner.NeedsAgent, planner.ByHand, planner.Busy:
		return n.Unheard
	}
	return false
}

// live compares the next sweep with what stands on the status branch; nil
// where the daemon knows more.
func (n *NextSweep) live(d *schema.DeviceStatus) *Live {
	v := &n.Verdict
	if n.knowsLess(d.Verdict.Code) && d.Verdict.Code != string(v.Code) {
		return nil
	}
	code, reason := v.ForGit(n.At)
	l := &Live{
		Commit: n.Commit, At: n.At.UTC(),
		Verdict: schema.Verdict{Upgrade: v.Upgrade, Code: string(v.Code), Target: v.Target.Version, Reason: v.Reason},
		Detail:  v.Detail, Field: v.Field, FieldIn: string(v.FieldIn), NotBefore: moment(v.NotBefore),
	}
	recorded := d.Verdict
	l.Differs = recorded.Code != string(code) || recorded.Target != v.Target.Version && v.Target.Version != ""
	// The other verdicts say in their reason what else may change by itself.
	if saysWhy[recorded.Code] && recorded.Reason != reason {
		l.Differs = true
	}
	switch {
	case !l.Differs:
	case n.Ahead:
		l.Why = "the daemon has not swept " + Short(n.Commit) + " yet"
	default:
		l.Why = "no sweep has recorded it yet"
	}
	return l
}

// checks are those that the device came past before its verdict.
func (n *NextSweep) checks() []Check {
	list := []Check{}
	for _, c := range n.Result.Passed(n.Verdict) {
		list = append(list, Check{Code: string(c.Code), Text: c.Text})
	}
	return list
}

// agreed is the next sweep where it says what the status branch does; nil
// otherwise: then its details explain another verdict.
func (q *Question) agreed(live *Live) *NextSweep {
	if live == nil || live.Differs {
		return nil
	}
	return q.Next
}

// Where what decides may stand beside the policies and devices.
const (
	fleetDocument = "fleet.yaml"
	brakeDocument = "brake.yaml"
	byTheBrake    = "by the brake: "
)

// decidingPlace is the setting that keeps a device where a plan says that it
// is; false where no setting does.
func (q *Question) decidingPlace(n *NextSweep) (Cause, bool) {
	v := &n.Verdict
	if strings.Contains(v.Reason, byTheBrake) {
		path := []string{"policies", v.Device.Policy}
		switch {
		case v.Code == planner.Held:
			path = []string{"devices", v.Device.ID}
		case v.FieldIn == planner.InFleet:
			path = []string{"all"}
		}
		if c, ok := q.brakePlace(path); ok {
			return c, true
		}
	}
	file, field := "", v.Field
	switch {
	case v.Code == planner.Held:
		// A hold on the device stands in no document.
		if _, line := q.Source(q.Path, fieldHold); line == 0 {
			return Cause{}, false
		}
		file, field = q.Path, fieldHold
	case field == "":
		return Cause{}, false
	case v.FieldIn == planner.InDevice:
		file = q.Path
	case v.FieldIn == planner.InFleet:
		file = fleetDocument
	default:
		file = PolicyPath(v.Device.Policy)
	}
	var c Cause
	q.locate(&c, file, field)
	return c, c.File != ""
}

func (q *Question) brakePlace(path []string) (Cause, bool) {
	if q.Brake == nil {
		return Cause{}, false
	}
	text, line := SettingAt(q.Brake, path...)
	if line == 0 {
		return Cause{}, false
	}
	return Cause{Branch: schema.BrakeBranch, File: brakeDocument, Line: line, Setting: text}, true
}

// marks are the failure marks of a device. next is the plan that comes to the
// same verdict; nil = there is none.
func (q *Question) marks(d *schema.DeviceStatus, next *NextSweep) []DeviceMark {
	list := []DeviceMark{}
	done := next == nil && d.Verdict.Code == string(planner.Current)
	for _, m := range q.Status.Marks {
		halting := newestMarks(m, next)
		for _, mark := range m.Marks {
			if mark.Device == d.Metadata.Name {
				halts := !done && slices.Contains(halting, mark)
				list = append(list, DeviceMark{Policy: m.Policy, Version: m.Version, Halted: m.Halted, Halts: halts, Mark: mark})
			}
		}
	}
	return list
}

// newestMarks are those that halt a policy, one of each device. The record has
// whatever failed the version: also in other contents, and what was forgotten.
// Which of them count the plan knows.
func newestMarks(m *schema.FailureMarks, next *NextSweep) []schema.FailureMark {
	list := []schema.FailureMark{}
	if !m.Halted {
		return list
	}
	counts := func(string) bool { return true }
	if next != nil {
		for _, s := range next.Result.Policies {
			if s.Policy == m.Policy {
				counts = func(id string) bool { return slices.Contains(s.HaltedBy, id) }
			}
		}
	}
	for _, mark := range m.Marks { // by device
		last := len(list) - 1
		switch {
		case !counts(mark.Device):
		case last < 0 || list[last].Device != mark.Device:
			list = append(list, mark)
		case !mark.At.Before(list[last].At):
			list[last] = mark
		}
	}
	return list
}
