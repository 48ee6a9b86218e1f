package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a person types in a hurry holds back what was meant, and more rather
// than less.
func TestReadBrake(t *testing.T) {
	why := func(text string) BrakeReason { return BrakeReason{Reason: text} }
	all := func(text string) *BrakeReason { return &BrakeReason{Reason: text} }
	type names = map[string]BrakeReason
	const cannot = "the brake cannot be read, so everything is stopped ("
	for name, c := range map[string]struct {
		text       string
		want       Brake
		unreadable string
		warnings   int
	}{
		"as it should be":         {"apiVersion: gitopsd.dev/v1alpha1\nkind: Brake\nall: {reason: smoke}\npolicies: {gateways: {reason: fair}}\ndevices: {gw-1: {reason: mine}}\n", Brake{All: all("smoke"), Policies: names{"gateways": why("fair")}, Devices: names{"gw-1": why("mine")}}, "", 0},
		"texts":                   {"all: smoke\npolicies: {gateways: fair}\ndevices: {gw-1: mine}\n", Brake{All: all("smoke"), Policies: names{"gateways": why("fair")}, Devices: names{"gw-1": why("mine")}}, "", 0},
		"nothing":                 {"{}", Brake{}, "", 0},
		"just true":               {"all: true", Brake{All: all(noReason)}, "", 1},
		"a key alone":             {"all:", Brake{All: all(noReason)}, "", 1},
		"off":                     {"all: false", Brake{}, "", 1},
		"lists":                   {"policies: [gateways]\ndevices: [gw-1, gw-2]", Brake{Policies: names{"gateways": why(noReason)}, Devices: names{"gw-1": why(noReason), "gw-2": why(noReason)}}, "", 2},
		"one name":                {"devices: gw-1", Brake{Devices: names{"gw-1": why(noReason)}}, "", 1},
		"a name without reason":   {"devices: {gw-1: }", Brake{Devices: names{"gw-1": why(noReason)}}, "", 1},
		"a number as reason":      {"devices: {gw-1: 7, gw-2: false}", Brake{Devices: names{"gw-1": why(noReason)}}, "", 2},
		"an odd reason":           {"all: {raeson: smoke}", Brake{All: all(noReason)}, "", 1},
		"lines in a reason":       {"all: \"a\\nb\"", Brake{All: all(`a\nb`)}, "", 0},
		"empty":                   {"", Brake{All: all(cannot + "brake.yaml:1: the document is empty)")}, "brake.yaml:1: the document is empty", 0},
		"no YAML":                 {"all: {", Brake{All: all(cannot)}, "brake.yaml", 0},
		"a key twice":             {"devices: {a: x}\ndevices: {b: y}", Brake{All: all(cannot + `brake.yaml:2: the key "devices"`)}, `brake.yaml:2: the key "devices"`, 0},
		"a misspelled key":        {"devices: {a: x}\npolices: {b: y}", Brake{All: all(cannot + `brake.yaml:2: unknown field "polices"; did you mean policies?)`), Devices: names{"a": why("x")}}, `brake.yaml:2: unknown field "polices"`, 0},
		"another kind":            {"kind: Policy\nall: smoke", Brake{All: all("smoke")}, "brake.yaml:1: kind Brake is wanted", 0},
		"another version":         {"apiVersion: gitopsd.dev/v2\ndevices: {a: x}", Brake{All: all(cannot + "brake.yaml:1: apiVersion gitopsd.dev/v1alpha1 is wanted"), Devices: names{"a": why("x")}}, "brake.yaml:1: apiVersion", 0},
		"a list":                  {"- gateways", Brake{All: all(cannot)}, "brake.yaml:1: a mapping is wanted, not a list", 0},
		"a number for names":      {"devices: 7", Brake{All: all(cannot), Devices: nil}, "brake.yaml:1: names are wanted, not a number", 0},
		"a list of more than ids": {"devices: [{gw-1: x}]", Brake{All: all(cannot)}, "brake.yaml:1: names are wanted, not a mapping", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := ReadBrake("brake.yaml", []byte(c.text))
			if !strings.HasPrefix(got.Unreadable, c.unreadable) || (c.unreadable == "") != (got.Unreadable == "") {
				t.Errorf("unreadable because of %q, want %q", got.Unreadable, c.unreadable)
			}
			if got.Unreadable != "" && (got.Brake.All == nil || !hasErrors(got.Problems)) {
				t.Errorf("it is unreadable and stops %+v, with the problems %s", got.Brake, lines(got.Problems))
			}
			if c.want.All != nil && got.Brake.All != nil && strings.HasPrefix(got.Brake.All.Reason, c.want.All.Reason) {
				c.want.All = got.Brake.All
			}
			c.want.TypeMeta = TypeMeta{APIVersion: APIVersion, Kind: KindBrake}
			if len(c.want.Devices) == 0 && len(got.Brake.Devices) == 0 {
				c.want.Devices = got.Brake.Devices
			}
			if diff := cmp.Diff(c.want, got.Brake); diff != "" {
				t.Errorf("%s\n%s", c.text, diff)
			}
			if got.Unreadable == "" && (len(got.Problems) != c.warnings || hasErrors(got.Problems)) {
				t.Errorf("want %d warnings, got\n%s", c.warnings, lines(got.Problems))
			}
		})
	}
}

