//go:build system

package agreement

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// corpus makes documents of every kind from their own schemas: some as the
// schema wants them, some with one thing changed.
type corpus struct {
	rng  *rand.Rand
	defs map[string]any
}

func schemaOf(t *testing.T, k schema.Kind) map[string]any {
	t.Helper()
	text, err := schema.JSONSchema(k)
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]any
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	return raw
}

func asMap(v any) map[string]any { m, _ := v.(map[string]any); return m }

// value makes a value of a schema: an example of it, or one put together.
func (c *corpus) value(node map[string]any, depth int) any {
	examples, _ := node["examples"].([]any)
	if fixed, ok := node["const"]; ok {
		return fixed
	}
	if len(examples) > 0 && (depth > 4 || c.rng.IntN(3) == 0) {
		return examples[c.rng.IntN(len(examples))]
	}
	if ref, ok := node["$ref"].(string); ok {
		merged := maps.Clone(asMap(c.defs[strings.TrimPrefix(ref, "#/$defs/")]))
		for k, v := range node {
			if k != "$ref" {
				merged[k] = v
			}
		}
		return c.value(merged, depth)
	}
	if allowed, ok := node["enum"].([]any); ok {
		return allowed[c.rng.IntN(len(allowed))]
	}
	if props := asMap(node["properties"]); props != nil {
		out := map[string]any{}
		required, _ := node["required"].([]any)
		for _, name := range slices.Sorted(maps.Keys(props)) {
			if slices.Contains(required, any(name)) || c.rng.IntN(4) == 0 {
				out[name] = c.value(asMap(props[name]), depth+1)
			}
		}
		return out
	}
	if len(examples) > 0 {
		return examples[c.rng.IntN(len(examples))]
	}
	if items := asMap(node["items"]); items != nil {
		return []any{c.value(items, depth+1)}
	}
	return map[string]any{}
}

// strangers are values that hardly any field takes.
var strangers = []any{nil, true, -1, 0, 7, 1e9, 0.5, "", "x", "7", "10%", "5m", "v1.5.0", "a b", "none", "2026-11-29T10:02:00Z",
	[]any{}, []any{"x"}, map[string]any{}, map[string]any{"x": "y"}, map[string]any{"reason": "x"}, strings.Repeat("x", 5000)}

// broken is a tree in which one thing is another one.
func (c *corpus) broken(v any) any {
	stranger := strangers[c.rng.IntN(len(strangers))]
	switch n := v.(type) {
	case map[string]any:
		out, keys := maps.Clone(n), slices.Sorted(maps.Keys(n))
		switch {
		case len(keys) == 0 || c.rng.IntN(6) == 0:
			out[[]string{"x", "spec", "reason", "/etc/x", "Name"}[c.rng.IntN(5)]] = stranger
		case c.rng.IntN(6) == 0:
			delete(out, keys[c.rng.IntN(len(keys))])
		default:
			k := keys[c.rng.IntN(len(keys))]
			out[k] = c.broken(n[k])
		}
		return out
	case []any:
		if len(n) == 0 || c.rng.IntN(3) == 0 {
			return append(slices.Clone(n), stranger)
		}
		out, i := slices.Clone(n), c.rng.IntN(len(n))
		out[i] = c.broken(n[i])
		return out
	}
	return stranger
}

// blank gives an empty document of a kind to decode into.
func blank(t testing.TB, k schema.Kind) any {
	t.Helper()
	switch k {
	case schema.KindPolicy:
		return &schema.Policy{}
	case schema.KindRelease:
		return &schema.Release{}
	case schema.KindOverlay:
		return &schema.Overlay{}
	case schema.KindDevice:
		return &schema.Device{}
	case schema.KindFleet:
		return &schema.FleetDocument{}
	case schema.KindBrake:
		return &schema.Brake{}
	case schema.KindDeviceStatus:
		return &schema.DeviceStatus{}
	case schema.KindAssignment:
		return &schema.Assignment{}
	case schema.KindFailureMarks:
		return &schema.FailureMarks{}
	case schema.KindFleetStatus:
		return &schema.FleetStatus{}
	case schema.KindReport:
		return &schema.Report{}
	case schema.KindServeConfig:
		return &schema.ServeConfig{}
	case schema.KindAgentConfig:
		return &schema.AgentConfig{}
	}
	t.Fatalf("the kind %s is not known here", k)
	return nil
}
