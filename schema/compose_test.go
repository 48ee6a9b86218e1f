package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const shop = `x-common: &common
  restart: always
services:
  web:
    <<: *common
    image: example.com/web:${TAG:-1}
    volumes: [data:/data, /etc/web:/etc/web:ro, /cache]
    depends_on: {migrate: {condition: service_completed_successfully}}
    env_file: .env
    stop_grace_period: 1m30s
    networks: [front]
  migrate: {extends: web, command: migrate}
  debug: {image: "example.com/debug:1", profiles: [debug]}
volumes: {data: {}}
networks:
  front:
`

func TestReadCompose(t *testing.T) {
	file, slips := ReadCompose("shop", []byte(shop))
	if len(slips) > 0 {
		t.Fatalf("a good file has the slips %+v", slips)
	}
	var names []string
	for _, s := range file.Services {
		names = append(names, s.Name)
	}
	web := file.Services[2]
	if !slices.Equal(names, []string{"debug", "migrate", "web"}) || !file.Services[0].Optional || !file.Services[1].Ends ||
		web.Ends || web.Optional || !web.Restarts || web.Grace.Seconds() != 90 || file.DotEnv != 9 {
		t.Errorf("it is read as %+v", file)
	}
	for tag, want := range map[string]string{"": "example.com/web:1", "7": "example.com/web:7"} {
		if got := file.Images(map[string]string{"TAG": tag}); !slices.Equal(got, []string{"example.com/debug:1", want}) {
			t.Errorf("with the tag %q the images are %q", tag, got)
		}
	}
}

// Of two services of one name the last counts, as for the tool.
func TestComposeNamesOnce(t *testing.T) {
	file, slips := ReadCompose("shop", []byte("x-more: &more {web: {image: \"c:1\"}}\nservices: {web: {image: \"a:1\"}, web: {image: \"b:1\"}, <<: *more}\n"))
	if len(slips) > 0 || !slices.Equal(file.Images(nil), []string{"b:1"}) {
		t.Errorf("it is read as %+v with %+v", file, slips)
	}
}

func TestComposeSlips(t *testing.T) {
	service := func(fields string) string {
		return "services:\n  web: {image: \"example.com/web:1\", " + fields + "}\n"
	}
	for text, want := range map[string]string{
		"":                                  "empty",
		"services:\n\tweb: 1":               "no YAML",
		"services: [web]":                   "no services",
		"version: '3'":                      "no services",
		"- services":                        "no mapping",
		"services: {}\n---\nservices: {}":   "second document",
		"services: {web: null}":             "is empty",
		"services: {web: {command: x}}":     "no image",
		"services: {web: {image: ''}}":      "no image",
		"services: {web: {build: .}}":       "devices do not build",
		"services: {'a b': {image: x}}":     "no container can be called",
		"services: {web: {image: --help}}":  "is no image",
		"services: {web: {extends: web}}":   "no image",
		"include: [x.yaml]\n" + service(""): "include names",
		"name: other\n" + service(""):       "and not \"other\"",
		service("restart: no"):              "quote it",
		service("env_file: web.env"):        "web.env",
		service("env_file: [{path: ./a}]"):  "./a",
		service("volumes: ['./a:/a']"):      "./a",
		service("volumes: [data:/data]"):    "not declared",
		service("volumes: [{type: bind, source: ../a, target: /a}]"): "../a",
		service("volumes: [{type: volume, source: d, target: /a}]"):  "not declared",
		service("networks: [back]"):                                  "not declared",
		service("networks: {back: {aliases: [x]}}"):                  "not declared",
		service("depends_on: [db]"):                                  "depends on",
		service("") + "secrets: {s: {file: ./s}}":                    "./s",
		service("") + "configs: {c: {file: c}}":                      "\"c\"",
		service("") + "secrets: {s: {file: /etc/s}}":                 "",
		service("extends: {file: base.yaml, service: x}"):            "",
		service("restart: 'no'"):                                     "",
		service("env_file: [{path: ./a, required: false}]"):          "",
		service("volumes: ['${DATA}/a:/a', '~/a:/a', '/a:/a', /b]"):  "",
		"services: {web: {extends: {file: b.yaml, service: x}}}":     "not on the device",
		"name: shop\n" + service(""):                                 "",
		"name: ${X}\n" + service(""):                                 "",
	} {
		_, slips := ReadCompose("shop", []byte(text))
		if want == "" && len(slips) > 0 {
			t.Errorf("%q has the slips %+v", text, slips)
		}
		if want == "" {
			continue
		}
		if len(slips) == 0 || slips[0].Line < 1 || !slices.ContainsFunc(slips, func(s ComposeSlip) bool { return strings.Contains(s.Message+s.Hint, want) }) {
			t.Errorf("%q has the slips %+v, want one with %q", text, slips, want)
		}
	}
}

