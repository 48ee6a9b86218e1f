package schema

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestKubeDocuments(t *testing.T) {
	for text, want := range map[string]string{
		"[Kube]\nYaml=web.yaml\n": "/q/web/web.yaml", "[Kube]\nYaml=./a/../b.yaml\n": "/q/web/b.yaml", "[Kube]\nYaml=\"/etc/web.yaml\"\n": "/etc/web.yaml",
		"[Kube]\nYaml=a.yaml\nYaml=b.yaml\nYaml=a.yaml\n": "/q/web/a.yaml /q/web/b.yaml", "[Kube]\nYaml=../../../../x\n": "/x",
		"[Kube]\n": "", "": "", "[Container]\nYaml=a.yaml": "", "[Kube]\nYaml=%h/a.yaml": "", "[Kube]\nYaml=https://example.com/a.yaml": "", "[Kube]\nYaml={{ .vars.a }}": "",
	} {
		got, err := KubeDocuments("/q/web", []byte(text))
		if strings.Join(got, " ") != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
}

func TestKubeImages(t *testing.T) {
	pod := `
kind: Pod
spec:
  initContainers: [{name: a, image: "reg/init:1"}]
  containers:
  - &web {name: b, image: reg/web:1}
  - {name: c, image: reg/here:1, imagePullPolicy: Never}
  - {<<: *web, name: d}
  volumes: [{name: v, image: {reference: reg/data:1}}, {name: w, emptyDir: {}}]
---
kind: Deployment
spec: {template: {spec: {containers: [{image: "reg/deep@sha256:00"}]}}}
---
kind: ConfigMap
data: {containers: "[{image: no}]", image: no}
`
	got, err := KubeImages([]byte(pod))
	if want := []string{"reg/data:1", "reg/deep@sha256:00", "reg/init:1", "reg/web:1"}; !slices.Equal(got, want) || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for name, bad := range map[string]string{
		"no YAML": "a: [", "a NUL": "a: \x00", "too large": "a: " + strings.Repeat("x", maxKube), "a bomb": "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + bomb("b", "a") + bomb("c", "b") + bomb("d", "c") + bomb("e", "d") + bomb("f", "e") + bomb("g", "f"),
		"itself": "a: &a [*a]", "an option": "containers: [{image: --help}]", "two words": "containers: [{image: a b}]",
		"a NUL in an image": `containers: [{image: "a\0b"}]`, "many values": strings.Repeat("- - - - - - - -\n", 20_000),
	} {
		if got, err := KubeImages([]byte(bad)); err == nil {
			t.Errorf("%s: got %q and no error", name, got)
		}
	}
}

// BenchmarkKubeImagesOfManyKeys is a mapping of as many keys as there may be,
// and beside it one of a tenth of them: a key costs the same in both.
func BenchmarkKubeImagesOfManyKeys(b *testing.B) {
	for _, n := range []int{3_000, 30_000} {
		var document strings.Builder
		for i := range n {
			fmt.Fprintf(&document, "k%d: 1\n", i)
		}
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			for range b.N {
				if _, err := KubeImages([]byte(document.String())); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/key")
		})
	}
}

func bomb(name, of string) string {
	return name + ": &" + name + " [" + strings.TrimSuffix(strings.Repeat("*"+of+",", 10), ",") + "]\n"
}

func FuzzKubeImages(f *testing.F) {
	f.Add([]byte("spec: {containers: [{image: a}], volumes: [{image: {reference: b}}]}"))
	f.Add([]byte("volumes: [null, 1, {image: null}]\ncontainers: {a: b}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		images, err := KubeImages(data)
		if err == nil && slices.Contains(images, "") {
			t.Errorf("an image has no name: %q", images)
		}
	})
}

// The pods of a .kube file are looked at wherever their document comes from.
func TestKubeInAFleet(t *testing.T) {
	fleet := func(kube, files string) string {
		return `-- releases/gateways/v1.5.0.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Release
metadata: {name: v1.5.0}
spec:
  applications: {web: {quadlet: {web.kube: ` + kube + `}}}
  files: {` + files + `}
-- files/web.kube --
[Kube]
Yaml=web.yaml
-- files/web.yaml --
spec: {containers: [{image: reg/web}]}
-- files/bad.yaml --
spec: {{ "{" }}
-- files/huge.yaml --
` + strings.Repeat("# a long line of a comment that says nothing\n", (maxTemplate>>5)) + `
`
	}
	at := func(doc string) string { return `/etc/containers/systemd/web/web.yaml: ` + doc }
	for name, c := range map[string]struct{ kube, files, rule string }{
		"a source":       {"{source: files/web.kube}", at("{source: files/web.yaml}"), ruleImage},
		"in the release": {`{content: "[Kube]\nYaml=/x.yaml\n"}`, `/x.yaml: {content: "spec: {containers: [{image: a}]}"}`, ruleImage},
		"encoded":        {`{contentBase64: W0t1YmVdCllhbWw9L3gueWFtbAo=}`, `/x.yaml: {content: "a: ["}`, ruleKube},
		"a template":     {"{source: files/web.kube, template: true}", at("{source: files/bad.yaml, template: true}"), ""},
		"elsewhere":      {"{source: files/web.kube}", "/y: {content: y}", ruleKube},
		"no YAML":        {"{source: files/web.kube}", at("{source: files/bad.yaml}"), ruleKube},
		"too large":      {"{source: files/web.kube}", at("{source: files/huge.yaml}"), ruleKube},
		"no document":    {`{content: "[Kube]\n"}`, "/y: {content: y}", ruleKube},
		"no source":      {"{source: files/none.kube}", "/y: {content: y}", ruleSourceMissing},
	} {
		problems := load(t, exampleRepo(fleet(c.kube, c.files))).Problems
		if has := slices.ContainsFunc(problems, func(p Problem) bool { return p.Rule == c.rule }); has != (c.rule != "") || c.rule == "" && hasErrors(problems) {
			t.Errorf("%s: want %q, got\n%s", name, c.rule, lines(problems))
		}
	}
}
