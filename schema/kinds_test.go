package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

// newKind gives a pointer to a zero document of a kind.
func newKind(t testing.TB, k Kind) any {
	t.Helper()
	types := map[Kind]any{KindPolicy: &Policy{}, KindRelease: &Release{}, KindOverlay: &Overlay{}, KindDevice: &Device{}, KindFleet: &FleetDocument{}, KindBrake: &Brake{},
		KindDeviceStatus: &DeviceStatus{}, KindAssignment: &Assignment{}, KindFailureMarks: &FailureMarks{},
		KindFleetStatus: &FleetStatus{}, KindReport: &Report{}, KindServeConfig: &ServeConfig{}, KindAgentConfig: &AgentConfig{}}
	v, ok := types[k]
	if !ok {
		t.Fatalf("no Go type for kind %s", k)
	}
	return v
}

func rawSchema(t *testing.T, k Kind) map[string]any {
	t.Helper()
	text, err := JSONSchema(k)
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// Every object refuses unknown fields, every field has a description and an
// example that its own schema accepts.
func TestSchemasAreStrictAndDescribed(t *testing.T) {
	for _, k := range Kinds() {
		tree := rawSchema(t, k)
		if id, _ := tree["$id"].(string); !strings.HasPrefix(id, "https://gitopsd.dev/schemas/") {
			t.Errorf("%s: $id is %q", k, id)
		}
		if tree["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
			t.Errorf("%s: $schema is %v", k, tree["$schema"])
		}
		fields := 0
		var walk func(n any, at string)
		walk = func(n any, at string) {
			m, ok := n.(map[string]any)
			if !ok {
				return
			}
			isObject := fmt.Sprint(m["type"]) == "object" || strings.Contains(fmt.Sprint(m["type"]), "object")
			if _, has := m["additionalProperties"]; isObject && !has {
				t.Errorf("%s %s: an object without additionalProperties", k, at)
			}
			if m["additionalProperties"] == true {
				t.Errorf("%s %s: unknown fields are accepted", k, at)
			}
			if _, has := m["properties"]; has && m["additionalProperties"] != false {
				t.Errorf("%s %s: unknown fields are accepted", k, at)
			}
			for name, p := range asMap(m["properties"]) {
				fields++
				field := asMap(p)
				if s, _ := field["description"].(string); s == "" {
					t.Errorf("%s %s/%s: no description", k, at, name)
				}
				if ex, _ := field["examples"].([]any); len(ex) == 0 {
					t.Errorf("%s %s/%s: no examples", k, at, name)
				}
				walk(field, at+"/"+name)
			}
			walk(m["additionalProperties"], at+"/*")
			walk(m["items"], at+"/0")
			for name, d := range asMap(m["$defs"]) {
				walk(d, "$defs/"+name)
			}
		}
		walk(tree, "")
		if fields == 0 {
			t.Errorf("%s: no field was looked at", k)
		}
	}
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// Each schema's fields are exactly those of the Go type, so that neither can
// be changed alone.
func TestSchemasMatchTypes(t *testing.T) {
	for _, k := range Kinds() {
		tree := rawSchema(t, k)
		compareFields(t, string(k), tree, tree, reflect.TypeOf(newKind(t, k)).Elem())
	}
	tree := rawSchema(t, KindAssignment)
	spec := asMap(asMap(tree["$defs"])["assignedSpec"])
	compareFields(t, "assigned spec", tree, spec, reflect.TypeFor[Spec]())
}

func compareFields(t *testing.T, at string, root, node map[string]any, typ reflect.Type) {
	t.Helper()
	for {
		ref, ok := node["$ref"].(string)
		if !ok {
			break
		}
		node = asMap(asMap(root["$defs"])[strings.TrimPrefix(ref, defsPrefix)])
	}
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch typ.Kind() {
	case reflect.Map:
		if add := asMap(node["additionalProperties"]); add != nil {
			compareFields(t, at+"/*", root, add, typ.Elem())
		}
	case reflect.Slice:
		compareFields(t, at+"/0", root, asMap(node["items"]), typ.Elem())
	case reflect.Struct:
		props := asMap(node["properties"])
		if props == nil {
			return // a scalar that writes itself
		}
		names := map[string]reflect.Type{}
		fieldTypes(typ, names)
		for name := range props {
			if names[name] == nil {
				t.Errorf("%s: the schema has %s, the Go type has not", at, name)
			}
		}
		// What only an assigned file or only a repository's file has.
		either := map[string]bool{"payload": true, "source": true, "template": true}
		for name := range names {
			if _, ok := props[name]; !ok && !either[name] {
				t.Errorf("%s: the Go type has %s, the schema has not", at, name)
			}
		}
		for _, f := range fieldsOf(typ) {
			if p, ok := props[f.name]; ok {
				compareFields(t, at+"/"+f.name, root, asMap(p), typ.Field(f.index).Type)
			}
		}
	}
}

// The example of every kind is accepted, and comes back the same after being
// encoded.
func TestExamplesAreAccepted(t *testing.T) {
	for _, k := range Kinds() {
		for _, text := range exampleTexts(t, k) {
			v := newKind(t, k)
			if problems := Decode("x.yaml", text, v); len(problems) > 0 {
				t.Errorf("%s: %s: %v", k, text, problems)
				continue
			}
			out, err := Encode(v)
			if err != nil {
				t.Fatal(err)
			}
			again := newKind(t, k)
			if problems := Decode("x.yaml", out, again); len(problems) > 0 {
				t.Errorf("%s: encoded and read again: %v\n%s", k, problems, out)
			}
			if d := cmp.Diff(v, again); d != "" {
				t.Errorf("%s: encoding changed it: %s", k, d)
			}
		}
	}
}

// Every example of every field is accepted by the schema of that field.
func TestFieldExamplesAreValid(t *testing.T) {
	for _, k := range Kinds() {
		c, err := compiled(k)
		if err != nil {
			t.Fatal(err)
		}
		text := string(must(json.Marshal(c.strict().raw)))
		var walk func(n any, at string)
		walk = func(n any, at string) {
			m, ok := n.(map[string]any)
			if !ok {
				return
			}
			for name, p := range asMap(m["properties"]) {
				here := at + "/properties/" + escapePointer(name)
				s := compileAt(t, c.strict().raw["$id"].(string), text, here)
				for _, ex := range asMap(p)["examples"].([]any) {
					// Lists of results are shown shortened; their items have examples of their own.
					if _, isList := ex.([]any); isList && asMap(asMap(p)["items"])["properties"] != nil || asMap(asMap(p)["items"])["$ref"] != nil {
						continue
					}
					if err := s.Validate(ex); err != nil {
						t.Errorf("%s %s: example %v: %v", k, here, ex, err)
					}
				}
				walk(p, here)
			}
			walk(m["items"], at+"/items")
			walk(m["additionalProperties"], at+"/additionalProperties")
			for name, d := range asMap(m["$defs"]) {
				walk(d, at+"/$defs/"+name)
			}
		}
		walk(c.strict().raw, "")
	}
}

func TestJSONSchemaUnknownKind(t *testing.T) {
	if _, err := JSONSchema("Flock"); err == nil || !strings.Contains(err.Error(), "Policy") {
		t.Errorf("JSONSchema(Flock) = %v, want an error that lists the kinds", err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
func compileAt(t *testing.T, id, text, pointer string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat = true
	c.LoadURL = refuseURL
	if err := c.AddResource(id, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(id + "#" + pointer)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
