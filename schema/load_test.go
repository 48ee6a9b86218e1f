package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const smallFleet = `
-- policies/gateways.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Policy
metadata: {name: gateways}
spec:
  enabled: true
  selector: {matchLabels: {role: gateway}}
  targetVersion: v1.5.0
  maxInFlight: 10%
-- releases/gateways/v1.4.0/release.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Release
metadata: {name: v1.4.0}
spec:
  files:
    /etc/edge/static.conf: {source: ./static.conf}
-- releases/gateways/v1.4.0/static.conf --
old
-- releases/gateways/v1.5.0.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Release
metadata: {name: v1.5.0}
spec:
  os: {image: "edge-{{ .vars.channel }}", driver: command}
  files:
    /etc/edge/edge.conf: {source: files/edge.conf, mode: "0640", owner: edge, template: true}
    /etc/edge/static.conf: {source: files/static.conf}
  directories:
    /var/lib/edge: {}
  resources: {}
  hooks:
    afterUpdating:
      check: {run: [/usr/bin/edge-check, --strict], timeout: 30s, order: 5}
-- files/edge.conf --
name = {{ .device.name }}
site = {{ .device.labels.site }}
dns = {{ .vars.dns }}
-- files/static.conf --
static
-- overlays/sites/berlin.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Overlay
metadata: {name: berlin}
spec:
  selector: {matchLabels: {site: berlin}}
  order: 10
  vars: {dns: 192.0.2.53, channel: "6"}
  desired: {files: {/etc/edge/site.conf: {content: "site=berlin\n"}}}
-- devices/berlin/gw-berlin-01.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Device
metadata: {name: gw-berlin-01, labels: {role: gateway, site: berlin, ring: canary}}
spec:
  vars: {channel: "7"}
  desired:
    files:
      /etc/edge/site.conf: null
      /etc/edge/static.conf: {content: "mine\n"}
    hooks:
      afterUpdating:
        check: {timeout: 1m}
-- devices/berlin/gw-berlin-02.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Device
metadata: {name: gw-berlin-02, labels: {role: gateway, site: berlin}}
-- devices/berlin/gw-berlin-03.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Device
metadata: {name: gw-berlin-03, labels: {role: gateway, site: berlin}}
spec: {pin: v1.4.0}
-- devices/lab/lab-1.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Device
metadata: {name: lab-1, labels: {role: gateway, site: berlin}}
spec:
  release: none
  desired: {files: {/etc/motd: {content: "{{ .device.name }}\n", template: true}}}
`

