package schema

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// The tests of this file are named after what has gone wrong with other tools.

// fullDocument has every field that the schema of a kind knows, with the
// field's own example. Fields that exclude each other stand side by side, so
// it need not be valid as a whole.
func fullDocument(t *testing.T, k Kind) map[string]any {
	t.Helper()
	root := rawSchema(t, k)
	var build func(node map[string]any, depth int) (any, bool)
	build = func(node map[string]any, depth int) (any, bool) {
		for {
			ref, ok := node["$ref"].(string)
			if !ok {
				break
			}
			node = asMap(asMap(root["$defs"])[strings.TrimPrefix(ref, defsPrefix)])
		}
		if props := asMap(node["properties"]); props != nil && depth < 8 {
			out := map[string]any{}
			for name, p := range props {
				v, ok := build(asMap(p), depth+1)
				if ex, _ := asMap(p)["examples"].([]any); !ok && len(ex) > 0 {
					v, ok = ex[0], true
				}
				if ok {
					out[name] = v
				}
			}
			return out, true
		}
		if item := asMap(node["items"]); item != nil && (item["$ref"] != nil || item["properties"] != nil) {
			v, ok := build(item, depth+1)
			return []any{v}, ok
		}
		if add := asMap(node["additionalProperties"]); add != nil && (add["$ref"] != nil || add["properties"] != nil) {
			v, ok := build(add, depth+1)
			return map[string]any{"some-key": v}, ok
		}
		return nil, false
	}
	v, ok := build(root, 0)
	doc := asMap(v)
	if !ok || len(doc) < 3 {
		t.Fatalf("%s: no document could be built: %v", k, v)
	}
	doc["apiVersion"], doc["kind"] = APIVersion, string(k)
	return doc
}

// strand is one string, or one key of a free-form map, of a document.
type strand struct {
	path []string
	key  bool
}

// strands lists every string value and every key of a document.
func strands(v any, path []string) []strand {
	var out []strand
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v) {
			below := append(slices.Clone(path), k)
			out = append(out, strand{below, true})
			out = append(out, strands(v[k], below)...)
		}
	case []any:
		for i := range v {
			out = append(out, strands(v[i], append(slices.Clone(path), fmt.Sprint(i)))...)
		}
	case string:
		out = append(out, strand{path, false})
	}
	return out
}

// mark is put in the place of a strand, and then replaced in the text.
const mark = "zzmarkzz"

// changed writes the document with one strand replaced by raw text, and gives
// the line that it stands in.
func changed(t *testing.T, doc map[string]any, s strand, raw string) (text string, line int) {
	t.Helper()
	var replace func(v any, path []string) any
	replace = func(v any, path []string) any {
		if len(path) == 0 {
			return mark
		}
		switch v := v.(type) {
		case map[string]any:
			out := cloneMap(v)
			if len(path) == 1 && s.key {
				out[mark] = out[path[0]]
				delete(out, path[0])
				return out
			}
			out[path[0]] = replace(v[path[0]], path[1:])
			return out
		case []any:
			out := slices.Clone(v)
			var i int
			fmt.Sscan(path[0], &i)
			out[i] = replace(v[i], path[1:])
			return out
		}
		t.Fatalf("no way to %v", s.path)
		return nil
	}
	b, err := yaml.Marshal(replace(doc, s.path))
	if err != nil {
		t.Fatal(err)
	}
	before, after, ok := strings.Cut(string(b), mark)
	if !ok {
		t.Fatalf("the mark is lost in\n%s", b)
	}
	return before + raw + after, strings.Count(before, "\n") + 1
}

func errorIn(problems []Problem, line int) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return p.Severity == SeverityError && p.Line == line })
}

