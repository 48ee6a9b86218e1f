package schema

import (
	"strings"
	"testing"
)

// What people write, and the hint that they need.
func TestHints(t *testing.T) {
	policy := func(spec string) string {
		return "apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: gateways}\nspec: {" + spec + "}\n"
	}
	hook := func(fields string) string {
		return "apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.0.0}\nspec: {hooks: {afterUpdating: {check: {" + fields + "}}}}\n"
	}
	device := func(spec string) string {
		return "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-1}\nspec: {" + spec + "}\n"
	}
	fleet := func(fields string) string {
		return "apiVersion: gitopsd.dev/v1alpha1\nkind: Fleet\n" + fields + "\n"
	}
	cases := []struct{ name, text, rule, hint string }{
		{"another version of the form", strings.Replace(policy(""), "v1alpha1", "v1", 1), ruleValue, "did you mean gitopsd.dev/v1alpha1?"},
		{"yes", policy("enabled: yes"), ruleType, "did you mean true?"},
		{"off", policy("enabled: off"), ruleType, "did you mean false?"},
		{"a quoted boolean", policy(`enabled: "true"`), ruleType, "write it without quotes: true"},
		{"one version to go back from", policy("rollbackFrom: v1.3.0"), ruleType, `write it as a list: ["v1.3.0"]`},
		{"a percentage above all", policy("maxInFlight: 150%"), ruleForm, "a percentage is a whole number from 0% to 100%"},
		{"half a percent", policy("maxInFlight: 0.5%"), ruleForm, "a percentage is a whole number from 0% to 100%"},
		{"a quoted count", policy(`maxInFlight: "3"`), ruleForm, "write it without quotes: 3"},
		{"a word as count", policy("maxInFlight: some"), ruleForm, `write a count, or a percentage like "10%"`},
		{"a list of counts", policy("failureLimit: [1]"), ruleType, `write a count, or a percentage like "10%"`},
		{"half a device", policy("maxInFlight: 1.5"), ruleType, `write a count, or a percentage like "10%"`},
		{"a label of two words", strings.Replace(device(""), "name: gw-1", "name: gw-1, labels: {site: new york}", 1), ruleForm, `did you mean "new-york"?`},
		{"a label of another alphabet", strings.Replace(device(""), "name: gw-1", "name: gw-1, labels: {site: zürich}", 1), ruleForm, "a label has letters from a to z, digits, dashes, dots and underscores, at most 63, with a letter or digit at both ends"},
		{"a field like no other", policy("speed: 1"), ruleUnknownField, "the fields here are absentAfter, backoff, budgets, enabled, failureLimit, forgetFailuresBefore, freezes, maxAttempts, maxInFlight, minAvailable, minInterval, minProtocol, offlineAfter, offlineGrace, paused, pickupTimeout, pilot, refusalLimit, releaseLine, rollbackFrom, selector, settle, targetVersion, updateTimeout, waves, windows"},
		{"a device among the policies", strings.Replace(policy(""), "kind: Policy", "kind: Device # no kind: Policy", 1), ruleKind, "documents of the kind Device lie below devices/"},
		{"the fleet among the policies", strings.Replace(policy(""), "kind: Policy", "kind: Fleet # no kind: Policy", 1), ruleKind, "the document of the kind Fleet is fleet.yaml"},
		{"a quoted number", policy(`maxAttempts: "2"`), ruleType, "write it without quotes: 2"},
		{"a length without unit", policy("settle: 10"), ruleType, `it lacks its unit; did you mean "10s"?`},
		{"a quoted length without unit", policy(`settle: "10"`), ruleForm, `it lacks its unit; did you mean "10s"?`},
		{"a fraction without unit", policy("settle: 1.5"), ruleType, `it lacks its unit; did you mean "1.5s"?`},
		{"days", policy("absentAfter: 7d"), ruleForm, `there are no days; did you mean "168h"?`},
		{"minutes in words", policy("settle: 10 minutes"), ruleForm, `write it like "30m"`},
		{"a pause without reason", policy("paused: true"), ruleType, `for example paused: {"reason":"disk being replaced"}`},
		{"a hold without reason", device("hold: true"), ruleType, `for example hold: {"reason":"disk being replaced"}`},
		{"a hold of one text", device("hold: disk"), ruleType, `for example hold: {"reason":"disk being replaced"}`},
		{"a version as number", device("pin: 1.10"), ruleType, `quote it: "1.10"`},
		{"a timeout without unit", hook("run: [/bin/true], timeout: 30"), ruleType, `it lacks its unit; did you mean "30s"?`},
		{"a command as text", hook("run: test -s"), ruleType, `write it as a list: ["test", "-s"]`},
		{"a command for a shell", hook(`run: "test -s a && echo ok"`), ruleType, `write it as a list: ["/bin/sh", "-c", "test -s a && echo ok"]`},
		{"a command of one word", hook("run: /usr/bin/check"), ruleType, `write it as a list: ["/usr/bin/check"]`},
		{"a command without words", hook("run: []"), ruleSize, `for example run: ["/usr/bin/edge-check"]`},
		{"variables as a list", hook("run: [/bin/true], env: [A=b]"), ruleType, `for example env: {"EDGE_MODE":"check"}`},
		{"an application in capitals", device("desired: {applications: {W_10: null}}"), ruleForm, `did you mean "w-10"?`},
		{"an application with an accent", device("desired: {applications: {é: null}}"), ruleForm, "it has lower-case letters, digits and dashes, at most 63, with a letter or digit at both ends"},
		{"a variable with a dash", hook("run: [/bin/true], env: {A-B: x}"), ruleForm, `did you mean "A_B"?`},
		{"a hook of two words", strings.Replace(hook("run: [/bin/true]"), "check:", "a b:", 1), ruleForm, `did you mean "a-b"?`},
		{"an image of two words", device(`desired: {applications: {a: {compose: {content: "services: {a: {image: A B}}"}}}}`), ruleComposeFile, "it looks like registry.example.com/web:1.4, without spaces"},
		{"a version in a word", device("pin: vNext"), ruleVersion, "a version is two or three numbers, with or without a v: v1.5.0, 1.5 or v1.5.0-rc.1"},
		{"nothing to run", hook("run: "), ruleType, "give it a value, or leave the field out"},
		{"one day", policy(`windows: [{days: Mon, start: "22:00", duration: 1h, timeZone: UTC}]`), ruleType, `write it as a list: ["Mon"]`},
		{"a day by number", policy(`windows: [{days: [1], start: "22:00", duration: 1h, timeZone: UTC}]`), ruleType, "a day is Mon, Tue, Wed, Thu, Fri, Sat or Sun; a range is written Mon-Fri"},
		{"a day in another language", policy(`windows: [{days: [Di], start: "22:00", duration: 1h, timeZone: UTC}]`), ruleForm, "a day is Mon, Tue, Wed, Thu, Fri, Sat or Sun; a range is written Mon-Fri"},
		{"every day", policy(`windows: [{days: [daily], start: "22:00", duration: 1h, timeZone: UTC}]`), ruleForm, "leave days out for every day"},
		{"no day", policy(`windows: [{days: [], start: "22:00", duration: 1h, timeZone: UTC}]`), ruleSize, "leave days out for every day"},
		{"weekdays", policy(`windows: [{days: [weekdays], start: "22:00", duration: 1h, timeZone: UTC}]`), ruleForm, "did you mean Mon-Fri?"},
		{"the weekend", policy(`windows: [{days: [Weekend], start: "22:00", duration: 1h, timeZone: UTC}]`), ruleForm, "did you mean Sat-Sun?"},
		{"a longer short form", policy(`windows: [{days: [Thurs], start: "22:00", duration: 1h, timeZone: UTC}]`), ruleForm, "did you mean Thu?"},
		{"days in one text", policy(`windows: [{days: ["Mon, Tue"], start: "22:00", duration: 1h, timeZone: UTC}]`), ruleForm, "give each day an item of its own, as [Mon, Tue]"},
		{"an hour as number", policy(`windows: [{start: 22, duration: 1h, timeZone: UTC}]`), ruleType, `did you mean "22:00"?`},
		{"an hour of one digit", policy(`windows: [{start: 9:30, duration: 1h, timeZone: UTC}]`), ruleForm, `did you mean "09:30"?`},
		{"an hour of the afternoon", policy(`windows: [{start: 10 PM, duration: 1h, timeZone: UTC}]`), ruleForm, `did you mean "22:00"?`},
		{"with seconds", policy(`windows: [{start: "22:00:00", duration: 1h, timeZone: UTC}]`), ruleForm, `did you mean "22:00"?`},
		{"the end of the day", policy(`windows: [{start: "24:00", duration: 1h, timeZone: UTC}]`), ruleForm, `a day ends where the next begins: write "00:00" of the next day`},
		{"no time of day", policy(`windows: [{start: night, duration: 1h, timeZone: UTC}]`), ruleForm, `hours and minutes from "00:00" to "23:59"`},
		{"a window too long", policy(`windows: [{start: "22:00", duration: 26h, timeZone: UTC}]`), ruleRange, "list more days, or a window for each part; without windows a policy is always open"},
		{"a window without zone", policy(`windows: [{start: "22:00", duration: 1h}]`), ruleMissingField, `for example timeZone: "Europe/Berlin"`},
		{"an empty zone", policy(`windows: [{start: "22:00", duration: 1h, timeZone: ""}]`), ruleZone, "name it after a place, such as Europe/Berlin, so that summer time is kept; or UTC"},
		{"the zone of the host", policy(`windows: [{start: "22:00", duration: 1h, timeZone: Local}]`), ruleZone, "name it after a place, such as Europe/Berlin, so that summer time is kept; or UTC"},
		{"a zone by its offset", policy(`windows: [{start: "22:00", duration: 1h, timeZone: "+01:00"}]`), ruleZone, "name it after a place, such as Europe/Berlin, so that summer time is kept; or UTC"},
		{"a zone in small letters", policy(`windows: [{start: "22:00", duration: 1h, timeZone: europe/berlin}]`), ruleZone, "did you mean Europe/Berlin?"},
		{"a place alone", policy(`windows: [{start: "22:00", duration: 1h, timeZone: New York}]`), ruleZone, "did you mean America/New_York?"},
		{"a zone by its summer time", policy(`windows: [{start: "22:00", duration: 1h, timeZone: CEST}]`), ruleZone, "did you mean Europe/Berlin?"},
		{"a zone that is a path", policy(`windows: [{start: "22:00", duration: 1h, timeZone: ../UTC}]`), ruleZone, "did you mean Etc/UTC?"},
		{"a mapping for a list", policy(`windows: {start: "22:00", duration: 1h, timeZone: UTC}`), ruleType, "write it as a list: - before the first field of each item"},
		{"a freeze of days", policy(`freezes: [{from: 2026-12-24, to: "2027-01-07T00:00:00Z"}]`), ruleForm, `it lacks its hour and its zone; did you mean "2026-12-24T00:00:00Z"?`},
		{"a freeze without zone", policy(`freezes: [{from: 2026-12-24 06:00, to: "2027-01-07T00:00:00Z"}]`), ruleForm, `it lacks its zone; did you mean "2026-12-24T06:00:00Z"?`},
		{"a threshold without its sign", policy(`waves: [{name: canary, successThreshold: 90}]`), ruleType, `did you mean "90%"?`},
		{"a threshold of nothing", policy(`waves: [{name: canary, successThreshold: 0%}]`), ruleRange, "1% to 100%; a wave that may have nobody is optional: true"},
		{"no success", policy(`waves: [{name: canary, minSuccess: 0}]`), ruleRange, "a wave that may have nobody to wait for is optional: true"},
		{"labels of a wave", policy(`waves: [{name: canary, matchLabels: {ring: canary}}]`), ruleUnknownField, "put it into selector"},
		{"a wave by its name", policy(`waves: [canary]`), ruleType, `for example {"name":"canary","selector":{"matchLabels":{"ring":"canary"}},"soak":"24h"}`},
		{"a pilot of nobody", policy(`pilot: {count: 0}`), ruleRange, "leave the pilot out to have none"},
		{"one label of a budget", policy(`budgets: [{groupBy: site, maxUnavailable: 1}]`), ruleType, `write it as a list: ["site"]`},
		{"no label of a budget", policy(`budgets: [{groupBy: [], maxUnavailable: 1}]`), ruleSize, "name a label, such as site: devices with the same value of it are a group"},
		{"a label twice", policy(`budgets: [{groupBy: [site, site], maxUnavailable: 1}]`), ruleValue, "once is enough"},
		{"nobody at all", policy(`maxInFlight: 0`), ruleRange, "to stop a policy, give it paused: {reason: …}"},
		{"nobody of the fleet", fleet("spec: {maxInFlight: 0}"), ruleRange, "to stop the fleet, give it paused: {reason: …}"},
		{"a limit of the fleet in its wrong place", fleet("maxInFlight: 3"), ruleUnknownField, "put it into spec"},
		{"a long command", hook("run: " + strings.Repeat("x ", 200) + "y"), ruleType, "write it as a list"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var problems []Problem
			switch {
			case strings.Contains(c.text, "kind: Policy"):
				problems = Decode("x.yaml", []byte(c.text), &Policy{})
			case strings.Contains(c.text, "kind: Fleet"):
				problems = Decode("x.yaml", []byte(c.text), &FleetDocument{})
			case strings.Contains(c.text, "kind: Device"):
				problems = Decode("x.yaml", []byte(c.text), &Device{})
			default:
				problems = Decode("x.yaml", []byte(c.text), &Release{})
			}
			if len(problems) != 1 || problems[0].Rule != c.rule || problems[0].Hint != c.hint {
				t.Errorf("%q\ngot  %s\nwant [%s] (%s)", c.text, lines(problems), c.rule, c.hint)
			}
		})
	}
}

