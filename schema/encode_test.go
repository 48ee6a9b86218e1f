package schema

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sigsyaml "sigs.k8s.io/yaml"
)

// strings that some reader of YAML takes for something else, or that have to
// be written with care.
var awkward = []string{"", " ", "no", "Yes", "on", "OFF", "y", "n", "true", "null", "~", "1", "1.10", "-1", "+1", "0x1f", "0o17", "017", "08", "1e3", ".5", ".inf", "-.INF", ".nan",
	"1_000", "12:30:45", "2026-03-29", "2026-03-29T10:00:00Z", "<<", "=", "-", "- a", "? a", ": a", "a: b", "a:", "a #b", "#a", "&a", "*a", "!a", "!!str a", "|", ">", "%a", "@a", "`a", "[a]", "{a}", "a,b",
	"'a'", `"a"`, `\`, "a\nb", "a\nb\n", "a\n\n", "\na", " a\nb", "a \nb", "a\n b\n", "a\tb", "\ta\nb", "a\n\tb", "a\r\nb", "a\u0085b", "\u2028", "\ufeffa", "\x00", "\x07", "\u00e4", "\U0001F600", "---", "...", "--- a\nb", "...\nb\n", "%YAML 1.1\na\n", "a\n# b\n", "null\n", "0b11", "1.", "+.inf", strings.Repeat("long ", 100), strings.Repeat("x", 500) + "\n" + strings.Repeat("y", 500)}

// Whatever a string holds, it comes back from our reader, and from a reader of
// YAML 1.1 too.
func TestEncodeStrings(t *testing.T) {
	for _, s := range awkward {
		d := Device{TypeMeta: TypeMeta{APIVersion, KindDevice}, Metadata: Metadata{Name: "gw-1"}, Spec: DeviceSpecFields{
			Vars: map[string]string{"a": s}, Desired: map[string]any{"files": map[string]any{"/etc/x": map[string]any{"content": s}},
				"hooks": map[string]any{"afterUpdating": map[string]any{"x": map[string]any{"run": []any{"b"}, "order": int64(3)}}}}}}
		out, err := Encode(&d)
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		var again Device
		if problems := Decode("x.yaml", out, &again); len(problems) > 0 {
			t.Errorf("%q: %s\n%s", s, lines(problems), out)
			continue
		}
		if diff := cmp.Diff(d, again); diff != "" {
			t.Errorf("%q: %s\n%s", s, diff, out)
		}
		var old struct {
			Spec struct{ Vars map[string]any }
		}
		if err := sigsyaml.Unmarshal(out, &old); err != nil || old.Spec.Vars["a"] != s {
			t.Errorf("%q: a YAML 1.1 reader gives %#v, %v\n%s", s, old.Spec.Vars["a"], err, out)
		}
	}
}

func TestEncodeDocument(t *testing.T) {
	zone := time.FixedZone("", 3600)
	started := time.Date(2026, 11, 29, 10, 0, 0, 123456789, zone)
	s := DeviceStatus{TypeMeta: TypeMeta{APIVersion, KindDeviceStatus}, Metadata: Metadata{Name: "gw-1"}, Policy: "gateways",
		Verdict: Verdict{Code: "Upgrading", Target: "v1.5.0", Reason: "on its way: applying"},
		Attempts: []Attempt{{Attempt: 3, Policy: "gateways", Version: "1.5", Digest: "sha256:ab", Rollout: "sha256:cd", InstallID: "0123",
			AssignedAt: started, StartedAt: &started}}}
	const want = `apiVersion: gitopsd.dev/v1alpha1
kind: DeviceStatus
metadata:
  name: gw-1
policy: gateways
verdict:
  upgrade: false
  code: Upgrading
  target: v1.5.0
  reason: "on its way: applying"
attempts:
  - attempt: 3
    policy: gateways
    version: "1.5"
    digest: sha256:ab
    rollout: sha256:cd
    installID: "0123"
    assignedAt: "2026-11-29T09:00:00Z"
    startedAt: "2026-11-29T09:00:00Z"
`
	out, err := Encode(s)
	if err != nil || string(out) != want {
		t.Errorf("%v, got:\n%s", err, out)
	}
	var again DeviceStatus
	if problems := Decode("x.yaml", out, &again); len(problems) > 0 {
		t.Error(lines(problems))
	}
	out, err = Encode(FailureMarks{TypeMeta: TypeMeta{APIVersion, KindFailureMarks}, Metadata: Metadata{Name: "v1"}})
	if err != nil || !strings.Contains(string(out), "marks: []\n") {
		t.Errorf("a nil list: %v, got:\n%s", err, out)
	}
	if _, err := Encode(map[string]any{"a": math.NaN()}); err == nil {
		t.Error("NaN was encoded")
	}
}

// A spec that went through an assignment has the digest that it had before.
func TestDigestSurvivesEncoding(t *testing.T) {
	for _, m := range load(t, repoOf(smallFleet)).Devices {
		a := Assignment{TypeMeta: TypeMeta{APIVersion, KindAssignment}, Metadata: Metadata{Name: m.ID}, Generation: 1, Attempt: 1,
			Version: m.Version, Digest: m.Rendered.Digest, Spec: m.Rendered.Spec}
		out, err := Encode(a)
		if err != nil {
			t.Fatal(err)
		}
		var again Assignment
		if problems := Decode("assignment.yaml", out, &again); len(problems) > 0 {
			t.Fatalf("%s\n%s", lines(problems), out)
		}
		if digest, err := Digest(again.Spec); err != nil || digest != m.Rendered.Digest {
			t.Errorf("%s: digest %s, %v, before %s", m.ID, digest, err, m.Rendered.Digest)
		}
		spec, err := DecodeSpec(again.Spec)
		if err != nil || len(spec.Files) == 0 {
			t.Errorf("%s: %+v, %v", m.ID, spec, err)
		}
	}
}

// A spec that wants nothing is a spec; a recall has none.
func TestEmptySpecIsNoRecall(t *testing.T) {
	a := Assignment{TypeMeta: TypeMeta{APIVersion, KindAssignment}, Metadata: Metadata{Name: "gw-1"}, Generation: 1, Attempt: 1, Spec: map[string]any{}}
	for _, empty := range []bool{true, false} {
		if !empty {
			a.Spec = nil
		}
		out, err := Encode(&a)
		if err != nil || strings.Contains(string(out), "spec: {}\n") != empty {
			t.Errorf("%v, written as\n%s", err, out)
		}
		var again Assignment
		if problems := Decode("assignment.yaml", out, &again); len(problems) > 0 || (again.Spec != nil) != empty {
			t.Errorf("%s; read back: %#v", lines(problems), again.Spec)
		}
		if text, err := json.Marshal(&a); err != nil || strings.Contains(string(text), `"spec"`) != empty {
			t.Errorf("%s, %v", text, err)
		}
	}
	m := load(t, repoOf("\n-- policies/p.yaml --\napiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: p}\nspec: {enabled: true, targetVersion: v1.0.0}\n"+
		"-- devices/gw-1.yaml --\napiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-1}\nspec: {release: none}\n")).Devices[0]
	if m.Rendered == nil || m.Rendered.Spec == nil || len(m.Rendered.Spec) != 0 {
		t.Errorf("release: none alone renders to %+v", m.Rendered)
	}
}

func TestDecodeSpec(t *testing.T) {
	spec, err := DecodeSpec(map[string]any{"confirm": "off", "onDevice": map[string]any{"retries": float64(2)},
		"hooks": map[string]any{"afterUpdating": map[string]any{"a": map[string]any{"run": []any{"x"}, "timeout": "1m30s"}}}})
	if err != nil || !spec.Confirm.Off || *spec.OnDevice.Retries != 2 || spec.Hooks.AfterUpdating["a"].Timeout.String() != "1m30s" {
		t.Errorf("%+v, %v", spec, err)
	}
	for text, want := range map[string]string{
		`{filez: {}}`:                               "unknown field /filez",
		`{confirm: {withn: 1m}}`:                    "unknown field /confirm/withn",
		`{files: {/a: {contents: x}}}`:              "unknown field /files/~1a/contents",
		`{files: [a]}`:                              "a mapping is wanted, not a list",
		`{onDevice: {retries: 1.5}}`:                "a whole number is wanted",
		`{confirm: {within: -1m}}`:                  "negative",
		`{files: {/a: {template: "yes"}}}`:          "true or false is wanted, not a string",
		`{requires: {commands: x}}`:                 "a list is wanted",
		`{hooks: {afterUpdating: {a: {run: [1]}}}}`: "a string is wanted, not a number",
	} {
		if _, err := DecodeSpec(tree(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// FuzzDecode: no input brings the reader down, and what is accepted comes back
// the same after being encoded.
func FuzzDecode(f *testing.F) {
	for _, r := range Rules() {
		for _, text := range repoOf("\n" + r.Wrong + r.Right).files {
			f.Add([]byte(text))
		}
	}
	for _, k := range []Kind{KindPolicy, KindFleet, KindBrake} {
		for _, text := range exampleTexts(f, k) {
			f.Add(text)
		}
	}
	for _, s := range awkward {
		f.Add([]byte("apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-1}\nspec: {vars: {a: " + s + "}}\n"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, v := range []any{&Device{}, &Release{}, &Policy{}, &Overlay{}, &FleetDocument{}, &Brake{}} {
			problems := Decode("x.yaml", data, v)
			for _, p := range problems {
				if p.Message == "" || p.Rule == "" || p.Line < 0 || strings.ContainsAny(p.Message+p.Hint, "\n\r") {
					t.Errorf("not a problem to show: %+v", p)
				}
			}
			if hasErrors(problems) {
				continue
			}
			out, err := Encode(v)
			if err != nil {
				t.Fatalf("%q: %v", data, err)
			}
			again := newKind(t, kindOf(reflect.TypeOf(v).Elem()))
			if problems := Decode("x.yaml", out, again); hasErrors(problems) {
				t.Fatalf("%q: encoded %q: %s", data, out, lines(problems))
			}
			twice, err := Encode(again)
			if err != nil || string(twice) != string(out) {
				t.Fatalf("%q: encoded %q, then %q", data, out, twice)
			}
		}
	})
}