// Wherever a string is wanted, in every kind, as a value or as a key, an
// unquoted thing that some reader takes for a number, a date, a truth or
// nothing is refused where it stands, or is that text. Every place is tried
// with a few of the things, and every thing in many places.
func TestB28_B30_TextIsTextEverywhere(t *testing.T) {
	refused := []string{"1.10", "0123", "null", "08", "2.20", "0x10", "true", "010", "~", "0o17", "72225e2", "-1.5", ".5", ".inf", ".nan", "False", "12345678901234567890"}
	asText := []string{"1_000", "2026-03-29", "no", "on", "y", "0b11", "12:30:45", "1.10.0", "v1.10", "72225f2"}
	next := 0
	for _, k := range Kinds() {
		doc := fullDocument(t, k)
		n := 0
		for _, s := range strands(doc, nil) {
			if s.path[0] == "apiVersion" || s.path[0] == "kind" {
				continue
			}
			n++
			for i := range 2 {
				raw := refused[(2*next+i)%len(refused)]
				if (raw == "null" || raw == "~") && !s.key && slices.Contains(s.path, "desired") {
					continue // takes something of the release away
				}
				text, line := changed(t, doc, s, raw)
				if problems := Decode("x.yaml", []byte(text), newKind(t, k)); !errorIn(problems, line) {
					t.Errorf("%s: %s at %s (key %v) is not refused in line %d:\n%s", k, raw, joinPointer(s.path...), s.key, line, lines(problems))
				}
			}
			// What is text is the same text with quotes and without.
			raw := asText[next%len(asText)]
			next++
			plain, line := changed(t, doc, s, raw)
			quoted, _ := changed(t, doc, s, `"`+raw+`"`)
			a, b := Decode("x.yaml", []byte(plain), newKind(t, k)), Decode("x.yaml", []byte(quoted), newKind(t, k))
			if errorIn(a, line) != errorIn(b, line) {
				t.Errorf("%s: %s at %s (key %v) is not the same as with quotes:\n%s\nquoted:\n%s", k, raw, joinPointer(s.path...), s.key, lines(a), lines(b))
			}
		}
		if n < 5 {
			t.Errorf("%s: only %d places were looked at", k, n)
		}
	}
	if next < 2*len(refused) {
		t.Errorf("only %d places in all", next)
	}
}

// The id 0123 never means the device 83, and 010 not 8: not as a device, not
// in a selector, not as a label.
func TestB30_IdsAreText(t *testing.T) {
	fleet := repoOf(ruleFleet)
	for _, id := range []string{"0123", "83", "010", "8", "1e3", "1000"} {
		fleet = fleet.with("devices/"+id+".yaml", fmt.Sprintf("apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: %q, labels: {role: gateway, unit: %q}}\n", id, id))
	}
	fleet = fleet.with("overlays/x.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Overlay\nmetadata: {name: x}\nspec: {selector: {matchExpressions: [{key: unit, operator: In, values: [\"0123\", \"010\", \"1e3\"]}]}, desired: {files: {/etc/x: {content: x}}}}\n")
	f := load(t, fleet)
	if !f.Valid() {
		t.Fatalf("%s", lines(f.Problems))
	}
	for id, want := range map[string]bool{"0123": true, "83": false, "010": true, "8": false, "1e3": true, "1000": false, "gw-1": false} {
		files, _ := f.Member(id).Rendered.Spec["files"].(map[string]any)
		if _, got := files["/etc/x"]; got != want {
			t.Errorf("%s: selected %v, want %v", id, got, want)
		}
	}
}

