package view

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

const hostile = "\x1b[31m\u202eevil\nline"

// foreseen is the plan of a policy with everything in it, for its second
// device.
func foreseen(t *testing.T, change func(*planner.Input)) *NextSweep {
	t.Helper()
	in := planner.Input{
		Now: noon,
		Fleet: planner.Fleet{
			MaxInFlight: 3, Freezes: []planner.Freeze{{From: noon, To: noon.Add(time.Hour), Note: hostile}},
			Budgets: []planner.Budget{{GroupBy: []string{"site"}, MaxUnavailable: planner.Limit{Count: 1, Set: true}}},
		},
		Policies: []planner.Policy{{
			Name: "gateways", Enabled: true, TargetVersion: "v1.5.0", Pilot: planner.Pilot{Count: 1, Soak: time.Hour},
			Waves:       []planner.Wave{{Name: "canary", Soak: 24 * time.Hour}},
			MinInterval: time.Minute, FailureLimit: planner.Limit{Count: 1, Set: true},
		}},
	}
	for _, id := range []string{"gw-1", "gw-2", "gw-3"} {
		in.Devices = append(in.Devices, planner.Device{
			ID: id, Policy: "gateways", Version: "v1.4.2", Target: planner.Target{Version: "v1.5.0"}, Rollout: "r", Online: true, Seen: true,
			LastSeen: noon, Labels: map[string]string{"site": hostile}, ProtocolVersion: 9,
		})
	}
	in.Devices[0].Wave = "canary"
	in.Devices[2].Online, in.Devices[2].OfflineSince = false, noon.Add(-time.Hour)
	if change != nil {
		change(&in)
	}
	n := &NextSweep{Commit: "4f2c91a0000", At: noon, Result: planner.Plan(in), Limits: in.Policies[0].LimitsFor(3)}
	n.Verdict = n.Result.Verdicts[1]
	return n
}

func unfrozen(in *planner.Input) { in.Fleet.Freezes = nil }

func TestExplainSaysWhenItCanGoOn(t *testing.T) {
	d := status("gw-2", "Wave", "waits for wave canary", nil)
	next := foreseen(t, func(in *planner.Input) {
		unfrozen(in)
		in.Policies[0].Pilot = planner.Pilot{}
		in.Devices[0].Version, in.Devices[0].Since = "v1.5.0", noon.Add(-time.Hour)
	})
	q := Question{Path: "devices/gw-2.yaml", Status: Status{Devices: map[string]*schema.DeviceStatus{"devices/gw-2.yaml": d}}, Next: next,
		Source: func(file, field string) (string, int) {
			if file == "policies/gateways.yaml" && field == "waves[0].soak" {
				return field + ": 24h", 12
			}
			return field + " is not set", 0
		}}
	wantText(t, explainText(t, q),
		"NOT NOW: Wave\n",
		"because  waits for wave canary: ", "policies/gateways.yaml:12 waves[0].soak: 24h\n",
		", not before 2026-11-30T11:00Z\n",
		"wave canary: 0 of 1 done, needs 1, 1 soaking until 2026-11-30T11:00Z\n",
		"the last wave (its own): not open yet, 2 devices\n")
	if e := Explain(q); e.Live.Differs || e.NotBefore == nil || len(e.Checks) == 0 || e.Checks[0].Code != "Excluded" {
		t.Errorf("%+v", e)
	}

	// What is on record is another verdict: the plan is told, and explains
	// nothing else.
	d.Verdict = schema.Verdict{Code: "Held", Reason: "held: mine"}
	next.Ahead = true
	text := explainText(t, q)
	wantText(t, text, "LEFT ALONE: Held\n", "because  held: mine\n", "next     the next sweep would say Wave (v1.5.0): ", "; the daemon has not swept 4f2c91a yet\n")
	if strings.Contains(text, "waves[0].soak") {
		t.Errorf("a setting of another verdict in\n%s", text)
	}
}

// What only a daemon can have heard is not contradicted.
func TestExplainKnowsLessThanTheDaemon(t *testing.T) {
	next := foreseen(t, unfrozen)
	for _, c := range []struct {
		code    string
		unheard bool
		told    bool
	}{{"Duplicate", false, false}, {"NeedsAgent", true, false}, {"NeedsAgent", false, true}, {"Held", true, true}} {
		d := status("gw-2", c.code, "because", nil)
		next.Unheard = c.unheard
		e := Explain(Question{Path: "devices/x.yaml", Status: Status{Devices: map[string]*schema.DeviceStatus{"devices/x.yaml": d}}, Next: next})
		if told := e.Live != nil && e.Live.Differs; told != c.told {
			t.Errorf("%+v: told that it differs: %v", c, told)
		}
	}
}