func specText(t *testing.T, f *Fleet, id string) string {
	t.Helper()
	m := f.Member(id)
	if m == nil || m.Rendered == nil {
		t.Fatalf("%s is not rendered: %+v", id, m)
	}
	text, err := canonicalJSON(m.Rendered.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The digests are pinned: one that moved would move every fleet there is.
func TestGoldenDigests(t *testing.T) {
	f := load(t, repoOf(smallFleet))
	if len(f.Problems) > 0 {
		t.Fatalf("problems:\n%s", lines(f.Problems))
	}
	golden := []struct{ id, version, spec, digest, rollout string }{
		{"gw-berlin-01", "v1.5.0", `{"directories":{"/var/lib/edge":{}},"files":{"/etc/edge/edge.conf":{"mode":"0640","owner":"edge","payload":"sha256:0fe6b773c0de08f75aef7a8222b9d896a8c358566113568c626fc2c51ba47530"},"/etc/edge/static.conf":{"content":"mine\n"}},"hooks":{"afterUpdating":{"check":{"order":5,"run":["/usr/bin/edge-check","--strict"],"timeout":"1m"}}},"os":{"driver":"command","image":"edge-7"}}`,
			"sha256:dbf676893dc475461e983c87e714c0e84d2cb9f02e9882ec17954bb2f1198138", "sha256:0fb14d6943cbd1e5bfda0edfecffa20ec0f41c23e9a3594512e48f1d0e61f167"},
		{"gw-berlin-02", "v1.5.0", `{"directories":{"/var/lib/edge":{}},"files":{"/etc/edge/edge.conf":{"mode":"0640","owner":"edge","payload":"sha256:5e62c6a89966f6249c653d4b6426a88cb945517aed99b38dccc58462d2798a9d"},"/etc/edge/site.conf":{"content":"site=berlin\n"},"/etc/edge/static.conf":{"payload":"sha256:652cabf0de6cd70f66f72b17d6409203b84909be9864261feb614943f2e6cc62"}},"hooks":{"afterUpdating":{"check":{"order":5,"run":["/usr/bin/edge-check","--strict"],"timeout":"30s"}}},"os":{"driver":"command","image":"edge-6"}}`,
			"sha256:15b6e1a3dad3a369ccd2704c2f88de3c91a36637af658b09f7abc0be2cae6108", "sha256:0fb14d6943cbd1e5bfda0edfecffa20ec0f41c23e9a3594512e48f1d0e61f167"},
		{"gw-berlin-03", "v1.4.0", `{"files":{"/etc/edge/site.conf":{"content":"site=berlin\n"},"/etc/edge/static.conf":{"payload":"sha256:01d09d19c2139a46aebfb577780d123d7396e97201bc7ead210a2ebff8239dee"}}}`,
			"sha256:0192a0bf3667e4bec97425c46ac3abb5968d9a0dcc756625887612b7f0dd07d6", "sha256:87b3a374d270a97abac22168c48a080eb7a1128218966e2b38a8c101aa7996de"},
		{"lab-1", "v1.5.0", `{"files":{"/etc/motd":{"content":"lab-1\n"}}}`,
			"sha256:a92dc787f197e19c59211c4b5e33d36b197f5e0887e2557535bb75bdbbc6629b", "sha256:0fb14d6943cbd1e5bfda0edfecffa20ec0f41c23e9a3594512e48f1d0e61f167"},
	}
	for _, g := range golden {
		m := f.Member(g.id)
		if got := specText(t, f, g.id); got != g.spec {
			t.Errorf("%s: spec\ngot  %s\nwant %s", g.id, got, g.spec)
		}
		if m.Rendered.Digest != g.digest {
			t.Errorf("%s: digest %s, want %s", g.id, m.Rendered.Digest, g.digest)
		}
		if m.Rollout != g.rollout || m.Version != g.version || m.Line != "gateways" || m.Policy != "gateways" {
			t.Errorf("%s: rollout %s, want %s; %s of %s by %s", g.id, m.Rollout, g.rollout, m.Version, m.Line, m.Policy)
		}
		for digest, p := range m.Rendered.Payloads {
			if (p.ID == "") == (p.Data == nil) || p.Data != nil && PayloadDigest(p.Data) != digest {
				t.Errorf("%s: payload %s: %+v", g.id, digest, p)
			}
		}
	}
	if got, want := fmt.Sprint(f.Member("gw-berlin-01").Rendered.Needs), "[directories files hooks os os.command]"; got != want {
		t.Errorf("needs %s, want %s", got, want)
	}
}

// What is written about the same values in another way has the same digests.
func TestDigestsIgnoreHowItIsWritten(t *testing.T) {
	src := repoOf(smallFleet)
	before := load(t, src)
	other := src.with("releases/gateways/v1.5.0.yaml", strings.ReplaceAll(src.files["releases/gateways/v1.5.0.yaml"], "    /var/lib/edge: {}\n", "    # a comment\n    \"/var/lib/edge\": {}\n"))
	other.files["overlays/berlin.yaml"] = other.files["overlays/sites/berlin.yaml"]
	delete(other.files, "overlays/sites/berlin.yaml")
	other.files["elsewhere/static"] = other.files["files/static.conf"]
	other.files["releases/gateways/v1.5.0.yaml"] = strings.ReplaceAll(other.files["releases/gateways/v1.5.0.yaml"], "files/static.conf", "elsewhere/static")
	after := load(t, other)
	for _, m := range before.Devices {
		n := after.Member(m.ID)
		if n == nil || n.Rendered == nil || n.Rendered.Digest != m.Rendered.Digest || n.Rollout != m.Rollout {
			t.Errorf("%s: got %+v, want the digests of %+v\n%s", m.ID, n, m, lines(after.Problems))
		}
	}
}

// The rollout digest moves with what devices share, and with nothing else.
func TestRolloutDigest(t *testing.T) {
	src := repoOf(smallFleet)
	before := load(t, src).Member("gw-berlin-02").Rollout
	edit := func(path, from, to string) *fakeSource {
		if !strings.Contains(src.files[path], from) {
			t.Fatalf("%s does not hold %q", path, from)
		}
		return src.with(path, strings.Replace(src.files[path], from, to, 1))
	}
	cases := []struct {
		name  string
		src   *fakeSource
		moves bool
	}{
		{"a payload of the release", edit("files/static.conf", "static", "other"), true},
		{"a template of the release", edit("files/edge.conf", "dns", "resolver"), true},
		{"a field of the release", edit("releases/gateways/v1.5.0.yaml", "30s", "31s"), true},
		{"a variable of an overlay", edit("overlays/sites/berlin.yaml", "192.0.2.53", "192.0.2.54"), true},
		{"the order of an overlay", edit("overlays/sites/berlin.yaml", "order: 10", "order: 11"), true},
		{"an overlay that selects nobody any more", edit("overlays/sites/berlin.yaml", "site: berlin", "site: oslo"), true},
		{"a device's own part", edit("devices/berlin/gw-berlin-01.yaml", "mine", "hers"), false},
		{"a device's labels", edit("devices/berlin/gw-berlin-01.yaml", "canary", "stable"), false},
		{"another release", edit("releases/gateways/v1.4.0/static.conf", "old", "older"), false},
		{"a limit of the policy", edit("policies/gateways.yaml", "10%", "20%"), false},
		{"a comment", edit("releases/gateways/v1.5.0.yaml", "spec:", "spec: # all of it"), false},
	}
	for _, c := range cases {
		after := load(t, c.src).Member("gw-berlin-02").Rollout
		if after == "" || (after != before) != c.moves {
			t.Errorf("%s: moved %t, want %t", c.name, after != before, c.moves)
		}
	}
}

// The release digest moves with the release and its payloads alone, also when
// the devices that it was for are gone.
func TestReleaseDigest(t *testing.T) {
	src := repoOf(smallFleet)
	before := load(t, src).ReleaseDigest("gateways", "v1.5.0")
	edit := func(path, from, to string) *fakeSource {
		return src.with(path, strings.Replace(src.files[path], from, to, 1))
	}
	cases := []struct {
		name  string
		src   *fakeSource
		moves bool
	}{
		{"a payload of the release", edit("files/static.conf", "static", "other"), true},
		{"a field of the release", edit("releases/gateways/v1.5.0.yaml", "30s", "31s"), true},
		{"an overlay that selects nobody any more", edit("overlays/sites/berlin.yaml", "site: berlin", "site: oslo"), false},
		{"a device's own part", edit("devices/berlin/gw-berlin-01.yaml", "mine", "hers"), false},
	}
	for _, c := range cases {
		after := load(t, c.src).ReleaseDigest("gateways", "v1.5.0")
		if before == "" || after == "" || (after != before) != c.moves {
			t.Errorf("%s: %q to %q, moves: want %t", c.name, before, after, c.moves)
		}
	}
	if got := load(t, src).ReleaseDigest("gateways", "v9.9.9"); got != "" {
		t.Errorf("a release that is not there has digest %q", got)
	}
}

func TestNoTarget(t *testing.T) {
	src := repoOf(smallFleet)
	none := "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: %s, labels: {role: %s}}\nspec: {%s}\n"
	cases := []struct {
		name, device, want string
		own                string
	}{
		{"no policy", fmt.Sprintf(none, "x-1", "other", ""), "no policy selects it", ""},
		{"pin without release", fmt.Sprintf(none, "x-1", "gateway", "pin: v9.0.0"), "there is no release gateways/v9.0.0", ""},
		{"pin without release, release none", fmt.Sprintf(none, "x-1", "gateway", "pin: v9.0.0, release: none"), "", ""},
		{"broken", fmt.Sprintf(none, "x-1", "gateway", "hold: {reason: 7}"), "its file has problems", ""},
	}
	for _, c := range cases {
		f := load(t, src.with("devices/x-1.yaml", c.device))
		if m := f.Member("x-1"); m == nil || m.NoTarget != c.want || (m.Rendered == nil) != (c.want != "") {
			t.Errorf("%s: got %+v, want %q\n%s", c.name, m, c.want, lines(f.Problems))
		}
	}
	empty := src.with("policies/gateways.yaml", strings.Replace(src.files["policies/gateways.yaml"], "  targetVersion: v1.5.0\n", "", 1))
	for own, want := range map[string]string{"v1.5.0": "", "v1.6.0": "there is no release gateways/v1.6.0", "devel": "the own build"} {
		l := Loader{OwnVersion: own}
		f, err := l.Load(empty)
		if err != nil || !f.Valid() {
			t.Fatalf("own build %s: %v %s", own, err, lines(f.Problems))
		}
		m := f.Member("gw-berlin-02")
		if (m.NoTarget == "") != (want == "") || !strings.Contains(m.NoTarget, want) || want == "" && m.Version != own {
			t.Errorf("own build %s: version %q, no target %q, want %q", own, m.Version, m.NoTarget, want)
		}
	}
}

// A broken document breaks only what depends on it, and what restricts is
// known of it as far as it can be read.
func TestBrokenFilesHideNothing(t *testing.T) {
	src := repoOf(smallFleet).
		with("devices/berlin/gw-berlin-02.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-berlin-02, labels: {role: gateway}}\nspec: {hold: {reason: smoke}, pinn: x, vars: {a: 1}}\n").
		with("devices/berlin/gw-berlin-04.yaml", "{").
		with("policies/sensors.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: sensors}\nspec: {paused: {reason: fair}, selector: {matchLabels: {role: sensor}}, maxInFlght: 1}\n")
	f := load(t, src)
	if f.Valid() {
		t.Fatal("valid")
	}
	got := map[string]int{}
	for _, p := range f.Problems {
		got[p.File+" "+p.Rule]++
	}
	want := map[string]int{"devices/berlin/gw-berlin-02.yaml unknown-field": 1, "devices/berlin/gw-berlin-02.yaml wrong-type": 1,
		"devices/berlin/gw-berlin-04.yaml yaml-syntax": 1, "policies/sensors.yaml unknown-field": 1}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("problems: %s\n%s", d, lines(f.Problems))
	}
	if m := f.Member("gw-berlin-02"); m.Device.Spec.Hold == nil || m.Device.Spec.Hold.Reason != "smoke" || m.Policy != "gateways" {
		t.Errorf("the hold of a broken device is not known: %+v", m)
	}
	if p := f.Policy("sensors"); p == nil || p.Spec.Paused == nil {
		t.Errorf("the pause of a broken policy is not known: %+v", p)
	}
	if m := f.Member("gw-berlin-04"); m == nil || m.Device == nil || m.Rendered != nil {
		t.Errorf("a device whose file is no YAML: %+v", m)
	}
	if m := f.Member("gw-berlin-01"); m.Rendered == nil {
		t.Errorf("another device is not rendered: %+v", m)
	}
}

// A policy whose selector is broken must not be taken for one that selects
// everything: that would bury its problem under those of all devices.
func TestBrokenSelectorSelectsNobody(t *testing.T) {
	src := repoOf(smallFleet)
	for _, spec := range []string{"{selectr: {matchLabels: {role: x}}}", "{selector: {matchLabels: {role: 7}}}", "{selector: [a]}", "7", "{selector: {matchLabel: {role: x}}}"} {
		f := load(t, src.with("policies/sensors.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: sensors}\nspec: "+spec+"\n"))
		if f.Valid() || len(f.Problems) > 2 || f.Problems[0].File != "policies/sensors.yaml" {
			t.Errorf("%s:\n%s", spec, lines(f.Problems))
		}
		if m := f.Member("gw-berlin-01"); m.Policy != "gateways" || m.Rendered == nil {
			t.Errorf("%s: %+v", spec, m)
		}
	}
}

// A device says by its own part what an image is called; it has to be a name.
func TestImageMustBeAName(t *testing.T) {
	src := repoOf(smallFleet)
	for channel, ok := range map[string]bool{"7": true, "": true, "a\\nb": false, strings.Repeat("x", maxPath): false} {
		path := "devices/berlin/gw-berlin-01.yaml"
		f := load(t, src.with(path, strings.Replace(src.files[path], `channel: "7"`, `channel: "`+channel+`"`, 1)))
		if f.Valid() != ok || (f.Member("gw-berlin-01").Rendered != nil) != ok {
			t.Errorf("channel %.20q: valid %t\n%s", channel, f.Valid(), lines(f.Problems))
		}
	}
}

func TestLoadIsStopped(t *testing.T) {
	stopped := errors.New("no time left")
	for _, only := range []bool{false, true} {
		asked := 0
		loader := Loader{ProblemsOnly: only, Stop: func() error { asked++; return stopped }}
		if _, err := loader.Load(repoOf(ruleFleet)); !errors.Is(err, stopped) || asked != 1 {
			t.Errorf("ProblemsOnly %t: asked %d times, %v", only, asked, err)
		}
	}
}

func TestLoadReadError(t *testing.T) {
	src := repoOf(smallFleet)
	for _, path := range []string{"devices/berlin/gw-berlin-01.yaml", "files/static.conf", "files/edge.conf"} {
		src.fail = path
		if _, err := new(Loader).Load(src); !errors.Is(err, errFake) || !strings.Contains(err.Error(), path) {
			t.Errorf("reading %s fails: %v", path, err)
		}
	}
}

// Whatever changes, a Loader that remembers gives what a new one gives.
func TestIncrementalIsTheSame(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 1))
		src := repoOf(smallFleet)
		var l Loader
		for step := range 120 {
			src = mutate(rng, src)
			got, err := l.Load(src)
			if err != nil {
				t.Fatal(err)
			}
			want := load(t, src)
			ignore := cmpopts.IgnoreUnexported(Fleet{})
			if d := cmp.Diff(want, got, ignore); d != "" {
				t.Fatalf("seed %d step %d: %s", seed, step, d)
			}
			for _, m := range want.Devices {
				if d := cmp.Diff(want.Origins(m.ID), got.Origins(m.ID)); d != "" {
					t.Fatalf("seed %d step %d: origins of %s: %s", seed, step, m.ID, d)
				}
			}
		}
	}
}

