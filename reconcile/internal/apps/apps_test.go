package apps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/units"
	"github.com/gitopsd/gitopsd/schema"
)

var (
	one = specOf(map[string]map[string]string{
		"web": {"web.container": container("reg/web:1", "a"), "web.network": "[Network]\n"},
		"db":  {"db.container": container("reg/db@sha256:d1", "")},
	})
	// two changes one application, keeps one, renames none and adds one.
	two = specOf(map[string]map[string]string{
		"web":   {"web.container": container("reg/web:2", "b"), "proxy.container": container("reg/web:2", "c")},
		"db":    {"db.container": container("reg/db@sha256:d1", "")},
		"extra": {"extra.container": container("reg/web:2", "e")},
	})
	bad   = specOf(map[string]map[string]string{"web": {"web.container": container("reg/web:2", "BROKEN")}})
	none  = specOf(nil)
	stock = map[string]string{"reg/web:1": "w1", "reg/web:2": "w2", "reg/db@sha256:d1": "d1"}
)

func stocked(t *testing.T) *world {
	w := newWorld(t)
	w.registry = maps.Clone(stock)
	return w
}

func (w *world) must(spec *schema.Spec) {
	w.t.Helper()
	if err := w.agent().update(spec); err != nil {
		w.t.Fatal(err)
	}
	if err := w.runs(spec); err != nil {
		w.t.Fatal(err)
	}
}

func TestUpdateReplacesWhatChangedOnly(t *testing.T) {
	w := stocked(t)
	w.must(one)
	w.must(two)
	if w.starts["db.service"] != 1 || w.starts["web.service"] != 2 {
		t.Errorf("the starts are %v, want one of db and two of web", w.starts)
	}
	w.must(two)
	if w.starts["web.service"] != 2 {
		t.Errorf("the same spec again has started %v", w.starts)
	}
}

// Who is stopped while podman sets up a network for it leaves rules behind that
// keep the port from whoever gets it next.
func TestWhatStartsIsStoppedAfterwards(t *testing.T) {
	w := stocked(t)
	w.must(one)
	w.starting["web.service"] = 3
	w.must(two)
	cut := "stopped while it started: web.service"
	if slices.Contains(w.log, cut) {
		t.Error("it was not waited for its start")
	}

	w.starting["web.service"] = 1 << 30 // it never comes to an end
	w.must(none)
	if !slices.Contains(w.log, cut) {
		t.Error("a start that does not end was waited for")
	}
}

// What a unit needs may just have failed in a start of the device itself, which
// ours has joined.
func TestWhatLackedAnotherUnitIsStartedAgain(t *testing.T) {
	w := stocked(t)
	w.must(one)
	delete(w.running, "web.service")
	w.lacking["web.service"] = 1
	if _, err := w.agent().Repair(context.Background(), one, false); err != nil {
		t.Fatal(err)
	}
	if err := w.runs(one); err != nil {
		t.Errorf("after a start that lacked something: %v", err)
	}
}

// B78: whatever goes into an application makes it start anew, with that: its
// environment, another file of it, a tag that has moved since.
func TestB78_ChangedInputsRecreate(t *testing.T) {
	w := stocked(t)
	web := map[string]string{"web.container": container("reg/web:1", "Environment=A=1")}
	spec := func() *schema.Spec { return specOf(map[string]map[string]string{"web": web}) }
	w.must(spec())
	for n, change := range []func(){
		func() { web["web.container"] = container("reg/web:1", "Environment=A=2") },
		func() { web["web.network"] = "[Network]\n" },
		func() {
			w.registry["reg/web:1"] = "w1-moved"
			web["web.container"] = container("reg/web:1", "Environment=A=3")
		},
	} {
		change()
		w.must(spec())
		if w.starts["web.service"] != n+2 || w.running["web.service"] != web["web.container"] {
			t.Errorf("change %d: it was started %d times and runs with\n%s", n+1, w.starts["web.service"], w.running["web.service"])
		}
	}
	if w.images["reg/web:1"] != "w1-moved" {
		t.Errorf("the tag is %q still", w.images["reg/web:1"])
	}
}

