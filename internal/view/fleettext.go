package view

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// listed is how many devices of one class the text names; the JSON has all.
const listed = 20

// WriteFleet writes the fleet as text: what was swept, what is wrong with it,
// its policies, the devices that need a person or are moving, and how many
// wait for what or are left alone.
func WriteFleet(w io.Writer, v *FleetView, look Look) error {
	var b bytes.Buffer
	writeHead(&b, v, look)
	writeConditions(&b, v, look)
	writeRollouts(&b, v, look)
	writeSteps(&b, v, look)
	next := writeDevices(&b, v, look)
	if next != "" {
		fmt.Fprintf(&b, "next: %s\n", Clean(look.again("gitopsd explain "+next)))
	}
	_, err := w.Write(b.Bytes())
	return err
}

func writeHead(b *bytes.Buffer, v *FleetView, look Look) {
	const indent = 2
	if v.SourceCommit == "" {
		fmt.Fprintf(b, "%s: no commit was swept yet\n", Clean(v.Branch))
		return
	}
	line := Clean(v.Branch) + " " + Short(v.SourceCommit)
	if v.Subject != "" {
		line += " \"" + Clean(v.Subject) + "\""
	}
	if v.Author != "" {
		line += " by " + Clean(v.Author)
	}
	if !v.SweptAt.IsZero() {
		line += " · last change " + clock(v.SweptAt, time.Time{})
	}
	fmt.Fprintln(b, look.hang(line, indent))
	if v.Head == "" || v.Head == v.SourceCommit {
		return
	}
	line = fmt.Sprintf("%s is at %s, which was not swept yet", Clean(v.Branch), Short(v.Head))
	switch {
	case v.Ahead == 1:
		line += ": 1 commit ahead"
	case v.Ahead > 1:
		line += fmt.Sprintf(": %d commits ahead", v.Ahead)
	}
	fmt.Fprintln(b, look.paint(colorBusy, look.hang(line, indent)))
}

func writeConditions(b *bytes.Buffer, v *FleetView, look Look) {
	for _, c := range v.Conditions {
		name := c.Type
		if c.Reason != "" && c.Reason != c.Type {
			name += " (" + c.Reason + ")"
		}
		head := Clean(name) + ":"
		text := look.hangLines(head+" "+c.Message, gap)
		if rest, ok := strings.CutPrefix(text, head); ok { // the terminal is not that narrow
			text = look.paint(colorBad, head) + rest
		}
		fmt.Fprintln(b, text)
		if c.Remedy != "" {
			fmt.Fprintf(b, "  %s\n", look.hangLines("remedy: "+c.Remedy, gap))
		}
	}
}

// share is how many devices of a policy are where.
type share struct{ total, done, moving, waiting, attention, alone int }

// shares counts the devices that the lists below the table are made of, so
// that both say the same.
func shares(devices []DeviceView) map[string]share {
	of := map[string]share{}
	for _, d := range devices {
		if d.Gone && kind(d.Code) != planner.InFlight {
			continue
		}
		s := of[d.Policy]
		if !d.Gone {
			s.total++
		}
		switch kind(d.Code) {
		case planner.InFlight:
			s.moving++
		case planner.Wait:
			s.waiting++
		case planner.Attention:
			s.attention++
		default:
			if d.Code == string(planner.Current) {
				s.done++
			} else {
				s.alone++
			}
		}
		if d.inTrouble() {
			s.attention++ // whatever else it is
		}
		of[d.Policy] = s
	}
	return of
}

func writeRollouts(b *bytes.Buffer, v *FleetView, look Look) {
	if len(v.Rollouts) == 0 {
		return
	}
	of := shares(v.Devices)
	// What goes first is told below the table too, by its devices.
	t := Table{Head: []string{"POLICY", "TARGET", "STATE", "DONE", "MOVING", "WAITING", "ATTENTION"},
		Spare: []string{"LEFT ALONE", "WAITING", "MOVING", "ATTENTION"}}
	alone := slices.ContainsFunc(v.Rollouts, func(r schema.RolloutStatus) bool { return of[r.Policy].alone > 0 })
	if alone {
		t.Head = append(t.Head, "LEFT ALONE")
	}
	for _, r := range v.Rollouts {
		state, color := r.State, ""
		switch state {
		case stateHalted:
			state, color = "HALTED", colorBad
		case "done":
			color = colorGood
		case stateRolling:
			color = colorBusy
		}
		s := of[r.Policy]
		row := []string{
			r.Policy, or(r.Version, "-"), state, fmt.Sprintf("%d/%d", s.done, s.total),
			strconv.Itoa(s.moving), strconv.Itoa(s.waiting), strconv.Itoa(s.attention),
		}
		if alone {
			row = append(row, strconv.Itoa(s.alone))
		}
		t.Row(row...)
		t.Paint(2, color)
	}
	_ = t.Write(b, look) // a buffer takes everything
}