func mutate(rng *rand.Rand, src *fakeSource) *fakeSource {
	base := repoOf(smallFleet)
	var paths []string
	for _, e := range must(base.Entries()) {
		paths = append(paths, e.Path)
	}
	path := paths[rng.IntN(len(paths))]
	out := src.with("README.md", fmt.Sprint(rng.Uint64()))
	replace := func(from, to string) { out.files[path] = strings.Replace(base.files[path], from, to, 1) }
	switch rng.IntN(12) {
	case 0:
		delete(out.files, path)
	case 1:
		out.files[path] = base.files[path] + "{"
	case 2:
		replace("site: berlin", "site: oslo")
	case 3:
		replace("v1.5.0", "v1.4.0")
	case 4:
		replace("192.0.2.53", fmt.Sprintf("192.0.2.%d", rng.IntN(200)))
	case 5:
		replace("role: gateway", "role: sensor")
	case 6:
		out.files["overlays/second.yaml"] = strings.ReplaceAll(base.files["overlays/sites/berlin.yaml"], "name: berlin", "name: second")
	case 7:
		delete(out.files, "overlays/second.yaml")
	case 8:
		replace("files/static.conf", "./static.conf")
	case 9:
		replace("{{", "{{ upper \"x\" }}{{")
	default:
		out.files[path] = base.files[path]
	}
	return out
}

