package apps

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What a newer agent wrote besides is left out of account: an older one that
// comes back still knows what runs.
func TestRecordOfANewerAgent(t *testing.T) {
	w := stocked(t)
	w.must(mixedOne)
	before := w.record()
	p := filepath.Join(w.dir, "var/lib/gitopsd/apps.json")
	text, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.NewReplacer(`"format"`, `"later": {"x": [1]}, "format"`, `"hash"`, `"later": 1, "hash"`, `"name"`, `"later": 1, "name"`).Replace(string(text))
	if err := os.WriteFile(p, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := w.record(); got != before {
		t.Errorf("the record is\n%s\nwant\n%s", got, before)
	}
	w.must(none)
}

// What is no record is set aside, each by itself.
func TestRecordThatIsNone(t *testing.T) {
	w := newWorld(t)
	p := filepath.Join(w.dir, "var/lib/gitopsd/apps.json")
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		t.Fatal(err)
	}
	all := []string{"", "null", "{}", `{"format":1}{"format":1}`, `{"format":2}`}
	for n, text := range all {
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		w.record()
		if left, _ := filepath.Glob(p + ".*"); len(left) != n+1 {
			t.Errorf("%q: set aside are %v", text, left)
		}
	}
}

// A record that could not be synced is written again before it is relied on.
func TestRecordThatCouldNotBeSynced(t *testing.T) {
	w := stocked(t)
	w.must(mixedOne)
	failed, written := false, 0
	w.disk = func(op, p string) error {
		if op == "rename" && filepath.Base(p) == "apps.json" {
			written++
		}
		if op == "syncdir" && written == 1 && !failed {
			failed = true
			return syscall.EIO
		}
		return nil
	}
	a := w.agent()
	prepare := func() error { return a.Prepare(t.Context(), mixedTwo, nil, a.files.Ahead(whole(mixedTwo), nil)) }
	if err := prepare(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("got %v", err)
	}
	if err := prepare(); err != nil || written != 2 {
		t.Errorf("then %v; it was written %d times", err, written)
	}
	if err := prepare(); err != nil || written != 2 {
		t.Errorf("once more %v; it was written %d times", err, written)
	}
}
