package apps

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

var (
	// Of the first, shop changes, web becomes compose, old becomes quadlets,
	// keep stays, and gone goes.
	mixedOne = both(
		composeSpec(map[string]string{"shop": services("reg/web:1"), "old": services("reg/web:1"), "keep": services("reg/db@sha256:d1"), "gone": services("reg/web:1")}),
		specOf(map[string]map[string]string{"web": {"web.container": container("reg/web:1", "a"), "web.network": "[Network]\n"}}))
	mixedTwo = both(
		composeSpec(map[string]string{"shop": services("reg/web:2", "reg/web:1"), "web": services("reg/web:1"), "keep": services("reg/db@sha256:d1"), "new": services("reg/web:2")}),
		specOf(map[string]map[string]string{"old": {"old.container": container("reg/web:1", "a")}}))
)

func TestComposeUpdateReplacesWhatChangedOnly(t *testing.T) {
	w := stocked(t)
	w.must(mixedOne)
	w.must(mixedTwo)
	w.must(mixedTwo)
	if w.starts["compose-keep.service"] != 1 || w.starts["compose-shop.service"] != 2 {
		t.Errorf("the starts are %v, want one of keep and two of shop", w.starts)
	}
	w.must(none)
	for _, line := range w.log {
		if strings.Contains(line, "volume rm") {
			t.Errorf("a volume was removed: %s", line)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(w.dir, "etc/containers/compose")); len(left) > 0 {
		t.Errorf("folders stay: %v", left)
	}
}

func TestComposeKilledAnywhere(t *testing.T) {
	killedBetween(t, mixedOne, mixedTwo, "compose-keep.service", 16)
}

// podman-compose ends well whatever became of its services: the containers
// say how it is.
func TestComposeHealth(t *testing.T) {
	long := "services:\n  s0: {image: reg/web:1, restart: \"no\"}\n"
	for text, want := range map[string]string{
		services("reg/BROKEN:1"):                       "shop_s0_1 has ended with 3",
		services("flapping:1"):                         "was restarted",
		services("never:1"):                            "is created",
		strings.Replace(long, "reg/web", "BROKEN", 1):  "has ended with 3",
		strings.Replace(long, `"no"`, "on-failure", 1): "",
		long + "  job: {image: reg/web:1}\n  s: {image: reg/web:1, depends_on: {job: {condition: service_completed_successfully}}}\n": "",
	} {
		w := stocked(t)
		for _, image := range []string{"reg/BROKEN:1", "BROKEN:1", "flapping:1", "never:1"} {
			w.registry[image] = image
		}
		spec := composeSpec(map[string]string{"shop": text})
		spec.Applications["shop"].Health = &schema.Health{Timeout: span(20 * time.Second), StableFor: span(3 * time.Second)}
		err := w.agent().update(spec)
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		f := failure.From(err)
		if err == nil || f.Class != schema.ClassPermanent || !strings.Contains(err.Error(), want) || !strings.Contains(f.Output, "nothing works here") {
			t.Errorf("%q: got %v, want a permanent failure with %q and the container's words", text, err, want)
		}
		if over := strings.Contains(text, `"no"`) || strings.Contains(text, "flapping"); over != (w.now < 20*time.Second) {
			t.Errorf("%q: it took %v of the 20s that it has", text, w.now)
		}
		if err := w.agent().rollBack(none); err != nil {
			t.Errorf("%q: %v", text, err)
		} else if err := w.runs(none); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// podman restarts what ends for ever; what does so again and again ends the wait
// as a unit that systemd gives up, and one that waits for another has a while.
func TestB83_CrashLoopEndsTheWait(t *testing.T) {
	for every, early := range map[int]bool{1: true, 3: false} {
		w := stocked(t)
		w.registry["flapping:1"] = "f1"
		w.flaps = every
		spec := composeSpec(map[string]string{"shop": services("flapping:1")})
		spec.Applications["shop"].Health = &schema.Health{Timeout: span(time.Minute)}
		err := w.agent().update(spec)
		if err == nil || !strings.Contains(err.Error(), "was restarted") {
			t.Errorf("got %v, want that it was restarted", err)
		}
		if w.now < loopSpan || early != (w.now < 2*loopSpan) {
			t.Errorf("restarted every %d looks: it took %v of a minute", every, w.now)
		}
	}
}

func TestTroubles(t *testing.T) {
	u := unit{Services: []service{{Name: "a"}, {Name: "job", Ends: true}, {Name: "maybe", Optional: true}}}
	for _, c := range []struct {
		all  []shown
		want string
	}{
		{[]shown{{service: "a", state: "running"}, {service: "job", state: "exited"}}, ""},
		{[]shown{{service: "a", state: "running", health: "healthy"}, {service: "job", state: "running"}}, ""},
		{[]shown{{name: "x", service: "a", state: "running", health: "starting"}, {service: "job", state: "exited"}}, "x is starting"},
		{[]shown{{name: "x", service: "a", state: "paused"}, {name: "y", service: "job", state: "exited", exit: 1}}, "y has ended with 1"},
		{[]shown{{service: "a", state: "running"}}, "job has no container"},
		{[]shown{{service: "a", state: "running"}, {service: "job", state: "exited"}, {service: "maybe", state: "exited", exit: 1}}, ""}, // B81: somebody had it run
		{[]shown{{service: "a", state: "running"}, {service: "job", state: "exited"}, {name: "shop_a_tmp123", service: "a", state: "exited", exit: 1}}, ""},
		{[]shown{{name: "shop_a_tmp123", service: "a", state: "running"}, {service: "job", state: "exited"}}, "a has no container"},
	} {
		got := u.troubles(c.all)
		if (len(got) == 0) != (c.want == "") || len(got) > 0 && !strings.Contains(got[0].why, c.want) {
			t.Errorf("%+v gives %+v, want %q", c.all, got, c.want)
		}
	}
}

func TestComposeDrift(t *testing.T) {
	ctx := context.Background()
	w := stocked(t)
	spec := composeSpec(map[string]string{"shop": services("reg/web:1", "reg/web:2")})
	w.must(spec)
	other := w.projects["shop"]["s1"]
	for what, change := range map[string]func(){
		"ended":   func() { w.projects["shop"]["s0"].state = "exited" },
		"removed": func() { delete(w.projects["shop"], "s0") },
	} {
		change()
		a := w.agent()
		if got, err := a.Repair(ctx, spec, false); err != nil || !slices.Equal(got, []string{"shop"}) {
			t.Errorf("%s: repaired is %q, %v", what, got, err)
		}
		if err := w.runs(spec); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if w.projects["shop"]["s1"] != other {
			t.Errorf("%s: what runs was started again", what)
		}
	}
	delete(w.running, "compose-shop.service")
	if got, err := w.agent().Repair(ctx, spec, false); err != nil || len(got) != 1 {
		t.Errorf("a unit that was stopped: %q, %v", got, err)
	}
	if err := w.runs(spec); err != nil {
		t.Error(err)
	}
	w.projects["shop"]["s0"].status = "Up 5 minutes (unhealthy)"
	states, err := w.agent().States(ctx, spec)
	if err != nil || states[0].State != schema.ApplicationRunning || !strings.Contains(states[0].Reason, "unhealthy") {
		t.Errorf("one that is not content: %+v, %v", states, err)
	}
}

// What runs from the very same files is taken over as it is.
func TestComposeTakenOver(t *testing.T) {
	w := stocked(t)
	spec := composeSpec(map[string]string{"shop": services("reg/web:1"), "keep": services("reg/db@sha256:d1")})
	w.must(spec)
	if err := os.Remove(filepath.Join(w.dir, "var/lib/gitopsd/apps.json")); err != nil {
		t.Fatal(err)
	}
	w.must(spec)
	if w.starts["compose-shop.service"] != 1 {
		t.Errorf("what ran was started again: %v", w.starts)
	}
	w.must(none)
}

func TestComposeCheck(t *testing.T) {
	ctx := context.Background()
	w := stocked(t)
	for text, want := range map[string]string{
		"services: {web: {build: .}}":               "compose.yaml, line 1:",
		services("reg/web:1") + "x-y: refused\n":    "RuntimeError: nothing in compose.yaml",
		"services: {web: {image: \"reg/web:1\"}}\n": "",
	} {
		if err := w.agent().Check(ctx, composeSpec(map[string]string{"../shop": text}), nil); err == nil {
			t.Error("any name is taken")
		}
		err := w.agent().Check(ctx, composeSpec(map[string]string{"shop": text}), nil)
		if want == "" && err == nil {
			continue
		}
		if err == nil || failure.From(err).Class != schema.ClassPermanent || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), w.dir) {
			t.Errorf("%q gives %v, want %q", text, err, want)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(w.dir, "var/lib/gitopsd/apps-check")); len(left) > 0 {
		t.Errorf("files stay: %v", left)
	}
}

// Variables change the application, name its images and are nobody's to read.
func TestComposeVariables(t *testing.T) {
	w := stocked(t)
	spec := composeSpec(map[string]string{"shop": "services:\n  s0: {image: \"reg/web:${TAG}\"}\n"})
	shop := spec.Applications["shop"].Compose
	for _, tag := range []string{"1", "2"} {
		shop.Env = map[string]string{"TAG": tag}
		w.must(spec)
	}
	if got := slices.Sorted(maps.Keys(w.images)); w.starts["compose-shop.service"] != 2 || !slices.Equal(got, []string{"reg/web:1", "reg/web:2"}) {
		t.Errorf("it was started %v with the images %q", w.starts, got)
	}
	p := filepath.Join(w.dir, schema.ComposeFolder("shop"), schema.ComposeEnvName)
	if info, err := os.Stat(p); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file of variables: %v, %v", info, err)
	}
}

// What a service asks for to end in is given by the file that it was started
// from.
func TestComposeGrace(t *testing.T) {
	w := stocked(t)
	w.must(composeSpec(map[string]string{"shop": services("reg/web:1") + "  db: {image: \"reg/web:1\", stop_grace_period: 2m}\n"}))
	w.must(none)
	if !slices.ContainsFunc(w.log, func(line string) bool {
		return strings.HasPrefix(line, "podman rm --force ") && strings.HasSuffix(line, " --time 120")
	}) {
		t.Errorf("podman was told %q", w.log)
	}
}

// systemd kills all that a unit without a file has started, and podman in the
// middle of a container that it starts again: rules for its port stay, and keep
// that from whoever gets it next.
func TestComposeEndsBeforeItsUnit(t *testing.T) {
	w := stocked(t)
	w.must(composeSpec(map[string]string{"shop": services("reg/web:1")}))
	delete(w.loaded, "compose-shop.service") // its file went, and another of the spec had systemd read them anew
	w.must(none)
	if cut := "killed with its containers: compose-shop.service"; slices.Contains(w.log, cut) {
		t.Errorf("%s: %q", cut, w.log)
	}
}

func TestComposeCompare(t *testing.T) {
	w := stocked(t)
	w.must(mixedOne)
	w.log = nil
	got, err := w.agent().Compare(context.Background(), mixedTwo, nil, nil)
	want := []Change{
		{Name: "gone", Do: schema.DoRemove}, {Name: "new", Do: schema.DoCreate},
		{Name: "old", Do: schema.DoChange}, {Name: "shop", Do: schema.DoChange}, {Name: "web", Do: schema.DoChange},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v would change (%v), want %v", got, err, want)
	}
	if len(acts(w.log)) > 0 {
		t.Errorf("to compare, %q were run", w.log)
	}
}