// A Load after one device changed reads that device and nothing else.
func TestLoadReadsWhatChanged(t *testing.T) {
	src := bigFleet(300)
	var l Loader
	first, err := l.Load(src)
	if err != nil || !first.Valid() {
		t.Fatal(err, lines(first.Problems))
	}
	path := "devices/site-07/gw-00107.yaml"
	changed := src.with(path, strings.Replace(src.files[path], "number=", "count=", 1))
	second, err := l.Load(changed)
	if err != nil {
		t.Fatal(err)
	}
	if n := changed.reads.Load(); n != 1 {
		t.Errorf("%d reads, want 1", n)
	}
	for i, m := range second.Devices {
		old := first.Devices[i]
		if m.Path == path {
			if m.Rendered.Digest == old.Rendered.Digest || m.Rollout != old.Rollout {
				t.Errorf("the changed device: %+v, before %+v", m, old)
			}
		} else if m != old {
			t.Fatalf("%s was worked out again", m.ID)
		}
	}
}

func TestOrigins(t *testing.T) {
	f := load(t, repoOf(smallFleet))
	want := []Origin{
		{"/directories/~1var~1lib~1edge", "releases/gateways/v1.5.0.yaml", 10},
		{"/files/~1etc~1edge~1edge.conf/mode", "releases/gateways/v1.5.0.yaml", 7},
		{"/files/~1etc~1edge~1edge.conf/owner", "releases/gateways/v1.5.0.yaml", 7},
		{"/files/~1etc~1edge~1edge.conf/payload", "releases/gateways/v1.5.0.yaml", 7},
		{"/files/~1etc~1edge~1static.conf/content", "devices/berlin/gw-berlin-01.yaml", 9},
		{"/hooks/afterUpdating/check/order", "releases/gateways/v1.5.0.yaml", 14},
		{"/hooks/afterUpdating/check/run/0", "releases/gateways/v1.5.0.yaml", 14},
		{"/hooks/afterUpdating/check/run/1", "releases/gateways/v1.5.0.yaml", 14},
		{"/hooks/afterUpdating/check/timeout", "devices/berlin/gw-berlin-01.yaml", 12},
		{"/os/driver", "releases/gateways/v1.5.0.yaml", 5},
		{"/os/image", "releases/gateways/v1.5.0.yaml", 5},
	}
	if d := cmp.Diff(want, f.Origins("gw-berlin-01")); d != "" {
		t.Error(d)
	}
	if got := f.Origins("gw-berlin-02"); len(got) == 0 || got[3].File != "releases/gateways/v1.5.0.yaml" {
		t.Errorf("origins of another device: %v", got)
	}
	if f.Origins("nobody") != nil {
		t.Error("origins of a device that does not exist")
	}
}