// A source that is named without its folder, or beside the document though it
// lies in files/, is one that people mean.
func TestHintOfASourceInAnotherFolder(t *testing.T) {
	for source, want := range map[string]string{
		"edge.conf": "did you mean files/edge.conf?", "./edge.conf": "did you mean files/edge.conf?", "file/edge.conf": "did you mean files/edge.conf?",
		"files/edge.cnf": "did you mean files/edge.conf?", "files/motd": "", "edge.cfg": "",
	} {
		f := load(t, repoOf("-- policies/gateways.yaml --\napiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: gateways}\n"+
			"spec: {targetVersion: v1.0.0}\n-- releases/gateways/v1.0.0.yaml --\napiVersion: gitopsd.dev/v1alpha1\nkind: Release\n"+
			"metadata: {name: v1.0.0}\nspec: {files: {/etc/edge.conf: {source: "+source+"}}}\n-- files/edge.conf --\nx\n"))
		var hints []string
		for _, p := range f.Problems {
			if p.Rule == ruleSourceMissing {
				hints = append(hints, p.Hint)
			}
		}
		if len(hints) != 1 || hints[0] != want {
			t.Errorf("%s: got %q, want %q", source, hints, want)
		}
	}
}

// The name in the document may be right, and it is its line that is shown.
func TestAFileNameIsToldAsOne(t *testing.T) {
	f := load(t, repoOf("-- devices/GW_1.yaml --\napiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-1}\n"))
	if got := lines(f.Problems); !strings.Contains(got, `the file name "GW_1" is no legal name`) {
		t.Error(got)
	}
}
