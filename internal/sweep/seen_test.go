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
	log := func() []byte {
		data, err := os.ReadFile(filepath.Join(dir, logFile))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return data
	}
	same := func(a *state) {
		t.Helper()
		if b := open(); !reflect.DeepEqual(a.seen, b.seen) {
			t.Fatalf("%d entries were written, %d came back", len(a.seen), len(b.seen))
		}
	}

	s := open()
	var all []string
	for i := range minLogged + 1 {
		id := benchID(i)
		s.seen[id] = &seenState{Install: "a", Sequence: 1, At: epoch}
		all = append(all, id)
	}
	save(s, all...)
	same(s)
	if len(log()) > 0 {
		t.Fatal("what is all anew is written whole")
	}
	s.seen["gw-00001"] = &seenState{Install: "a", Sequence: 2, At: epoch.Add(time.Minute)}
	delete(s.seen, "gw-00002")
	s.seen["gw-00003"].At = time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC) // cannot be written
	save(s, "gw-00001", "gw-00002", "gw-00003")
	same(s)
	if n := len(log()); n == 0 || n > 500 {
		t.Fatalf("three entries are %d bytes", n)
	}
	save(s)
	if n := bytes.Count(log(), []byte("\n")); n != 1 {
		t.Fatalf("where nothing was heard there are %d lines", n)
	}

	// A line that was cut off is as if it had not been written.
	before := open()
	if err := os.WriteFile(filepath.Join(dir, logFile), append(log(), `{"gw-00001":{"insta`...), 0o600); err != nil {
		t.Fatal(err)
	}
	same(before)
	cut := open()
	cut.seen["gw-00004"] = &seenState{Install: "b", Sequence: 7, At: epoch}
	save(cut, "gw-00004")
	same(cut)

	for i := range minLogged {
		id := fmt.Sprintf("gw-%05d", i%5)
		cut.seen[id] = &seenState{Install: "c", Sequence: int64(i), At: epoch}
		save(cut, id)
	}
	same(cut)
	if n := bytes.Count(log(), []byte("\n")); n == 0 || n > minLogged {
		t.Fatalf("the log has %d lines", n)
	}
}