// Every mapping of every kind refuses a key that stands in it twice, with the
// lines of both, whatever reads it.
func TestB32_DuplicateKeysEverywhere(t *testing.T) {
	for _, k := range Kinds() {
		doc := fullDocument(t, k)
		for _, s := range strands(doc, nil) {
			if !s.key {
				continue
			}
			// The name once more, before itself, with a value that would do.
			text, line := changed(t, doc, s, s.path[len(s.path)-1])
			all := strings.Split(text, "\n")
			first := all[line-1]
			indent := strings.IndexFunc(first, func(r rune) bool { return r != ' ' && r != '-' })
			again := strings.Repeat(" ", indent) + s.path[len(s.path)-1] + ": x"
			if strings.ContainsAny(first[:indent], "-") {
				// The first key of an item keeps its dash.
				all = slices.Concat(all[:line-1], []string{first[:indent] + strings.TrimSpace(again)}, []string{strings.Repeat(" ", indent) + first[indent:]}, all[line:])
			} else {
				all = slices.Concat(all[:line-1], []string{again}, all[line-1:])
			}
			problems := Decode("x.yaml", []byte(strings.Join(all, "\n")), newKind(t, k))
			found := slices.ContainsFunc(problems, func(p Problem) bool {
				return p.Rule == ruleDuplicate && p.Line == line+1 && strings.Contains(p.Message, fmt.Sprintf("line %d", line))
			})
			if !found {
				t.Errorf("%s: %s twice is not found in lines %d and %d:\n%s", k, joinPointer(s.path...), line, line+1, lines(problems))
			}
		}
	}
}

// Things that are to be there once are found whatever their spelling.
func TestB33_TwiceTheSameThing(t *testing.T) {
	release := func(spec string) string {
		return "apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.5.0}\nspec: " + spec + "\n"
	}
	overlay := func(files string) string {
		return "apiVersion: gitopsd.dev/v1alpha1\nkind: Overlay\nmetadata: {name: a}\nspec: {desired: {files: " + files + "}}\n"
	}
	for name, c := range map[string]struct{ release, overlay, want string }{
		"one path twice":              {"{files: {/etc/a: {content: x}, /etc/a: {content: y}}}", "{}", "yaml-duplicate-key"},
		"two slashes":                 {"{files: {/etc/a: {content: x}, /etc//a: {content: y}}}", "{}", "device-path"},
		"a dot":                       {"{files: {/etc/a: {content: x}, /etc/./a: {content: y}}}", "{}", "device-path"},
		"two dots":                    {"{files: {/etc/a: {content: x}, /etc/b/../a: {content: y}}}", "{}", "device-path"},
		"a slash at the end":          {"{files: {/etc/a: {content: x}}}", "{/etc/a/: {content: y}}", "device-path"},
		"escaped":                     {`{files: {/etc/a: {content: x}, "/etc/\x61": {content: y}}}`, "{}", "yaml-duplicate-key"},
		"file and directory":          {"{files: {/etc/a: {content: x}}, directories: {/etc/a: {}}}", "{}", "device-path-clash"},
		"file below a file":           {"{files: {/etc/a: {content: x}}}", "{/etc/a/b: {content: y}}", "device-path-clash"},
		"env twice":                   {"{hooks: {afterUpdating: {h: {run: [x], env: {A: x, A: y}}}}}", "{}", "yaml-duplicate-key"},
		"hook twice":                  {"{hooks: {afterUpdating: {h: {run: [x]}, h: {run: [y]}}}}", "{}", "yaml-duplicate-key"},
		"content and source":          {"{files: {/etc/a: {content: x, source: files/a}}}", "{}", "file-content"},
		"overlay changes the release": {"{files: {/etc/a: {content: x}}}", "{/etc/a: {content: y}}", ""},
	} {
		f := load(t, repoOf(ruleFleet).with("releases/gateways/v1.5.0.yaml", release(c.release)).with("overlays/a.yaml", overlay(c.overlay)).with("files/a", "x\n"))
		if c.want == "" {
			if !f.Valid() {
				t.Errorf("%s:\n%s", name, lines(f.Problems))
			}
			continue
		}
		if !strings.Contains(lines(f.Problems), " error "+c.want+": ") {
			t.Errorf("%s: want %s, got:\n%s", name, c.want, lines(f.Problems))
		}
	}
}