// What a template lacks is one problem, in the template, that names devices.
func TestTemplateProblemsAreGrouped(t *testing.T) {
	src := bigFleet(300)
	src.files["files/edge.conf"] = "a\nb {{ .vars.nothing }}\n"
	f := load(t, src)
	if len(f.Problems) != 1 {
		t.Fatalf("%d problems:\n%s", len(f.Problems), clip2(lines(f.Problems)))
	}
	p := f.Problems[0]
	want := Problem{File: "files/edge.conf", Line: 2, Rule: ruleTemplateRender, Severity: SeverityError,
		Message: "template: .vars.nothing has no value (gw-00000, gw-00100, gw-00200 and 297 more)", Hint: `set nothing, or guard it with {{ if has .vars "nothing" }}`}
	if d := cmp.Diff(want, p); d != "" {
		t.Error(d)
	}
}

// Problems are sorted, and the same whatever the order of maps.
func TestProblemsAreDeterministic(t *testing.T) {
	text := ruleFleet
	for _, r := range Rules() {
		if !strings.HasPrefix(r.Wrong, "<") {
			text += strings.ReplaceAll(r.Wrong, "-- devices/gw-1.yaml --", "-- devices/"+r.Name+"/gw-1.yaml --")
		}
	}
	first, _ := json.Marshal(load(t, repoOf("\n"+text)).Problems)
	for range 5 {
		again, _ := json.Marshal(load(t, repoOf("\n"+text)).Problems)
		if string(again) != string(first) {
			t.Fatalf("got %s\nfirst %s", again, first)
		}
	}
	if strings.Count(string(first), `"rule"`) < 20 {
		t.Errorf("only few problems: %s", first)
	}
}

