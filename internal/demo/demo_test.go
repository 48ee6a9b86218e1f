package demo

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// build makes the program that the demonstration starts.
func build(t *testing.T) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "gitopsd")
	cmd := exec.Command("go", "build", "-o", exe, "./cmd/gitopsd")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build gitopsd: %v\n%s", err, out)
	}
	return exe
}

// withoutGit makes a PATH with what the example's hooks need, and no git.
func withoutGit(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for _, program := range []string{"sh", "sed", "date"} {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(dir, program)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

// TestStory: the whole story comes out as promised, and leaves nothing
// behind. Run itself counts; here it is the story that is checked.
func TestStory(t *testing.T) {
	if testing.Short() {
		t.Skip("the story takes most of a minute")
	}
	exe := build(t)
	withoutGit(t)
	dir := filepath.Join(t.TempDir(), "demo")
	var out, errs bytes.Buffer
	if err := Run(t.Context(), Config{Dir: dir, Out: &out, Err: &errs, Exe: exe}); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
	}
	at := 0
	for _, want := range []string{
		"v1.0.0 for every gateway",
		"v1.1.0 is merged",
		"v1.2.0 is merged",
		"could not reach control after the update and put v1.1.0 back",
		"byte for byte",
		"changed and merged under the same version",
		"tls is on, but edge.conf names no certificate",
		"byte for byte",
		"v1.2.1 is merged",
		"done: every gateway that may is on v1.2.1",
		"summary",
		"8 on v1.2.1",
		"blast radius of v1.2.0: 1 of 12 devices ever started it (gw-",
		"), in 2 attempts",
		" explain gw-",
	} {
		i := strings.Index(unwrap(out.String())[at:], want)
		if i < 0 {
			t.Fatalf("after %d bytes there is no %q in:\n%s", at, want, out.String())
		}
		at += i + len(want)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if left := processesOf(t, dir); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}

// TestInterrupted: nothing runs on, and nothing is left, whenever it is
// interrupted.
func TestInterrupted(t *testing.T) {
	exe := build(t)
	for _, after := range []time.Duration{0, 200 * time.Millisecond, 2 * time.Second} {
		dir := filepath.Join(t.TempDir(), "demo")
		ctx, cancel := context.WithTimeoutCause(t.Context(), after, errors.New("enough"))
		var out bytes.Buffer
		err := Run(ctx, Config{Dir: dir, Out: &out, Err: &out, Exe: exe, Terminal: true})
		cancel()
		if err == nil || !strings.Contains(err.Error(), "interrupted: enough") {
			t.Errorf("after %s: %v, want that it was interrupted\n%s", after, err, out.String())
		}
		if !strings.HasSuffix(out.String(), showCursor) {
			t.Errorf("after %s: the cursor stays hidden", after)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after %s: the folder is still there: %v", after, err)
		}
		if left := processesOf(t, dir); len(left) > 0 {
			t.Errorf("after %s: still running: %v", after, left)
		}
	}
}

// TestNeedsAnEmptyFolder: it writes into nobody's files.
func TestNeedsAnEmptyFolder(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine")
	if err := os.WriteFile(mine, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := Run(t.Context(), Config{Dir: dir, Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Exe: "/nonexistent"})
	if err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("got %v, want that it is not empty", err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
}

// TestProgramThatEndsAtOnce: the end of its output is the error.
func TestProgramThatEndsAtOnce(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(exe, []byte("#!/bin/sh\necho no such luck >&2\nexit 7\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := Run(t.Context(), Config{Dir: filepath.Join(t.TempDir(), "demo"), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Exe: exe})
	if err == nil || !strings.Contains(err.Error(), "no such luck") || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("got %v, want what the program printed and its exit status", err)
	}
}

// unwrap joins the lines of the narration again.
func unwrap(text string) string { return strings.Join(strings.Fields(text), " ") }

// processesOf lists the processes whose command line names a folder.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Fatalf("read /proc: %v", err)
	}
	var left []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil && bytes.Contains(data, []byte(dir)) {
			left = append(left, strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	return left
}
