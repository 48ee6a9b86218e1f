package reconcile

import (
	"context"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gitopsd/gitopsd/reconcile/internal/units"
	"github.com/gitopsd/gitopsd/schema"
)

// withUnits is a device with a service of its own, which runs.
func withUnits(t *testing.T) (*device, *fewUnits) {
	t.Setenv("PATH", t.TempDir()) // what systemd-analyze would say is not what this is about
	d := bubbleDevice(t)
	s := &fewUnits{d: d, links: map[string]bool{"edge.service": true}}
	d.write("/etc/systemd/system/edge.service", service("edge 1")["content"].(string))
	s.boot()
	d.cfg.Systemd = func(context.Context) (units.Manager, error) { return s, nil }
	d.wantOnce(0)
	return d, s
}

func changesOf(t *testing.T, c *Comparison, err error) string {
	t.Helper()
	if err != nil || len(c.Trouble) > 0 {
		t.Fatalf("compared %+v: %v", c, err)
	}
	var list []string
	for _, one := range c.Changes {
		list = append(list, strings.TrimSpace(one.Do+" "+one.Field+" "+one.Name+" "+one.Detail))
	}
	return strings.Join(list, "|")
}

// look is what the device is asked to say of itself.
func (d *device) look(current bool) string {
	d.t.Helper()
	v, err := OpenView(d.cfg)
	if err != nil {
		d.t.Fatal(err)
	}
	defer v.Close()
	c, err := v.Compare(d.t.Context(), current, false)
	return changesOf(d.t, c, err)
}

// A unit that does not run, or is not enabled, is drift for who asks as for the
// agent.
func TestCompareSeesUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := withUnits(t)
		d.assign(1, "v1.0.0", tree{"units": tree{"edge.service": service("edge 1")}})
		d.wantOnce(0, "updated")
		if got := d.look(true); got != "" {
			t.Errorf("it differs in %s", got)
		}
		for what, harm := range map[string]func(){
			"change units edge.service it is inactive instead of started":      func() { delete(s.runs, "edge.service") },
			"change units edge.service it is disabled, enabled should be true": func() { delete(s.links, "edge.service") },
		} {
			harm()
			for _, current := range []bool{true, false} {
				if got := d.look(current); got != what {
					t.Errorf("current %t: it differs in %q, want %q", current, got, what)
				}
			}
			d.wantOnce(0)
		}
	})
}

// Before any agent has run, while one only observes, and with none running: what
// would change is the same, and what is as wanted already does not.
func TestCompareHasOneAnswer(t *testing.T) {
	for _, c := range []struct {
		what, want string
		units      tree
	}{
		{"as it is", "", tree{"edge.service": service("edge 1")}},
		{"a new one, which is one thing", "create units new.service", tree{"edge.service": service("edge 1"), "new.service": service("new")}},
		{"with another file", "change files /etc/systemd/system/edge.service", tree{"edge.service": service("edge 2")}},
		{"stopped, with another file", "change units edge.service it is enabled, enabled should be false",
			tree{"edge.service": tree{"content": service("edge 2")["content"], "enabled": false}}},
	} {
		d, _ := withUnits(t)
		spec := tree{"onDevice": observing["onDevice"], "units": c.units}
		got, err := CompareSpec(t.Context(), d.cfg, maps.Clone(spec), false)
		if said := changesOf(t, got, err); said != c.want {
			t.Errorf("%s, before: %q, want %q", c.what, said, c.want)
		}
		d.assign(1, "v1.0.0", spec)
		d.wantOnce(0, "compared")
		if said := d.look(false); said != c.want {
			t.Errorf("%s, observing: %q, want %q", c.what, said, c.want)
		}
		if told := d.control.last().WouldChange; (c.want == "") != (told.Count == 0) || told.Count > 1 {
			t.Errorf("%s, in the report: %+v, want %q", c.what, told, c.want)
		}
	}
}

// What a release has brought goes, and what was there comes back as it was.
func TestCompareReset_Units(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := withUnits(t)
		stopped := tree{"state": "stopped"}
		d.assign(1, "v1.0.0", tree{"units": tree{"edge.service": stopped, "new.service": service("new")}})
		d.wantOnce(0, "updated")
		v, err := OpenView(d.cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		c, err := v.CompareReset(t.Context())
		if got, want := changesOf(t, c, err), "restore units edge.service it is inactive instead of started|remove units new.service"; got != want {
			t.Errorf("a reset would %s, want %s", got, want)
		}
		if _, err := Reset(t.Context(), d.cfg, agreed); err != nil {
			t.Fatal(err)
		}
		if s.runs["edge.service"] == "" || s.runs["new.service"] != "" || d.content("/etc/systemd/system/new.service") != "" {
			t.Errorf("after the reset it is %s", s.is())
		}
	})
}

// The payload of a spec that nobody has assigned is not delivered; what stands in
// its place can be told to be the same.
func TestCompareSpec_PayloadInPlace(t *testing.T) {
	d, _ := withUnits(t)
	text := service("edge 1")["content"].(string)
	spec := tree{"units": tree{"edge.service": tree{"payload": schema.PayloadDigest([]byte(text)), "enabled": true, "state": "started"}}}
	c, err := CompareSpec(t.Context(), d.cfg, spec, false)
	if got := changesOf(t, c, err); got != "" {
		t.Errorf("it differs in %s", got)
	}
}

// A reset says which units it will restart.
func TestResetTellsOfRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := withUnits(t)
		d.assign(1, "v1.0.0", tree{"files": tree{"/etc/edge/edge.conf": tree{"content": "one\n", "restart": []string{"edge.service"}}}})
		d.wantOnce(0, "updated")
		for _, want := range []string{"|restart units edge.service", ""} { // where it runs, and where it does not
			v, err := OpenView(d.cfg)
			if err != nil {
				t.Fatal(err)
			}
			c, err := v.CompareReset(t.Context())
			if got := changesOf(t, c, err); got != "restore files /etc/edge/edge.conf"+want && got != "remove files /etc/edge/edge.conf"+want {
				t.Errorf("a reset would %s, want %q", got, want)
			}
			v.Close()
			delete(s.runs, "edge.service")
		}
	})
}
