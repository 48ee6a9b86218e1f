package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

const limitsPage = "../../docs/explanation/choosing-limits.md"

// tableOf gives the rows of the table of a page that has this heading, without
// the heading itself.
func tableOf(t *testing.T, page, heading string) (head []string, rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	cells := func(line string) []string {
		var list []string
		for c := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			list = append(list, strings.TrimSpace(c))
		}
		return list
	}
	_, rest, found := strings.Cut(string(text), "\n"+heading)
	if !found {
		t.Fatalf("%s has no table that begins with %q", page, heading)
	}
	for line := range strings.Lines(heading + rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		rows = append(rows, cells(line))
	}
	if len(rows) < 3 {
		t.Fatalf("%s: the table of %q has no rows", page, heading)
	}
	return rows[0], rows[2:]
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("a table has %q where a number belongs", text)
	}
	return n
}

// limited is a policy with these fields, written as in YAML.
func limited(t *testing.T, fields map[string]string) planner.Policy {
	t.Helper()
	p := planner.Policy{Name: "p", Enabled: true, TargetVersion: "v2.0.0"}
	for name, text := range fields {
		n, percent := strings.CutSuffix(text, "%")
		v := number(t, n)
		l := planner.Limit{Count: v, Set: true}
		if percent {
			l = planner.Limit{Percent: v, Set: true}
		}
		switch name {
		case "maxInFlight":
			p.MaxInFlight, p.MaxInFlightPercent = l.Count, l.Percent
		case "minAvailable":
			p.MinAvailable = l
		case "failureLimit":
			p.FailureLimit = l
		default:
			t.Fatalf("%q is no limit that the page may speak of", name)
		}
	}
	return p
}

// The table of rounding is the planner's.
func TestLimitsPageRounds(t *testing.T) {
	head, rows := tableOf(t, limitsPage, "| devices | 10% of maxInFlight")
	for _, row := range rows {
		n := number(t, row[0])
		for i, name := range head[1:] {
			fields := map[string]string{}
			percent, field, is := strings.Cut(name, " of ")
			if is {
				fields[field] = percent
			}
			l := limited(t, fields).LimitsFor(n)
			got := map[string]int{"maxInFlight": l.Slots, "minAvailable": l.Keep, "failureLimit": l.Failures, "": l.Refusals}[field]
			if want := number(t, row[i+1]); got != want {
				t.Errorf("%d devices, %s: the page says %d, it is %d", n, name, want, got)
			}
		}
	}
}

// What a release reaches that fails everywhere is what the planner lets begin.
func TestLimitsPageReach(t *testing.T) {
	_, rows := tableOf(t, limitsPage, "| devices | maxInFlight | failureLimit |")
	for _, row := range rows {
		n := number(t, row[0])
		p := limited(t, map[string]string{"maxInFlight": row[1], "failureLimit": row[2]})
		l := p.LimitsFor(n)
		if l.Slots != number(t, row[3]) || l.Failures != number(t, row[4]) {
			t.Errorf("%v: the planner has %d slots and lets %d fail", row, l.Slots, l.Failures)
		}
		if got, want := reached(p, n, nil), number(t, row[5]); got != want {
			t.Errorf("%v: %d devices began, the page says %d", row, got, want)
		}
	}
	p := limited(t, map[string]string{"maxInFlight": "10", "failureLimit": "2"})
	p.Pilot = planner.Pilot{Count: 1, Soak: time.Hour}
	if got := reached(p, 300, nil); got != 2+1 {
		t.Errorf("with a pilot of 1 and a failureLimit of 2 %d devices began, the page says their sum", got)
	}
	p.Pilot, p.Waves = planner.Pilot{}, []planner.Wave{{Name: "canary"}}
	if got := reached(p, 300, func(i int) string { return map[bool]string{true: "canary"}[i < 2] }); got != 2 {
		t.Errorf("with a canary of 2 %d devices began", got)
	}
}

// reached plays a release that fails on every device, in the worst order: one
// fails after the other, and each slot is taken again at once.
func reached(p planner.Policy, n int, wave func(int) string) int {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	in := planner.Input{Policies: []planner.Policy{p}}
	for i := range n {
		d := planner.Device{
			ID: fmt.Sprintf("d%04d", i), Policy: p.Name, Version: "v1.0.0", Target: planner.Target{Version: "v2.0.0"}, Rollout: "r",
			Seen: true, Online: true, InstallID: "i", ProtocolVersion: 1,
		}
		if wave != nil {
			d.Wave = wave(i)
		}
		in.Devices = append(in.Devices, d)
	}
	var open []int // devices that have begun
	began := 0
	for {
		now = now.Add(time.Second)
		in.Now = now
		for i := range in.Devices {
			in.Devices[i].LastSeen = now
		}
		moved := false
		for i, v := range planner.Plan(in).Verdicts {
			if v.Upgrade {
				moved, began, open = true, began+1, append(open, i)
				in.Devices[i].Attempts = []planner.Attempt{{
					Number: 1, Policy: p.Name, Target: planner.Target{Version: "v2.0.0"}, Rollout: "r", InstallID: "i", AssignedAt: now, StartedAt: now,
				}}
			}
		}
		switch {
		case len(open) > 0:
			a := &in.Devices[open[0]].Attempts[0]
			a.Outcome, a.EndedAt = planner.Failed, now
			open = open[1:]
		case !moved:
			return began
		}
	}
}

