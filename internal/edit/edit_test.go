package edit

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

func policyForm(t testing.TB) Form {
	t.Helper()
	f, err := FormOf(schema.KindPolicy, schema.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func deviceForm(t testing.TB) Form {
	t.Helper()
	f, err := FormOf(schema.KindDevice, schema.Device{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func path(s string) []string { return strings.Split(s, ".") }

const head = "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata:\n  name: gw-1\n"

func TestSet(t *testing.T) {
	const hold = "spec.hold.reason"
	for _, c := range []struct {
		name, doc, path string
		value           any
		want            string
	}{
		{"the document has no spec", head, hold, "disk", head + "spec:\n  hold:\n    reason: disk\n"},
		{"the last line has no end", strings.TrimSuffix(head, "\n"), hold, "disk", head + "spec:\n  hold:\n    reason: disk"},
		{"an empty mapping stays between its braces", head + "spec: {}\n", hold, "disk", head + "spec: {hold: {reason: disk}}\n"},
		{"a space between braces", head + "spec: { }\n", hold, "disk", head + "spec: {hold: {reason: disk} }\n"},
		{"braces with something in them", head + "spec: {pin: v1, vars: {a: b}} # x\n", hold, "a, b", head + "spec: {hold: {reason: \"a, b\"}, pin: v1, vars: {a: b}} # x\n"},
		{"braces over several lines", head + "spec: {\n  vars: {a: b}, # x\n  }\n", "spec.desired.x", true, head + "spec: {\n  vars: {a: b}, desired: {x: true}, # x\n  }\n"},
		{"the order of the documentation", head + "spec:\n  # its pin\n  pin: v1 # why\n\n  vars:\n    a: b\n      # deep\n", "spec.forgetFailuresBefore", time.Date(2026, 11, 29, 10, 2, 0, 0, time.UTC),
			head + "spec:\n  # its pin\n  pin: v1 # why\n  forgetFailuresBefore: 2026-11-29T10:02:00Z\n\n  vars:\n    a: b\n      # deep\n"},
		{"the first of a mapping", head + "spec: # here\n  # about the pin\n  pin: v1\n", hold, "disk", head + "spec: # here\n  hold:\n    reason: disk\n  # about the pin\n  pin: v1\n"},
		{"deeper comments stay with what they are below", head + "spec:\n  pin: v1\n    # of the pin\n\n    # of the pin too\n  # of the vars\n  vars: {a: b}\n", "spec.release", "none",
			head + "spec:\n  pin: v1\n    # of the pin\n\n    # of the pin too\n  release: none\n  # of the vars\n  vars: {a: b}\n"},
		{"its own step", "kind: Device\nmetadata:\n    name: gw-1\n", hold, "disk", "kind: Device\nmetadata:\n    name: gw-1\nspec:\n    hold:\n        reason: disk\n"},
		{"line ends of another system", strings.ReplaceAll(head, "\n", "\r\n"), hold, "disk", strings.ReplaceAll(head+"spec:\n  hold:\n    reason: disk\n", "\n", "\r\n")},
		{"line ends of another system, without the last", strings.ReplaceAll(strings.TrimSuffix(head, "\n"), "\n", "\r\n"), hold, "disk", strings.ReplaceAll(head+"spec:\n  hold:\n    reason: disk", "\n", "\r\n")},
		{"a byte order mark", "\ufeffkind: Device\nspec: {pin: v1}\n", "spec.pin", "v2", "\ufeffkind: Device\nspec: {pin: v2}\n"},
		{"marks of a document", "---\n" + head + "...\n", "spec.pin", "v1", "---\n" + head + "spec:\n  pin: v1\n...\n"},
		{"a value keeps its comment", head + "spec:\n  pin:   v1.0.0   # the one\n", "spec.pin", "v1.1.0", head + "spec:\n  pin:   v1.1.0   # the one\n"},
		{"double quotes", head + "spec:\n  pin: \"v1.0.0\"\n", "spec.pin", "v1.1.0", head + "spec:\n  pin: \"v1.1.0\"\n"},
		{"single quotes", head + "spec:\n  pin: 'v1''0'\n", "spec.pin", "it's", head + "spec:\n  pin: 'it''s'\n"},
		{"what would be a number", head + "spec:\n  pin: v1.0.0\n", "spec.pin", "1.10", head + "spec:\n  pin: \"1.10\"\n"},
		{"a version without v", head + "spec:\n  pin: v1.0.0\n", "spec.pin", "1.1.0", head + "spec:\n  pin: 1.1.0\n"},
		{"what would be a comment", head + "spec: {}\n", hold, "a #b", head + "spec: {hold: {reason: \"a #b\"}}\n"},
		{"what would end a line", head, hold, "a\nb\u0085", head + "spec:\n  hold:\n    reason: \"a\\nb\\u0085\"\n"},
		{"what old readers take for a boolean", head, hold, "No", head + "spec:\n  hold:\n    reason: \"No\"\n"},
		{"a value over several lines", head + "spec:\n  pin: a\n    b\n    c # x\n  release: none\n", "spec.pin", "v1", head + "spec:\n  pin: v1 # x\n  release: none\n"},
		{"a text of several lines", head + "spec:\n  pin: |\n    # a\n    b\n\n  release: none\n", "spec.pin", "v1", head + "spec:\n  pin: v1\n\n  release: none\n"},
		{"behind a text of several lines", head + "spec:\n  pin: |+\n    # a\n    b\n\n", "spec.vars.a", "b", head + "spec:\n  pin: |+\n    # a\n    b\n\n  vars:\n    a: b\n"},
		{"behind a text with its own indentation", head + "spec:\n  pin: |2\n      b\n    # a\n  # c\n", "spec.vars.a", "b", head + "spec:\n  pin: |2\n      b\n    # a\n  vars:\n    a: b\n  # c\n"},
		{"a list in the place of a list", head + "spec:\n  pin:\n  - a # x\n  - b\n  release: none\n", "spec.pin", []string{"c", "d e"}, head + "spec:\n  pin: [c, d e]\n  release: none\n"},
		{"nothing is written", head + "spec: # nothing\n", hold, "disk", head + "spec: {hold: {reason: disk}} # nothing\n"},
		{"the document is between braces", `{"kind": "Device", "metadata": {"name": "a"}}`, hold, "disk", `{"kind": "Device", "metadata": {"name": "a"}, "spec": {"hold": {"reason": "disk"}}}`},
		{"JSON has no times", `{"kind": "Device", "spec": {}}`, "spec.forgetFailuresBefore", time.Date(2026, 11, 29, 10, 2, 0, 0, time.UTC),
			`{"kind": "Device", "spec": {"forgetFailuresBefore": "2026-11-29T10:02:00Z"}}`},
		{"a list in JSON", `{"kind": "Device", "spec": {"pin": null}}`, "spec.pin", []string{"a", "b"}, `{"kind": "Device", "spec": {"pin": ["a", "b"]}}`},
		{"between braces that are not those of JSON", `{kind: Device, spec: {"pin": v1}}`, hold, "disk", `{kind: Device, spec: {hold: {reason: disk}, "pin": v1}}`},
		{"the same value", head + "spec:\n  pin:   'v1'\n", "spec.pin", "v1", head + "spec:\n  pin:   'v1'\n"},
		{"other line breaks of old YAML", head + "# a\u2028# b\nspec:\n  pin: v1\n", "spec.pin", "v2", head + "# a\u2028# b\nspec:\n  pin: v2\n"},
		{"behind a line that only old YAML ends", head + "spec:\n  pin: v1 # a\u2028  release: none\n", "spec.pin2", "v2", head + "spec:\n  pin: v1 # a\u2028  release: none\n  pin2: v2\n"},
		{"wide letters", head + "spec: {vars: {ä: 'ö'}, pin: v1}\n", "spec.pin", "v2", head + "spec: {vars: {ä: 'ö'}, pin: v2}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := deviceForm(t).Set([]byte(c.doc), path(c.path), c.value)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got\n%q\nwant\n%q", got, c.want)
			}
		})
	}
}

func TestRemove(t *testing.T) {
	for _, c := range []struct{ name, doc, path, want string }{
		{"the only one", head + "spec:\n  hold:\n    reason: disk\n", "spec.hold", head},
		{"the only one, at an end without a line break", head + "spec:\n  hold:\n    reason: disk", "spec.hold", strings.TrimSuffix(head, "\n")},
		{"with its comments", head + "spec:\n  pin: v1 # x\n  # ticket 12,\n  # see there\n  hold: # y\n    # z\n    reason: disk\n    # until Friday\n\n  # of the vars\n  vars: {a: b}\n", "spec.hold",
			head + "spec:\n  pin: v1 # x\n\n  # of the vars\n  vars: {a: b}\n"},
		{"not with those of others", head + "spec:\n  # of the pin\n\n  hold: {reason: disk}\n  # of the pin too\n  pin: v1\n", "spec.hold",
			head + "spec:\n  # of the pin\n\n  # of the pin too\n  pin: v1\n"},
		{"a comment keeps the mapping", head + "spec:\n  hold: {reason: disk}\n  # pin: v1\n", "spec.hold", head + "spec: {}\n  # pin: v1\n"},
		{"a comment beside keeps the mapping", head + "spec: # mine\n  hold: {reason: disk}\n", "spec.hold", head + "spec: {} # mine\n"},
		{"between braces", head + "spec: {hold: {reason: disk}}\n", "spec.hold", head + "spec: {}\n"},
		{"the first between braces", head + "spec: { hold: {reason: disk}, pin: v1 }\n", "spec.hold", head + "spec: { pin: v1 }\n"},
		{"the last between braces", head + "spec: { pin: v1, hold: {reason: disk} }\n", "spec.hold", head + "spec: { pin: v1 }\n"},
		{"in a line between braces", head + "spec: {\n  pin: v1, # a\n  hold: {reason: disk}, # b\n  vars: {a: b}, # c\n}\n", "spec.hold",
			head + "spec: {\n  pin: v1, # a\n  # b\n  vars: {a: b}, # c\n}\n"},
		{"with a list below", head + "spec:\n  hold:\n  - a\n\n  - b: c\n    d: |\n      # e\n  pin: v1\n", "spec.hold", head + "spec:\n  pin: v1\n"},
		{"nothing to remove", head + "spec: {}\n", "spec.hold", head + "spec: {}\n"},
		{"below what is no mapping", head + "spec: none\n", "spec.hold", head + "spec: none\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := deviceForm(t).Remove([]byte(c.doc), path(c.path))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got\n%q\nwant\n%q", got, c.want)
			}
		})
	}
}

