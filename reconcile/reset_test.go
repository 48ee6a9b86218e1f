package reconcile

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/schema"
)

func agreed(*Comparison) (bool, error) { return true, nil }

// factory is what a device is before its first release.
func factory(t *testing.T) string {
	t.Helper()
	d := newDevice(t)
	d.write("/etc/edge/edge.conf", "from the factory\n")
	return d.snapshot()
}

// A reset that is cut anywhere goes on with the next one, and ends with the
// device as it was and without any state.
func TestResetIsCutAnywhere(t *testing.T) {
	want := factory(t)
	for n := 1; ; n++ {
		d := onV1(t)
		c := &crasher{at: n}
		d.cfg.Step = c.step
		_, first := Reset(t.Context(), d.cfg, agreed)
		d.cfg.Step = nil
		if !c.crashed {
			if first != nil || n < 10 {
				t.Fatalf("after %d operations: %v", n, first)
			}
			break
		}
		if _, err := Reset(t.Context(), d.cfg, agreed); err != nil && !errors.Is(err, ErrNoState) {
			t.Fatalf("cut at %s, the next one says %v", c.where, err)
		}
		if got := d.snapshot(); got != want {
			t.Fatalf("cut at %s, the device is\n%s\nwant\n%s", c.where, got, want)
		}
		if list, err := os.ReadDir(d.host(stateDir)); err == nil && len(list) > 0 && !onlyAside(list) {
			t.Fatalf("cut at %s, of the state there is %v", c.where, list)
		}
	}
}

// onlyAside says whether all that is left was set aside, or says nothing.
func onlyAside(list []os.DirEntry) bool {
	for _, e := range list {
		if !strings.Contains(e.Name(), disk.AsideMark) && e.Name() != lockName {
			return false
		}
	}
	return true
}

// Where an agent comes instead of the next reset, it ends on one of the two. The
// installation that was told to run what is gone has not failed: it is no more.
func TestAgentAfterAResetThatWasCut(t *testing.T) {
	want := map[string]bool{factory(t): true, onV1(t).snapshot(): true}
	for n := 1; ; n++ {
		d := onV1(t)
		was := d.control.last().InstallID
		c := &crasher{at: n}
		d.cfg.Step = c.step
		_, _ = Reset(t.Context(), d.cfg, agreed) // it is dead: what it says does not matter
		d.cfg.Step = nil
		if !c.crashed {
			return
		}
		d.control.delivery.Assignment = nil // nobody assigns anything
		d.control.delivery.Revision = ""
		d.once()
		if got := d.snapshot(); !want[got] {
			t.Fatalf("cut at %s, the device is\n%s", c.where, got)
		}
		if r := d.control.last(); r.InstallID == was && (r.Current.Version != "v1.0.0" || r.Outcome != schema.OutcomeOK) {
			t.Fatalf("cut at %s, the installation that had v1.0.0 reports %q, %s of attempt %d", c.where, r.Current.Version, r.Phase, r.Attempt)
		}
	}
}

func TestResetAsks(t *testing.T) {
	d := onV1(t)
	before := d.snapshot()
	var plan *Comparison
	if _, err := Reset(t.Context(), d.cfg, func(c *Comparison) (bool, error) { plan = c; return false, nil }); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range plan.Changes {
		got = append(got, c.Do+" "+c.Name)
	}
	if s := strings.Join(got, "|"); s != "restore /etc/edge/edge.conf|remove /etc/edge/only-1" {
		t.Errorf("the plan is %s", s)
	}
	if d.snapshot() != before || d.content(currentFile) == "" {
		t.Error("a no has changed something")
	}
	no := errors.New("no terminal")
	if _, err := Reset(t.Context(), d.cfg, func(*Comparison) (bool, error) { return true, no }); !errors.Is(err, no) {
		t.Errorf("an answer that fails: %v", err)
	}
	a := d.agent()
	if _, err := Reset(t.Context(), d.cfg, agreed); !errors.Is(err, ErrLocked) {
		t.Errorf("beside an agent: %v", err)
	}
	a.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Reset(ctx, d.cfg, agreed); err == nil || d.content(attemptsFile) == "" {
		t.Errorf("stopped: %v", err)
	}
	if _, err := Reset(t.Context(), d.cfg, agreed); err != nil || d.content(attemptsFile) != "" {
		t.Errorf("after all: %v", err)
	}
}

