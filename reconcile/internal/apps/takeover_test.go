package apps

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// byHand has somebody run the projects of a spec by podman-compose alone.
func byHand(t *testing.T, spec *schema.Spec) *world {
	w := stocked(t)
	w.images = map[string]string{"reg/web:1": "w1", "reg/db@sha256:d1": "d1"}
	for name, app := range spec.Applications {
		w.up(name, *app.Compose.Content)
	}
	return w
}

// untouched wants the containers of a project to be those that there were.
func (w *world) untouched(project string, were map[string]*fakeContainer) {
	w.t.Helper()
	if !maps.Equal(w.projects[project], were) {
		w.t.Errorf("the containers of %s are %v, and were %v", project, w.projects[project], were)
	}
	if left, _ := filepath.Glob(filepath.Join(w.dir, runUnitFolder, "*")); len(left) > 0 {
		w.t.Errorf("what was to be there for a moment stays: %v", left)
	}
}

func TestProjectByHandIsTakenOver(t *testing.T) {
	spec := composeSpec(map[string]string{"shop": services("reg/web:1", "reg/db@sha256:d1")})
	w := byHand(t, spec)
	w.registry["reg/web:1"] = "moved" // nobody has asked for another one
	w.projects["shop"]["s1"].made = append([]string{"podman", "create", "--name=shop_s1_1"}, w.projects["shop"]["s1"].made[4:]...)
	were := maps.Clone(w.projects["shop"])
	if all, err := w.agent().Compare(t.Context(), spec, nil, []string{"/etc/containers/compose/shop/compose.yaml"}); err != nil || len(all) > 0 {
		t.Errorf("what runs as wanted would change: %+v, %v", all, err)
	}
	w.must(spec)
	w.must(spec)
	w.untouched("shop", were)
	if w.starts["compose-shop.service"] > 0 || w.images["reg/web:1"] != "w1" {
		t.Errorf("what ran as wanted was started again, or pulled: %v of %v", w.starts, w.images)
	}
	w.must(composeSpec(map[string]string{"shop": services("reg/web:2")}))
	if w.starts["compose-shop.service"] != 1 {
		t.Errorf("an update has started it %d times", w.starts["compose-shop.service"])
	}
	w.must(spec)
	w.must(none)
}

// Whatever is not proven to be as wanted is left alone, with the release, and
// who looks is told why.
func TestProjectByHandIsInTheWay(t *testing.T) {
	spec := composeSpec(map[string]string{"shop": services("reg/web:1", "reg/db@sha256:d1")})
	for want, change := range map[string]func(w *world, project map[string]*fakeContainer){
		"shop_s0_1 has ended with 0": func(_ *world, p map[string]*fakeContainer) { p["s0"].state = "exited" },
		"shop_s0_1 is unhealthy":     func(_ *world, p map[string]*fakeContainer) { p["s0"].status = "Up (unhealthy)" },
		"s1 has no container":        func(_ *world, p map[string]*fakeContainer) { delete(p, "s1") },
		"other containers":           func(_ *world, p map[string]*fakeContainer) { other := *p["s0"]; p["old"] = &other },
		"that reg/web:1 was before": func(w *world, _ map[string]*fakeContainer) {
			w.images["reg/web:1"], w.registry["reg/web:1"] = "new", "newer"
		},
		"shop_s0_1 in another way;":                       func(_ *world, p map[string]*fakeContainer) { p["s0"].made[6] = "io.podman.compose.config-hash=0" },
		"shop_s1_1 in another way, and its variable A is": func(_ *world, p map[string]*fakeContainer) { p["s1"].made[12] = "A" },
		"s1_1 in another way, and its variable A is":      func(_ *world, p map[string]*fakeContainer) { p["s1"].made[12] = "A=b\nc" },
		"container shop_s1_1 in anot":                     func(_ *world, p map[string]*fakeContainer) { p["s1"].made[1] = "play" },
		"container shop_s0_1 in anot":                     func(_ *world, p map[string]*fakeContainer) { p["s0"].made = nil },
		"does not say what it would":                      func(w *world, _ map[string]*fakeContainer) { w.mute = true },
	} {
		w := byHand(t, spec)
		change(w, w.projects["shop"])
		were, images := cloneProjects(w.projects)["shop"], maps.Clone(w.images)
		all, err := w.agent().Compare(t.Context(), spec, nil, []string{"/etc/containers/compose/shop/compose.yaml"})
		if err != nil || len(all) != 1 || all[0].Do != schema.DoCannot || !strings.Contains(all[0].Why, want) {
			t.Errorf("looking at it gives %+v, %v, want %q", all, err, want)
		}
		w.inTheWay(spec, want)
		if !reflect.DeepEqual(w.projects["shop"], were) || !maps.Equal(w.images, images) || len(w.quadlets()) > 0 {
			t.Errorf("%s: the containers are %v, and the images %v", want, w.projects["shop"], w.images)
		}
		w.mute = false
		delete(w.projects, "shop") // as somebody has read
		w.must(spec)
	}
}

