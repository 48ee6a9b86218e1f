package schema

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// What is written the short way is what yaml/v3 writes, and nearly nothing is
// left to it that has a short form.
func TestWritePlain(t *testing.T) {
	scalars := []any{
		"v1.0.0", "a text of words", "sha256:0123", "1.10", "no", "", "a: b", "# a", `a "b" \ c`, "{", "- a", "x:", "~", " a", "a  b", "'", "2026-11-29T10:00:00Z",
		strings.Repeat("long words ", 50) + "end", strings.Repeat("1", 200), strings.Repeat("- ", 200), true, nil, 7, -3, 1.5, 1e21,
	}
	careful := []any{"ä", "a\nb", "a\tb", "\x7f", strings.Repeat("k", 129)}
	rng := rand.New(rand.NewPCG(1, 1))
	var tree func(depth int, from []any) any
	tree = func(depth int, from []any) any {
		n := rng.IntN(4)
		switch kind := rng.IntN(4); {
		case depth == 0 || kind > 1:
			return from[rng.IntN(len(from))]
		case kind == 0:
			list := make([]any, n)
			for i := range list {
				list[i] = tree(depth-1, from)
			}
			return list
		default:
			m := map[string]any{}
			for range n {
				key := fmt.Sprint(from[rng.IntN(len(from))])
				if len(key) > longPlainKey && len(from) == len(scalars) {
					key = "short"
				}
				m[key] = tree(depth-1, from)
			}
			return m
		}
	}
	compare := func(v map[string]any, always bool) {
		t.Helper()
		root, err := yamlNode(reflect.ValueOf(v))
		if err != nil {
			t.Fatal(err)
		}
		want, err := writeNode(root)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := writePlain(root)
		if ok && string(got) != string(want) || !ok && always {
			t.Fatalf("%v: %v\n%s\nwant\n%s", v, ok, got, want)
		}
	}
	for range 1000 {
		compare(map[string]any{"a": tree(5, scalars), "b": tree(3, scalars)}, true)
		compare(map[string]any{"a": tree(4, append(careful, scalars...)), "b": tree(3, careful)}, false)
	}
	for _, s := range awkward {
		compare(map[string]any{"a": s, "b": []any{s, map[string]any{s: s}}, s: map[string]any{s: []any{}}}, false)
	}
}
