package advice_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/gitopsd/gitopsd/internal/advice"
	"github.com/gitopsd/gitopsd/schema"
)

var now = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

const small = `
-- policies/gateways.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Policy
metadata: {name: gateways}
spec: {enabled: true, selector: {matchLabels: {role: gateway}}, targetVersion: v1.5.0}
-- releases/gateways/v1.5.0.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Release
metadata: {name: v1.5.0}
spec: {files: {/etc/motd: {content: hello}}}
-- devices/gw-1.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Device
metadata: {name: gw-1, labels: {role: gateway}}
`

// fleetOf loads archives of files, later ones over earlier ones.
func fleetOf(t *testing.T, archives ...string) *schema.Fleet {
	t.Helper()
	dir := t.TempDir()
	for _, text := range archives {
		for _, f := range txtar.Parse([]byte(text)).Files {
			at := filepath.Join(dir, filepath.FromSlash(f.Name))
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, f.Data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	src, err := schema.DirSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := (&schema.Loader{OwnVersion: "v1.5.0"}).Load(src)
	if err != nil {
		t.Fatal(err)
	}
	return fleet
}

func text(problems []schema.Problem) string {
	var b strings.Builder
	for _, p := range problems {
		fmt.Fprintf(&b, "%s:%d:%d %s %s %s: %s [%s]\n", p.File, p.Line, p.Column, p.Pointer, p.Severity, p.Rule, p.Message, p.Hint)
	}
	return b.String()
}

// Every rule of advice has a fleet that it finds something in, and one that
// nothing is found in; a loader alone finds nothing in either.
func TestRulesExamples(t *testing.T) {
	looked := 0
	for _, r := range schema.Rules() {
		if !r.Advice {
			continue
		}
		looked++
		t.Run(r.Name, func(t *testing.T) {
			if r.Severity != schema.SeverityWarning {
				t.Errorf("it is of severity %s; time must not make a fleet invalid", r.Severity)
			}
			wrong := fleetOf(t, small, r.Wrong)
			if len(wrong.Problems) > 0 {
				t.Errorf("the loader finds in the wrong example:\n%s", text(wrong.Problems))
			}
			problems := advice.Check(wrong, now)
			t.Logf("%s", text(problems))
			if len(problems) == 0 {
				t.Error("nothing is found in the wrong example")
			}
			for _, p := range problems {
				if p.Rule != r.Name || p.Severity != r.Severity || p.Line == 0 || p.Column == 0 || strings.ContainsAny(p.Message+p.Hint, "\r\n") {
					t.Errorf("found %+v", p)
				}
			}
			if got := advice.Check(fleetOf(t, small, r.Right), now); len(got) > 0 {
				t.Errorf("the right example has problems:\n%s", text(got))
			}
		})
	}
	const rules = 3
	if looked != rules {
		t.Errorf("%d rules are listed, want %d", looked, rules)
	}
}

// deviceFiles are so many devices, of sites in turn.
func deviceFiles(n int, sites ...string) string {
	var b strings.Builder
	for i := range n {
		site := ""
		if len(sites) > 0 {
			site = ", site: " + sites[i%len(sites)]
		}
		fmt.Fprintf(&b, "-- devices/gw-%d.yaml --\napiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-%d, labels: {role: gateway%s}}\n", i+1, i+1, site)
	}
	return b.String()
}

func policyFile(spec string) string {
	return "-- policies/gateways.yaml --\napiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: gateways}\nspec: {enabled: true, targetVersion: v1.5.0, " + spec + "}\n"
}

func fleetFile(spec string) string {
	return "-- fleet.yaml --\napiVersion: gitopsd.dev/v1alpha1\nkind: Fleet\nspec: {" + spec + "}\n"
}

// The arithmetic, in words.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		devices int
		policy  string
		fleet   string
		want    string // of the message; "" = nothing is found
	}{
		{5, "maxInFlight: 10%", "", "maxInFlight 10% of 5 devices is less than one, and rounds up: 1 device, or 20%, may move at a time"},
		{9, "maxInFlight: 10%", "", ""},
		{10, "maxInFlight: 10%", "", ""},
		{1, "maxInFlight: 10%", "", ""},
		{5, "maxInFlight: 100%", "", "maxInFlight 100% lets all 5 devices move at one time; minAvailable keeps 1 of them"},
		{5, "failureLimit: 10%", "", "failureLimit 10% of 5 devices is less than one, and rounds down to 0: the first failure halts the policy"},
		{10, "failureLimit: 10%", "", ""},
		{5, "failureLimit: 0%", "", ""},
		{5, "refusalLimit: 10%", "", "refusalLimit 10% of 5 devices is less than one, and rounds down to 0: the first refusal halts the policy"},
		{5, "minAvailable: 90%", "", "minAvailable 90% of 5 devices rounds up to all of them, which cannot be met while one moves; 4 is what holds"},
		{10, "minAvailable: 90%", "", ""},
		{10, "minAvailable: 80%, maxInFlight: 50%", "", "maxInFlight 50% is never reached: minAvailable 80% of 10 devices leaves 2 that may move at a time"},
		{10, "maxInFlight: 5", "maxInFlight: 2", "maxInFlight 5 is never reached: fleet.yaml lets 2 devices of all policies move at a time"},
		{10, "maxInFlight: 2", "maxInFlight: 5", ""},
		{5, "settle: 1m", "maxInFlight: 10%", "maxInFlight 10% of 5 devices is less than one, and rounds up: 1 device, or 20%, may move at a time"},
		{6, "budgets: [{groupBy: [site], maxUnavailable: 10%}]", "", "10% of 3 devices in the group site=berlin is less than one, and rounds up: 1, or 33%, may be unavailable; 2 of the 2 groups are like that"},
		{6, "budgets: [{groupBy: [site], maxUnavailable: 30%}]", "", ""},
		{2, "budgets: [{groupBy: [site], maxUnavailable: 10%}]", "", ""},
		{6, "budgets: [{groupBy: [site], maxUnavailable: 3}]", "", "maxUnavailable 3 holds nobody back: the largest group, site=berlin, has 3 devices"},
		{6, "budgets: [{groupBy: [site], maxUnavailable: 2}]", "", ""},
		{2, "budgets: [{groupBy: [site], maxUnavailable: 1}]", "", ""},
		{6, "budgets: [{groupBy: [site], maxUnavailable: 0}]", "", "maxUnavailable 0 lets no device of any group start"},
		{10, "minInterval: 960h", "", ""},
		{10, "minInterval: 1000h", "", "minInterval 1000h lets the last of 10 devices begin after 375 days: no rollout is done within a year"},
		{5, "pilot: {count: 5}", "", "pilot.count 5 makes pilots of all 5 devices: nobody is left to go after them"},
		{5, "pilot: {count: 6}", "", "pilot.count 6 makes pilots of all 5 devices: nobody is left to go after them"},
		{5, "pilot: {count: 4}", "", ""},
		{1, "pilot: {count: 1}", "", ""},
		{5, "windows: []", "", "windows is an empty list, and without a window the policy is always open"},
		{6, "settle: 1m", "budgets: [{groupBy: [site], maxUnavailable: 4}]", "maxUnavailable 4 holds nobody back: the largest group, site=berlin, has 3 devices"},
	} {
		fleet := fleetOf(t, small, deviceFiles(c.devices, "berlin", "oslo"), policyFile(c.policy))
		if c.fleet != "" {
			fleet = fleetOf(t, small, deviceFiles(c.devices, "berlin", "oslo"), policyFile(c.policy), fleetFile(c.fleet))
		}
		if len(fleet.Problems) > 0 {
			t.Errorf("%s; %s: the loader finds\n%s", c.policy, c.fleet, text(fleet.Problems))
		}
		got := advice.Check(fleet, now)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || got[0].Message != c.want || got[0].Rule != "surprising-limit") {
			t.Errorf("%d devices; %s; %s: got\n%swant %q", c.devices, c.policy, c.fleet, text(got), c.want)
		}
	}
}

