package schema

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestQuadletImage(t *testing.T) {
	for _, c := range []struct{ name, text, more, want string }{
		{"a.container", "[Container]\nImage=example.com/a:1\n", "", "example.com/a:1"},
		{"a.container", "[Unit]\nImage=no\n[Container]\n# Image=no\n Image = \\\n; no\n example.com/a:1\n[Service]\nImage=no\n", "", "example.com/a:1"},
		{"a.container", "[Container]\nImage=a.image\n", "", ""},
		{"a.container", "[Container]\nImage=a.build\n", "", ""},
		{"a.container", "[Container]\nImage=example.com/%i:${TAG}\n", "", ""},
		{"a.container", "[Container]\nImage=example.com/{{ .vars.image }}\n", "", ""},
		{"a.container", "[Container]\nImage=--help\n", "", ""},
		{"a.container", "[Container]\nImage=example.com/a:1\nImage=example.com/b:1\n", "", "example.com/b:1"},
		{"a.container", "[Container]\nImage=example.com/a:1\\", "[Container]\nImage=example.com/c:1\n", "example.com/c:1"},
		{"a.container", "[Container]\nImage=example.com/a:1\n", "[Service]\nImage=example.com/c:1\n", "example.com/a:1"},
		{"a.image", "[Image]\nImage=example.com/a@sha256:00\n", "", "example.com/a@sha256:00"},
		{"a.volume", "[Volume]\nDriver=image\nImage=example.com/data:1\n", "", "example.com/data:1"},
		{"a.network", "[Network]\nImage=example.com/a:1\n", "", ""},
		{"a.container", "[Container]\nImage=a\\", "", `a\`},
	} {
		if got := QuadletImage(c.name, []byte(c.text), []byte(c.more)); got != c.want {
			t.Errorf("%s: %q, %q: got %q, want %q", c.name, c.text, c.more, got, c.want)
		}
	}
}

func TestTimesOfHealth(t *testing.T) {
	for health, want := range map[string]string{
		"{timeout: 24h, stableFor: 24h}":  "",
		"{timeout: 0s}":                   "/timeout in which nothing can be judged",
		"{timeout: 24h1s}":                "/timeout at most 24h",
		"{timeout: 5s, stableFor: 1000h}": "/stableFor at most 24h",
	} {
		problems := releaseProblems(t, `{applications: {web: {quadlet: {web.container: {content: "[Container]\nImage=example.com/web:1\n"}}, health: `+health+"}}}")
		place, words, _ := strings.Cut(want, " ")
		if len(problems) != min(1, len(want)) || len(problems) > 0 && (problems[0].Rule != ruleHealth ||
			problems[0].Pointer != "/spec/applications/web/health"+place || !strings.Contains(problems[0].Message, words)) {
			t.Errorf("%s: %+v, want %q", health, problems, want)
		}
	}
}

func TestQuadletUnits(t *testing.T) {
	for file, want := range map[string]string{
		"web.container": "web.service", "web.kube": "web.service", "web.pod": "web-pod.service", "web.volume": "web-volume.service",
		"web.network": "web-network.service", "web.image": "web-image.service", "web.build": "web-build.service", "a.b.container": "a.b.service",
	} {
		if got := QuadletUnit(file); got != want {
			t.Errorf("%s makes %s, want %s", file, got, want)
		}
	}
	for text, want := range map[string]string{
		"[Container]\nServiceName=edge\n": "edge.service", "[Container]\nServiceName=\n": "web.service", "[Pod]\nServiceName=edge\n": "web.service",
	} {
		if got := QuadletUnit("web.container", []byte(text)); got != want {
			t.Errorf("%q makes %s, want %s", text, got, want)
		}
	}
	for _, file := range []string{"", ".container", "web", "../web.container", "a/b.container", "web@.container", "-web.container",
		"gitopsd-agent.container", "web.yaml", "web.container.d/x", "web.container.d/../x.conf", "web.container.d/a/b.conf", "web.service.d/x.conf", "container.d/x.conf", "web.d/x.conf", strings.Repeat("x", 300) + ".container", "wéb.container"} {
		if msg, _ := quadletName(file); msg == "" {
			t.Errorf("%q is taken as a quadlet file", file)
		}
	}
}

// What an application makes can be added to, and nothing else.
func TestUnitsOfApplications(t *testing.T) {
	fleet := func(desired string) []Problem {
		return load(t, exampleRepo("-- devices/gw-1.yaml --\napiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-1, labels: {role: gateway}}\nspec: {desired: {"+desired+"}}\n")).Problems
	}
	web := `applications: {web: {quadlet: {web.container: {content: "[Container]\nImage=reg/web:1\nServiceName=edge\n"}`
	for desired, rule := range map[string]string{
		web + `, web.container.d/10-a.conf: {content: "[Container]\nMemory=100M\n"}}}}`:                                            "",
		web + `, web.container.d/10-a.conf: {content: "[Container]\nImage=reg/other\n"}}}}`:                                        ruleImage,
		web + `, db.container.d/10-a.conf: {content: "[Container]\n"}}}}`:                                                          ruleQuadletFile,
		web + `, web.container.d/10-a.txt: {content: "[Container]\n"}}}}`:                                                          ruleQuadletFile,
		web + `, web.container.d/10-a.conf: {mode: "0600"}}}}`:                                                                     "unknown-field",
		web + `}}}, units: {edge.service: {dropIns: {a: {content: "[Service]\n"}}}}`:                                               "",
		web + `}}}, units: {edge.service: {state: started}}`:                                                                       ruleUnitState,
		web + `}}}, units: {edge.service: {enabled: true, dropIns: {a: {content: "[Service]\n"}}}}`:                                ruleUnitState,
		web + `}}}, units: {edge.service: {content: "[Service]\n"}}`:                                                               ruleQuadletClash,
		web + `}}}, files: {/etc/systemd/system/edge.service: {content: "[Service]\n"}}`:                                           ruleQuadletClash,
		web + `}}}, files: {/run/systemd/system.control/edge.service: {content: "[Service]\n"}}`:                                   ruleQuadletClash,
		web + `}}}, files: {/etc/systemd/system/edge.service.d/x.conf: {content: "[Service]\n"}, /etc/edge.service: {content: x}}`: "",
		web + `}}}, units: {web.service: {content: "[Service]\n", state: started}}`:                                                "",
	} {
		problems := fleet(desired)
		if has := slices.ContainsFunc(problems, func(p Problem) bool { return p.Rule == rule }); has != (rule != "") || rule == "" && len(problems) > 0 {
			t.Errorf("%s: want %q, got\n%s", desired, rule, lines(problems))
		}
	}
}

func TestQuadletFolders(t *testing.T) {
	for _, c := range []struct{ name, folder, want string }{
		{"web", "", "/etc/containers/systemd/web"},
		{"web", ".", "/etc/containers/systemd"},
		{"web", "Old_web", "/etc/containers/systemd/Old_web"},
	} {
		if got := QuadletFolder(c.name, c.folder); got != c.want || quadletFolderProblem(c.name, c.folder) != "" {
			t.Errorf("%q in %q stands in %q, want %q", c.name, c.folder, got, c.want)
		}
	}
	for _, c := range [][2]string{{"web", ".."}, {"web", "a/b"}, {"web", "x.d"}, {"users", ""}, {"web", "users"}, {"../x", ""}, {"web", "-x"}} {
		if quadletFolderProblem(c[0], c[1]) == "" {
			t.Errorf("%q is taken in the folder %q", c[0], c[1])
		}
	}
}

// A source, a template and an overlay's change of them mean for a quadlet
// what they mean for a file.
func TestQuadletsHaveContentAsFilesDo(t *testing.T) {
	repo := exampleRepo(`-- releases/gateways/v1.5.0.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Release