// Overlays of one order may not set the same place for one device.
func TestOverlayConflicts(t *testing.T) {
	overlay := func(name, order, selector, rest string) string {
		return fmt.Sprintf("apiVersion: gitopsd.dev/v1alpha1\nkind: Overlay\nmetadata: {name: %s}\nspec: {order: %s, selector: {matchLabels: {%s}}, %s}\n", name, order, selector, rest)
	}
	cases := []struct {
		name, a, b string
		orderB     string
		want       bool
	}{
		{"one variable", "vars: {x: a}", "vars: {x: b}", "0", true},
		{"one variable, one value", "vars: {x: a}", "vars: {x: a}", "0", true},
		{"other variables", "vars: {x: a}", "vars: {y: a}", "0", false},
		{"other orders", "vars: {x: a}", "vars: {x: b}", "1", false},
		{"one field", "desired: {onDevice: {retries: 1}}", "desired: {onDevice: {retries: 2}}", "0", true},
		{"other fields", "desired: {onDevice: {retries: 1}}", "desired: {onDevice: {drift: report}}", "0", false},
		{"one removes what the other sets a part of", "desired: {files: {/a: null}}", "desired: {files: {/a: {content: x}}}", "0", true},
		{"and the other way round", "desired: {files: {/a: {content: x}}}", "desired: {files: {/a: null}}", "0", true},
		{"both remove", "desired: {files: {/a: null}}", "desired: {files: {/a: null}}", "0", true},
		{"content and source", "desired: {files: {/a: {content: x}}}", "desired: {files: {/a: {source: files/x}}}", "0", true},
		{"content and mode", "desired: {files: {/a: {content: x}}}", "desired: {files: {/a: {mode: \"0600\"}}}", "0", false},
		{"a path below another", "desired: {files: {/a: {content: x}}}", "desired: {files: {/a/b: {content: x}}}", "0", false},
		{"a variable named as a field", "vars: {files: x}", "desired: {files: {/a: {content: x}}}", "0", false},
		{"lists", "desired: {requires: {commands: [a]}}", "desired: {requires: {commands: [b]}}", "0", true},
	}
	for _, c := range cases {
		src := repoOf(ruleFleet).with("files/x", "x").
			with("overlays/a.yaml", overlay("a", "0", "role: gateway", c.a)).with("overlays/b.yaml", overlay("b", c.orderB, "role: gateway", c.b))
		f := load(t, src)
		conflicts := strings.Count(lines(f.Problems), " "+ruleOverlayConflict+": ")
		if (conflicts == 1) != c.want || conflicts > 1 {
			t.Errorf("%s: %d conflicts, want %t\n%s", c.name, conflicts, c.want, lines(f.Problems))
		}
		if c.want && f.Member("gw-1").Rendered != nil {
			t.Errorf("%s: rendered all the same", c.name)
		}
		// For devices that only one of them selects there is no conflict.
		f = load(t, src.with("overlays/b.yaml", overlay("b", c.orderB, "role: sensor", c.b)))
		if strings.Contains(lines(f.Problems), ruleOverlayConflict) {
			t.Errorf("%s: a conflict on no device\n%s", c.name, lines(f.Problems))
		}
	}
}

