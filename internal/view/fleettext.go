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
	"unicode"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// listed is how many devices of one class the text names; the JSON has all.
const listed = 20

// WriteFleet writes the fleet as text: what was swept, what is wrong with it,
// its policies, the devices that need a person or are moving, and how many
// wait for what.
func WriteFleet(w io.Writer, v *FleetView, look Look) error {
	var b bytes.Buffer
	writeHead(&b, v, look)
	writeConditions(&b, v, look)
	writeRollouts(&b, v, look)
	next := writeDevices(&b, v, look)
	if next != "" {
		fmt.Fprintf(&b, "next: gitopsd explain %s\n", Clean(next))
	}
	_, err := w.Write(b.Bytes())
	return err
}

func writeHead(b *bytes.Buffer, v *FleetView, look Look) {
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
		line += " · status of " + clock(v.SweptAt, time.Time{})
	}
	fmt.Fprintln(b, look.fit(line, 0))
}

func writeConditions(b *bytes.Buffer, v *FleetView, look Look) {
	for _, c := range v.Conditions {
		name := c.Type
		if c.Reason != "" && c.Reason != c.Type {
			name += " (" + c.Reason + ")"
		}
		fmt.Fprintf(b, "%s %s\n", look.paint(colorBad, Clean(name)+":"), CleanLines(c.Message))
		if c.Remedy != "" {
			fmt.Fprintf(b, "  remedy: %s\n", CleanLines(c.Remedy))
		}
	}
}

func writeRollouts(b *bytes.Buffer, v *FleetView, look Look) {
	if len(v.Rollouts) == 0 {
		return
	}
	t := Table{Head: []string{"POLICY", "TARGET", "STATE", "DONE", "MOVING", "WAITING", "ATTENTION"}}
	for _, r := range v.Rollouts {
		state := r.State
		color := ""
		switch state {
		case "halted":
			state, color = "HALTED", colorBad
		case "done":
			color = colorGood
		case "rolling":
			color = colorBusy
		}
		t.Row(r.Policy, or(r.Version, "-"), state, fmt.Sprintf("%d/%d", r.Done, r.Total),
			strconv.Itoa(r.Moving), strconv.Itoa(r.Waiting), strconv.Itoa(r.Attention))
		t.Paint(2, color)
	}
	_ = t.Write(b, look) // a buffer takes everything
}

// writeDevices gives the device that a person should look at first.
func writeDevices(b *bytes.Buffer, v *FleetView, look Look) string {
	byClass := map[planner.Kind][]DeviceView{}
	waiting := map[string]int{}
	for _, d := range v.Devices {
		class := kind(d.Code)
		byClass[class] = append(byClass[class], d)
		// A hold is no waiting of the rollout, but a person counts it so.
		if class == planner.Wait || d.Code == string(planner.Held) {
			waiting[spoken(d.Code)]++
		}
	}
	writeList(b, "ATTENTION", byClass[planner.Attention], look, func(d DeviceView) string { return attention(d, v.SweptAt) })
	since := map[string]time.Time{}
	for _, r := range v.Rollouts {
		for _, f := range r.InFlight {
			since[f.Device] = f.Since
		}
	}
	writeList(b, "MOVING", byClass[planner.InFlight], look, func(d DeviceView) string {
		text := d.Target + " " + or(d.Phase, "assigned")
		if at := since[d.Device]; !at.IsZero() {
			text += " since " + clock(at, v.SweptAt)
		}
		return text
	})
	if len(waiting) > 0 {
		var parts []string
		for _, code := range slices.Sorted(maps.Keys(waiting)) {
			parts = append(parts, fmt.Sprintf("%d %s", waiting[code], code))
		}
		slices.SortStableFunc(parts, func(a, b string) int { return count(b) - count(a) })
		fmt.Fprintln(b, look.fit("WAITING  "+strings.Join(parts, " · "), 0))
	}
	for _, class := range []planner.Kind{planner.Attention, planner.InFlight, planner.Wait} {
		if devices := byClass[class]; len(devices) > 0 {
			return devices[0].Device
		}
	}
	return ""
}

// spoken is a code as words: "NeverSeen" is "never seen".
func spoken(code string) string {
	var b strings.Builder
	for i, r := range code {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func count(part string) int {
	n, _, _ := strings.Cut(part, " ")
	i, _ := strconv.Atoi(n) // written above
	return i
}

func writeList(b *bytes.Buffer, head string, devices []DeviceView, look Look, text func(DeviceView) string) {
	if len(devices) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", look.paint(colorHead, head))
	t := Table{}
	for i, d := range devices {
		if i == listed {
			t.Row(fmt.Sprintf("and %d more: gitopsd status -o json", len(devices)-listed))
			break
		}
		t.Row(d.Device, text(d))
	}
	_ = t.Write(b, look)
}

// attention says what became of a device in a line.
func attention(d DeviceView, now time.Time) string {
	if d.Failure == nil || (d.Code != string(planner.CodeFailed) && d.Code != string(planner.CodeRefused)) {
		return d.Code + ": " + d.Reason
	}
	f := d.Failure
	text := d.Code + " " + f.Version
	if !f.At.IsZero() {
		text += " " + clock(f.At, now)
	}
	why := firstLine(f.Message)
	if f.Stage != "" && why != "" {
		why = f.Stage + ": " + why
	}
	text += ": " + or(why, or(f.Stage, string(f.Outcome)))
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

// state is the most important condition of a list, for one line.
func stopOf(conditions []schema.Condition) *schema.Condition {
	for i := range conditions {
		if conditions[i].Type == "Stopped" {
			return &conditions[i]
		}
	}
	return nil
}
