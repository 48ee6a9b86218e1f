package schema

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
)

// fakeSource is a revision in memory; modes holds what is no regular file.
type fakeSource struct {
	files map[string]string
	modes map[string]EntryMode
	reads atomic.Int32
	fail  string // reading this path gives an error
}

func (s *fakeSource) Entries() ([]Entry, error) {
	var entries []Entry
	for p, text := range s.files {
		entries = append(entries, Entry{Path: p, Mode: s.modes[p], ID: gitID(text), Size: int64(len(text))})
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Path < entries[j].Path })
	return entries, nil
}

var errFake = errors.New("the disk is gone")

func (s *fakeSource) Read(e Entry, limit int64) ([]byte, error) {
	s.reads.Add(1)
	if e.Path == s.fail {
		return nil, errFake
	}
	text := s.files[e.Path]
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("read %s: %w", e.Path, ErrTooLarge)
	}
	return []byte(text), nil
}

func gitID(text string) string {
	h := newBlobHash(int64(len(text)))
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil))
}

// repoOf reads a revision in the form of txtar: "-- path --" and content.
func repoOf(text string) *fakeSource {
	s := &fakeSource{files: map[string]string{}, modes: map[string]EntryMode{}}
	for _, part := range strings.Split("\n"+text, "\n-- ")[1:] {
		name, content, _ := strings.Cut(part, " --\n")
		s.files[name] = strings.TrimSuffix(content, "\n") + "\n"
	}
	return s
}

func (s *fakeSource) with(path, content string) *fakeSource {
	out := &fakeSource{files: map[string]string{}, modes: s.modes}
	for p, c := range s.files {
		out.files[p] = c
	}
	out.files[path] = content
	return out
}

func load(t *testing.T, src Source) *Fleet {
	t.Helper()
	f, err := new(Loader).Load(src)
	if err != nil {
		t.Fatal(err)
	}
	sameProblemsOnly(t, src, f)
	return f
}

// sameProblemsOnly looks at a source in the frugal way, with and without
// readers of their own.
func sameProblemsOnly(t *testing.T, src Source, want *Fleet) {
	t.Helper()
	for _, readers := range []int{0, 2} {
		got, err := (&Loader{ProblemsOnly: true, Readers: readers}).Load(src)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := lines(got.Problems), lines(want.Problems); a != b {
			t.Fatalf("with %d readers, problems only:\n%s\nall of it:\n%s", readers, a, b)
		}
		if got.Files != want.Files || len(got.Policies) != len(want.Policies) || len(got.Devices) != len(want.Devices) {
			t.Fatalf("with %d readers %d files, %d policies, %d devices; else %d, %d, %d", readers,
				got.Files, len(got.Policies), len(got.Devices), want.Files, len(want.Policies), len(want.Devices))
		}
		seen := map[*Member]bool{}
		for i, m := range got.Devices {
			w := *want.Devices[i]
			w.Device, w.Rollout, w.Rendered = m.Device, "", nil
			if seen[m] { // it has the name of an earlier one
				w.ID, w.Path = m.ID, m.Path
			}
			seen[m] = true
			if !reflect.DeepEqual(*m, w) || !maps.Equal(m.Labels(), want.Devices[i].Labels()) {
				t.Fatalf("problems only: %+v\nall of it: %+v", *m, *want.Devices[i])
			}
		}
	}
}

func lines(problems []Problem) string {
	var b strings.Builder
	for _, p := range problems {
		fmt.Fprintf(&b, "%s:%d:%d %s %s %s: %s", p.File, p.Line, p.Column, p.Pointer, p.Severity, p.Rule, p.Message)
		if p.Hint != "" {
			fmt.Fprintf(&b, " [%s]", p.Hint)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestDirSource(t *testing.T) {
	dir := t.TempDir()
	write := func(p, text string, mode os.FileMode) {
		t.Helper()
		full := filepath.Join(dir, p)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("devices/a.yaml", "hello\n", 0o644)
	write("files/run", "x", 0o755)
	write(".git/config", "secret", 0o644)
	write("sub/.git", "gitdir: elsewhere", 0o644)
	write("sub/file", "x", 0o644)
	write("files/big", strings.Repeat("x", keptFile+1), 0o644)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "files/link")); err != nil {
		t.Fatal(err)
	}
	src, err := DirSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := src.Entries()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, fmt.Sprintf("%s %d %.7s", e.Path, e.Mode, e.ID))
	}
	want := []string{"devices/a.yaml 0 ce01362", "files/big 0 " + gitID(strings.Repeat("x", keptFile+1))[:7],
		"files/link 2 ", "files/run 1 c1b0730", "sub 3 "}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("entries: got %q, want %q", got, want)
	}
	for _, e := range entries {
		data, err := src.Read(e, 10)
		switch e.Path {
		case "devices/a.yaml":
			if string(data) != "hello\n" || err != nil {
				t.Errorf("read %s: %q, %v", e.Path, data, err)
			}
		case "files/big":
			if !errors.Is(err, ErrTooLarge) {
				t.Errorf("read %s: %v, want ErrTooLarge", e.Path, err)
			}
		case "files/link", "sub":
			if err == nil {
				t.Errorf("read %s: %q, want an error: it is no file of the repository", e.Path, data)
			}
		}
	}
	if _, err := DirSource(filepath.Join(dir, "nothing")); err == nil {
		t.Error("DirSource of a missing folder: no error")
	}
}

// An editor that replaces a file has another one beside it for a moment. One that
// is gone again when it would be read is not there.
func TestAFileThatVanishesIsNotThere(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, ".gateways.yaml123")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := openDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := os.ReadDir(dir)
	if err != nil || len(listed) != 1 {
		t.Fatal(listed, err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if e, ok, err := s.entry(listed[0].Name(), listed[0]); ok || err != nil {
		t.Errorf("%+v, %v, %v", e, ok, err)
	}
}
