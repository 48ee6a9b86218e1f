package schema

import (
	"fmt"
	"strings"
	"testing"
)

func TestUnitNames(t *testing.T) {
	long := strings.Repeat("x", 247)
	for name, want := range map[string]string{
		"edge.service": "", "edge@1.service": "", "edge@.service": "", `mnt-a\x2db.mount`: "", "a:b.timer": "", "edge@a@b.service": "",
		long + ".service":  "",
		long + "x.service": "more than 255 bytes",
		"edge":             "no type", "": "no type", "edge.": "no type of unit", "edge.svc": "no type of unit", "sda.device": "no type of unit",
		"run-1.scope": "no type of unit", "../edge.service": "path", "/etc/x.service": "path", "a b.service": "no unit name",
		"@.service": "no unit name", ".service": "no unit name", "edgé.service": "no unit name", "a\x00.service": "no unit name", "--help.service\n": "no type of unit",
	} {
		got, _ := unitNameProblem(name)
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// What no device could do is found before the merge, where it is written.
func TestUnitsThatCannotBe(t *testing.T) {
	for spec, want := range map[string]string{
		`{units: {edge.service: {content: "[Install]\nAlias=e.service", enabled: true, state: started}, edge.timer: {enabled: false}, a@.service: {content: "[Install]\nAlias=b@.service", enabled: true}}}`: "",
		`{units: {cups.service: {state: masked, dropIns: {a: {content: "[Unit]"}}}}}`:                                                                    "",
		`{units: {edge.service: {state: running}}}`:                                                                                                      "/units/edge.service/state wrong-value",
		`{units: {edge.service: {enabled: "yes"}}}`:                                                                                                      "/units/edge.service/enabled wrong-type",
		`{units: {edge: {state: started}}}`:                                                                                                              "/units/edge unit-name",
		`{units: {a/b.service: {state: started}}}`:                                                                                                       "/units/a~1b.service unit-name",
		`{units: {edge.service: {dropIns: {a.conf: {content: "[Unit]"}}}}}`:                                                                              "/units/edge.service/dropIns/a.conf unit-name",
		`{units: {edge.service: {dropIns: {../a: {content: "[Unit]"}}}}}`:                                                                                "/units/edge.service/dropIns/..~1a",
		`{units: {edge.service: {dropIns: {a: {}}}}}`:                                                                                                    "/units/edge.service/dropIns/a file-content",
		`{units: {edge.service: {content: "[Unit]", contentBase64: eA==}}}`:                                                                              "/units/edge.service/contentBase64 file-content",
		`{units: {edge.service: {dropIns: {a: {contentBase64: "*"}}}}}`:                                                                                  "/units/edge.service/dropIns/a/contentBase64 bad-base64",
		`{units: {edge.service: {content: "{{ .nothing", template: true}}}`:                                                                              "/units/edge.service/content template-syntax",
		`{units: {edge.service: {source: nowhere.service}}}`:                                                                                             "/units/edge.service/source source-missing",
		`{units: {edge.service: {dropIns: {a: {source: ../x}}}}}`:                                                                                        "/units/edge.service/dropIns/a/source source-path",
		`{units: {edge.service: {content: "[Unit]", state: masked}}}`:                                                                                    "/units/edge.service/state unit-cannot-be",
		`{units: {edge.service: {enabled: true, state: masked}}}`:                                                                                        "/units/edge.service/enabled unit-cannot-be",
		`{units: {a@.service: {state: started}}}`:                                                                                                        "/units/a@.service/state unit-cannot-be",
		`{units: {a.slice: {state: started}}}`:                                                                                                           "/units/a.slice/state unit-cannot-be",
		`{units: {gitopsd-agent.service: {dropIns: {a: {content: "[Unit]"}}}}}`:                                                                          "/units/gitopsd-agent.service unit-protected",
		`{units: {dbus.service: {enabled: false}}}`:                                                                                                      "/units/dbus.service unit-protected",
		`{units: {edge.service: {content: "[Unit]"}}, files: {/etc/systemd/system/edge.service: {content: "[Unit]"}}}`:                                   "/units/edge.service device-path-clash",
		`{units: {a.service: {dropIns: {b: {content: "[Unit]"}}}}, files: {/etc/systemd/system/a.service.d/b.conf: {content: "[Unit]"}}}`:                "/units/a.service/dropIns/b device-path-clash",
		`{files: {/etc/a: {content: "[Unit]", restart: [a.service], reload: [systemd-journald.service]}}}`:                                               "",
		`{files: {/etc/a: {content: "[Unit]", restart: [a]}}}`:                                                                                           "/files/~1etc~1a/restart/0 unit-name",
		`{files: {/etc/a: {content: "[Unit]", reload: [a@.service]}}}`:                                                                                   "/files/~1etc~1a/reload/0 unit-name",
		`{files: {/etc/a: {content: "[Unit]", restart: [gitopsd-agent.service]}}}`:                                                                       "/files/~1etc~1a/restart/0 unit-protected",
		`{files: {/etc/a: {content: "[Unit]", restart: [a.service, dbus.service]}}}`:                                                                     "/files/~1etc~1a/restart/1 unit-protected",
		`{files: {/usr/bin/gitopsd: {content: x}}}`:                                                                                                      "/files/~1usr~1bin~1gitopsd device-path-protected",
		`{files: {/usr/lib/systemd/system/gitopsd-agent.service: {content: x}}}`:                                                                         "/files/~1usr~1lib~1systemd~1system~1gitopsd-agent.service device-path-protected",
		`{files: {/etc/systemd/system/gitopsd-agent.service.d/a.conf: {content: x}}}`:                                                                    "/files/~1etc~1systemd~1system~1gitopsd-agent.service.d~1a.conf device-path-protected",
		`{directories: {/run/systemd/system.control/gitopsd.service.d: {}}}`:                                                                             "/directories/~1run~1systemd~1system.control~1gitopsd.service.d device-path-protected",
		`{files: {/etc/systemd/system/multi-user.target.wants/gitopsd-agent.service: {content: x}}}`:                                                     "/files/~1etc~1systemd~1system~1multi-user.target.wants~1gitopsd-agent.service device-path-protected",
		`{files: {/etc/systemd/network/gitopsd-x.network: {content: x}, /usr/bin/gitopsd-x: {content: x}, /etc/systemd/system/a.service: {content: x}}}`: "",
		`{units: {var-lib-gitopsd.mount: {content: "[Mount]", state: started}}}`:                                                                         "/units/var-lib-gitopsd.mount unit-protected",
		`{units: {var.mount: {state: stopped}}}`:                                                                                                         "/units/var.mount unit-protected",
		`{units: {run.automount: {content: "[Automount]"}}}`:                                                                                             "/units/run.automount unit-protected",
		`{units: {etc-gitopsd-a\x2db.mount: {content: "[Mount]"}}}`:                                                                                      `/units/etc-gitopsd-a\x2db.mount unit-protected`,
		`{units: {etc-systemd.mount: {content: "[Mount]"}}}`:                                                                                             "/units/etc-systemd.mount unit-protected",
		`{units: {var.mount: {dropIns: {a: {content: "[Mount]"}}}, var-lib-containers.mount: {content: "[Mount]", state: started}, var-lib-gitopsd\x2dx.mount: {content: "[Mount]"}, dev-hugepages.mount: {state: masked}, tmp.mount: {state: masked}}}`: "",
		`{files: {/etc/a: {content: x, restart: [var.mount]}}}`:                                    "/files/~1etc~1a/restart/0 unit-protected",
		`{files: {/etc/systemd/system/service.d/x.conf: {content: "[Service]"}}}`:                  "/files/~1etc~1systemd~1system~1service.d~1x.conf device-path-protected",
		`{files: {/usr/local/lib/systemd/system/dbus.service: {content: "[Service]"}}}`:            "/files/~1usr~1local~1lib~1systemd~1system~1dbus.service device-path-protected",
		`{files: {/etc/systemd/system/var.mount: {content: "[Mount]"}}}`:                           "/files/~1etc~1systemd~1system~1var.mount device-path-protected",
		`{files: {/run/systemd/transient/gitopsd-agent.service.d/x.conf: {content: "[Service]"}}}`: "/files/~1run~1systemd~1transient~1gitopsd-agent.service.d~1x.conf device-path-protected",
		`{files: {/etc/systemd/system/dbus.service.d/x.conf: {content: "[Service]"}, /etc/systemd/system.conf.d/gitopsd-x.conf: {content: "[Manager]"}, /etc/systemd/system/edge.service.d/x.conf: {content: "[Service]"}}}`: "",
		`{files: {/etc/a: {content: "[Unit]", restart: a.service}}}`: "/files/~1etc~1a/restart wrong-type",
	} {
		problems := releaseProblems(t, spec)
		place, rule, _ := strings.Cut(want, " ")
		switch {
		case want == "" && len(problems) == 0:
		case want != "" && len(problems) == 1 && problems[0].Pointer == "/spec"+place && (rule == "" || problems[0].Rule == rule):
		default:
			t.Errorf("%s: %s, want %q", spec, lines(problems), want)
		}
	}
}

// Units have sources and templates as files have; what an overlay sets takes
// the place of what it overlays.
func TestUnitsAreRendered(t *testing.T) {
	repo := repoOf(ruleFleet).
		with("releases/gateways/v1.5.0.yaml", ruleRelease+`{units: {edge.service: {source: ./files/edge.service, template: true, dropIns: {a: {source: ./files/plain}, b: {content: "# {{ .device.name }}", template: true}}}, gone.service: {content: "[Unit]"}}}`+"\n").
		with("releases/gateways/files/edge.service", "[Service]\nExecStart=/opt/edge/run {{ .device.name }}\n").
		with("releases/gateways/files/plain", "[Service]\n").
		with("overlays/a.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Overlay\nmetadata: {name: a}\nspec: {desired: {units: {gone.service: null, edge.service: {enabled: false, dropIns: {a: {content: '[Unit]'}}}}}}\n")
	f := load(t, repo)
	if !f.Valid() {
		t.Fatal(lines(f.Problems))
	}
	r := f.Member("gw-1").Rendered
	var spec Spec
	if got, err := DecodeSpec(r.Spec); err != nil {
		t.Fatal(err)
	} else {
		spec = *got
	}
	u := spec.Units["edge.service"]
	if u == nil || len(spec.Units) != 1 || u.Enabled == nil || *u.Enabled || len(u.DropIns) != 2 {
		t.Fatalf("the units are %+v", spec.Units)
	}
	want := "[Service]\nExecStart=/opt/edge/run gw-1\n"
	if got := string(r.Payloads[u.Payload].Data); got != want || u.Source != "" || u.Template {
		t.Errorf("the unit is %q (%+v), want %q", got, u, want)
	}
	if a, b := u.DropIns["a"], u.DropIns["b"]; a.Content == nil || *a.Content != "[Unit]" || a.Payload != "" || b.Content == nil || *b.Content != "# gw-1" {
		t.Errorf("the drop-ins are %+v and %+v", a, b)
	}
	if got := fmt.Sprint(PayloadNames(r.Spec)); got != "["+u.Payload+"]" {
		t.Errorf("the payloads are %s", got)
	}
	if got := fmt.Sprint(r.Needs); got != "[units]" {
		t.Errorf("it needs %s", got)
	}
}

// A file that restarts a unit asks for an agent that can.
func TestNeedsOfChangedUnits(t *testing.T) {
	for spec, want := range map[string]string{
		`{files: {/etc/a: {content: "[Unit]", restart: [a.service]}}}`:                                         "[files units]",
		`{files: {/etc/a: {content: "[Unit]", reload: [a.service]}}, units: {a.service: {content: "[Unit]"}}}`: "[files units]",
		`{files: {/etc/a: {content: "[Unit]", restart: []}}}`:                                                  "[files]",
	} {
		f := load(t, repoOf(ruleFleet).with("releases/gateways/v1.5.0.yaml", ruleRelease+spec+"\n"))
		if !f.Valid() {
			t.Fatal(lines(f.Problems))
		}
		if got := fmt.Sprint(f.Member("gw-1").Rendered.Needs); got != want {
			t.Errorf("%s needs %s, want %s", spec, got, want)
		}
	}
}
