package apps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/units"
	"github.com/gitopsd/gitopsd/schema"
)

// here puts a quadlet on the device that nobody has assigned, and starts it.
func (w *world) here(file, text string) {
	w.t.Helper()
	p := filepath.Join(w.dir, "etc/containers/systemd", file)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	m := &manager{w: w}
	if err := m.Reload(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	unit := strings.TrimSuffix(filepath.Base(file), ".container") + ".service"
	if err := m.Do(context.Background(), units.Job{Verb: units.Start, Unit: unit}); err != nil {
		w.t.Fatal(err)
	}
}

func inFolder(spec *schema.Spec, folder string) *schema.Spec {
	for _, app := range spec.Applications {
		app.Folder = folder
	}
	return spec
}

// What runs before its first release is taken over where it is, and is what it
// was before when a release drops it, changed in between or not.
func TestApplicationThatWasThereBefore(t *testing.T) {
	for _, folder := range []string{"", ".", "Old_web"} {
		for _, changed := range []bool{false, true} {
			w := stocked(t)
			text := container("reg/web:1", "a")
			at := strings.TrimPrefix(schema.QuadletFolder("web", folder)+"/web.container", "/etc/containers/systemd/")
			w.here(at, text)
			w.images["reg/web:1"], w.registry["reg/web:1"] = "w1", "moved" // nobody has asked for another one
			adopted := inFolder(specOf(map[string]map[string]string{"web": {"web.container": text}}), folder)
			w.must(adopted)
			if w.starts["web.service"] != 1 {
				t.Fatalf("in %q: what ran as wanted was started %d times", folder, w.starts["web.service"])
			}
			if w.images["reg/web:1"] != "w1" {
				t.Errorf("in %q: the image of what ran as wanted became %q", folder, w.images["reg/web:1"])
			}
			if changed {
				w.must(inFolder(specOf(map[string]map[string]string{"web": {"web.container": container("reg/web:2", "b")}}), folder))
			}
			if err := w.agent().update(none); err != nil {
				t.Fatal(err)
			}
			if err := w.runs(adopted); err != nil {
				t.Errorf("in %q, dropped after a change (%t): %v", folder, changed, err)
			}
			if want := map[bool]int{false: 1, true: 3}[changed]; w.starts["web.service"] != want {
				t.Errorf("in %q, dropped after a change (%t): it was started %d times, want %d", folder, changed, w.starts["web.service"], want)
			}
		}
	}
}

// Killed anywhere between what ran before and what a release made of it, the
// device ends whole at either.
func TestAdoptionKilledAnywhere(t *testing.T) {
	text := container("reg/web:1", "a")
	before := inFolder(specOf(map[string]map[string]string{"web": {"web.container": text}}), ".")
	changed := inFolder(specOf(map[string]map[string]string{"web": {"web.container": container("reg/web:2", "b")}}), ".")
	bare := stocked(t)
	bare.images["reg/web:1"] = "w1"
	bare.here("web.container", text)
	// What systemd has made of a file names its path, which is another one here.
	copied := func(w *world) *world {
		c := w.copy()
		if err := (&manager{w: c}).Reload(context.Background()); err != nil {
			t.Fatal(err)
		}
		return c
	}
	taken := copied(bare)
	taken.must(changed)
	for _, c := range []struct {
		what          string
		from          *world
		to, next, end *schema.Spec
		back          bool
	}{
		{"on the way there", bare, changed, changed, changed, false},
		{"back from there", bare, changed, none, before, true},
		{"when it is dropped", taken, none, none, before, false},
		{"when it is dropped, and not after all", taken, none, changed, changed, true},
	} {
		seen := 0
		for n := 1; ; n += 3 {
			w := copied(c.from)
			left := n
			w.step = func(string) error {
				if left--; left <= 0 {
					return errCrash
				}
				return nil
			}
			if err := w.agent().update(c.to); err == nil {
				break
			}
			seen++
			w.step = func(string) error { return nil }
			var err error
			if c.back {
				err = w.agent().rollBack(c.next)
			} else {
				err = w.agent().update(c.next)
			}
			if err == nil {
				err = w.runs(c.end)
			}
			if err != nil {
				t.Fatalf("killed at step %d %s: %v", n, c.what, err)
			}
		}
		if seen < 5 {
			t.Errorf("%s only %d steps were seen", c.what, seen)
		}
	}
}

// A failed first release that has changed what ran before leads back to that.
func TestApplicationThatWasThereBeforeComesBack(t *testing.T) {
	w := stocked(t)
	text := container("reg/web:1", "a")
	w.here("web/web.container", text)
	if err := w.agent().update(bad); err == nil {
		t.Fatal("the bad release succeeded")
	}
	if err := w.agent().rollBack(none); err != nil {
		t.Fatal(err)
	}
	if err := w.runs(specOf(map[string]map[string]string{"web": {"web.container": text}})); err != nil {
		t.Error(err)
	}
}

// Of two files of one name podman reads one: ours would never count.
func TestAnotherFileMakesTheUnit(t *testing.T) {
	w := stocked(t)
	w.here("web.container", container("reg/web:1", "a"))
	err := w.agent().update(one)
	if f := failure.From(err); f == nil || f.Class != schema.ClassPermanent || f.Element != "web" || !strings.Contains(err.Error(), "etc/containers/systemd/web.container already") {
		t.Errorf("got %v, want that another file makes the unit", err)
	}
}

// A unit of the spec itself would come before the one that podman makes.
func TestSpecMakesTheUnitToo(t *testing.T) {
	w := stocked(t)
	text := "[Service]\n"
	more := func(units map[string]*schema.Unit, files map[string]*schema.File) *schema.Spec {
		spec := *one
		spec.Units, spec.Files = units, files
		return &spec
	}
	for what, c := range map[string]struct {
		spec    *schema.Spec
		refused bool
	}{
		"a file":    {more(nil, map[string]*schema.File{"/etc/systemd/system/web.service": {Content: &text}}), true},
		"a unit":    {more(map[string]*schema.Unit{"web.service": {Body: schema.Body{Content: &text}}}, nil), true},
		"a drop-in": {more(map[string]*schema.Unit{"web.service": {DropIns: map[string]*schema.Body{"a": {Content: &text}}}}, map[string]*schema.File{"/etc/systemd/system/web.service.d/x.conf": {Content: &text}}), false},
	} {
		err := w.agent().Check(t.Context(), c.spec, nil)
		if refused := failure.From(err) != nil && strings.Contains(fmt.Sprint(err), "the spec has the unit web.service itself"); refused != c.refused || err != nil && !refused {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A unit of the device is in the way of an application's, but for one of a spec
// that goes with this release.
func TestUnitThatGivesWay(t *testing.T) {
	w := stocked(t)
	at := filepath.Join(w.dir, unitFolder, "web.service")
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte("[Service]\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := w.agent().Check(t.Context(), one, nil); failure.From(err) == nil || !strings.Contains(err.Error(), "on the device already: /etc/systemd/system/web.service") {
		t.Errorf("a unit of the device: %v", err)
	}
	w.goes = "web.service"
	if err := w.agent().Check(t.Context(), one, nil); err != nil {
		t.Errorf("a unit that goes: %v", err)
	}
}

// Nothing that was assigned leads the agent to write elsewhere.
func TestNamesThatLeadElsewhere(t *testing.T) {
	text := container("reg/web:1", "a")
	content := map[string]*schema.Content{"web.container": {Content: &text}}
	for name, app := range map[string]*schema.Application{
		"../..": {Quadlet: content},
		"users": {Quadlet: content},
		"web":   {Folder: "../x", Quadlet: content},
		"deep":  {Folder: "a/b", Quadlet: content},
		"own":   {Quadlet: map[string]*schema.Content{"own.container": {Content: ptr("[Container]\nImage=reg/web:1\nServiceName=gitopsd-agent\n")}}},
		"base":  {Quadlet: map[string]*schema.Content{"base.container": {Content: ptr("[Container]\nImage=reg/web:1\nServiceName=dbus\n")}}},
		"none":  {Quadlet: map[string]*schema.Content{"none.container": {Content: ptr("[Container]\nImage=reg/web:1\nServiceName=../x\n")}}},
		"file":  {Quadlet: map[string]*schema.Content{"../../x.container": {Content: &text}}},
	} {
		w := stocked(t)
		err := w.agent().Check(t.Context(), &schema.Spec{Applications: map[string]*schema.Application{name: app}}, nil)
		if f := failure.From(err); f == nil || f.Class != schema.ClassPermanent || f.Element != name {
			t.Errorf("%s: got %v, want a permanent failure", name, err)
		}
	}
}

func ptr(s string) *string { return &s }

// The name of a pod or a network is no option of podman.
func TestObjectsThatAreOptions(t *testing.T) {
	for _, line := range []string{"ExecStart=/usr/bin/podman network create --ignore --all", "ExecStartPre=/usr/bin/podman pod create --name --all"} {
		all := readUnits("---x.service---\n[Unit]\nSourcePath=/q/web/x.pod\n[Service]\n"+line+"\n", "/q")
		if len(all) != 1 || all[0].Object != "" {
			t.Errorf("%s: got %+v", line, all)
		}
	}
}