// Names are those of podman: another project may use them.
func TestComposeShares(t *testing.T) {
	const services = "services: {web: {image: \"a:1\"}}\n"
	for text, want := range map[string]string{
		"":                              "shop_default, ",
		"networks: {front: {}, back: }": "shop_back shop_default shop_front, ",
		"networks: {front: {external: true}, old: {external: {name: older}}, not: {external: false, name: own}}": "own shop_default, front older",
		"networks: {default: {external: yes, name: \"${NET}\"}}":                                                 ", edge",
		"volumes: {data: {}, theirs: {external: true, name: one_data}}":                                          "shop_data shop_default, one_data",
	} {
		file, slips := ReadCompose("shop", []byte(services+text))
		made, needed := file.Shared(map[string]string{"NET": "edge"})
		slices.Sort(made)
		slices.Sort(needed)
		if got := strings.Join(made, " ") + ", " + strings.Join(needed, " "); got != want || len(slips) > 0 {
			t.Errorf("%s gives %q, want %q; %v", text, got, want, slips)
		}
	}
}

func FuzzReadCompose(f *testing.F) {
	for _, text := range []string{shop, "services: {web: {build: .}}", "services: &a {web: {<<: *a}}", "---\n---\n", "a: &a [*a]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, slips := ReadCompose("shop", []byte(text))
		for _, s := range slips {
			if s.Line < 1 || s.Message == "" || !utf8.ValidString(s.Message) {
				t.Errorf("a slip is %+v", s)
			}
		}
		for _, image := range file.Images(ComposeEnv([]byte(text))) {
			if image == "" || image[0] == '-' {
				t.Errorf("an image is %q", image)
			}
		}
	})
}

// Merges that name each other many times over cost no more than they are long.
func TestComposeIsBounded(t *testing.T) {
	bomb := "a0: &a0 {image: x}\n"
	for i := range 14 {
		a, b := itoa(i), itoa(i+1)
		bomb += "a" + b + ": &a" + b + " {<<: [" + strings.TrimSuffix(strings.Repeat("*a"+a+", ", 20), ", ") + "]}\n"
	}
	ReadCompose("shop", []byte(bomb+"services: {web: *a14}\n"))
	// The tool on the device would have in memory what this reader leaves out.
	bomb = "x-a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i, name := range "bcdefg" {
		bomb += fmt.Sprintf("x-%c: &%c [%s]\n", name, name, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", 'a'+i), 10), ","))
	}
	_, slips := ReadCompose("shop", []byte(bomb+"services: {web: {image: reg/web:1}}\n"))
	if !slices.ContainsFunc(slips, func(s ComposeSlip) bool { return strings.Contains(s.Message, "stand for more") }) {
		t.Errorf("aliases of aliases: %v", slips)
	}
	ReadCompose("shop", []byte("services: &a {web: *a}\n"))
	ReadCompose("shop", []byte("services: {web: &a {<<: *a}}\n"))
}

func TestComposeVariables(t *testing.T) {
	env := map[string]string{"A": "1", "EMPTY": ""}
	for text, want := range map[string]string{
		"x:$A": "x:1", "${A}": "1", "$$A": "$A", "${B:-2}": "2", "${B-2}": "2", "${EMPTY:-2}": "2", "${EMPTY-2}": "",
		"${A:?no}": "1", "a$": "a$", "$1": "$1", "${": "${", "$A$A.b": "11.b", "${A:+x}": "1",
	} {
		if got, missing := expandCompose(text, env); got != want || len(missing) > 0 {
			t.Errorf("%q is %q without %q, want %q", text, got, missing, want)
		}
	}
	for _, text := range []string{"$B", "${B}", "${B:?no}", "${EMPTY:?no}", "${EMPTY:}"} {
		if _, missing := expandCompose(text, env); len(missing) != 1 {
			t.Errorf("%q lacks %q", text, missing)
		}
	}
}