// A byte order mark is no part of any document, and every byte of a payload.
func TestB35_ByteOrderMark(t *testing.T) {
	const bom = "\ufeff"
	for _, k := range Kinds() {
		example := must(yaml.Marshal(rawSchema(t, k)["examples"].([]any)[0]))
		want, a, b := newKind(t, k), newKind(t, k), newKind(t, k)
		problems := Decode("x.yaml", example, want)
		problems = append(problems, Decode("x.yaml", append([]byte(bom), example...), a)...)
		problems = append(problems, Decode("x.yaml", append([]byte(bom+"---\n"), example...), b)...)
		if d := cmp.Diff(want, a) + cmp.Diff(want, b); d != "" || len(problems) > 0 {
			t.Errorf("%s: %s\n%s", k, lines(problems), d)
		}
	}
	fleet := repoOf(ruleFleet).
		with("releases/gateways/v1.5.0.yaml", bom+"apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.5.0}\nspec: {files: {/opt/a: {source: files/a}, /opt/b: {source: files/b, template: true}, /opt/c: {content: \""+bom+"c\"}}}\n").
		with("files/a", bom+"a\r\n").with("files/b", bom+"{{ .device.name }}\r\n")
	f := load(t, fleet)
	if !f.Valid() {
		t.Fatalf("%s", lines(f.Problems))
	}
	m := f.Member("gw-1").Rendered
	files := m.Spec["files"].(map[string]any)
	if got := files["/opt/c"].(map[string]any)["content"]; got != bom+"c" {
		t.Errorf("inline content is %q", got)
	}
	if got, want := files["/opt/a"].(map[string]any)["payload"], PayloadDigest([]byte(bom+"a\r\n")); got != want {
		t.Errorf("the payload is %v, want %s", got, want)
	}
	if got := string(m.Payloads[files["/opt/b"].(map[string]any)["payload"].(string)].Data); got != bom+"gw-1\r\n" {
		t.Errorf("the template renders to %q", got)
	}
}

// What is far too large is refused before it is read, and one such file hides
// no other problem.
func TestB38_HugeFiles(t *testing.T) {
	huge := "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: huge}\nspec: {vars: {a: " + strings.Repeat("x", 50<<20) + "}}\n"
	var d Device
	if problems := Decode("x.yaml", []byte(huge), &d); len(problems) != 1 || problems[0].Rule != ruleTooLarge {
		t.Errorf("%s", lines(problems))
	}
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'j'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10), ","))
	}
	src := repoOf(ruleFleet).with("devices/huge.yaml", huge).with("devices/bomb.yaml", bomb).with("devices/deep.yaml", strings.Repeat("[", 20000)).
		with("devices/typo.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: typo}\nspecc: {}\n")
	f := load(t, src)
	for file, rule := range map[string]string{"huge": ruleTooLarge, "bomb": "yaml-alias", "deep": "yaml-syntax", "typo": "unknown-field"} {
		if !slices.ContainsFunc(f.Problems, func(p Problem) bool { return p.File == "devices/"+file+".yaml" && p.Rule == rule }) {
			t.Errorf("%s: want %s in\n%s", file, rule, clip2(lines(f.Problems)))
		}
	}
	if f.Member("gw-1").Rendered == nil {
		t.Error("another device is not rendered")
	}
}