// The limit that binds is the queue's in git, and its own here.
func TestExplainNamesTheLimitThatBinds(t *testing.T) {
	d := status("gw-2", "Queued", "waits for its turn to go to v1.5.0", nil)
	next := foreseen(t, func(in *planner.Input) {
		unfrozen(in)
		in.Policies[0].Pilot, in.Policies[0].Waves, in.Policies[0].MinInterval = planner.Pilot{}, nil, 0
		in.Policies[0].MaxInFlight = 3
	})
	for i, v := range next.Result.Verdicts {
		if v.Code != planner.Upgrade && v.Code != planner.Offline {
			next.Verdict = next.Result.Verdicts[i]
		}
	}
	id := next.Verdict.Device.ID
	d.Metadata.Name = id
	q := Question{Path: "devices/x.yaml", Status: Status{Devices: map[string]*schema.DeviceStatus{"devices/x.yaml": d}}, Next: next}
	if next.Verdict.Code != planner.FleetGuard && next.Verdict.Code != planner.CodeBudget {
		t.Fatalf("the plan says %s: the test is not about what it should be", next.Verdict.Code)
	}
	e := Explain(q)
	if e.Live.Differs || e.Position != next.Verdict.Position || e.Position == 0 || !strings.Contains(e.Because[0].Text, string(next.Verdict.Code)+": ") {
		t.Errorf("%+v\nof the verdict %+v", e, next.Verdict)
	}
}

func TestExplanationFitsEveryTerminal(t *testing.T) {
	st := halted()
	d := st.Devices["devices/berlin/gw-3.yaml"]
	d.Verdict.Reason, d.Observed.Reason, d.Observed.Held = hostile, strings.Repeat(hostile, 20), hostile
	d.Attempts[1].Message = strings.Repeat("no-space-at-all", 40) + hostile
	d.Assignment = &schema.AssignmentRef{Generation: 3, Attempt: 2, Version: hostile}
	for name, change := range map[string]func(*planner.Input){"frozen": nil, "open": unfrozen} {
		q := Question{Path: "devices/berlin/gw-3.yaml", Status: st, Next: foreseen(t, change), Changes: life(), Earlier: true,
			Source:     func(_, field string) (string, int) { return field + ": " + hostile, 7 },
			Assignment: &schema.Assignment{Because: &schema.Because{Commit: "4f2c91a0000", Subject: hostile, Author: hostile, Wave: hostile}},
			Report:     &schema.Report{Capabilities: []string{}, Drift: []string{hostile}},
		}
		e := Explain(q)
		data, err := json.Marshal(e)
		if err != nil || strings.Contains(string(data), "null") {
			t.Errorf("%s: null in the JSON (%v)", name, err)
		}
		for width := 40; width <= 200; width++ {
			var b bytes.Buffer
			if err := WriteExplanation(&b, e, Look{Width: width, Again: "--repo fleet.git"}); err != nil {
				t.Fatal(err)
			}
			wantFits(t, b.String(), width)
		}
	}
}

func TestSetting(t *testing.T) {
	const document = "spec:\n  maxInFlight: 1\n  waves:\n    - name: canary\n      soak: 24h\n    - {name: more}\n"
	for _, c := range []struct {
		field, text string
		line        int
	}{
		{"maxInFlight", "maxInFlight: 1", 2},
		{"backoff", "backoff is not set", 0},
		{"waves[0].soak", "waves[0].soak: 24h", 5},
		{"waves[1].soak", "waves[1].soak is not set", 6},
		{"waves[2].soak", "waves[2].soak is not set", 3},
		{"waves[1]", "waves[1]: {name: more}", 6},
		{"waves[x", "waves[x is not set", 3},
		{"", " is not set", 0},
	} {
		if text, line := Setting([]byte(document), c.field); text != c.text || line != c.line {
			t.Errorf("%q: got %q, line %d; want %q, line %d", c.field, text, line, c.text, c.line)
		}
	}
	for _, broken := range []string{"", "- 1", "a: [", "spec: 1", "spec: *a"} {
		if text, line := Setting([]byte(broken), "waves[0]"); line != 0 {
			t.Errorf("%q: got %q, line %d", broken, text, line)
		}
	}
	if text, line := SettingAt([]byte("all: {reason: x}\n"), "all"); text != "all: {reason: x}" || line != 1 {
		t.Errorf("got %q, line %d", text, line)
	}
	if _, line := SettingAt([]byte("all: {reason: x}\n"), "devices", "a"); line != 0 {
		t.Errorf("line %d of what is not there", line)
	}
}

// What the next sweep gives is taken, beside a device that it is given to and
// beside one that waits for it; and where git has another verdict, the numbers
// say whose they are.
func TestExplainCountsWhatTheNextSweepGives(t *testing.T) {
	next := foreseen(t, func(in *planner.Input) {
		unfrozen(in)
		in.Policies[0].Pilot, in.Policies[0].Waves, in.Fleet.Budgets = planner.Pilot{}, nil, nil
		in.Devices[2].Online, in.Devices[2].OfflineSince = true, time.Time{}
	})
	for i := range next.Result.Verdicts {
		next.Verdict = next.Result.Verdicts[i]
		id := next.Verdict.Device.ID
		code, reason := next.Verdict.ForGit(noon)
		d := status(id, string(code), reason, nil)
		d.Verdict.Target = "v1.5.0"
		q := Question{Path: id, Status: Status{Devices: map[string]*schema.DeviceStatus{id: d}}, Next: next}
		wantText(t, explainText(t, q), "group    gateways: 1 of 1 slots taken · 2 of 3 available\n         the whole fleet: 1 of 3 slots taken\n")
		d.Verdict = schema.Verdict{Code: "Held", Reason: "held: mine"}
		wantText(t, explainText(t, q), "group    gateways, by the next sweep: 1 of 1 slots taken · 2 of 3 available\n")
	}
}
