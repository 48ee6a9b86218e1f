package schema

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// The schemas of the kinds, and the definitions that they share. A kind may
// also name partial<X> and assigned<X>, which are derived from the definition
// <X>: see derive.
//
//go:embed schemas/*.json
var schemaFiles embed.FS

// Kinds lists every kind, in the order of the documentation.
func Kinds() []Kind {
	return []Kind{KindPolicy, KindRelease, KindOverlay, KindDevice, KindFleet, KindBrake, KindDeviceStatus, KindAssignment,
		KindFailureMarks, KindFleetStatus, KindReport, KindServeConfig, KindAgentConfig}
}

// JSONSchema is the published JSON Schema (2020-12) of a kind: one document
// that refers to nothing outside of itself.
func JSONSchema(k Kind) ([]byte, error) {
	tree, err := kindSchema(k)
	if err != nil {
		return nil, err
	}
	out, err := json.MarshalIndent(tree, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", k, err)
	}
	return append(out, '\n'), nil
}

// kindSchema reads the schema of a kind and adds the definitions that it uses.
func kindSchema(k Kind) (map[string]any, error) {
	if !slices.Contains(Kinds(), k) {
		return nil, fmt.Errorf("there is no kind %s; the kinds are %s", quote(string(k)), kindList())
	}
	tree, err := readSchema(strings.ToLower(string(k)) + ".json")
	if err != nil {
		return nil, err
	}
	shared, err := readSchema("defs.json")
	if err != nil {
		return nil, err
	}
	defs, _ := shared["$defs"].(map[string]any)
	used := map[string]any{}
	if err := collectRefs(tree, defs, used); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", k, err)
	}
	if len(used) > 0 {
		tree["$defs"] = used
	}
	return tree, nil
}