func TestOverlaysAreMergedByOrder(t *testing.T) {
	src := repoOf(ruleFleet)
	for i, order := range []string{"5", "-1", "20"} {
		name := string(rune('a' + i))
		src = src.with("overlays/"+name+".yaml", fmt.Sprintf("apiVersion: gitopsd.dev/v1alpha1\nkind: Overlay\nmetadata: {name: %s}\nspec: {order: %s, vars: {x: %s}, desired: {files: {/etc/motd: {content: \"%s {{ .vars.x }}\", template: true}, /etc/%s: {content: x}}}}\n", name, order, name, name, name))
	}
	f := load(t, src)
	const want = `{"files":{"/etc/a":{"content":"x"},"/etc/b":{"content":"x"},"/etc/c":{"content":"x"},"/etc/motd":{"content":"c c"}}}`
	if got := specText(t, f, "gw-1"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Where all devices of a policy have a spec of their own, its target needs no
// release; one device that has not is enough to need it.
func TestReleaseNoneNeedsNoRelease(t *testing.T) {
	device := "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: %s, labels: {role: gateway}}\nspec: {%s}\n"
	src := repoOf(ruleFleet).with("devices/gw-1.yaml", fmt.Sprintf(device, "gw-1", "release: none, desired: {files: {/a: {content: x}}}"))
	delete(src.files, "releases/gateways/v1.5.0.yaml")
	f := load(t, src)
	m := f.Member("gw-1")
	if len(f.Problems) > 0 || m.Version != "v1.5.0" || m.Rollout == "" || m.Rendered == nil {
		t.Errorf("%+v\n%s", m, lines(f.Problems))
	}
	f = load(t, src.with("devices/gw-2.yaml", fmt.Sprintf(device, "gw-2", "")))
	if f.Valid() || f.Member("gw-1").Rendered == nil || f.Member("gw-2").NoTarget == "" {
		t.Errorf("valid %t\n%s", f.Valid(), lines(f.Problems))
	}
}

// A part that only completes what another layer begins is judged when merged,
// and the problem stands where the last word was.
func TestIncompleteIsJudgedWhenMerged(t *testing.T) {
	device := "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-1, labels: {role: gateway}}\nspec: {desired: %s}\n"
	for desired, want := range map[string]string{
		"{files: {/etc/motd: {mode: \"0600\"}}}":                                              "",
		"{files: {/etc/motd: {content: null}}}":                                               "devices/gw-1.yaml " + ruleContent,
		"{files: {/etc/other: {mode: \"0600\"}}}":                                             "devices/gw-1.yaml " + ruleContent,
		"{files: {/etc/motd/x: {content: x}}}":                                                "releases/gateways/v1.5.0.yaml " + rulePathClash,
		"{directories: {/etc/motd: {}}}":                                                      "releases/gateways/v1.5.0.yaml " + rulePathClash,
		"{os: {driver: command}}":                                                             "devices/gw-1.yaml " + ruleIncomplete,
		"{resources: {disk: {path: /var}}}":                                                   "devices/gw-1.yaml " + ruleIncomplete,
		"{hooks: {afterUpdating: {x: {timeout: 1m}}}}":                                        "devices/gw-1.yaml " + ruleIncomplete,
		"{files: {/etc/motd: {content: x, source: files/x}}}":                                 "devices/gw-1.yaml " + ruleContent,
		"{files: {/etc/motd: null, /etc/motd/x: {content: x}}, directories: {/etc/motd: {}}}": "",
	} {
		f := load(t, repoOf(ruleFleet).with("files/x", "x").with("devices/gw-1.yaml", fmt.Sprintf(device, desired)))
		got := ""
		if len(f.Problems) > 0 {
			got = f.Problems[0].File + " " + f.Problems[0].Rule
		}
		if got != want || len(f.Problems) > 1 {
			t.Errorf("%s: got %q, want %q\n%s", desired, got, want, lines(f.Problems))
		}
	}
}

// Templates in a document, as text and encoded, are rendered for each device.
func TestInlineTemplates(t *testing.T) {
	// AHt7IC5kZXZpY2UubmFtZSB9fQ== is a zero byte and {{ .device.name }}.
	release := "apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.5.0}\nspec: {files: {/a: {content: \"{{ .device.name }}\", template: true}, /b: {contentBase64: AHt7IC5kZXZpY2UubmFtZSB9fQ==, template: true}, /c: {content: \"{{ x }}\"}, /d: {content: \"{{ x }}\", template: false}}}\n"
	f := load(t, repoOf(ruleFleet).with("releases/gateways/v1.5.0.yaml", release))
	const want = `{"files":{"/a":{"content":"gw-1"},"/b":{"contentBase64":"AGd3LTE="},"/c":{"content":"{{ x }}"},"/d":{"content":"{{ x }}"}}}`
	if got := specText(t, f, "gw-1"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A policy that has problems hides none of those that its devices have.
func TestTemplateProblemsBesideABrokenPolicy(t *testing.T) {
	broken := func(old, wrong string) *fakeSource {
		s := repoOf(smallFleet)
		for name, edits := range map[string][2]string{
			"policies/gateways.yaml":  {old, wrong},
			"files/edge.conf":         {".vars.dns", ".vars.dsn"},
			"devices/lab/lab-1.yaml":  {"{{ .device.name }}", "{{ .vars.nothing }}"},
			"overlays/sites/any.yaml": {"", "apiVersion: gitopsd.dev/v1alpha1\nkind: Overlay\nmetadata: {name: any}\nspec: {order: 10, vars: {dns: x}}\n"},
		} {
			if edits[0] != "" && !strings.Contains(s.files[name], edits[0]) {
				t.Fatalf("%s does not hold %q", name, edits[0])
			}
			if edits[0] == "" {
				s = s.with(name, edits[1])
				continue
			}
			s = s.with(name, strings.Replace(s.files[name], edits[0], edits[1], 1))
		}
		return s
	}
	for _, c := range []struct{ name, old, wrong, rule string }{
		{"a field", "maxInFlight: 10%", "maxInflight: 10%", ruleUnknownField},
		{"a value", "maxInFlight: 10%", "maxInFlight: 150%", ruleForm},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := load(t, broken(c.old, c.wrong))
			got := lines(f.Problems)
			for _, want := range []string{c.rule, ".vars.nothing has no value (lab-1)", ruleOverlayConflict} {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not among\n%s", want, got)
				}
			}
			for _, m := range f.Devices {
				if m.Rendered != nil || m.NoTarget == "" || m.Version != "" {
					t.Errorf("%s has a target: %+v", m.ID, m)
				}
			}
		})
	}
	t.Run("without the conflict", func(t *testing.T) {
		s := broken("maxInFlight: 10%", "maxInflight: 10%")
		delete(s.files, "overlays/sites/any.yaml")
		got := lines(load(t, s).Problems)
		if !strings.Contains(got, ".vars.dsn has no value (gw-berlin-01, gw-berlin-02)") {
			t.Errorf("the template's problem is not among\n%s", got)
		}
	})
}
