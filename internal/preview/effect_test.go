package preview

import (
	"slices"
	"testing"
)

func TestEffectOf_HooksWithConditions(t *testing.T) {
	type tree = map[string]any
	on := func(paths ...any) tree { return tree{"run": []any{"true"}, "if": tree{"changed": paths}} }
	from := tree{
		"files":       tree{"/etc/a": tree{"content": "1"}, "/etc/gone/x": tree{"content": "1"}, "/etc/same": tree{"content": "1"}},
		"directories": tree{"/srv/a": tree{"mode": "0755"}},
		"units":       tree{"edge.service": tree{"state": "started"}},
	}
	to := tree{
		"files":       tree{"/etc/a": tree{"content": "2"}, "/etc/same": tree{"content": "1"}},
		"directories": tree{"/srv/a": tree{"mode": "0700"}},
		"units":       tree{"edge.service": tree{"state": "stopped"}},
		"hooks": tree{"afterUpdating": tree{
			"always": tree{"run": []any{"true"}}, "file": on("/etc/a"), "folder": on("/etc/gone"), "all": on("/"), "directory": on("/srv"), "one": on("/x", "/etc/a"),
			"unit": on("/etc/systemd/system"), "drop-in": on("/etc/systemd/system/edge.service.d/a.conf"),
			"no-same": on("/etc/same"), "no-like": on("/etc/go", "/srv/b"), "no-unit": on("/etc/systemd/system/edge.socket"),
		}},
	}
	want := []string{"afterUpdating/all", "afterUpdating/always", "afterUpdating/directory", "afterUpdating/drop-in", "afterUpdating/file", "afterUpdating/folder", "afterUpdating/one", "afterUpdating/unit"}
	if got := effectOf(Side{Spec: from}, Side{Spec: to}).Hooks; !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestEffectOf_RestartedApplications(t *testing.T) {
	app := func(image string, timeout string) map[string]any {
		return map[string]any{
			"quadlet": map[string]any{"web.container": map[string]any{"content": image}},
			"health":  map[string]any{"timeout": timeout},
		}
	}
	from := map[string]any{"applications": map[string]any{"a": app("1", "1m"), "b": app("1", "1m"), "gone": app("1", "1m")}}
	to := map[string]any{"applications": map[string]any{"a": app("2", "1m"), "b": app("1", "9m"), "new": app("1", "1m")}}
	if got := effectOf(Side{Spec: from}, Side{Spec: to}).Restarts; !slices.Equal(got, []string{"application a"}) {
		t.Errorf("restarts are %q, want only the application whose files changed", got)
	}
	if got := effectOf(Side{Spec: from}, Side{Spec: to}).Starts; !slices.Equal(got, []string{"application new"}) {
		t.Errorf("%q is started, want the new application", got)
	}
	moved := app("1", "1m")
	moved["folder"] = "."
	to = map[string]any{"applications": map[string]any{"a": app("1", "1m"), "b": moved}, "hooks": map[string]any{"afterUpdating": map[string]any{
		"own": map[string]any{"if": map[string]any{"changed": []any{"/etc/containers/systemd/web.container"}}},
	}}}
	if got := effectOf(Side{Spec: from}, Side{Spec: to}); !slices.Equal(got.Restarts, []string{"application b"}) || len(got.Hooks) != 1 {
		t.Errorf("the effect is %+v, want that of an application that moved", got)
	}
}

// A unit of its own that is new is started; one that the system may have already
// is restarted if it runs. Of a spec that cannot be read, nothing is known to be
// new.
func TestEffectOf_Starts(t *testing.T) {
	type tree = map[string]any
	from := tree{"units": tree{"old.service": tree{"content": "x", "state": "started"}}}
	to := tree{"units": tree{
		"old.service": tree{"content": "y", "state": "started"}, "new.service": tree{"content": "x", "state": "started"},
		"sshd.service": tree{"dropIns": tree{"a": tree{"content": "x"}}, "state": "started"},
	}}
	if e := effectOf(Side{Spec: from}, Side{Spec: to}); !slices.Equal(e.Starts, []string{"new.service"}) || !slices.Equal(e.Restarts, []string{"old.service", "sshd.service"}) {
		t.Errorf("the effect is %+v", e)
	}
	if e := effectOf(Side{Digest: "sha256:0"}, Side{Spec: to}); len(e.Starts) > 0 || len(e.Restarts) != 3 {
		t.Errorf("after what cannot be read it is %+v", e)
	}
}

func TestEffectOf_Compose(t *testing.T) {
	spec := func(tag string) map[string]any {
		return map[string]any{
			"applications": map[string]any{"shop": map[string]any{"compose": map[string]any{"content": "services: {}", "env": map[string]any{"TAG": tag}}}},
			"hooks": map[string]any{"afterUpdating": map[string]any{
				"own":   map[string]any{"if": map[string]any{"changed": []any{"/etc/containers/compose/shop/.env"}}},
				"other": map[string]any{"if": map[string]any{"changed": []any{"/etc/containers/compose/other"}}},
			}},
		}
	}
	if got := effectOf(Side{Spec: spec("1")}, Side{Spec: spec("2")}); !slices.Equal(got.Restarts, []string{"application shop"}) || !slices.Equal(got.Hooks, []string{"afterUpdating/own"}) {
		t.Errorf("the effect is %+v, want that of variables that changed", got)
	}
	if got := effectOf(Side{Spec: spec("1")}, Side{Spec: spec("1")}); len(got.Restarts)+len(got.Hooks) > 0 {
		t.Errorf("the effect of nothing is %+v", got)
	}
}

// The document of pods is a part of the application that names it.
func TestEffectOf_Pods(t *testing.T) {
	spec := func(doc string) map[string]any {
		return map[string]any{
			"applications": map[string]any{"web": map[string]any{"quadlet": map[string]any{"web.kube": map[string]any{"content": "[Kube]\nYaml=web.yaml\n"}}}},
			"files":        map[string]any{"/etc/containers/systemd/web/web.yaml": map[string]any{"content": doc}, "/etc/other": map[string]any{"content": doc}},
		}
	}
	if got := effectOf(Side{Spec: spec("a")}, Side{Spec: spec("b")}).Restarts; !slices.Equal(got, []string{"application web"}) {
		t.Errorf("restarts are %q, want the application whose document changed", got)
	}
}

func TestEffectOf_Observing(t *testing.T) {
	type tree = map[string]any
	unit := tree{"edge.service": tree{"state": "started"}}
	hooks := tree{"afterUpdating": tree{"check": tree{"run": []any{"true"}}}}
	observe := tree{"units": unit, "hooks": hooks, "os": tree{"image": "v2"}, "onDevice": tree{"mode": "observe"}}
	apply := tree{"units": unit, "hooks": hooks}
	if e := effectOf(Side{Spec: apply}, Side{Spec: observe}); !e.Observes || len(e.Hooks)+len(e.Restarts) > 0 || e.Reboot != "" {
		t.Errorf("a device that only compares itself does %+v", e)
	}
	// It never was what it was compared with.
	if e := effectOf(Side{Spec: observe}, Side{Spec: apply}); e.Observes || !e.Applies || !slices.Equal(e.Restarts, []string{"edge.service"}) || len(e.Hooks) != 1 {
		t.Errorf("a device that has only compared itself before does %+v", e)
	}
}
