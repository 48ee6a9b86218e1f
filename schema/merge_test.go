package schema

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/gowebpki/jcs"
)

func tree(t *testing.T, text string) map[string]any {
	t.Helper()
	doc, problems := readDocument([]byte(text))
	if doc == nil {
		t.Fatal(text, lines(problems))
	}
	m, ok := doc.value.(map[string]any)
	if !ok {
		t.Fatalf("%s is no mapping", text)
	}
	return m
}

func TestMergeSpec(t *testing.T) {
	cases := []struct{ name, spec, part, want string }{
		{"add", `{files: {/a: {content: x}}}`, `{files: {/b: {content: y}}}`, `{files: {/a: {content: x}, /b: {content: y}}}`},
		{"remove", `{files: {/a: {content: x}, /b: {content: y}}}`, `{files: {/a: null}}`, `{files: {/b: {content: y}}}`},
		{"content replaces source", `{files: {/a: {source: f, mode: "0600"}}}`, `{files: {/a: {content: x}}}`, `{files: {/a: {content: x, mode: "0600"}}}`},
		{"source replaces contentBase64", `{files: {/a: {contentBase64: AAEC}}}`, `{files: {/a: {source: f}}}`, `{files: {/a: {source: f}}}`},
		{"mode leaves source", `{files: {/a: {source: f}}}`, `{files: {/a: {mode: "0600"}}}`, `{files: {/a: {source: f, mode: "0600"}}}`},
		{"null content leaves source", `{files: {/a: {source: f}}}`, `{files: {/a: {content: null}}}`, `{files: {/a: {source: f}}}`},
		{"lists are replaced", `{requires: {commands: [a, b]}}`, `{requires: {commands: [c]}}`, `{requires: {commands: [c]}}`},
		{"a scalar gives way to a mapping", `{confirm: "off"}`, `{confirm: {within: 1m}}`, `{confirm: {within: 1m}}`},
		{"a mapping gives way to a scalar", `{confirm: {within: 1m}}`, `{confirm: "off"}`, `{confirm: "off"}`},
		{"nulls in what is new", `{}`, `{hooks: {afterUpdating: {a: {run: [x], timeout: null}}}}`, `{hooks: {afterUpdating: {a: {run: [x]}}}}`},
	}
	for _, c := range cases {
		spec, part := tree(t, c.spec), tree(t, c.part)
		if d := cmp.Diff(tree(t, c.want), mergeSpec(spec, part, nil)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if d := cmp.Diff(tree(t, c.spec), spec); d != "" {
			t.Errorf("%s: the spec was changed: %s", c.name, d)
		}
		if d := cmp.Diff(tree(t, c.part), part); d != "" {
			t.Errorf("%s: the part was changed: %s", c.name, d)
		}
	}
}

func TestCompactSpec(t *testing.T) {
	spec := tree(t, `{files: {}, resources: {disk: {}}, hooks: {afterUpdating: {a: {env: {}, run: [], order: 0}}}, directories: {/a: {}, /b: {mode: null}, /c: null}, os: null}`)
	want := tree(t, `{hooks: {afterUpdating: {a: {run: [], order: 0}}}, directories: {/a: {}, /b: {}}}`)
	if d := cmp.Diff(want, compactSpec(spec)); d != "" {
		t.Error(d)
	}
	same := tree(t, `{files: {/a: {content: ""}}}`)
	if identity(compactSpec(same)) != identity(same) {
		t.Error("a spec with nothing to drop was copied")
	}
}

// randomTree makes trees over few keys, so that merging meets all cases.
func randomTree(rng *rand.Rand, depth int, nulls bool) any {
	switch n := rng.IntN(7); {
	case n < 3 && depth > 0:
		m := map[string]any{}
		for range rng.IntN(4) {
			m[string(rune('a'+rng.IntN(4)))] = randomTree(rng, depth-1, nulls)
		}
		return m
	case n == 3 && nulls:
		return nil
	case n == 4:
		return []any{int64(rng.IntN(3)), "x"}
	case n == 5:
		return int64(rng.IntN(1000) - 500)
	default:
		return []string{"", "x", "\u00e4\u2028", "a\"\\\n", "\U0001F600"}[rng.IntN(5)]
	}
}

// The library that does RFC 7386 on JSON text agrees.
func TestMergePatchAgrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for n := range 3000 {
		target, okT := randomTree(rng, 4, false).(map[string]any)
		patch, okP := randomTree(rng, 4, true).(map[string]any)
		if !okT || !okP {
			continue
		}
		a, b := must(json.Marshal(target)), must(json.Marshal(patch))
		want := must(jcs.Transform(must(jsonpatch.MergePatch(a, b))))
		if got := must(canonicalJSON(mergePatch(target, patch, nil))); string(got) != string(want) {
			t.Fatalf("case %d: %s with %s: got %s, want %s", n, a, b, got, want)
		}
	}
}
