package schema

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The rule and hint that a device answers with, each in a form that others
// got wrong.
func TestReaderRefuses(t *testing.T) {
	const head = "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-1}\n"
	cases := []struct {
		name, text string
		want       string // "line:column rule", and a part of message or hint after " ~ "
	}{
		{"B28 version as a float", head + "spec: {pin: 1.10}\n", `4:13 wrong-type ~ quote it: "1.10"`},
		{"B28 version as an integer", head + "spec: {pin: 2}\n", `4:13 wrong-type ~ quote it: "2"`},
		{"B28 var as a float", head + "spec: {vars: {a: 2.20}}\n", `4:18 wrong-type ~ quote it: "2.20"`},
		{"B30 octal id", "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: 0123}\n", `3:18 wrong-type ~ quote it: "0123"`},
		{"B30 id with a bad digit", "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: 08}\n", `3:18 wrong-type ~ quote it: "08"`},
		{"B30 hexadecimal id", "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: 0x10}\n", `3:18 wrong-type ~ quote it: "0x10"`},
		{"B30 octal key", head + "spec: {vars: {0123: a}}\n", `4:15 yaml-key ~ quote it: "0123"`},
		{"B30 null key", head + "spec: {vars: {~: a}}\n", `4:15 yaml-key`},
		{"B30 list as key", head + "spec: {vars: {[a]: a}}\n", `4:15 yaml-key`},
		{"B32 duplicate key", head + "spec:\n  vars: {a: b}\n  hold: {reason: x}\n  vars: {c: d}\n", `7:3 yaml-duplicate-key ~ line 7 and before in line 5`},
		{"B32 duplicate key in JSON", `{"apiVersion": "gitopsd.dev/v1alpha1", "kind": "Device", "kind": "Device", "metadata": {"name": "gw-1"}}`, `1:58 yaml-duplicate-key`},
		{"B32 merge key", head + "spec: {vars: {<<: {a: b}}}\n", `4:15 yaml-alias ~ merge keys`},
		{"B38 alias bomb", "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c]\n", `1:4 yaml-alias`},
		{"B38 deep nesting", strings.Repeat("[", 20000), `1:0 yaml-syntax`},
		{"B38 deep but closed", strings.Repeat("[", 2000) + strings.Repeat("]", 2000), `1:66 yaml-too-deep`},
		{"B39 empty", "", `1:0 yaml-empty`},
		{"B39 only comments", "# todo\n", `1:0 yaml-empty`},
		{"B39 only a marker", "---\n# x\n---\n", `1:0 yaml-empty`},
		{"B39 null", "~\n", `1:1 wrong-type`},
		{"B40 second document", head + "---\n" + head, `4:1 yaml-multiple-documents`},
		{"B40 second document is empty", head + "---\n", `4:1 yaml-multiple-documents`},
		{"B40 second document is broken", head + "---\n{", `5:0 yaml-syntax`},
		{"B41 misspelled", head + "specc: {}\n", `4:1 unknown-field ~ did you mean spec?`},
		{"B41 misspelled below", head + "spec: {desired: {files: {/etc/a: {contnet: x}}}}\n", `4:35 unknown-field ~ did you mean content?`},
		{"B42 octal mode", head + modeOf("0644"), `4:41 wrong-type ~ did you mean "0644"?`},
		{"B42 bare mode", head + modeOf("644"), `4:41 wrong-type ~ did you mean "0644"?`},
		{"B42 decimal mode", head + modeOf("420"), `4:41 wrong-type ~ did you mean "0644"?`},
		{"B42 decimal 422", head + modeOf("422"), `4:41 wrong-type ~ "0644"`},
		{"B42 0o644", head + modeOf("0o644"), `4:41 wrong-type ~ did you mean "0644"?`},
		{"B42 1000", head + modeOf("1000"), `4:41 wrong-type`},
		{"B42 8", head + modeOf("8"), `4:41 wrong-type`},
		{"B42 negative", head + modeOf("-1"), `4:41 wrong-type`},
		{"B42 no octal digit", head + modeOf(`"0888"`), `4:41 wrong-form ~ "0644"`},
		{"B42 symbolic", head + modeOf("u=rw"), `4:41 wrong-form ~ "0644"`},
		{"a tag", head + "spec: {vars: {a: !!binary AAEC}}\n", `4:18 yaml-tag`},
		{"a custom tag", head + "spec: {vars: {a: !x y}}\n", `4:18 yaml-tag`},
		{"an anchor alone", head + "spec: {vars: &v {a: b}}\n", `4:14 yaml-alias`},
		{"a tab", head + "spec:\n\tvars: {}\n", `5:1 yaml-syntax`},
		{"latin-1", head + "spec: {vars: {a: \xe4}}\n", `4:18 yaml-syntax ~ UTF-8`},
		{"utf-16", "\xff\xfea\x00", `1:1 yaml-syntax ~ UTF-8`},
		{"a zero byte", head + "spec: {vars: {a: \"\x00\"}}\n", `4:19 yaml-syntax ~ escape`},
		{"a large number", head + "spec: {desired: {onDevice: {retries: 9007199254740993}}}\n", `4:38 yaml-number`},
		{"an endless number", head + "spec: {desired: {onDevice: {backoff: {factor: 1e999}}}}\n", `4:47 yaml-number`},
		{"infinity", head + "spec: {desired: {onDevice: {backoff: {factor: .inf}}}}\n", `4:47 yaml-number`},
		{"a list as document", "- a\n", `1:1 wrong-type`},
		{"another kind", strings.Replace(head, "Device", "Divice", 1), `2:7 wrong-kind ~ did you mean Device?`},
		{"no kind", "apiVersion: gitopsd.dev/v1alpha1\nmetadata: {name: gw-1}\n", `1:1 missing-field ~ kind`},
		{"another version", strings.Replace(head, "v1alpha1", "v1beta1", 1), `1:13 wrong-value ~ v1alpha1`},
		{"null for a field", head + "spec: {vars: ~}\n", `4:14 wrong-type ~ not null`},
		{"a time that does not exist", head + "spec: {forgetFailuresBefore: \"2026-02-30T00:00:00Z\"}\n", `4:30 wrong-form`},
		{"a duration out of range", head + "spec: {desired: {confirm: {within: 9999999999h}}}\n", `4:36 wrong-form`},
		{"a size out of range", head + "spec: {desired: {resources: {disk: {minFree: 999999999999999999Gi}}}}\n", `4:46 wrong-form ~ too large`},
		{"a field of another stage", head + "spec: {publicKey: x}\n", `4:8 unknown-field`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := Device{Metadata: Metadata{Name: "untouched"}}
			problems := Decode("devices/gw-1.yaml", []byte(c.text), &d)
			if len(problems) == 0 {
				t.Fatalf("%q was accepted", c.text)
			}
			place, part, _ := strings.Cut(c.want, " ~ ")
			p := problems[0]
			if got := fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.Rule); got != place || !strings.Contains(p.Message+" "+p.Hint, part) {
				t.Errorf("got:\n%swant: %s", lines(problems), c.want)
			}
			if d.Metadata.Name != "untouched" {
				t.Errorf("the value was changed: %+v", d)
			}
			for _, p := range problems {
				if p.Severity != SeverityError || p.File != "devices/gw-1.yaml" {
					t.Errorf("severity and file: %+v", p)
				}
			}
		})
	}
}

