package schema

import "testing"

func TestUnusedArguments(t *testing.T) {
	cases := []struct {
		name string
		run  []any
		want int
	}{
		{"no shell", []any{"/usr/bin/check", "-c", "a", "b c"}, 0},
		{"one script", []any{"/bin/sh", "-c", "test -s a"}, 0},
		{"a script file with arguments", []any{"/bin/sh", "opt/check", "a b", "c"}, 0},
		{"cut at a comma", []any{"/bin/sh", "-c", "echo a", "b c"}, 3},
		{"cut to a single word", []any{"sh", "-c", "test -s a; echo done", "really"}, 3},
		{"cut inside quotes", []any{"sh", "-c", "awk '{print $1", "$2}' f"}, 3},
		{"another program's parameter", []any{"sh", "-c", "awk '{print $1}' f", "g h"}, 3},
		{"more flags", []any{"/bin/bash", "-e", "-uc", "echo a", "b"}, 4},
		{"arguments that are used", []any{"sh", "-c", `exec "$@"`, "name", "a b"}, 0},
		{"a numbered argument", []any{"sh", "-c", `test -s "${1}"`, "name", "a b"}, 0},
		{"a script that shifts", []any{"sh", "-c", "shift; echo", "a", "b"}, 0},
		{"nothing after the flag", []any{"sh", "-c"}, 0},
		{"empty", nil, 0},
		{"no strings", []any{int64(1), nil}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := unusedArguments(c.run); got != c.want {
				t.Errorf("%q: %d, want %d", c.run, got, c.want)
			}
		})
	}
}
