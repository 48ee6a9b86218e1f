package schema

import (
	"slices"
	"strings"
	"testing"
)

func TestQuadletImages(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"a.container", "[Container]\nImage=example.com/a:1\n", []string{"example.com/a:1"}},
		{"a.container", "[Unit]\nImage=no\n[Container]\n# Image=no\n Image = \\\n; no\n example.com/a:1\n[Service]\nImage=no\n", []string{"example.com/a:1"}},
		{"a.container", "[Container]\nImage=a.image\n", nil},
		{"a.container", "[Container]\nImage=a.build\n", nil},
		{"a.container", "[Container]\nImage=example.com/%i:${TAG}\n", nil},
		{"a.container", "[Container]\nImage=example.com/{{ .vars.image }}\n", nil},
		{"a.image", "[Image]\nImage=example.com/a@sha256:00\nImage=example.com/a@sha256:00\n", []string{"example.com/a@sha256:00"}},
		{"a.volume", "[Volume]\nDriver=image\nImage=example.com/data:1\n", []string{"example.com/data:1"}},
		{"a.network", "[Network]\nImage=example.com/a:1\n", nil},
		{"a.container", "[Container]\nImage=a\\", []string{`a\`}},
	} {
		if got := QuadletImages(c.name, []byte(c.text)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q: got %q, want %q", c.name, c.text, got, c.want)
		}
	}
}

func TestQuadletUnits(t *testing.T) {
	for file, want := range map[string]string{
		"web.container": "web.service", "web.kube": "web.service", "web.pod": "web-pod.service", "web.volume": "web-volume.service",
		"web.network": "web-network.service", "web.image": "web-image.service", "web.build": "web-build.service", "a.b.container": "a.b.service",
	} {
		if got := QuadletUnit(file, nil); got != want {
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
		"gitopsd-agent.container", "web.yaml", strings.Repeat("x", 300) + ".container", "wéb.container"} {
		if msg, _ := quadletName(file); msg == "" {
			t.Errorf("%q is taken as a quadlet file", file)
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
  desired: {applications: {web: {quadlet: {web.volume: {content: "mine"}, web.network: null}}}}
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
	if got := asMap(files["web.volume"]); got["content"] != "mine" || got["source"] != nil || got["payload"] != nil {
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