func modeOf(mode string) string {
	return "spec: {desired: {files: {/etc/a: {mode: " + mode + "}}}}\n"
}

// What YAML 1.2 and only 1.2 takes for strings, and other forms that are fine.
func TestReaderAccepts(t *testing.T) {
	vars := func(flow string) string {
		return "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-1}\nspec: {vars: {" + flow + "}}\n"
	}
	cases := []struct{ name, text, key, want string }{
		{"no", vars("a: no"), "a", "no"},
		{"on as key", vars("on: y"), "on", "y"},
		{"a date", vars("a: 2026-03-29"), "a", "2026-03-29"},
		{"base 60", vars("a: 12:30:45"), "a", "12:30:45"},
		{"an underscore", vars("a: 1_000"), "a", "1_000"},
		{"binary digits", vars("a: 0b11"), "a", "0b11"},
		{"a version", vars("a: 1.2.3"), "a", "1.2.3"},
		{"quoted number", vars(`a: "1.10"`), "a", "1.10"},
		{"B35 byte order mark", "\ufeff" + vars("a: b"), "a", "b"},
		{"B35 byte order mark and marker", "\ufeff---\n" + vars("a: b"), "a", "b"},
		{"end marker", vars("a: b") + "...\n", "a", "b"},
		{"CRLF", strings.ReplaceAll(vars("a: b"), "\n", "\r\n"), "a", "b"},
		{"JSON", `{"apiVersion":"gitopsd.dev/v1alpha1","kind":"Device","metadata":{"name":"gw-1"},"spec":{"vars":{"a":"b"}}}`, "a", "b"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var d Device
			if problems := Decode("x.yaml", []byte(c.text), &d); len(problems) > 0 {
				t.Fatalf("%q: %s", c.text, lines(problems))
			}
			if got, ok := d.Spec.Vars[c.key]; !ok || got != c.want {
				t.Errorf("vars = %q, want %s = %q", d.Spec.Vars, c.key, c.want)
			}
		})
	}
}