// B77, B80: what a spec drops goes, whole; and a rename is a stop before a
// start.
func TestB77_DroppedApplicationGoes(t *testing.T) {
	w := stocked(t)
	w.must(one)
	renamed := specOf(map[string]map[string]string{
		"website": {"web.container": container("reg/web:1", "a"), "web.network": "[Network]\n"},
	})
	w.must(renamed)
	if w.starts["web.service"] != 2 {
		t.Errorf("the renamed application was started %d times, want anew", w.starts["web.service"])
	}
	w.must(none)
	for _, line := range w.log {
		if strings.Contains(line, "volume rm") {
			t.Errorf("a volume was removed: %s", line)
		}
	}
	if entries, _ := os.ReadDir(filepath.Join(w.dir, "etc/containers/systemd")); len(entries) > 0 {
		t.Errorf("folders stay: %v", entries)
	}
}

// B80: ten updates leave as many images as there were, but for those of the
// release before.
func TestB80_ImagesDoNotPileUp(t *testing.T) {
	w := stocked(t)
	w.images["reg/own:1"] = "own" // not pulled by us
	for n := range 10 {
		ref := "reg/web:" + string(rune('a'+n))
		w.registry[ref] = "id-" + ref
		w.must(specOf(map[string]map[string]string{"web": {"web.container": container(ref, "")}}))
	}
	if got := slices.Sorted(maps.Keys(w.images)); !slices.Equal(got, []string{"reg/own:1", "reg/web:i", "reg/web:j"}) {
		t.Errorf("the images are %q", got)
	}
	w.must(none)
	if w.images["reg/own:1"] != "own" {
		t.Error("an image that was there before us is gone")
	}
}

func TestUnhealthyUpdateAndTheWayBack(t *testing.T) {
	w := stocked(t)
	w.must(one)
	err := w.agent().update(bad)
	if f := failure.From(err); f.Class != schema.ClassPermanent || f.Element != "web" || !strings.Contains(err.Error(), "web.service has failed") {
		t.Fatalf("the bad update gives %v", err)
	}
	w.offline = true
	if err := w.agent().rollBack(one); err != nil {
		t.Fatal(err)
	}
	if err := w.runs(one); err != nil {
		t.Fatal(err)
	}
}

// B83: a unit that systemd restarts again and again is never healthy, though
// it is active at each look.
func TestB83_RestartsAreNoHealth(t *testing.T) {
	w := stocked(t)
	spec := specOf(map[string]map[string]string{"web": {"web.container": container("reg/web:1", "flapping")}})
	w.flapping[container("reg/web:1", "flapping")] = 1
	spec.Applications["web"].Health = &schema.Health{Timeout: span(20 * time.Second), StableFor: span(3 * time.Second)}
	err := w.agent().update(spec)
	if err == nil || !strings.Contains(err.Error(), "was restarted") {
		t.Fatalf("got %v, want that it was restarted", err)
	}
	if w.now < 20*time.Second || w.now > 30*time.Second {
		t.Errorf("it took %v, want its timeout of 20s", w.now)
	}
	p := &patient{restarted: "web.service was restarted, 3 times so far"}
	if got := p.restartedToo("it does not answer"); got != "it does not answer; web.service was restarted, 3 times so far" {
		t.Errorf("between two restarts it is said: %s", got)
	}
}

// B84: what dies within stableFor is not healthy.
func TestB84_StableForIsWaited(t *testing.T) {
	w := stocked(t)
	w.must(one)
	if w.now < healthStable || w.now > healthStable+5*time.Second {
		t.Errorf("health took %v, want %v", w.now, healthStable)
	}
}

func span(d time.Duration) *schema.Duration { s := schema.Duration(d); return &s }

