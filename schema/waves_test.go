package schema

import (
	"strings"
	"testing"
)

const waveFleet = ruleFleet + `
-- policies/gateways.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Policy
metadata: {name: gateways}
spec:
  enabled: true
  selector: {matchLabels: {role: gateway}}
  targetVersion: v1.5.0
  waves:
  - {name: canary, selector: {matchLabels: {ring: canary}}}
  - {name: berlin, selector: {matchLabels: {site: berlin}}}
-- devices/gw-1.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Device
metadata: {name: gw-1, labels: {role: gateway, ring: canary, site: berlin}}
-- devices/gw-2.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Device
metadata: {name: gw-2, labels: {role: gateway, site: berlin}}
-- devices/gw-3.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Device
metadata: {name: gw-3, labels: {role: gateway}}
-- devices/lab.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Device
metadata: {name: lab, labels: {ring: canary}}
`

// The first wave that selects a device has it, and a change of the policy
// alone moves it to another one.
func TestMembersOfWaves(t *testing.T) {
	src := repoOf(waveFleet)
	l := &Loader{}
	want := func(want string) {
		t.Helper()
		f, err := l.Load(src)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range f.Devices {
			got = append(got, m.ID+"="+m.Wave)
		}
		if text := strings.Join(got, " "); text != want || !f.Valid() {
			t.Errorf("the waves are %s, want %s; %s", text, want, lines(f.Problems))
		}
	}
	want("gw-1=canary gw-2=berlin gw-3= lab=")
	src = src.with("policies/gateways.yaml", strings.Replace(src.files["policies/gateways.yaml"], "matchLabels: {ring: canary}", "matchLabels: {ring: none}", 1))
	want("gw-1=berlin gw-2=berlin gw-3= lab=")
}

// What is only true of the devices that there are is a warning, and nothing is
// said where a device cannot be read.
func TestWaveWarnings(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"nothing", "", "", ""},
		{"a pinned canary is in no wave", "-- devices/gw-1.yaml --", "", "wave-without-device: the wave canary matches no device of the policy"},
		{"a pilot for one of two models", "spec:\n  enabled: true", "spec:\n  pilot: {count: 1}\n  enabled: true", "canary-without-model: a pilot of 1 device cannot try all 2 values of example.com/board"},
		{"some lack a label", "spec:\n  enabled: true", "spec:\n  budgets: [{groupBy: [site], maxUnavailable: 1}]\n  enabled: true", `budget-without-label: 1 of 3 devices has no label "site" and is a group of its own (gw-3)`},
		{"all lack a label", "spec:\n  enabled: true", "spec:\n  budgets: [{groupBy: [sitee], maxUnavailable: 1}]\n  enabled: true", `budget-without-label: no device has the label "sitee", so the budget divides nothing [did you mean site?]`},
	} {
		src := repoOf(waveFleet)
		switch {
		case c.from == "-- devices/gw-1.yaml --":
			src = src.with("devices/gw-1.yaml", src.files["devices/gw-1.yaml"]+"spec: {pin: v1.5.0}\n")
		case c.from != "":
			src = src.with("policies/gateways.yaml", strings.Replace(src.files["policies/gateways.yaml"], c.from, c.to, 1))
		}
		if strings.Contains(c.to, "pilot") {
			for id, model := range map[string]string{"gw-1": "a", "gw-2": "b"} {
				at := "devices/" + id + ".yaml"
				src = src.with(at, strings.Replace(src.files[at], "labels: {", "labels: {example.com/board: "+model+", ", 1))
			}
		}
		check := func(f *Fleet, want string) {
			t.Helper()
			var found []string
			for _, p := range f.Problems {
				if p.Rule == ruleNoPolicy || p.Severity == SeverityError {
					continue
				}
				text := p.Rule + ": " + p.Message
				if strings.HasPrefix(p.Hint, "did you") {
					text += " [" + p.Hint + "]"
				}
				found = append(found, text)
			}
			if want == "" && len(found) > 0 || want != "" && strings.Join(found[:min(1, len(found))], "") != want {
				t.Errorf("%s: found %q, want %q", c.name, found, want)
			}
		}
		check(load(t, src), c.want)
		check(load(t, src.with("devices/gw-9.yaml", "kind: Device\nmetadata: {nmae: gw-9}\n")), "")
	}
}

// The fleet's document is read, and what it stops is known where it has
// problems too.
func TestFleetDocument(t *testing.T) {
	src := repoOf(ruleFleet)
	if f := load(t, src); f.Document != nil || !f.Valid() {
		t.Errorf("without fleet.yaml: %+v, %s", f.Document, lines(f.Problems))
	}
	const head = "apiVersion: gitopsd.dev/v1alpha1\nkind: Fleet\n"
	files := load(t, src).Files
	f := load(t, src.with("fleet.yaml", head+"spec: {paused: {reason: fire}, maxInFlight: 3}\n"))
	if f.Document == nil || f.Document.Spec.Paused == nil || f.Document.Spec.MaxInFlight.Value != 3 || !f.Valid() || f.Files != files+1 {
		t.Errorf("fleet.yaml is %+v among %d files, with the problems %s", f.Document, f.Files, lines(f.Problems))
	}
	f = load(t, src.with("fleet.yaml", head+"spec: {paused: {reason: fire}, maxInFlght: 3}\n"))
	if f.Document == nil || f.Document.Spec.Paused == nil || f.Valid() {
		t.Errorf("a broken fleet.yaml is %+v, with the problems %s", f.Document, lines(f.Problems))
	}
	if f := load(t, src.with("fleet.yaml", "{")); f.Document != nil || f.Valid() {
		t.Errorf("no YAML is %+v, with the problems %s", f.Document, lines(f.Problems))
	}
	if f := load(t, src.with("fleet.yaml", head)); f.Document == nil || !f.Valid() {
		t.Errorf("fleet.yaml without a spec has the problems %s", lines(f.Problems))
	}
	for _, name := range []string{"fleet.yml", "Fleet.yaml", "brake.yaml"} {
		if f := load(t, src.with(name, head)); f.Valid() || f.Document != nil {
			t.Errorf("%s is taken: %+v", name, f.Document)
		}
	}
	budget := head + "spec: {budgets: [{groupBy: [site], maxUnavailable: 1}]}\n"
	if f := load(t, src.with("fleet.yaml", budget)); !f.Valid() || !strings.Contains(lines(f.Problems), `fleet.yaml:3:29 /spec/budgets/0/groupBy/0 warning budget-without-label: no device has the label "site"`) {
		t.Errorf("a label that no device has: %s", lines(f.Problems))
	}
}