func TestWhatAKindNeedsStays(t *testing.T) {
	const doc = "kind: Policy\nspec:\n  paused: {reason: fair}\n"
	got, err := policyForm(t).Remove([]byte(doc), path("spec.paused"))
	if want := "kind: Policy\nspec: {}\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if got, err := (Form{}).Remove([]byte("a: 1\n"), path("a")); err == nil {
		t.Errorf("a document of one key was removed: %q", got)
	}
}

func TestAppend(t *testing.T) {
	const at = "spec.rollbackFrom"
	for _, c := range []struct{ name, doc, want string }{
		{"no list", "spec:\n  targetVersion: v1\n  maxInFlight: 1\n", "spec:\n  targetVersion: v1\n  rollbackFrom: [v3]\n  maxInFlight: 1\n"},
		{"an empty one", "spec:\n  rollbackFrom: []\n", "spec:\n  rollbackFrom: [v3]\n"},
		{"between brackets", "spec:\n  rollbackFrom: [ \"v2\" ] # x\n", "spec:\n  rollbackFrom: [ \"v2\", \"v3\" ] # x\n"},
		{"an empty one in JSON", `{"spec": {"rollbackFrom": []}}`, `{"spec": {"rollbackFrom": ["v3"]}}`},
		{"on lines", "spec:\n  rollbackFrom: # x\n    - v2 # y\n      # z\n  maxInFlight: 1\n", "spec:\n  rollbackFrom: # x\n    - v2 # y\n      # z\n    - v3\n  maxInFlight: 1\n"},
		{"on lines that are not indented, without an end", "spec:\n  rollbackFrom:\n  - 'v2'", "spec:\n  rollbackFrom:\n  - 'v2'\n  - 'v3'"},
		{"it is there", "spec:\n  rollbackFrom: [v3, v2]\n", "spec:\n  rollbackFrom: [v3, v2]\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := policyForm(t).Append([]byte(c.doc), path(at), "v3")
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got\n%q\nwant\n%q", got, c.want)
			}
		})
	}
	if got, err := policyForm(t).Append([]byte("spec: {rollbackFrom: v2}"), path(at), "v3"); err == nil {
		t.Errorf("something was added to what is no list: %q", got)
	}
}