func TestHealthCommand(t *testing.T) {
	for program, well := range map[string]bool{"good": true, "bad": false} {
		w := stocked(t)
		spec := specOf(map[string]map[string]string{"web": {"web.container": container("reg/web:1", "")}})
		spec.Applications["web"].Health = &schema.Health{Command: []string{program}, Timeout: span(5 * time.Second)}
		err := w.agent().update(spec)
		if (err == nil) != well || (!well && !strings.Contains(err.Error(), "not well")) {
			t.Errorf("%s: got %v", program, err)
		}
	}
}

func TestPrefetch(t *testing.T) {
	ctx := context.Background()
	w := stocked(t)
	w.offline = true
	err := w.agent().update(one)
	if f := failure.From(err); f.Class != schema.ClassRetryable || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("without a registry: %v, want a retryable failure with podman's words", err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "etc")); err == nil {
		t.Error("without a registry something was changed")
	}
	w.offline = false
	var told []string
	a := w.agent()
	a.Pulls = func(ref string, n, of int) { told = append(told, fmt.Sprintf("%d of %d: %s", n, of, ref)) }
	if err := a.Prefetch(ctx, one, nil); err != nil || !slices.Equal(told, []string{"1 of 2: reg/db@sha256:d1", "2 of 2: reg/web:1"}) {
		t.Errorf("of the pulls was told %q (%v)", told, err)
	}
	w.must(one)
	w.log = nil
	w.offline = true
	if err := w.agent().Prefetch(ctx, one, nil); err != nil {
		t.Errorf("nothing is to be pulled, and still: %v", err)
	}
	changed := specOf(map[string]map[string]string{
		"web": {"web.container": container("reg/web:1", "other")},
		"db":  {"db.container": container("reg/db@sha256:d1", "other")},
	})
	if err := w.agent().Prefetch(ctx, changed, nil); err == nil {
		t.Error("the tag of a changed application was not asked for")
	}
	delete(changed.Applications, "web")
	if err := w.agent().Prefetch(ctx, changed, nil); err != nil {
		t.Errorf("a digest that is there was asked for: %v", err)
	}
}

// A tag that a failed update has moved means the old image again after it.
func TestTagsComeBack(t *testing.T) {
	w := stocked(t)
	w.must(one)
	w.registry["reg/web:1"] = "w1-moved"
	moved := specOf(map[string]map[string]string{"web": {"web.container": container("reg/web:1", "BROKEN")}})
	if err := w.agent().update(moved); err == nil {
		t.Fatal("the bad update was good")
	}
	if w.images["reg/web:1"] != "w1-moved" {
		t.Fatalf("the tag is %q", w.images["reg/web:1"])
	}
	if err := w.agent().rollBack(one); err != nil {
		t.Fatal(err)
	}
	if w.images["reg/web:1"] != "w1" {
		t.Errorf("the tag is %q after the rollback", w.images["reg/web:1"])
	}
}

// An image that somebody has removed does not keep the device from its way
// back, as far as there is one.
func TestTagThatCannotComeBack(t *testing.T) {
	w := stocked(t)
	w.must(one)
	w.registry["reg/web:1"] = "w1-moved"
	moved := specOf(map[string]map[string]string{"web": {"web.container": container("reg/web:1", "BROKEN")}})
	if err := w.agent().update(moved); err == nil {
		t.Fatal("the bad update was good")
	}
	maps.DeleteFunc(w.images, func(_, id string) bool { return id == "w1" })
	if err := w.agent().rollBack(one); err != nil {
		t.Fatal(err)
	}
	if err := w.runs(one); err != nil {
		t.Fatal(err)
	}
}