// Of what somebody's shell had, the names are told, and never what they held.
func TestVariablesNotProven(t *testing.T) {
	would := "true run --name=shop_api_1 -d -e A=b -e GREETING= -e TZ=UTC image sh -c -e X=1\nINFO:podman_compose:true run --name=shop_db_1 -d -e DB_PASSWORD=hunter2hunter2 image\n"
	for _, c := range []struct{ made, want string }{
		{"--name=shop_api_1 -d -e A=b -e TZ=UTC image", ""},
		{"--name=shop_api_1 -d -e A=b -e GREETING=hunter2 -e TZ=UTC image", ", and its variable GREETING is not proven to be the same"},
		{"--name=shop_api_1 -e A -e DB_PASSWORD=hunter2hunter2 -e A=b2 image", ", and its variables A, DB_PASSWORD are not proven to be the same"},
		{"--name=shop_api_1 -e ;ls=hunter2 -e", ""},
		{"--name=shop_api_1 -e A1= -e A2= -e A3= -e A4= -e A5=", ", and its variables A1, A2, A3, … are not proven to be the same"},
		{"--name=shop_none_1 -e A=b", ""},
		{"", ""},
	} {
		if got := unproven(append([]string{"podman", "run"}, strings.Fields(c.made)...), would); got != c.want {
			t.Errorf("made with %s: %q, want %q", c.made, got, c.want)
		}
	}
}

// inTheWay wants the containers of shop to be why an update is refused.
func (w *world) inTheWay(spec *schema.Spec, want string) {
	w.t.Helper()
	err := w.agent().update(spec)
	if f := failure.From(err); err == nil || f.Class != schema.ClassRetryable || f.Element != "shop" || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "remove them") {
		w.t.Errorf("the update gives %v, want %q and a remedy", err, want)
	}
}

// It may be found out only when the update is on its way: nothing is lost then.
func TestProjectByHandComesInTheWay(t *testing.T) {
	shop := composeSpec(map[string]string{"shop": services("reg/web:1")})
	quadlets := specOf(map[string]map[string]string{"shop": {"shop.container": container("reg/web:1", "a")}})
	for what, before := range map[string]*schema.Spec{"new": none, "of quadlets before": quadlets} {
		w := stocked(t)
		w.must(before)
		w.images["reg/web:1"] = "w1"
		w.up("shop", services("reg/web:1", "reg/web:1"))
		were := maps.Clone(w.projects["shop"])
		if before == none {
			if err := w.agent().carry(shop); err == nil {
				t.Errorf("%s: it has begun", what)
			}
			if err := w.agent().rollBack(none); err != nil {
				t.Fatal(err)
			}
		}
		w.inTheWay(shop, "")
		w.untouched("shop", were)
	}
}

// The agent's own are no hindrance when it has forgotten them, with some or all
// of what it knows, nor are those of somebody's own unit, which comes back.
func TestProjectOfTheAgentIsMadeAnew(t *testing.T) {
	shop, changed := composeSpec(map[string]string{"shop": services("reg/web:1")}), composeSpec(map[string]string{"shop": services("reg/web:2")})
	for _, lost := range []string{"apps.json", "*.json"} {
		w := stocked(t)
		w.must(shop)
		if lost == "apps.json" {
			delete(w.running, "compose-shop.service") // and it failed
		}
		found, _ := filepath.Glob(filepath.Join(w.dir, "var/lib/gitopsd", lost))
		for _, p := range found {
			if err := os.Remove(p); err != nil {
				t.Fatal(err)
			}
		}
		w.must(changed)
	}
}

// What a person has run once in a project is no part of it, and goes with it.
func TestProjectByHandWithMore(t *testing.T) {
	spec := composeSpec(map[string]string{"shop": services("reg/web:1")})
	w := byHand(t, spec)
	once := *w.projects["shop"]["s0"]
	once.state, once.name = "exited", "shop_s0_tmp17"
	w.projects["shop"]["once"] = &once
	were := maps.Clone(w.projects["shop"])
	if err := w.agent().update(spec); err != nil {
		t.Fatal(err)
	}
	w.untouched("shop", were)
	w.must(none)
}