// writeDevices gives the device that a person should look at first.
func writeDevices(b *bytes.Buffer, v *FleetView, look Look) string {
	byClass := map[planner.Kind][]DeviceView{}
	waiting, alone := map[string]int{}, map[string]int{}
	var held []string
	var trouble, observing []DeviceView
	for _, d := range v.Devices {
		class := kind(d.Code)
		byClass[class] = append(byClass[class], d)
		if d.inTrouble() {
			trouble = append(trouble, d)
		}
		if d.Code == string(planner.Observing) {
			observing = append(observing, d)
		}
		switch {
		case class == planner.Wait:
			waiting[spoken(d.Code)]++
		case class == planner.Leave && d.Gone:
			alone["removed from the fleet"]++
		case class == planner.Leave && d.Code != string(planner.Current):
			alone[spoken(d.Code)]++
		}
		for _, h := range d.AlsoHeld {
			held = append(held, d.Device+": "+h.text())
		}
	}
	byClass[planner.Attention] = append(byClass[planner.Attention], trouble...)
	writeList(b, "ATTENTION", byClass[planner.Attention], look, func(d DeviceView) string { return attention(d, v.SweptAt) })
	slots := map[string]schema.InFlight{}
	for _, r := range v.Rollouts {
		for _, f := range r.InFlight {
			slots[f.Device] = f
		}
	}
	writeList(b, "MOVING", byClass[planner.InFlight], look, func(d DeviceView) string { return moving(d, slots[d.Device], v.SweptAt) })
	writeList(b, "OBSERVING", observing, look, compared)
	writeCounts(b, "WAITING", waiting, look)
	writeCounts(b, "LEFT ALONE", alone, look)
	if n := len(held); n > listed {
		held = append(held[:listed], fmt.Sprintf("and %d more", n-listed))
	}
	writeLine(b, "ALSO HELD", held, look)
	for _, class := range []planner.Kind{planner.Attention, planner.InFlight, planner.Wait} {
		if devices := byClass[class]; len(devices) > 0 {
			return devices[0].Device
		}
	}
	return ""
}

// text is a hold as words.
func (h Hold) text() string {
	if h.Where == heldOnDevice {
		return h.Reason + " (on the device)"
	}
	return h.Reason
}

// moving says how far a device is on its way. Until its report speaks of the
// attempt, its phase is of an earlier one.
func moving(d DeviceView, slot schema.InFlight, now time.Time) string {
	since := func(word string, t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return word + clock(t, now)
	}
	if d.Reported != d.Attempt && !slot.Started {
		return d.Target + " told to go" + since(" at ", slot.Since) + ", not begun"
	}
	at := slot.Since
	if d.Reported == d.Attempt && d.Since != nil {
		at = *d.Since
	}
	text := d.Target + " " + or(d.Phase, "assigned") + since(" since ", at)
	if d.Reported == d.Attempt && d.PhaseReason != "" {
		text += ": " + said(d.PhaseReason, "")
	}
	return text
}

// writeCounts writes how many devices there are of each code, the most first.
func writeCounts(b *bytes.Buffer, head string, counts map[string]int, look Look) {
	codes := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(codes, func(a, b string) int { return counts[b] - counts[a] })
	parts := make([]string, len(codes))
	for i, code := range codes {
		parts[i] = fmt.Sprintf("%d %s", counts[code], code)
	}
	writeLine(b, head, parts, look)
}

func writeLine(b *bytes.Buffer, head string, parts []string, look Look) {
	if len(parts) > 0 {
		text := head + "  " + Clean(strings.Join(parts, " · "))
		fmt.Fprintln(b, look.hang(text, gap))
	}
}

func writeList(b *bytes.Buffer, head string, devices []DeviceView, look Look, text func(DeviceView) string) {
	if len(devices) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", look.paint(colorHead, head))
	t := Table{}
	for _, d := range devices[:min(len(devices), listed)] {
		t.Row(d.Device, text(d))
	}
	_ = t.Write(b, look) // a buffer takes everything
	if more := len(devices) - listed; more > 0 {
		fmt.Fprintf(b, "and %d more: %s\n", more, Clean(look.again("gitopsd status -o json")))
	}
}

// inTrouble says whether a person should look at a device that no verdict asks
// for.
func (v *DeviceView) inTrouble() bool {
	return len(v.Trouble) > 0 && kind(v.Code) != planner.Attention
}

// compared says how far a device is from what it observes.
func compared(d DeviceView) string {
	switch {
	case d.WouldChange == nil:
		return d.Reason
	case *d.WouldChange == 0:
		return d.Target + ": nothing would change"
	}
	return d.Target + ": " + CountText(*d.WouldChange, "thing would change", "things would change")
}

// attention says what became of a device in a line.
func attention(d DeviceView, now time.Time) string {
	if d.inTrouble() {
		text := d.Code
		if d.Version != "" {
			text += " on " + d.Version
		}
		text += ", but " + d.Trouble[0]
		if more := len(d.Trouble) - 1; more > 0 {
			text += fmt.Sprintf("; and %d more", more)
		}
		return text
	}
	if d.Failure == nil || (d.Code != string(planner.CodeFailed) && d.Code != string(planner.CodeRefused)) {
		return d.Code + ": " + d.Reason
	}
	f := d.Failure
	text := d.Code + " " + f.Version
	if !f.At.IsZero() {
		text += " " + clock(f.At, now)
	}
	text += ": " + or(said(f.Message, f.Stage), string(f.Outcome))
	if d.Version != "" && d.Version != f.Version {
		text += "; on " + d.Version
		if d.Phase != "" {
			text += ", " + d.Phase
		}
	}
	return text
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