// A file without a document, or with more than one, is refused in every kind,
// and leaves what it was to be read into as it was.
func TestB39_B40_ExactlyOneDocument(t *testing.T) {
	for _, k := range Kinds() {
		example := string(must(yaml.Marshal(rawSchema(t, k)["examples"].([]any)[0])))
		for text, rule := range map[string]string{
			"": "yaml-empty", "\n\n": "yaml-empty", "# todo\n": "yaml-empty", "---\n# x\n---\n": "yaml-empty", "---\n...\n": "yaml-empty", "\ufeff": "yaml-empty",
			"null\n": "wrong-type", "--- ~\n": "wrong-type",
			example + "---\n" + example: "yaml-multiple-documents", "---\n" + example + "---\n": "yaml-multiple-documents",
			example + "...\n---\n" + example: "yaml-multiple-documents", example + "---\n# nothing\n": "yaml-multiple-documents",
		} {
			v := newKind(t, k)
			problems := Decode("x.yaml", []byte(text), v)
			if len(problems) == 0 || problems[0].Rule != rule && problems[len(problems)-1].Rule != rule {
				t.Errorf("%s: %.60q: want %s, got:\n%s", k, text, rule, lines(problems))
			}
			if d := cmp.Diff(newKind(t, k), v); d != "" {
				t.Errorf("%s: %.60q: it was filled: %s", k, text, d)
			}
		}
	}
	// A device whose file is empty neither leaves the fleet nor hides.
	f := load(t, repoOf(ruleFleet).with("devices/gw-1.yaml", "# todo\n"))
	if f.Valid() || f.Member("gw-1") == nil {
		t.Errorf("member %+v\n%s", f.Member("gw-1"), lines(f.Problems))
	}
}

// Every known name in every kind with a letter left out, or in other case, is
// either an unknown field, said where it stands, or a legal name of a map
// whose names people choose.
func TestB41_MisspeltNamesEverywhere(t *testing.T) {
	for _, k := range Kinds() {
		root := rawSchema(t, k)
		doc := fullDocument(t, k)
		hints := 0
		for _, s := range strands(doc, nil) {
			name := s.path[len(s.path)-1]
			if !s.key || name == "apiVersion" || name == "kind" || !fixedNames(root, s.path) {
				continue
			}
			for _, wrong := range []string{name[:len(name)-1] + "x" + name[len(name)-1:], strings.ToUpper(name[:1]) + name[1:], name + "s", "x-" + name} {
				text, line := changed(t, doc, s, wrong)
				problems := Decode("x.yaml", []byte(text), newKind(t, k))
				i := slices.IndexFunc(problems, func(p Problem) bool { return p.Line == line && p.Rule == "unknown-field" })
				if i < 0 {
					t.Errorf("%s: %s for %s is not refused in line %d:\n%s", k, wrong, joinPointer(s.path...), line, lines(problems))
					continue
				}
				if strings.Contains(problems[i].Hint, name) {
					hints++
				}
			}
		}
		if hints == 0 {
			t.Errorf("%s: no hint names what was meant", k)
		}
	}
}

// fixedNames tells whether the names at the place of a path are the schema's.
func fixedNames(root map[string]any, path []string) bool {
	node := root
	resolve := func() {
		for {
			ref, ok := node["$ref"].(string)
			if !ok {
				return
			}
			node = asMap(asMap(root["$defs"])[strings.TrimPrefix(ref, defsPrefix)])
		}
	}
	for i, step := range path {
		resolve()
		if props := asMap(node["properties"]); props != nil {
			if i == len(path)-1 {
				return props[step] != nil
			}
			node = asMap(props[step])
			continue
		}
		if items := asMap(node["items"]); items != nil {
			node = items
			continue
		}
		node = asMap(node["additionalProperties"])
		if node == nil || i == len(path)-1 {
			return false
		}
	}
	return false
}