// Freezes of the fleet shut the windows of every policy.
func TestCalendar(t *testing.T) {
	const nightly = `windows: [{start: "22:00", duration: 1h, timeZone: Europe/Berlin}]`
	for _, c := range []struct{ policy, fleet, want string }{
		{nightly, "", ""},
		{nightly, `freezes: [{from: "2026-12-01T00:00:00Z", to: "2027-11-01T00:00:00Z"}]`, ""},
		{nightly, `freezes: [{from: "2026-11-01T00:00:00Z", to: "2028-11-01T00:00:00Z"}]`, "window-never-opens"},
		{`freezes: [{from: "2026-11-01T00:00:00Z", to: "2028-11-01T00:00:00Z"}]`, "", "window-never-opens"},
		{`freezes: [{from: "2025-11-01T00:00:00Z", to: "2026-11-29T10:00:00Z"}]`, "", "freeze-in-the-past"},
		{`freezes: [{from: "2025-11-01T00:00:00Z", to: "2026-11-29T10:00:01Z"}]`, "", ""},
	} {
		files := []string{small, policyFile(c.policy)}
		if c.fleet != "" {
			files = append(files, fleetFile(c.fleet))
		}
		fleet := fleetOf(t, files...)
		got := advice.Check(fleet, now)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || got[0].Rule != c.want) {
			t.Errorf("%s; %s: got\n%swant %q", c.policy, c.fleet, text(got), c.want)
		}
		if got := advice.Check(fleet, time.Time{}); len(got) > 0 {
			t.Errorf("%s; %s: without a time:\n%s", c.policy, c.fleet, text(got))
		}
	}
}

// Advice stands among the problems in their order, and what is broken is left
// to the rules.
func TestAmongOtherProblems(t *testing.T) {
	fleet := fleetOf(t, small, deviceFiles(5), policyFile("maxInFlight: 10%, failureLimit: 100%"))
	got := advice.Check(fleet, now)
	if len(got) != 2 || got[0].Rule != "surprising-limit" || got[1].Rule != "limit-never-works" || len(fleet.Problems) != 1 {
		t.Errorf("got\n%s", text(got))
	}
	broken := fleetOf(t, small, deviceFiles(5), policyFile("maxInFlight: 10%, failureLimt: 1"), fleetFile("maxInFlight: 10%, paused: 1"))
	for _, p := range advice.Check(broken, now) {
		if p.Severity != schema.SeverityError {
			t.Errorf("advice on a broken file: %s", text([]schema.Problem{p}))
		}
	}
}
