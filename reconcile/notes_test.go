package reconcile

import (
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
)

// A hold and a snooze meet trouble with the disk: what was said before counts or
// what is said now, never a half, and nothing is left beside it.
func TestNotesInTrouble(t *testing.T) {
	eachKind(t, 7, func(t *testing.T, kind string, lasting bool, n int) (more bool) {
		d := onV1(t)
		w := &trouble{d: d, fault: troubles[kind](d), at: 1 << 30, lasting: lasting}
		notes := d.notes(w.step)
		said := func() string {
			held, err := notes.Held()
			if err != nil {
				t.Fatal(err)
			}
			s, err := readSnooze(notes.root, notes.clock)
			if err != nil {
				t.Fatal(err)
			}
			text := "not held"
			if held != nil {
				text = *held
			}
			if s != nil {
				text += ", " + s.Reason
			}
			return text
		}
		steps := []struct {
			do   func() error
			from string
			to   string
		}{
			{func() error { return notes.Hold("a") }, "not held", "a"},
			{func() error { return notes.Hold("b") }, "a", "b"},
			{func() error { _, err := notes.Snooze(MaxSnooze, "c"); return err }, "b", "b, c"},
			{func() error { _, err := notes.Unhold(); return err }, "b, c", "not held, c"},
			{func() error { _, err := notes.Wake(); return err }, "not held, c", "not held"},
		}
		w.count, w.at = 0, n
		for _, s := range steps {
			err := s.do()
			if got := said(); got != s.to && (err == nil || got != s.from) {
				t.Errorf("after %v it is %q, from %q to %q", err, got, s.from, s.to)
			}
			if err != nil {
				w.over = true
				if err := s.do(); err != nil || said() != s.to {
					t.Errorf("when it is over: %v, %q", err, said())
				}
			}
		}
		d.agent().Close()
		if left := strays(d); len(left) > 0 {
			t.Errorf("%v stayed", left)
		}
		if t.Failed() {
			t.Logf("operation %d: %s", n, w.hit)
		}
		return w.count >= n
	})
}

// Who stops a device whose disk is full stops it: there is room set aside for
// that.
func TestHoldOnAFullDisk(t *testing.T) {
	for _, kind := range []string{"no space", "no inodes"} {
		d := onV1(t)
		full := troubles[kind](d)
		gone := false
		notes := d.notes(func(op, p string) error {
			if gone = gone || op == "remove" && strings.HasPrefix(p, ballastFile); gone && kind == "no space" {
				return nil
			}
			return full(op, p)
		})
		if err := notes.Hold("stop"); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		d.assign(2, "v1.1.0", v2(nil))
		d.wantOnce(0, "held on the device: stop")
	}
}

// notes are those of a device whose disk asks step.
func (d *device) notes(step func(op, path string) error) *Notes {
	d.t.Helper()
	root, err := disk.Open(d.root, disk.Options{Step: step})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { root.Close() })
	a := d.agent()
	defer a.Close()
	return &Notes{root: root, clock: a.clock}
}
