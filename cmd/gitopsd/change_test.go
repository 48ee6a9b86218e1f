package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/edit"
)

const starterDevice = "devices/example/gw-example-01.yaml"

func readFile(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func gitopsd(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(""), &out, &err, nil)
	return code, out.String(), err.String()
}

// TestAFileOfAnotherSystemStaysOne: line ends, a missing last one and the mode
// are as before.
func TestAFileOfAnotherSystemStaysOne(t *testing.T) {
	dir := starterFleet(t)
	file := filepath.Join(dir, starterDevice)
	before := strings.TrimSuffix(strings.ReplaceAll(readFile(t, dir, starterDevice), "\n", "\r\n"), "\r\n")
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o664); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := gitopsd(t, "hold", "gw-example-01", dir, "--reason", "disk"); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	want := strings.Replace(before, "spec:\r\n", "spec:\r\n  hold:\r\n    reason: disk\r\n", 1)
	if got := readFile(t, dir, starterDevice); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o664 {
		t.Errorf("mode %v, %v, want 0664", info.Mode(), err)
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != 1 {
		t.Errorf("something was left behind: %v, %v", entries, err)
	}
}

// TestAFileThatChangesMeanwhile is not overwritten.
func TestAFileThatChangesMeanwhile(t *testing.T) {
	dir := starterFleet(t)
	tree, err := openWorkTree(dir, "v1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	e, err := tree.hold("gw-example-01", "disk")
	if err != nil {
		t.Fatal(err)
	}
	const other = "# somebody else was here\n"
	if err := os.WriteFile(filepath.Join(dir, starterDevice), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeChanges(t.Context(), tree.dir, e.changes); !errors.Is(err, errChanged) {
		t.Errorf("got %v, want %v", err, errChanged)
	}
	if got := readFile(t, dir, starterDevice); got != other {
		t.Errorf("it was overwritten: %q", got)
	}
}

// TestWhatAKilledEditLeft goes with the next edit of the file, and nothing else
// does.
func TestWhatAKilledEditLeft(t *testing.T) {
	dir := starterFleet(t)
	folder := filepath.Join(dir, "policies")
	for _, name := range []string{".gateways.yaml6087041695109702659", ".gateways.yaml", ".gateways.yaml1.swp", ".other.yaml1"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("half of"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, stderr := gitopsd(t, "pause", "gateways", dir, "--reason", "fair"); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{".gateways.yaml", ".gateways.yaml1.swp", ".other.yaml1", "gateways.yaml"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

// TestManyAtOnce: each of several edits of one file is there at the end, or
// was told that it is not.
func TestManyAtOnce(t *testing.T) {
	dir := starterFleet(t)
	const many = 8
	var all sync.WaitGroup
	errs := make([]error, many)
	for i := range many {
		all.Go(func() {
			tree, err := openWorkTree(dir, "v1.0.0")
			if err != nil {
				errs[i] = err
				return
			}
			c, err := tree.edit("policies/gateways.yaml", edit.Form{}, step{path: []string{"spec", "rollbackFrom"}, value: "v" + string(rune('1'+i)) + ".0.0", more: true})
			if err != nil {
				errs[i] = err
				return
			}
			errs[i] = writeChanges(t.Context(), tree.dir, []fileChange{c})
		})
	}
	all.Wait()
	text := readFile(t, dir, "policies/gateways.yaml")
	done := 0
	for i, err := range errs {
		there := strings.Contains(text, "v"+string(rune('1'+i))+".0.0")
		switch {
		case err == nil:
			done++
		case !errors.Is(err, errChanged):
			t.Errorf("edit %d: %v", i, err)
		}
		if i > 0 && there != (err == nil) { // v1.0.0 is the target too
			t.Errorf("edit %d is there: %v, and its error is %v", i, there, err)
		}
	}
	if done == 0 {
		t.Error("none was done")
	}
}

// TestAReleaseIsMadeWholeOrNotAtAll: what was made is taken away when a later
// file cannot be.
func TestAReleaseIsMadeWholeOrNotAtAll(t *testing.T) {
	dir := starterFleet(t)
	tree, err := openWorkTree(dir, "v1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	gone := *tree.entry(starterDevice)
	gone.Path = "devices/gone.yaml"
	err = writeChanges(t.Context(), tree.dir, []fileChange{
		{path: "releases/gateways/v2.0.0/release.yaml", after: []byte("x")},
		{path: "releases/gateways/v2.0.0/deep/payload", copyOf: &gone},
	})
	if err == nil {
		t.Fatal("a payload that is gone was copied")
	}
	if _, err := os.Lstat(filepath.Join(dir, "releases/gateways/v2.0.0")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is left: %v", err)
	}
}

// TestAReleaseIsNoneBeforeItsPayloads: whoever is killed in the middle leaves no
// release that seems to be whole.
func TestAReleaseIsNoneBeforeItsPayloads(t *testing.T) {
	dir := starterFleet(t)
	tree, err := openWorkTree(dir, "v1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	const folder = "releases/gateways/v2.0.0"
	if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, folder, "payload"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	err = writeChanges(t.Context(), tree.dir, []fileChange{{path: folder + "/release.yaml", after: []byte("x")}, {path: folder + "/payload", after: []byte("y")}})
	if err == nil || !strings.Contains(err.Error(), "there is a file already") || readFile(t, dir, folder+"/payload") != "mine" {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, folder, "release.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the document was there before its payload: %v", err)
	}
}

// TestRetryIsAfterWhatHasFailed: a failure of this very second is forgotten.
func TestRetryIsAfterWhatHasFailed(t *testing.T) {
	tree, err := openWorkTree(starterFleet(t), "v1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	for now, want := range map[string]string{
		"2026-11-29T10:02:00Z":          "2026-11-29T10:02:00Z",
		"2026-11-29T10:02:00.2Z":        "2026-11-29T10:02:01Z",
		"2026-11-29T11:02:59.999+01:00": "2026-11-29T10:03:00Z",
	} {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		e, err := tree.retry("gw-example-01", at)
		if err != nil {
			t.Fatal(err)
		}
		if after := string(e.changes[0].after); !strings.Contains(after, "\n  forgetFailuresBefore: "+want+"\n") {
			t.Errorf("at %s: want %s in\n%s", now, want, after)
		}
	}
}

func TestSubject(t *testing.T) {
	if got, want := subject("%s: hold, %s", "gw-1", "a\nb"), "gw-1: hold, a b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := []rune(subject("%s", strings.Repeat("ä", 100))); len(got) != subjectLength || got[len(got)-1] != '…' {
		t.Errorf("got %d characters: %s", len(got), string(got))
	}
}