func kindList() string {
	var names []string
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

func readSchema(name string) (map[string]any, error) {
	data, err := schemaFiles.ReadFile("schemas/" + name)
	if err != nil {
		return nil, fmt.Errorf("embedded schema: %w", err)
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		return nil, fmt.Errorf("embedded schema %s: %w", name, err)
	}
	return tree, nil
}

const (
	defsPrefix     = "#/$defs/"
	partialPrefix  = "partial"
	assignedPrefix = "assigned"
)

// collectRefs adds to used every definition that node refers to.
func collectRefs(node any, defs, used map[string]any) error {
	switch n := node.(type) {
	case map[string]any:
		if ref, ok := n["$ref"].(string); ok {
			name := strings.TrimPrefix(ref, defsPrefix)
			if _, done := used[name]; !done {
				def, err := definition(name, defs)
				if err != nil {
					return err
				}
				used[name] = def
				if err := collectRefs(def, defs, used); err != nil {
					return err
				}
			}
		}
		for key, child := range n {
			if key == "examples" {
				continue // may hold anything
			}
			if err := collectRefs(child, defs, used); err != nil {
				return err
			}
		}
	case []any:
		for _, child := range n {
			if err := collectRefs(child, defs, used); err != nil {
				return err
			}
		}
	}
	return nil
}

func definition(name string, defs map[string]any) (any, error) {
	if def, ok := defs[name]; ok {
		return def, nil
	}
	for _, prefix := range []string{partialPrefix, assignedPrefix} {
		base, ok := strings.CutPrefix(name, prefix)
		if !ok || base == "" {
			continue
		}
		if def, ok := defs[strings.ToLower(base[:1])+base[1:]]; ok {
			return derive(def, prefix, defs), nil
		}
	}
	return nil, fmt.Errorf("no definition %s", quote(name))
}

// derive makes a variant of a definition. In a partial one nothing is required
// and null, which removes an entry when merged, is allowed wherever a value of
// a mapping stands. An assigned one is the same, but refers to what is written
// as assigned (a file with a payload in place of a source).
func derive(node any, prefix string, defs map[string]any) any {
	n, ok := node.(map[string]any)
	if !ok {
		return node
	}
	out := make(map[string]any, len(n))
	for key, child := range n {
		switch key {
		case "required":
			if prefix != partialPrefix {
				out[key] = child
			}
		case "properties":
			props := map[string]any{}
			for name, p := range child.(map[string]any) {
				props[name] = deriveValue(p, prefix, defs)
			}
			out[key] = props
		case "additionalProperties":
			out[key] = deriveValue(child, prefix, defs)
		default:
			out[key] = child
		}
	}
	return out
}

// deriveValue is derive for what stands as the value of a key. A reference is
// kept where the definition stays the same and cannot be null, else resolved.
func deriveValue(node any, prefix string, defs map[string]any) any {
	n, ok := node.(map[string]any)
	if !ok {
		return node
	}
	if ref, isRef := n["$ref"].(string); isRef {
		name := strings.TrimPrefix(ref, defsPrefix)
		if variant := prefix + strings.ToUpper(name[:1]) + name[1:]; prefix == assignedPrefix {
			if _, ok := defs[variant]; !ok {
				return node
			}
			assigned := maps.Clone(n) // with what is said of the field
			assigned["$ref"] = defsPrefix + variant
			return assigned
		}
		def, _ := defs[name].(map[string]any)
		resolved := maps.Clone(def)
		for key, v := range n {
			if key != "$ref" {
				resolved[key] = v
			}
		}
		n = resolved
	}
	out, _ := derive(n, prefix, defs).(map[string]any)
	if prefix == partialPrefix {
		out["type"] = nullable(out["type"])
	}
	return out
}

func nullable(t any) any {
	switch t := t.(type) {
	case string:
		return []any{t, "null"}
	case []any:
		return append(slices.Clone(t), "null")
	}
	return t
}

// compiledKind is a schema that was asked for; the others cost nothing.
type compiledKind struct {
	tree     func() (map[string]any, error) // its schema
	patterns *patterns
	once     sync.Once
	shape    *shape
	err      error

	// What is only for documents that are not plainly right: a fleet without
	// mistakes never pays for it.
	strictly sync.Once
	raw      map[string]any
	schema   *jsonschema.Schema
}

// compiledKinds is the one cache of the package: a schema is a constant, and
// compiling it once for all callers is what keeps an agent small.
var compiledKinds = func() map[Kind]*compiledKind {
	m := map[Kind]*compiledKind{}
	shared := &patterns{}
	for _, k := range Kinds() {
		m[k] = &compiledKind{tree: func() (map[string]any, error) { return kindSchema(k) }, patterns: shared}
	}
	return m
}()

func compiled(k Kind) (*compiledKind, error) {
	c, ok := compiledKinds[k]
	if !ok {
		return nil, fmt.Errorf("there is no kind %s; the kinds are %s", quote(string(k)), kindList())
	}
	c.once.Do(func() {
		var raw map[string]any
		if raw, c.err = c.tree(); c.err == nil {
			c.shape = newShape(raw, c.patterns)
		}
	})
	return c, c.err
}

// validate compares a value with the schema; the error is the library's.
func (c *compiledKind) validate(v any) error {
	if c.shape.accepts(v) {
		return nil
	}
	return c.strict().schema.Validate(v)
}

// strict is the kind with all that refusing takes.
func (c *compiledKind) strict() *compiledKind {
	c.strictly.Do(func() {
		var err error
		if c.raw, err = c.tree(); err == nil {
			c.schema, err = c.compile()
		}
		if err != nil {
			panic("schema: " + err.Error()) // what is embedded is wrong: tests compile all of it
		}
	})
	return c
}

func (c *compiledKind) compile() (*jsonschema.Schema, error) {
	id, _ := c.raw["$id"].(string)
	text, err := json.Marshal(c.raw)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", id, err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.Draft = jsonschema.Draft2020
	compiler.AssertFormat = true
	compiler.LoadURL = refuseURL
	if err := compiler.AddResource(id, bytes.NewReader(text)); err != nil {
		return nil, fmt.Errorf("schema %s: %w", id, err)
	}
	s, err := compiler.Compile(id)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", id, err)
	}
	return s, nil
}