// Wherever a mode stands, only what everybody reads alike is one.
func TestB42_ModesEverywhere(t *testing.T) {
	modes := 0
	for _, k := range []Kind{KindRelease, KindOverlay, KindDevice, KindAssignment} {
		for at, text := range map[string]string{
			"files":       "spec: {%sfiles: {/etc/a: {content: x, mode: %s}}%s}\n",
			"directories": "spec: {%sdirectories: {/opt/a: {mode: %s}}%s}\n",
		} {
			head := "apiVersion: gitopsd.dev/v1alpha1\nkind: " + string(k) + "\nmetadata: {name: a}\n"
			open, end := "", ""
			switch k {
			case KindOverlay, KindDevice:
				open, end = "desired: {", "}"
			case KindAssignment:
				head += "generation: 1\nfor: x\nattempt: 1\nversion: v1.0.0\ndigest: sha256:" + strings.Repeat("0", 64) + "\n"
			case KindRelease:
				head = strings.Replace(head, "name: a", "name: v1.0.0", 1)
			}
			for mode, ok := range map[string]bool{
				`"0644"`: true, `'0644'`: true, `"644"`: true, `"2775"`: true, `"4755"`: true, `"1777"`: true, `"0o644"`: false, `"0"`: false,
				"0644": false, "644": false, "420": false, "422": false, "0o644": false, "1000": false, "8": false, "-1": false, "0888": false,
				`"0888"`: false, `"-1"`: false, `"99999"`: false, `"07777777"`: false, `"u=rw"`: false, `"rw-r--r--"`: false, `""`: false, `" 0644"`: false,
				"null": false, "true": false, "[0644]": false, "6.44": false, "0x1a4": false,
			} {
				modes++
				if mode == "null" && open != "" {
					continue // takes the mode of the release away
				}
				problems := Decode("x.yaml", []byte(head+fmt.Sprintf(text, open, mode, end)), newKind(t, k))
				if hasErrors(problems) == ok {
					t.Errorf("%s %s: mode %s: ok is %v, want %v\n%s", k, at, mode, !ok, ok, lines(problems))
				}
				if slices.Contains([]string{"0644", "644", "420", "422", "0o644"}, mode) && !strings.Contains(lines(problems), `"0644"`) {
					t.Errorf("%s %s: mode %s: no hint shows how to write it:\n%s", k, at, mode, lines(problems))
				}
			}
		}
	}
	if modes < 100 {
		t.Errorf("only %d modes were tried", modes)
	}
}

// A policy that can never make progress is refused or warned of; to stop one
// there is a word of its own.
func TestB46_LimitsThatLetNobodyMove(t *testing.T) {
	for spec, want := range map[string]string{
		"maxInFlight: 0":    "error out-of-range: maxInFlight 0 would let nobody move [to stop a policy, give it paused: {reason: …}]",
		"maxInFlight: 0%":   "error out-of-range: maxInFlight 0% would let nobody move [to stop a policy, give it paused: {reason: …}]",
		"maxInFlight: -1":   "error",
		"maxInFlight: -5%":  "error",
		"maxInFlight: 101%": "error",
		"maxInFlight: half": "error",
		"minAvailable: 1, paused: {reason: shipping}": "",
		"minAvailable: 100%":                          "warning limit-never-works",
		"minAvailable: 3":                             "warning limit-never-works: 3 of 3 devices can never stay available while one moves",
		"minAvailable: 2":                             "",
		"maxInFlight: 1":                              "",
		"maxInFlight: 1%":                             "",
	} {
		src := repoOf(ruleFleet).with("policies/gateways.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: gateways}\nspec: {enabled: true, selector: {matchLabels: {role: gateway}}, targetVersion: v1.5.0, "+spec+"}\n")
		for _, id := range []string{"gw-2", "gw-3"} {
			src = src.with("devices/"+id+".yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: "+id+", labels: {role: gateway}}\n")
		}
		got := lines(load(t, src).Problems)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: want %q, got:\n%s", spec, want, got)
		}
	}
}

