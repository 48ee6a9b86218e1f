package sweep

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

func TestSeenIsWrittenAsItChanges(t *testing.T) {
	dir := t.TempDir()
	open := func() *state {
		t.Helper()
		s, err := openState(dir, epoch, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	save := func(s *state, ids ...string) {
		t.Helper()
		for _, id := range ids {
			s.note(id)
		}
		if err := s.save(); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, seenFile)
	read := func() []byte {
		t.Helper()
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	lines := func() int { return bytes.Count(read(), []byte("\n")) }
	same := func(a *state) {
		t.Helper()
		if b := open(); !reflect.DeepEqual(a.seen, b.seen) {
			t.Fatalf("%d entries were written, %d came back", len(a.seen), len(b.seen))
		}
	}

	s := open()
	var all []string
	for i := range minAdded + 1 {
		id := benchID(i)
		s.seen[id] = &seenState{Install: "a", Sequence: 1, At: epoch}
		all = append(all, id)
	}
	save(s, all...)
	same(s)
	if n := lines(); n != 1 {
		t.Fatalf("what is all anew is %d lines", n)
	}
	size := len(read())
	s.seen["gw-00001"] = &seenState{Install: "a", Sequence: 2, At: epoch.Add(time.Minute)}
	delete(s.seen, "gw-00002")
	s.seen["gw-00003"].At = time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC) // cannot be written
	save(s, "gw-00001", "gw-00002", "gw-00003")
	same(s)
	if n := len(read()) - size; n == 0 || n > 500 {
		t.Fatalf("three entries are %d bytes", n)
	}
	save(s)
	if n := lines(); n != 2 {
		t.Fatalf("where nothing was heard there are %d lines", n)
	}

	// A line that was cut off is as if it had not been written.
	before := open()
	if err := os.WriteFile(file, append(read(), `{"gw-00001":{"insta`...), 0o600); err != nil {
		t.Fatal(err)
	}
	same(before)
	cut := open()
	cut.seen["gw-00004"] = &seenState{Install: "b", Sequence: 7, At: epoch}
	save(cut, "gw-00004")
	same(cut)

	for i := range 2 * minAdded {
		id := fmt.Sprintf("gw-%05d", i%5)
		cut.seen[id] = &seenState{Install: "c", Sequence: int64(i), At: epoch}
		save(cut, id)
	}
	same(cut)
	if n := lines(); n > len(cut.seen) {
		t.Fatalf("the file has %d lines", n)
	}

	// So it is with a file that ends without a line's end, as an older
	// program wrote it, and with one that is gone.
	for what, spoil := range map[string]func() error{
		"a cut end": func() error { return os.Truncate(file, int64(len(read())-1)) },
		"no file":   func() error { return os.Remove(file) },
	} {
		before := open()
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if what == "a cut end" {
			before = open()
		}
		before.note("gw-00001")
		if err := before.save(); err != nil {
			if err := before.save(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		same(before)
	}
}
