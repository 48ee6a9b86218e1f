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
	cases := []struct{ name, text, rule, hint string }{
		{"another version of the form", strings.Replace(policy(""), "v1alpha1", "v1", 1), ruleValue, "write gitopsd.dev/v1alpha1"},
		{"yes", policy("enabled: yes"), ruleType, "did you mean true?"},
		{"off", policy("enabled: off"), ruleType, "did you mean false?"},
		{"a quoted boolean", policy(`enabled: "true"`), ruleType, "write it without quotes: true"},
		{"one version to go back from", policy("rollbackFrom: v1.3.0"), ruleType, `write it as a list: ["v1.3.0"]`},
		{"a percentage above all", policy("maxInFlight: 150%"), ruleForm, "a percentage is a whole number from 0% to 100%"},
		{"half a percent", policy("maxInFlight: 0.5%"), ruleForm, "a percentage is a whole number from 0% to 100%"},
		{"a quoted count", policy(`maxInFlight: "3"`), ruleForm, "write it without quotes: 3"},
		{"a word as count", policy("maxInFlight: some"), ruleForm, `write it like "10%"`},
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
		{"nothing to run", hook("run: "), ruleType, "give it a value, or leave the field out"},
		{"a long command", hook("run: " + strings.Repeat("x ", 200) + "y"), ruleType, "write it as a list"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var problems []Problem
			switch {
			case strings.Contains(c.text, "kind: Policy"):
				problems = Decode("x.yaml", []byte(c.text), &Policy{})
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
