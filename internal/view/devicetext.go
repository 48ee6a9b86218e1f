package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// Bounds of what the text shows of one device; the JSON has what the report
// has.
const (
	toldDifferences = 20
	toldRunning     = 5 // applications that are as they should be, by name
)

// hear takes in what a device says of itself. A device that is away may be any
// way by now, and one in the middle of an update is not what it will be.
func (v *DeviceView) hear(d *schema.DeviceStatus, r *schema.Report) {
	if r == nil || d.Observed == nil || !v.Online || r.InstallID != d.Observed.InstallID || kind(v.Code) == planner.InFlight {
		return
	}
	v.Trouble = troubles(r)
	if r.WouldChange != nil {
		n := r.WouldChange.Count
		v.WouldChange = &n
	}
}

// troubles list what does not run as it should, the worst first, and what
// cannot be put right.
func troubles(r *schema.Report) []string {
	var list []string
	for _, a := range r.Applications {
		if a.State == schema.ApplicationFailed || a.State == schema.ApplicationStopped {
			text := "application " + a.Name + " is " + a.State
			if a.Reason != "" {
				text += ": " + a.Reason
			}
			list = append(list, text)
		}
	}
	for _, u := range r.Units {
		if isWrongUnit(u.State) {
			list = append(list, "unit "+u.Name+" is "+u.State)
		}
	}
	for _, m := range r.Monitors {
		if m.Level == schema.LevelCritical {
			list = append(list, "monitor "+MonitorText(&m))
		}
	}
	if strings.HasPrefix(r.DriftReason, schema.DriftUnrepaired) {
		list = append(list, r.DriftReason)
	}
	return list
}

// labelled is one line of an answer.
type labelled struct{ label, text string }

// deviceLines say what the device itself tells.
func deviceLines(e *Explanation) []labelled {
	list := []labelled{{"device", deviceLine(e)}}
	r := e.Report
	if r == nil {
		return list
	}
	if w := r.WouldChange; w != nil {
		for i, text := range wouldChangeTexts(w) {
			list = append(list, labelled{pick(i == 0, "compared", ""), text})
		}
	}
	list = append(list, labelled{"apps", ApplicationsText(r.Applications)}, labelled{"units", UnitsText(r.Units)}, labelled{"monitors", monitorsText(r.Monitors)})
	return list
}

// wouldChangeTexts list what separates a device from the spec that it only
// compares itself with.
func wouldChangeTexts(w *schema.WouldChange) []string {
	list := []string{fmt.Sprintf("with %s: %s", w.Version, CountText(w.Count, "thing would change", "things would change"))}
	if w.Count == 0 {
		list[0] = fmt.Sprintf("with %s: nothing would change", w.Version)
	}
	shown := w.Differences[:min(len(w.Differences), toldDifferences)]
	for i := range shown {
		list = append(list, DifferenceText(&shown[i]))
	}
	if more := w.Count - len(shown); more > 0 {
		list = append(list, fmt.Sprintf("… and %d more", more))
	}
	return list
}

// DifferenceText is one thing that would change, on one line.
func DifferenceText(d *schema.Difference) string {
	text := d.Do + " "
	switch d.Field {
	case "files":
		text += d.Name
	case "directories":
		text += strings.TrimSuffix(d.Name, "/") + "/"
	default:
		text += strings.TrimSpace(d.Field + " " + d.Name)
	}
	if d.Detail != "" {
		text += " (" + d.Detail + ")"
	}
	return text
}

// CountText counts things.
func CountText(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// ApplicationsText is how applications are on one line, those that do not run
// first.
func ApplicationsText(all []schema.ApplicationState) string {
	var bad, good []string
	for _, a := range all {
		text := a.Name + " " + a.State
		if a.State == schema.ApplicationRunning {
			good = append(good, text)
			continue
		}
		if a.Reason != "" {
			text += ": " + a.Reason
		}
		bad = append(bad, text)
	}
	if len(good) > toldRunning {
		good = []string{fmt.Sprintf("%d running", len(good))}
	}
	return strings.Join(append(bad, good...), " · ")
}

// UnitsText is how units are on one line: it names those that something is wrong
// with, and counts the others.
func UnitsText(all []schema.UnitState) string {
	var list []string
	others := map[string]int{}
	for _, u := range all {
		if isWrongUnit(u.State) {
			list = append(list, u.Name+" "+u.State)
		} else {
			others[u.State]++
		}
	}
	for _, state := range slices.Sorted(maps.Keys(others)) {
		list = append(list, fmt.Sprintf("%d %s", others[state], state))
	}
	return strings.Join(list, " · ")
}

// isWrongUnit says whether no spec asks for a unit to be so.
func isWrongUnit(state string) bool {
	switch state {
	case "failed", "restarting", "not-found":
		return true
	}
	return false
}

func monitorsText(all []schema.MonitorState) string {
	var list []string
	for _, m := range all {
		list = append(list, MonitorText(&m))
	}
	return strings.Join(list, " · ")
}

// MonitorText is what a monitor says, on one line.
func MonitorText(m *schema.MonitorState) string {
	if m.Level == schema.LevelUnknown {
		return m.Name + ": could not be measured"
	}
	return fmt.Sprintf("%s: %d%% in use, %s", m.Name, m.Used, m.Level)
}

// deviceLine is how the device is by itself.
func deviceLine(e *Explanation) string {
	var parts []string
	if o := e.Observed; o != nil {
		r := e.Report
		switch {
		case r != nil && r.InstallID == o.InstallID && r.Phase == schema.PhasePreparing && r.Reason != "": // git has nothing of it
			parts = append(parts, string(r.Phase)+": "+said(r.Reason, ""))
		case o.Reason != "":
			parts = append(parts, string(o.Phase)+": "+said(o.Reason, ""))
		case o.Phase == schema.PhaseUpdated && o.Attempt == 0:
			parts = append(parts, "nothing applied there yet")
		default:
			parts = append(parts, string(o.Phase))
		}
		switch {
		case o.Online:
			parts = append(parts, "online")
		case o.OfflineSince != nil:
			parts = append(parts, "offline since "+Stamp(*o.OfflineSince))
		default:
			parts = append(parts, "offline")
		}
		if o.AgentVersion != "" {
			parts = append(parts, "agent "+o.AgentVersion)
		}
		if o.Busy {
			parts = append(parts, "busy")
		}
		if o.Held != "" {
			parts = append(parts, "held there: "+o.Held)
		}
		if o.Problem != "" {
			parts = append(parts, "its newest report was refused: "+o.Problem)
		}
	}
	if r := e.Report; r != nil {
		if text := driftText(r); text != "" {
			parts = append(parts, text)
		}
		for _, w := range r.Warnings {
			parts = append(parts, "its agent warns: "+w)
		}
		if r.FreeDisk > 0 {
			parts = append(parts, BytesText(r.FreeDisk)+" free")
		}
	}
	return strings.Join(parts, " · ")
}

func driftText(r *schema.Report) string {
	text := "no drift"
	switch n := len(r.Drift); {
	case r.WouldChange != nil:
		return "" // it is not looked for
	case n == 0 && r.DriftReason != "":
		return r.DriftReason
	case n == 1:
		text = "drift: " + r.Drift[0]
	case n > 1:
		text = fmt.Sprintf("drift: %s and %d more", r.Drift[0], n-1)
	}
	if r.DriftReason != "" {
		text += " (" + r.DriftReason + ")"
	}
	return text
}
