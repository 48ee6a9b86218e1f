package schema

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
)

// strangers are values that hardly any field takes.
func strangers() []any {
	return []any{nil, true, int64(-1), int64(0), int64(7), int64(1) << 52, 0.5, float64(2), "", "x", "7", "10%", "5m", "v1.5.0", "ä b", "2026-11-29T10:02:00Z", "2026-11-29T10:02:60Z", "2026-02-30T10:02:00Z", "none",
		"sha256:00", []any{}, []any{"x"}, []any{nil}, map[string]any{}, map[string]any{"x": "y"}, map[string]any{"reason": "x"}}
}

// mutated gives a tree in which one value somewhere is replaced, removed or
// added.
func mutated(rng *rand.Rand, v any) any {
	stranger := func() any { s := strangers(); return s[rng.IntN(len(s))] }
	switch n := v.(type) {
	case map[string]any:
		out := cloneMap(n)
		keys := sortedKeys(n)
		switch {
		case len(keys) == 0 || rng.IntN(8) == 0:
			out[[]string{"x", "kind", "reason", "/etc/x", "a/b", "ä", ""}[rng.IntN(7)]] = stranger()
		case rng.IntN(8) == 0:
			delete(out, keys[rng.IntN(len(keys))])
		default:
			k := keys[rng.IntN(len(keys))]
			out[k] = mutated(rng, n[k])
		}
		return out
	case []any:
		if len(n) == 0 || rng.IntN(4) == 0 {
			return append(slices.Clone(n), stranger())
		}
		out := slices.Clone(n)
		i := rng.IntN(len(n))
		out[i] = mutated(rng, n[i])
		return out
	}
	return stranger()
}

// What is accepted without the library, the library accepts; and what the
// library accepts is mostly accepted without it, or nothing would be gained.
func TestShapesAgreeWithTheLibrary(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1)) //nolint:gosec // a test that repeats itself
	for _, k := range Kinds() {
		c, err := compiled(k)
		if err != nil {
			t.Fatal(err)
		}
		library := c.strict().schema
		accepted, valid, all := 0, 0, 0
		for _, text := range exampleTexts(t, k) {
			doc, problems := parseDocument(text)
			if doc == nil {
				t.Fatalf("%s: %v", k, problems)
			}
			for range 400 {
				v := doc.value
				for range rng.IntN(3) {
					v = mutated(rng, v)
				}
				err := library.Validate(v)
				if all++; err == nil {
					valid++
				}
				if c.shape.accepts(v) {
					if accepted++; err != nil {
						text, _ := json.Marshal(v)
						t.Fatalf("%s: accepted is %s\n%v", k, text, err)
					}
				}
			}
		}
		t.Logf("%s: of %d, %d are valid and %d accepted", k, all, valid, accepted)
		if valid == all || accepted < valid/5 {
			t.Errorf("%s: of %d, %d are valid and %d accepted", k, all, valid, accepted)
		}
	}
}

func TestAShapeThatIsNotUnderstoodAcceptsNothing(t *testing.T) {
	for _, raw := range []string{`{"oneOf": [{}]}`, `{"format": "uri"}`, `{"properties": {"a": {"not": {}}}}`, `{"pattern": "("}`, `{"items": [{}]}`,
		`{"additionalProperties": {"if": {}}}`, `{"$ref": "#/$defs/none"}`} {
		var tree map[string]any
		if err := json.Unmarshal([]byte(raw), &tree); err != nil {
			t.Fatal(err)
		}
		s := newShape(tree, &patterns{})
		for _, v := range []any{"x", map[string]any{"a": "b"}, []any{"x"}} {
			if _, isList := v.([]any); !isList && tree["items"] != nil {
				continue
			}
			if _, isMap := v.(map[string]any); !isMap && (tree["properties"] != nil || tree["additionalProperties"] != nil) {
				continue
			}
			if _, isString := v.(string); !isString && tree["pattern"] != nil {
				continue
			}
			if s.accepts(v) {
				t.Errorf("%s accepts %v", raw, v)
			}
		}
	}
}