// The table of what counts as away is the planner's.
func TestLimitsPageAway(t *testing.T) {
	head, rows := tableOf(t, limitsPage, "| | in flight | held")
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for _, row := range rows {
		for i, state := range head[1:] {
			p := planner.Policy{Name: "p", Enabled: true, TargetVersion: "v2.0.0", MaxInFlight: 2, MinAvailable: planner.Limit{Set: true}}
			binds := planner.Queued
			switch row[0] {
			case "`maxInFlight`":
				p.MaxInFlight = 1
			case "`minAvailable`":
				p.MinAvailable, binds = planner.Limit{Count: 1, Set: true}, planner.FleetGuard
			default:
				p.Budgets, binds = []planner.Budget{{GroupBy: []string{"site"}, MaxUnavailable: planner.Limit{Count: 1, Set: true}}}, planner.CodeBudget
			}
			device := func(id string) planner.Device {
				return planner.Device{
					ID: id, Policy: "p", Version: "v1.0.0", Target: planner.Target{Version: "v2.0.0"}, Rollout: "r", Seen: true, Online: true,
					LastSeen: now, InstallID: "i", ProtocolVersion: 1,
				}
			}
			other := device("a")
			switch state {
			case "in flight":
				other.Attempts = []planner.Attempt{{Number: 1, Policy: "p", Target: other.Target, Rollout: "r", InstallID: "i", AssignedAt: now, StartedAt: now}}
			case "held":
				other.AdminHeld, other.HeldReason = true, "mine"
			case "offline", "absent":
				ago := map[string]time.Duration{"offline": 2 * time.Hour, "absent": 400 * time.Hour}[state]
				other.Online, other.LastSeen, other.OfflineSince = false, now.Add(-ago), now.Add(-ago)
			default:
				t.Fatalf("the page speaks of the state %q", state)
			}
			got := planner.Plan(planner.Input{Now: now, Policies: []planner.Policy{p}, Devices: []planner.Device{other, device("b")}}).Verdicts[1].Code
			want := binds
			if row[i+1] == "–" || strings.HasPrefix(row[i+1], "not counted") {
				want = planner.Upgrade
			}
			if got != want {
				t.Errorf("%s beside a device that is %s: the page says %q, the planner %s", row[0], state, row[i+1], got)
			}
		}
	}
}

// The page of reasons has every code once, and its knobs exist.
func TestWhyPageHasEveryCode(t *testing.T) {
	const page = "../../docs/howto/why-is-my-device-not-updated.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	fields := knownFields(t)
	told := map[string]int{}
	for item := range strings.SplitSeq(string(text), "\n- **`") {
		code, rest, found := strings.Cut(item, "`**: ")
		if !found {
			continue
		}
		told[code]++
		if planner.Code(code).Kind() == "" {
			t.Errorf("%s tells of %q, which is no code", page, code)
		}
		rest, _, _ = strings.Cut(rest, "\n\n")
		_, knobs, _ := strings.Cut(rest, "*Knob*")
		knobs, _, _ = strings.Cut(knobs, "[") // behind it comes a link
		for i, word := range strings.Split(knobs, "`") {
			if i%2 == 1 && word != "fleet.yaml" && !fields[word] {
				t.Errorf("%s, %s: the knob %s does not exist", page, code, word)
			}
		}
		if kind := planner.Code(code).Kind(); (kind == planner.Wait || kind == planner.Attention) && !strings.Contains(rest, "*Look*") && !strings.Contains(rest, "*Do*") {
			t.Errorf("%s, %s: neither what to look at nor what to do", page, code)
		}
	}
	for _, c := range planner.Codes() {
		if told[string(c.Code)] != 1 {
			t.Errorf("%s tells %d times of %s, want once", page, told[string(c.Code)], c.Code)
		}
	}
}

// knownFields are those of the specs that people write.
func knownFields(t *testing.T) map[string]bool {
	t.Helper()
	fields := map[string]bool{}
	for _, kind := range []schema.Kind{schema.KindPolicy, schema.KindDevice, schema.KindFleet} {
		data, err := schema.JSONSchema(kind)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Properties struct {
				Spec struct {
					Properties map[string]any `json:"properties"`
				} `json:"spec"`
			} `json:"properties"`
		}
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		if len(doc.Properties.Spec.Properties) == 0 {
			t.Fatalf("the schema of %s has no spec", kind)
		}
		for name := range doc.Properties.Spec.Properties {
			fields[name] = true
		}
	}
	return fields
}