// The value that the schema saw is the one that the type gets: integers of a
// free-form tree stay integers.
func TestDecodeKeepsIntegers(t *testing.T) {
	var o Overlay
	text := "apiVersion: gitopsd.dev/v1alpha1\nkind: Overlay\nmetadata: {name: a}\nspec: {order: -3, desired: {onDevice: {retries: 7}}}\n"
	if problems := Decode("a.yaml", []byte(text), &o); len(problems) > 0 {
		t.Fatal(lines(problems))
	}
	if got := valueAt(o.Spec.Desired, []string{"onDevice", "retries"}); got != int64(7) || o.Spec.Order != -3 {
		t.Errorf("retries %v (%T), order %d", got, got, o.Spec.Order)
	}
}

// The worst that 1 MiB can hold is answered quickly and in bounded memory.
func TestReaderLimits(t *testing.T) {
	fill := func(prefix, unit, suffix string) string {
		return prefix + strings.Repeat(unit, (maxDocument-len(prefix)-len(suffix))/len(unit)) + suffix
	}
	cases := map[string]string{
		"numbers":        fill("[", "1,", "1]"),
		"empty maps":     fill("[", "{},", "1]"),
		"flow maps":      fill("[", "{a: 1},", "1]"),
		"block lines":    fill("", "- a\n", ""),
		"keys":           fill("", "a: 1\n", ""),
		"unique keys":    uniqueKeys(),
		"comments":       fill("a: 1\n", "#\n", ""),
		"comment blocks": fill("", "#a\n\n", "a: 1\n"),
		"nested flow":    fill("", "[", ""),
		"nested block":   nestedBlock(),
		"aliases":        fill("a: &a [x]\nb: [", "*a,", "*a]"),
		"anchors":        fill("[", "&a b,", "1]"),
		"one scalar":     fill("a: ", "x", ""),
		"escapes":        fill(`a: "`, `\u1234`, `"`),
		"documents":      fill("", "---\n", ""),
		"questions":      fill("", "? ", ""),
		"long key":       "? k" + strings.Repeat("x", maxDocument/2) + "\n: [" + strings.Repeat("1,", 90_000) + "1]",
		"long keys":      longKeys(),
		"long hook":      "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: a}\nspec: {desired: {hooks: {afterUpdating: {" + strings.Repeat("x", 300) + ": {run: [" + strings.Repeat("1,", 90_000) + "1]}}}}}\n",
		"unknown fields": "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: a}\nspec:\n" + indentKeys(),
		"wrong labels":   "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata:\n  name: a\n  labels:\n" + strings.ReplaceAll(indentKeys(), "  ", "    "),
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			if len(text) > maxDocument {
				t.Fatalf("%d bytes", len(text))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			var d Device
			problems := Decode("x.yaml", []byte(text), &d)
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			t.Logf("%v, %d MB allocated, %d problems, first: %.150s", took, (after.TotalAlloc-before.TotalAlloc)>>20, len(problems), lines(problems))
			if len(problems) == 0 || len(problems) > maxProblems+1 {
				t.Errorf("%d problems", len(problems))
			}
			// Time is not asserted: the machine may be busy. Memory can be.
			if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 500 {
				t.Errorf("%d MB allocated", mb)
			}
		})
	}
}

func uniqueKeys() string {
	var b strings.Builder
	for i := 0; b.Len() < maxDocument-20; i++ {
		fmt.Fprintf(&b, "k%d: 1\n", i)
	}
	return b.String()
}

// longKeys nests long keys and has many values below them.
func longKeys() string {
	var b strings.Builder
	for range 60 {
		b.WriteString("{" + strings.Repeat("k", 300) + ": ")
	}
	b.WriteString("[" + strings.Repeat("010,", 90_000) + "1]")
	return b.String() + strings.Repeat("}", 60)
}

func indentKeys() string {
	var b strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&b, "  k%d: 1\n", i)
	}
	return b.String()
}

func nestedBlock() string {
	var b strings.Builder
	for i := 0; ; i++ {
		line := strings.Repeat(" ", i) + "a:\n"
		if b.Len()+len(line) > maxDocument {
			return b.String()
		}
		b.WriteString(line)
	}
}