// Until the update has succeeded its way back leaves the containers alone,
// whatever it was that failed.
func TestProjectByHandStaysWhenTheUpdateFails(t *testing.T) {
	shop := composeSpec(map[string]string{"shop": services("reg/web:1")})
	w := byHand(t, shop)
	were := maps.Clone(w.projects["shop"])
	if err := w.agent().update(both(shop, bad)); err == nil {
		t.Fatal("the bad release succeeded")
	}
	if w.running["compose-shop.service"] == "" {
		t.Error("its unit did not run")
	}
	if err := w.agent().rollBack(none); err != nil {
		t.Fatal(err)
	}
	w.untouched("shop", were)
	if len(w.running) > 0 {
		t.Errorf("units run: %v", w.running)
	}
	w.must(shop)
	w.untouched("shop", were)
}

// An update with it has succeeded, whatever becomes of the tidying after it: it
// is the agent's from then on, and goes as any other.
func TestProjectByHandIsOursWithoutTidying(t *testing.T) {
	shop := composeSpec(map[string]string{"shop": services("reg/web:1")})
	w := byHand(t, shop)
	a := w.agent()
	for _, err := range []error{a.carry(shop), a.Healthy(t.Context(), shop)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Settle(t.Context(), composeSpec(map[string]string{"shop": "no YAML: ["}), nil); err == nil {
		t.Error("the tidying succeeded")
	}
	w.must(none)
}

// One that is to be left alone, and then is not, is not stopped in between.
func TestProjectByHandIsWantedAgain(t *testing.T) {
	shop := composeSpec(map[string]string{"shop": services("reg/web:1")})
	w := byHand(t, shop)
	were := maps.Clone(w.projects["shop"])
	for _, err := range []error{w.agent().carry(shop), w.agent().Prepare(t.Context(), none, nil, nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	w.step = func(what string) error {
		if what == "stop compose-shop.service" {
			t.Error("its unit was stopped")
		}
		return nil
	}
	w.must(shop)
	w.untouched("shop", were)
}

// Killed anywhere, the agent ends with the containers that there were, and with
// nothing that keeps their unit from its work.
func TestTakeOverKilledAnywhere(t *testing.T) {
	spec := composeSpec(map[string]string{"shop": services("reg/web:1")})
	changed := composeSpec(map[string]string{"shop": services("reg/web:2")})
	for _, next := range []*schema.Spec{spec, none, changed} { // forward, back, and back as the next update is refused
		seen := 0
		for n := 1; ; n += 5 {
			w := byHand(t, spec)
			were := maps.Clone(w.projects["shop"])
			left := n
			w.step = func(string) error {
				if left--; left <= 0 {
					return errCrash
				}
				return nil
			}
			if err := w.agent().carry(spec); err == nil {
				break
			}
			seen++
			w.step = func(string) error { return nil }
			if next == changed {
				w.inTheWay(changed, "shop_s0_1 in another way")
			}
			var err error
			if next != spec {
				err = w.agent().rollBack(none)
			} else if err = w.agent().update(spec); err == nil {
				err = w.runs(spec)
			}
			if err != nil {
				t.Fatalf("killed at step %d before %v: %v", n, next, err)
			}
			w.untouched("shop", were)
			if w.idle["compose-shop.service"] || w.starts["compose-shop.service"] > 0 || next != spec && len(w.running) > 0 {
				t.Errorf("killed at step %d before %v: %v run, of %v starts; what is idle is %v", n, next, w.running, w.starts, w.idle)
			}
		}
		if seen < 20 {
			t.Errorf("only %d steps were seen", seen)
		}
	}
}

// The device boots in the middle: what runs afterwards is its own.
func TestTakeOverAfterABoot(t *testing.T) {
	spec := composeSpec(map[string]string{"shop": services("reg/web:1")})
	w := byHand(t, spec)
	ctx := context.Background()
	if err := w.agent().Prepare(ctx, spec, nil, nil); err != nil {
		t.Fatal(err)
	}
	clear(w.projects)
	w.must(spec)
	if w.starts["compose-shop.service"] != 1 {
		t.Errorf("it was started %d times", w.starts["compose-shop.service"])
	}
	w.must(none)
}

func TestHowAContainerWasMade(t *testing.T) {
	for made, want := range map[string]string{
		"": "", "podman": "", "podman run": "", "podman run --name=x": "--name=x", "podman create --name=x": "--name=x -d",
		"podman run --name=x --label": "--name=x --label", "podman run --name=x -e": "--name=x -e", "podman run --name=x -e A": "",
		"podman run --name=x -d --label com.docker.compose.project.working_dir=": "--name=x -d",
		"podman run --name=x com.docker.compose.project.working_dir=/a":          "--name=x com.docker.compose.project.working_dir=/a",
		"podman run --name=x --requires=c,a,b i":                                 "--name=x --requires=a,b,c i",
	} {
		if got, ok := asTold(strings.Fields(made)); got != want || ok != (want != "") {
			t.Errorf("%q gives %q, %t, want %q", made, got, ok, want)
		}
	}
}