// A hint must not turn a stop that is off into one that is on.
func TestBrakeHintKeepsWhatIsOff(t *testing.T) {
	for text, want := range map[string]string{
		"all: false":                       "remove the line; to stop it, write a reason",
		"policies: {gateways: false}":      "remove the line; to stop it, write a reason",
		"devices:\n  gw-1: false\n":        "remove the line; to stop it, write a reason",
		"all: true":                        "write the reason in its place",
		"devices: {gw-1: {reason: false}}": "write the reason in its place",
	} {
		got := ReadBrake("brake.yaml", []byte(text))
		if len(got.Problems) != 1 || got.Problems[0].Hint != want {
			t.Errorf("%s: got %s", text, lines(got.Problems))
		}
	}
}

// What may be left out is there once it is read, so that it can be written.
func TestBrakeWithoutKindIsWritten(t *testing.T) {
	var b Brake
	if problems := Decode("brake.yaml", []byte("devices: {gw-1: mine}\n"), &b); len(problems) > 0 {
		t.Fatal(lines(problems))
	}
	const want = "apiVersion: gitopsd.dev/v1alpha1\nkind: Brake\ndevices:\n  gw-1:\n    reason: mine\n"
	if out, err := Encode(&b); err != nil || string(out) != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, out, want)
	}
}

// FuzzBrake: whatever stands there, it is read or stops everything; and what
// the strict reader understands, the forgiving one understands alike.
func FuzzBrake(f *testing.F) {
	for _, text := range []string{
		"", "{}", "all: smoke", "all: {reason: smoke}\n", "policies: [gateways]\ndevices: {gw-1: }\n", "polices: {a: b}", "- x", "all: {", "a: b\na: c",
		string(example(f, KindBrake)),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := ReadBrake("brake.yaml", data)
		if got.Unreadable != "" && got.Brake.All == nil {
			t.Fatalf("%q cannot be read and stops nothing", data)
		}
		for _, reason := range []map[string]BrakeReason{got.Brake.Policies, got.Brake.Devices} {
			for name, why := range reason {
				if why.Reason == "" || strings.ContainsAny(why.Reason, "\r\n") {
					t.Fatalf("%q stops %q for the reason %q", data, name, why.Reason)
				}
			}
		}
		var strict Brake
		if hasErrors(Decode("brake.yaml", data, &strict)) {
			return
		}
		same := func(a, b map[string]BrakeReason) bool {
			for name := range a {
				if _, ok := b[name]; !ok {
					return false
				}
			}
			return len(a) == len(b)
		}
		if got.Unreadable != "" || (strict.All == nil) != (got.Brake.All == nil) || !same(strict.Policies, got.Brake.Policies) || !same(strict.Devices, got.Brake.Devices) {
			t.Fatalf("%q is %+v, read forgivingly %+v (%s)", data, strict, got.Brake, got.Unreadable)
		}
	})
}