func TestCheckRefuses(t *testing.T) {
	w := stocked(t)
	bad, good := "[Container]\nNonsense=1\n", container("reg/web:1", "")
	for others, files := range map[string]map[string]string{
		"none":   {"web.container": bad},
		"before": {"db.container": good, "web.container": bad},
		"around": {"db.container": good, "web.container": bad, "x.container": bad, "z.container": good},
	} {
		err := w.agent().Check(context.Background(), specOf(map[string]map[string]string{"web": files}), nil)
		f := failure.From(err)
		if f.Class != schema.ClassPermanent || !strings.HasPrefix(f.Output, `converting "web.container": unsupported key 'Nonsense' in group`) || strings.Contains(err.Error(), w.dir) {
			t.Errorf("with others %s: %v", others, err)
		}
		if n := strings.Count(f.Output, "converting"); n != len(files)/2 && n != 1 || strings.Contains(f.Output, "ExecStart") {
			t.Errorf("with others %s it says: %s", others, f.Output)
		}
	}
	own := specOf(map[string]map[string]string{"web": {"gitopsd-agent.container": container("reg/web:1", "")}})
	if err := w.agent().Check(context.Background(), own, nil); err == nil || !strings.Contains(err.Error(), "agent") {
		t.Errorf("the agent's own unit: %v", err)
	}
}

func TestTakenOver(t *testing.T) {
	w := stocked(t)
	w.must(one)
	if err := os.Remove(filepath.Join(w.dir, "var/lib/gitopsd/apps.json")); err != nil {
		t.Fatal(err)
	}
	w.must(one)
	if w.starts["web.service"] != 1 {
		t.Errorf("what ran was started again: %v", w.starts)
	}
	w.must(none) // it was ours all the same
}

func TestDrift(t *testing.T) {
	ctx := context.Background()
	w := stocked(t)
	w.must(one)
	delete(w.running, "web.service")
	a := w.agent()
	if got, err := a.Drift(ctx, one); err != nil || !slices.Equal(got, []string{"web"}) {
		t.Errorf("drift is %q, %v", got, err)
	}
	if got, err := a.Repair(ctx, one, false); err != nil || !slices.Equal(got, []string{"web"}) {
		t.Errorf("repaired is %q, %v", got, err)
	}
	if err := w.runs(one); err != nil {
		t.Error(err)
	}
	if got, err := a.Repair(ctx, one, false); err != nil || len(got) > 0 {
		t.Errorf("without drift %q is repaired, %v", got, err)
	}
}

// A unit that is being stopped does not start.
func TestSummary(t *testing.T) {
	for active, want := range map[string]string{
		"active": schema.ApplicationRunning, "activating": schema.ApplicationStarting, "deactivating": schema.ApplicationStopping,
		"inactive": schema.ApplicationStopped, "failed": schema.ApplicationFailed,
	} {
		if got := summary("web", []unit{{Name: "web.service"}}, []units.State{{Name: "web.service", Active: active}}); got.State != want {
			t.Errorf("%s: %+v, want %s", active, got, want)
		}
	}
}

// The agent is killed before the nth thing that it changes; the next one goes
// on to either spec and ends there, whole.
func TestKilledAnywhere(t *testing.T) { killedAt(t, 4) }

func killedAt(t *testing.T, stride int) { killedBetween(t, one, two, "db.service", stride) }

// killedBetween meets every step of a stride, on the way back those between.
func killedBetween(t *testing.T, one, two *schema.Spec, kept string, stride int) {
	first := stocked(t)
	first.must(one)
	for i, back := range []bool{false, true} {
		for n := 1 + i*stride/2; ; n += stride {
			w := first.copy()
			left := n
			w.step = func(string) error {
				if left--; left <= 0 {
					return errCrash
				}
				return nil
			}
			err := w.agent().update(two)
			if err == nil {
				if n < 20 {
					t.Fatalf("only %d steps were seen", n)
				}
				break
			}
			if left > 0 {
				t.Fatalf("step %d: %v", n, err)
			}
			w.step = func(string) error { return nil }
			to := two
			if back {
				to = one
				err = w.agent().rollBack(one)
			} else {
				err = w.agent().update(two)
			}
			if err == nil {
				err = w.runs(to)
			}
			if err == nil && w.starts[kept] != 1 {
				err = errors.New("what did not change was started again")
			}
			if err != nil {
				t.Fatalf("killed at step %d, back %t: %v", n, back, err)
			}
		}
	}
}