func TestRefusals(t *testing.T) {
	for name, doc := range map[string]string{
		"an anchor":               "kind: &k Device\n",
		"an alias":                "a: &k {b: c}\nspec: *k\n",
		"a merge key":             "a: &k {b: c}\nspec:\n  <<: *k\n",
		"a tag":                   "kind: !!str Device\n",
		"two documents":           head + "---\n" + head,
		"no document":             "# nothing\n",
		"no YAML":                 "a: b: c\n",
		"a tab":                   "a:\n\tb: c\n",
		"no mapping":              "- a\n",
		"a key twice":             "kind: a\nkind: b\n",
		"a mapping as key":        "{a: b}: c\nkind: x\n",
		"a key with a question":   "? kind\n: a\n? spec\n: vars: {a: b}\n",
		"no mapping on the way":   head + "spec: none\n",
		"a list on the way":       head + "spec: [none]\n",
		"not UTF-8":               head + "# \xff\n",
		"an unfinished merge":     head + "<<<<<<< HEAD\nspec: {}\n",
		"something after the end": head + "...\nkind: x\n",
		"too large":               head + strings.Repeat("#\n", maxDocument),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := deviceForm(t).Set([]byte(doc), path("spec.pin"), "v2")
			var refused *RefusedError
			if !errors.As(err, &refused) {
				t.Errorf("got %q, %v, want a refusal", got, err)
			}
		})
	}
	odd := head + "spec:\n  hold: {reason: a} # a\u2028  release: none\n"
	if got, err := deviceForm(t).Set([]byte(odd), path("spec.pin"), "v2"); err == nil {
		t.Errorf("something was added behind a comment for some, and below it for others: %q", got)
	}
	if got, err := deviceForm(t).Set([]byte(head), path("spec.pin"), "\xff"); err == nil {
		t.Errorf("a text that is not UTF-8 was written: %q", got)
	}
	if got, err := deviceForm(t).Set([]byte(head), path("spec.pin"), 1.5); err == nil {
		t.Errorf("a value of an unknown type was written: %q", got)
	}
}
