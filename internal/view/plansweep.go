package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/planner"
)

// sweep writes what the next sweep would find and do.
func (t *planText) sweep(p *preview.Plan, wide bool) error {
	t.section("NEXT SWEEP")
	policies := Table{
		Head:  []string{"POLICY", "TARGET", "DEVICES", "SLOTS", "MOVING", "FAILED", "STATE"},
		Spare: []string{"FAILED", "DEVICES", "MOVING", "SLOTS"},
	}
	for _, s := range p.Summary.Policies {
		policies.Row(s.Policy, or(s.Target, "-"), strconv.Itoa(s.Devices), strconv.Itoa(s.Slots), strconv.Itoa(s.InFlight), strconv.Itoa(s.Failed), haltText(s))
	}
	switch {
	case policies.Empty():
	case policies.fits(t.look):
		if err := policies.Write(t.b, t.look); err != nil {
			return err
		}
	default:
		for _, s := range p.Summary.Policies {
			t.line(0, fmt.Sprintf("%s → %s  %d of %d slots taken", Clean(s.Policy), Clean(or(s.Target, "-")), s.InFlight, s.Slots))
			if s.Halted {
				t.line(2, Clean(haltText(s)))
			}
		}
	}
	t.covered(p)
	t.counts(p)
	t.b.WriteByte('\n')
	if err := t.devices(p, wide); err != nil {
		return err
	}
	for _, r := range p.Recalls {
		t.line(0, fmt.Sprintf("recall %s: %s", Clean(r.Device), Clean(r.Because)))
	}
	return nil
}

// covered says of each policy that limits do not count all of its devices, which
// is why shares of them may look small.
func (t *planText) covered(p *preview.Plan) {
	of := map[string]int{}
	for i := range p.Verdicts {
		of[p.Verdicts[i].Policy]++
	}
	for _, s := range p.Summary.Policies {
		if all := of[s.Policy]; s.Devices < all {
			t.line(0, fmt.Sprintf("limits of %s count %d of its %s: the others have never reported, or are absent", Clean(s.Policy), s.Devices, counted(all, "device")))
		}
	}
}

func haltText(s preview.PolicyState) string {
	if !s.Halted {
		return ""
	}
	return "HALTED by " + namesText(s.HaltedBy)
}

// codesText counts devices by their verdicts.
func codesText(counts map[string]int) string {
	var words []string
	for _, code := range CodeOrder(counts) {
		words = append(words, fmt.Sprintf("%d %s", counts[code], Clean(code)))
	}
	return strings.Join(words, " · ")
}

func (t *planText) counts(p *preview.Plan) {
	var words []string
	for _, code := range CodeOrder(p.Summary.Counts) {
		words = append(words, fmt.Sprintf("%d %s", p.Summary.Counts[code], Clean(code))+gateText(p.Verdicts, code))
	}
	if len(words) > 0 {
		t.line(0, strings.Join(words, " · "))
	}
}

// gateText names the waves that devices wait for, or when a window opens or a
// freeze is over; "" = the code says enough.
func gateText(verdicts []preview.Verdict, code string) string {
	const shown = 2 // reasons in one line
	var reasons []string
	for i := range verdicts {
		v := &verdicts[i]
		if v.Code != code {
			continue
		}
		reason := ""
		switch planner.Code(code) {
		case planner.CodeWave:
			reason = v.Reason
		case planner.CodeWindow, planner.Frozen:
			if v.NotBefore != nil {
				reason = "not before " + Stamp(*v.NotBefore)
			}
		}
		if reason != "" && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	if len(reasons) == 0 {
		return ""
	}
	text := Clean(strings.Join(reasons[:min(len(reasons), shown)], ", "))
	if len(reasons) > shown {
		text += ", …"
	}
	return " (" + text + ")"
}

// devices writes the verdicts: as a table, or where its words do not fit, as
// lines that can be broken anywhere.
func (t *planText) devices(p *preview.Plan, wide bool) error {
	table := Table{Head: []string{"DEVICE", "VERDICT", "VERSION", "TARGET", "REASON"}, Spare: []string{"VERSION", "TARGET"}}
	if wide {
		table.Head = []string{"DEVICE", "VERDICT", "POLICY", "WAVE", "VERSION", "TARGET", "QUEUE", "NOT BEFORE", "REASON"}
		table.Spare = []string{"NOT BEFORE", "QUEUE", "WAVE", "VERSION", "POLICY", "TARGET"}
	}
	assumed := p.Summary.Assumed
	for i := range p.Verdicts {
		v := &p.Verdicts[i]
		if !wide {
			table.Row(v.Device, v.Code, or(v.Version, "-"), or(v.Target, "-"), reasonText(v, assumed))
			continue
		}
		queue, notBefore := "-", "-"
		if v.Position > 0 {
			queue = strconv.Itoa(v.Position)
		}
		if v.NotBefore != nil {
			notBefore = Stamp(*v.NotBefore)
		}
		table.Row(v.Device, v.Code, or(v.Policy, "-"), or(v.Wave, "-"), or(v.Version, "-"), or(v.Target, "-"), queue, notBefore, WhyText(v, assumed))
	}
	if assumed {
		table.drop("VERSION") // it is one for all, which the summary names
	}
	if table.fits(t.look) {
		return table.Write(t.b, t.look)
	}
	for i := range p.Verdicts {
		v := &p.Verdicts[i]
		from := Clean(or(v.Version, "-")) + " "
		if assumed {
			from = ""
		}
		t.line(0, fmt.Sprintf("%s  %s  %s→ %s", Clean(v.Device), Clean(v.Code), from, Clean(or(v.Target, "-"))))
		t.line(2, Clean(reasonText(v, assumed)))
	}
	return nil
}

// reasonText is the reason with what moves with other devices.
func reasonText(v *preview.Verdict, assumed bool) string {
	reason := WhyText(v, assumed)
	if v.Position > 0 {
		reason += fmt.Sprintf(" (number %d)", v.Position)
	}
	return reason
}

// WhyText is the reason in full. The detail of a closed wave does not name the
// wave that it speaks of. A version that is assumed of all devices is left out.
func WhyText(v *preview.Verdict, assumed bool) string {
	if v.Code == string(planner.CodeWave) && v.Detail != "" {
		return v.Reason + ": " + v.Detail
	}
	why := or(v.Detail, v.Reason)
	if assumed {
		why = strings.TrimPrefix(why, "from "+v.Version+" ")
	}
	return why
}

// CodeOrder lists the codes that were counted in the order of the planner's
// checks; what it does not know comes last.
func CodeOrder(counts map[string]int) []string {
	var list []string
	known := map[string]bool{}
	for _, c := range planner.Codes() {
		known[string(c.Code)] = true
		if counts[string(c.Code)] > 0 {
			list = append(list, string(c.Code))
		}
	}
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		if !known[code] {
			list = append(list, code)
		}
	}
	return list
}