// A device that two policies select belongs to none, however often and in
// whatever order they are looked at; the message names both.
func TestB60_TwoPoliciesForOneDevice(t *testing.T) {
	policy := func(name, label, version string) string {
		return fmt.Sprintf("apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: %s}\nspec: {enabled: true, selector: {matchLabels: {%s}}, targetVersion: %s, releaseLine: gateways}\n", name, label, version)
	}
	src := repoOf(ruleFleet).
		with("policies/a.yaml", policy("a", "region: east", "v1.5.0")).
		with("policies/b.yaml", policy("b", "stage: prod", "v1.4.0")).
		with("releases/gateways/v1.4.0.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.4.0}\nspec: {files: {/etc/motd: {content: old}}}\n").
		with("devices/d1.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: d1, labels: {region: east, stage: prod}}\n")
	first := ""
	for range 100 {
		f := load(t, src)
		got := lines(f.Problems)
		if first == "" {
			first = got
		}
		if got != first {
			t.Fatalf("once it is\n%s\nand once\n%s", first, got)
		}
		if m := f.Member("d1"); f.Valid() || m.Rendered != nil || m.Policy != "" {
			t.Fatalf("it is governed by %q", m.Policy)
		}
		if f.Member("gw-1").Rendered == nil {
			t.Fatal("another device is not rendered")
		}
	}
	if !strings.Contains(first, "policy-overlap: the policies a and b both select d1") {
		t.Errorf("problems are\n%s", first)
	}
}

// A work tree with everything in it that is no file of the fleet: nothing is
// read through it, nothing hangs.
func TestB123_WorkTreeWithTraps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	outside := filepath.Join(t.TempDir(), "secret")
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(outside, "s3cret")
	for p, text := range repoOf(ruleFleet).files {
		write(filepath.Join(dir, p), text)
	}
	write(filepath.Join(dir, ".git/config"), "s3cret")
	for link, to := range map[string]string{
		"files/environ": "/proc/self/environ", "files/random": "/dev/urandom", "files/zero": "/dev/zero", "files/up": "../../secret", "files/abs": outside,
		"files/git": "../.git/config", "files/loop": "loop", "files/none": "nowhere", "files/dir": "/etc", "devices/d9.yaml": "gw-1.yaml", "files/inside": "../policies/gateways.yaml",
	} {
		if err := os.MkdirAll(filepath.Join(dir, "files"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "files/pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{
		"files/environ": ruleSourceKind, "files/random": ruleSourceKind, "files/zero": ruleSourceKind, "files/up": ruleSourceKind, "files/abs": ruleSourceKind,
		"files/git": ruleSourceKind, "files/loop": ruleSourceKind, "files/none": ruleSourceKind, "files/dir/passwd": ruleSourceKind, "files/inside": ruleSourceKind,
		"files/pipe": ruleSourceMissing, ".git/config": ruleSourcePath, "../secret": ruleSourcePath,
	} {
		write(filepath.Join(dir, "releases/gateways/v1.5.0.yaml"), "apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.5.0}\nspec: {files: {/etc/x: {source: "+source+", template: true}}}\n")
		src, err := DirSource(dir)
		if err != nil {
			t.Fatal(err)
		}
		f := load(t, src)
		got := lines(f.Problems)
		if !strings.Contains(got, " error "+want+": ") || !strings.Contains(got, "devices/d9.yaml:") {
			t.Errorf("%s: want %s and something about devices/d9.yaml, got:\n%s", source, want, got)
		}
		if strings.Contains(got, "s3cret") || strings.Contains(got, "PATH=") || f.Member("gw-1").Rendered != nil || f.Member("d9") != nil && f.Member("d9").Rendered != nil {
			t.Errorf("%s was read:\n%s", source, got)
		}
	}
}

// A folder of a work tree that is a repository of its own is what git would
// make of it: a submodule, with nothing in it.
func TestB27_SubmoduleInAWorkTree(t *testing.T) {
	dir := t.TempDir()
	files := repoOf(ruleFleet).with("releases/gateways/v1.5.0.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.5.0}\nspec: {files: {/etc/x: {source: files/sub/x}}}\n").
		with("files/sub/x", "x\n").with("files/sub/.git", "gitdir: ../../.git/modules/sub\n").files
	for p, text := range files {
		p = filepath.Join(dir, p)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	f := load(t, must(DirSource(dir)))
	if got := lines(f.Problems); !strings.Contains(got, " error "+ruleSourceKind+": ") || !strings.Contains(got, "submodule") {
		t.Errorf("problems are\n%s", got)
	}
}