func TestComposeEnvFile(t *testing.T) {
	env := map[string]string{"A": "1", "B": "it's a \\ and # all", "C": "", "D": `"x"`}
	if got := ComposeEnv(ComposeEnvFile(env)); !maps.Equal(got, env) {
		t.Errorf("%q comes back as %q", env, got)
	}
	got := ComposeEnv([]byte("# x\nexport A=1 # one\nB = \"two\"\nC='th\\'ree'\nD=${A}\n\nnonsense\n"))
	if want := (map[string]string{"A": "1", "B": "two", "C": "th'ree"}); !maps.Equal(got, want) {
		t.Errorf("a file is read as %q, want %q", got, want)
	}
}

const shopFleet = `-- releases/gateways/v1.5.0.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Release
metadata: {name: v1.5.0}
spec:
  applications:
    shop:
      compose: {source: files/shop.yaml, TEMPLATE env: {TAG: "1"}}
    other:
      compose:
        content: |
          services: {web: {image: "example.com/web:${TAG:-1}"}}
        envFile: {source: files/shop.env, template: true}
-- files/shop.yaml --
services:
  web: {image: "example.com/web:${TAG}", labels: ["for={{ .device.name }}"]}
-- files/shop.env --
DEVICE={{ .device.name }}
-- devices/gw-1.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Device
metadata: {name: gw-1, labels: {role: gateway}}
spec: {desired: {applications: {shop: {compose: {env: {TAG: "2"}}}}}}
`

// The compose file and its variables have content as files have; a device's
// variables are merged with those of its release.
func TestComposeIsRendered(t *testing.T) {
	fleet := load(t, exampleRepo(strings.Replace(shopFleet, "TEMPLATE", "template: true,", 1)))
	if hasErrors(fleet.Problems) {
		t.Fatalf("problems:\n%s", lines(fleet.Problems))
	}
	r := fleet.Member("gw-1").Rendered
	spec, err := DecodeSpec(r.Spec)
	if err != nil {
		t.Fatal(err)
	}
	shop, other := spec.Applications["shop"].Compose, spec.Applications["other"].Compose
	if got := string(r.Payloads[shop.Payload].Data); !strings.Contains(got, "for=gw-1") || shop.Env["TAG"] != "2" || shop.Source != "" {
		t.Errorf("shop is %+v of %q", shop, got)
	}
	if got := string(r.Payloads[other.EnvFile.Payload].Data); got != "DEVICE=gw-1\n" || other.Content == nil {
		t.Errorf("other is %+v with %q", other, got)
	}
	if !slices.Equal(r.Needs, []string{"applications.compose"}) {
		t.Errorf("it needs %q", r.Needs)
	}
}

// A hook may wait for a change of what an application of compose brings.
func TestComposeMeetsConditions(t *testing.T) {
	for folder, want := range map[string]int{"/etc/containers/compose/shop": 0, "/etc/containers/composed": 1} {
		problems := releaseProblems(t, "{applications: {shop: {compose: {content: \"services: {web: {image: 'example.com/web:1'}}\\n\"}}}, "+
			"hooks: {afterUpdating: {check: {run: [/bin/true], if: {changed: ["+folder+"]}}}}}")
		if len(problems) != want {
			t.Errorf("a hook that waits for %s has the problems\n%s", folder, lines(problems))
		}
	}
}

// A slip is told where it stands; in a template, for the device that it is
// rendered for.
func TestComposeSlipsHaveTheirPlace(t *testing.T) {
	for template, want := range map[string]string{
		"":                "files/shop.yaml:2:",
		"template: true,": "line 2 of what the template renders to",
	} {
		repo := exampleRepo(strings.ReplaceAll(strings.Replace(shopFleet, "TEMPLATE", template, 1), `web: {image: "example.com/web:${TAG}",`, "web: {"))
		if got := lines(load(t, repo).Problems); !strings.Contains(got, want) || !strings.Contains(got, "no image") {
			t.Errorf("with %q the problems are\n%s", template, got)
		}
	}
	repo := exampleRepo(strings.ReplaceAll(strings.Replace(shopFleet, "TEMPLATE", "", 1), `TAG: "`, `GAT: "`))
	if got := lines(load(t, repo).Problems); !strings.Contains(got, "the variable \"TAG\", which has no value (gw-1)") {
		t.Errorf("without a variable the problems are\n%s", got)
	}
}