// What cannot be put back keeps the state, and the next one goes on.
func TestResetThatCannotFinish(t *testing.T) {
	d := onV1(t)
	d.remove("/etc/edge/only-1")
	d.write("/etc/edge/only-1/in-the-way", "a folder\n")
	d.remove("/etc/edge/edge.conf")
	d.write("/etc/edge/edge.conf/in-the-way", "a folder\n")
	done, err := Reset(t.Context(), d.cfg, agreed)
	if err != nil {
		t.Fatalf("what stands in the way is not ours: %v", err)
	}
	if len(done.Kept) == 0 || d.content(stateDir+"/attempts.json") != "" {
		t.Errorf("kept %v", done.Kept)
	}

	d = onV1(t)
	d.cfg.Step = func(op, p string) error {
		if strings.Contains(p, "only-1") {
			return errDead
		}
		return nil
	}
	if _, err := Reset(t.Context(), d.cfg, agreed); err == nil || !strings.Contains(err.Error(), "rollback incomplete: ") {
		t.Errorf("a file that cannot be removed: %v", err)
	}
	if d.content(managedFile) == "" || d.content(attemptsFile) == "" {
		t.Error("the state is gone")
	}
	d.cfg.Step = nil
	if _, err := Reset(t.Context(), d.cfg, agreed); err != nil || d.snapshot() != factory(t) {
		t.Errorf("the next one: %v\n%s", err, d.snapshot())
	}
}

// What was there before and cannot be given back, because the record of it was
// damaged, is kept for a person, with that record.
func TestResetKeepsWhatWasSetAside(t *testing.T) {
	d := onV1(t)
	d.write(managedFile, "{")
	d.write(stateDir+"/managed.copy.json", "{")
	done, err := Reset(t.Context(), d.cfg, agreed)
	if err != nil {
		t.Fatal(err)
	}
	kept := strings.Join(done.Kept, " ")
	for _, name := range []string{"managed.json.", "managed.copy.json.", "original."} {
		if !strings.Contains(kept, stateDir+"/"+name) {
			t.Errorf("%s is not among what is kept: %s", name, kept)
		}
	}
	for _, p := range done.Kept {
		if _, err := os.Stat(d.host(p)); err != nil {
			t.Error(err)
		}
	}
}

// A reset meets trouble with the disk: where it says that it is done, it is, and
// otherwise the next one brings it to its end. It is here and there; the system
// test does all.
func TestResetInTrouble(t *testing.T) { resetInTrouble(t, 59) }

func resetInTrouble(t *testing.T, stride int) {
	want := factory(t)
	eachKind(t, stride, func(t *testing.T, kind string, lasting bool, n int) (more bool) {
		d := onV1(t)
		d.write(snoozeFile, "{}")
		d.assign(2, "v1.1.0", v2(observing))
		d.wantOnce(0, "compared")
		w := &trouble{d: d, fault: troubles[kind](d), at: n, lasting: lasting}
		d.cfg.Step = w.step
		_, err := Reset(t.Context(), d.cfg, agreed)
		d.cfg.Step = nil
		if left, _ := os.ReadDir(d.host(stateDir)); err == nil && (d.snapshot() != want || len(left) > 0) {
			t.Errorf("it says that it is done, and there is %v, and the device\n%s", left, d.snapshot())
		}
		w.cut(t)
		if _, err := Reset(t.Context(), d.cfg, agreed); err != nil && !errors.Is(err, ErrNoState) {
			t.Errorf("when it is over: %v", err)
		}
		if left, _ := os.ReadDir(d.host(stateDir)); d.snapshot() != want || !onlyAside(left) {
			t.Errorf("when it is over, there is %v, and the device\n%s", left, d.snapshot())
		}
		if t.Failed() {
			t.Logf("operation %d: %s; the first said %v", n, w.hit, err)
		}
		return w.count >= n
	})
}
