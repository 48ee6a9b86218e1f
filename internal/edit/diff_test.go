package edit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDiff(t *testing.T) {
	const old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12"
	for _, c := range []struct{ name, before, after, want string }{
		{"a line", old, strings.Replace(old, "5\n", "five\n", 1), "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		{"two places", old, strings.Replace(strings.Replace(old, "2\n", "2\nnew\n", 1), "11\n", "", 1),
			"@@ -1,5 +1,6 @@\n 1\n 2\n+new\n 3\n 4\n 5\n@@ -8,5 +9,4 @@\n 8\n 9\n 10\n-11\n 12\n\\ No newline at end of file\n"},
		{"the last line", old, old + "\n13", "@@ -9,4 +9,5 @@\n 9\n 10\n 11\n-12\n\\ No newline at end of file\n+12\n+13\n\\ No newline at end of file\n"},
		{"all", "a\n", "", "@@ -1 +0,0 @@\n-a\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, want := Diff("f", []byte(c.before), []byte(c.after)), "--- a/f\n+++ b/f\n"+c.want; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
	if got := Diff("f", []byte(old), []byte(old)); got != "" {
		t.Errorf("the same: got %q", got)
	}
	if got, want := Diff("d/f", nil, []byte("a\n")), "--- /dev/null\n+++ b/d/f\n@@ -0,0 +1 @@\n+a\n"; got != want {
		t.Errorf("a new file: got %q, want %q", got, want)
	}
	if got, want := Diff("my site/f", []byte("a\n"), []byte("b\n")), "--- a/my site/f\t\n+++ b/my site/f\t\n@@ -1 +1 @@\n-a\n+b\n"; got != want {
		t.Errorf("a name with a space: got %q, want %q", got, want)
	}
}

// TestDiffApplies lets git carry out what is shown.
func TestDiffApplies(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git carries the diffs out, and is not here")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	text := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\r\n", "\n", "d"}), 0, 12), func(l []string) string { return strings.Join(l, "") })
	// A process for each is slow, and the shapes are few.
	for seed := range 40 {
		before, after := text.Example(seed), text.Example(seed+1000)
		if before == after || before == "" || after == "" {
			continue
		}
		if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("git", "apply", "--whitespace=nowarn", "-")
		cmd.Dir = dir
		cmd.Stdin = strings.NewReader(Diff("f", []byte(before), []byte(after)))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q to %q: %v\n%s\n%s", before, after, err, out, Diff("f", []byte(before), []byte(after)))
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != after {
			t.Fatalf("%q to %q became %q, %v", before, after, got, err)
		}
	}
}
