package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestADiffOnATerminal has colours, unless they are unwanted, and shows what
// would steer the terminal as an escape.
func TestADiffOnATerminal(t *testing.T) {
	dir := starterFleet(t)
	file := filepath.Join(dir, starterDevice)
	text := strings.Replace(readFile(t, dir, starterDevice), "spec:\n", "spec:\n  # \u202eold\n", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"hold", "gw-example-01", dir, "--reason", "disk", "--dry-run"}
	colored := onTerminal(t, 80, []string{"TERM=xterm"}, args...)
	for _, want := range []string{"\x1b[32m+  hold:\x1b[0m", "\x1b[36m@@ ", `# \u202eold`} {
		if !strings.Contains(colored, want) {
			t.Errorf("no %q in\n%q", want, colored)
		}
	}
	if plain := onTerminal(t, 80, []string{"TERM=xterm", "NO_COLOR=1"}, args...); strings.ContainsAny(plain, "\x1b\u202e") || !strings.Contains(plain, "+  hold:") {
		t.Errorf("got %q", plain)
	}
}