metadata: {name: v1.5.0}
spec:
  applications:
    web:
      quadlet:
        web.container: {source: files/web.container, template: true}
        web.volume: {source: files/web.volume}
        web.network: {content: "[Network]\n"}
-- files/web.container --
[Container]
Image=example.com/web:{{ .vars.tag }}
-- files/web.volume --
[Volume]
-- devices/gw-1.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Device
metadata: {name: gw-1, labels: {role: gateway}}
spec:
  vars: {tag: "7"}
  desired: {applications: {web: {quadlet: {web.volume: {content: "[Volume]\n# mine\n"}, web.network: null}}}}
`)
	fleet := load(t, repo)
	if hasErrors(fleet.Problems) {
		t.Fatalf("problems:\n%s", lines(fleet.Problems))
	}
	r := fleet.Member("gw-1").Rendered
	files := asMap(asMap(asMap(r.Spec["applications"])["web"])["quadlet"])
	text := "[Container]\nImage=example.com/web:7\n"
	if got, want := asMap(files["web.container"])["payload"], PayloadDigest([]byte(text)); got != want {
		t.Errorf("the template became %v, want %v", got, want)
	}
	if got := asMap(files["web.volume"]); got["content"] != "[Volume]\n# mine\n" || got["source"] != nil || got["payload"] != nil {
		t.Errorf("the device's own content became %v", got)
	}
	if files["web.network"] != nil {
		t.Errorf("the removed file is still there: %v", files)
	}
	if got := PayloadNames(r.Spec); len(got) != 1 || len(r.Payloads) != 1 {
		t.Errorf("the payloads are %v and %v", got, r.Payloads)
	}
	if !slices.Equal(r.Needs, []string{"applications.quadlet"}) {
		t.Errorf("it needs %q", r.Needs)
	}
	if _, err := DecodeSpec(r.Spec); err != nil {
		t.Error(err)
	}
}

// A line that goes on in many others is read in the time that it is long.
func TestQuadletImageInManyLines(t *testing.T) {
	text := "[Container]\nEnvironment=" + strings.Repeat("a\\\n", 300_000) + "\nImage=a:1\n"
	began := time.Now()
	if got := QuadletImage("web.container", []byte(text)); got != "a:1" || time.Since(began) > 5*time.Second {
		t.Errorf("%q after %s", got, time.Since(began))
	}
}
