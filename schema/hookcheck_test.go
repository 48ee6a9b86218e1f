package schema

import (
	"fmt"
	"strings"
	"testing"
)

const ruleRelease = "apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.5.0}\nspec: "

func releaseProblems(t *testing.T, spec string) []Problem {
	t.Helper()
	return load(t, repoOf(ruleFleet).with("releases/gateways/v1.5.0.yaml", ruleRelease+spec+"\n")).Problems
}

// What would fail on every device, after its files were changed, is found
// before the merge.
func TestHooksThatCannotStart(t *testing.T) {
	for hook, want := range map[string]string{
		`{run: [/bin/true], timeout: 1ms, env: {A: "b\nc", GITOPS: x}, workDir: /srv/a..b}`: "",
		`{run: [/bin/true, ""], workDir: srv/edge}`:                                         "",
		`{run: ["/bin/true", "a\0b"]}`:                                                      "/run/1 NUL",
		`{run: ["/bin/tr\0ue"]}`:                                                            "/run/0 NUL",
		`{run: [""]}`:                                                                       "/run/0 names no program",
		`{run: [/bin/true], env: {A: "b\0c"}}`:                                              "/env/A NUL",
		`{run: [/bin/true], env: {GITOPSD_TO: v9}}`:                                         "/env/GITOPSD_TO the agent's own",
		`{run: [/bin/true], timeout: 0s}`:                                                   "/timeout no time",
		`{run: [/bin/true], timeout: 0h0.0m}`:                                               "/timeout no time",
		`{run: [/bin/true], workDir: ../../../out}`:                                         "/workDir root",
		`{run: [/bin/true], workDir: /srv/../../out}`:                                       "/workDir root",
		`{run: [/bin/true], workDir: "/srv/\0"}`:                                            "/workDir control character",
		`{run: [/bin/true], workDir: "/srv/\u202Ex"}`:                                       "/workDir U+202E",
	} {
		for _, point := range []string{"beforeUpdating", "afterRebooting"} {
			problems := releaseProblems(t, fmt.Sprintf("{hooks: {%s: {check: %s}}}", point, hook))
			place, words, _ := strings.Cut(want, " ")
			switch {
			case want == "" && len(problems) == 0:
			case want != "" && len(problems) == 1 && problems[0].Rule == ruleHook && problems[0].Line == 4 && problems[0].Column > 0 &&
				problems[0].Pointer == "/spec/hooks/"+point+"/check"+place && strings.Contains(problems[0].Message, words):
			default:
				t.Errorf("%s: %s, want %q", hook, lines(problems), want)
			}
		}
	}
	// An overlay's part of a hook is looked at too.
	f := load(t, repoOf(ruleFleet).with("overlays/a.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Overlay\nmetadata: {name: a}\nspec: {desired: {hooks: {afterUpdating: {check: {timeout: 0s}, gone: null}}}}\n"))
	if !strings.Contains(lines(f.Problems), ruleHook) {
		t.Errorf("an overlay: %s", lines(f.Problems))
	}
}

func TestPathsThatAreNotWhatTheySeem(t *testing.T) {
	for p, want := range map[string]string{
		`/etc/motd`:                      "",
		`/srv/übung/日本/😀`:                "",
		`"/etc/mo\u202Etd"`:              "error " + ruleDevicePath,
		`"/etc/mo\u200Btd"`:              "error " + ruleDevicePath,
		`"/etc/mo\u2028td"`:              "error " + ruleDevicePath,
		`"/etc/mo\uFEFFtd"`:              "error " + ruleDevicePath,
		`"/etc/{{ .device.name }}.conf"`: "warning " + ruleTemplatePath,
		`"/etc/{a}.conf"`:                "",
	} {
		for _, spec := range []string{"{files: {%s: {content: x}}}", "{directories: {%s: {}}}"} {
			problems := releaseProblems(t, fmt.Sprintf(spec, p))
			got := ""
			if len(problems) > 0 {
				got = fmt.Sprint(problems[0].Severity, " ", problems[0].Rule)
			}
			if got != want || len(problems) > 1 {
				t.Errorf("%s: %s, want %q", p, lines(problems), want)
			}
		}
	}
	for image, want := range map[string]bool{`edge-7`: false, `"edge-{{ .device.name }}"`: false, `"edge\0"`: true, `"edge\n7"`: true, `"edge-\u202E7"`: true} {
		if problems := releaseProblems(t, "{os: {image: "+image+"}}"); hasErrors(problems) != want {
			t.Errorf("%s: %s", image, lines(problems))
		}
	}
}

// A length of time that is too long says so, and nothing else.
func TestDurationsOutOfRange(t *testing.T) {
	for field, more := range map[string]string{"updateTimeout": "", "pickupTimeout": "", "offlineAfter": "absentAfter: 1h", "absentAfter": "offlineAfter: 1h", "settle": ""} {
		problems := load(t, repoOf(ruleFleet).with("policies/gateways.yaml",
			"apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: gateways}\nspec:\n  enabled: true\n  targetVersion: v1.5.0\n  "+field+": 9999999h\n  "+more+"\n")).Problems
		if len(problems) != 1 || problems[0].Rule != ruleForm || !strings.Contains(problems[0].Message, "too long") {
			t.Errorf("%s: %s", field, lines(problems))
		}
	}
	problems := load(t, repoOf(ruleFleet).with("policies/gateways.yaml",
		"apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: gateways}\nspec: {enabled: true, targetVersion: v1.5.0, backoff: {base: 1h, cap: 9999999h}}\n")).Problems
	if len(problems) != 1 || problems[0].Rule != ruleForm {
		t.Errorf("backoff: %s", lines(problems))
	}
}

func TestOneIsNotMany(t *testing.T) {
	problems := load(t, repoOf(ruleFleet).with("policies/gateways.yaml",
		"apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: gateways}\nspec: {enabled: true, targetVersion: v1.5.0, failureLimit: 1}\n")).Problems
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "with 1 device the") {
		t.Error(lines(problems))
	}
}

// What fits into each document may be too much once it is merged, and a
// variable may say what no template says; both are found before a daemon has
// to write it.
func TestMergedSpecsFitIntoAnAssignment(t *testing.T) {
	env := func(prefix string) string {
		var b strings.Builder
		for i := range 600 {
			fmt.Fprintf(&b, "%s%d: a, ", prefix, i)
		}
		return "{hooks: {afterUpdating: {check: {run: [/bin/true], env: {" + strings.TrimSuffix(b.String(), ", ") + "}}}}}"
	}
	overlay := "apiVersion: gitopsd.dev/v1alpha1\nkind: Overlay\nmetadata: {name: a}\nspec: "
	f := load(t, repoOf(ruleFleet).with("releases/gateways/v1.5.0.yaml", ruleRelease+env("A")).with("overlays/a.yaml", overlay+"{desired: "+env("B")+"}"))
	if len(f.Problems) != 1 || f.Problems[0].Rule != ruleSpecSize || f.Devices[0].Rendered != nil {
		t.Errorf("1,200 variables: %s", lines(f.Problems))
	}
	f = load(t, repoOf(ruleFleet).with("releases/gateways/v1.5.0.yaml", ruleRelease+`{os: {image: "{{ .vars.a }}"}}`).with("overlays/a.yaml", overlay+`{vars: {a: "edge-{{"}}`))
	if len(f.Problems) > 0 {
		t.Fatal(lines(f.Problems))
	}
	a := Assignment{TypeMeta: TypeMeta{APIVersion, KindAssignment}, Metadata: Metadata{Name: "gw-1"}, Spec: f.Devices[0].Rendered.Spec}
	if _, err := Encode(&a); err != nil {
		t.Error(err)
	}
}

func TestConditionsOfHooks(t *testing.T) {
	for condition, want := range map[string]string{
		`{changed: [/etc/motd]}`:                        "",
		`{changed: [/etc, /etc/motd]}`:                  "",
		`{changed: [/]}`:                                "",
		`{changed: [/etc/systemd/system/edge.service]}`: "",
		`{changed: [/etc/mot]}`:                         ruleCondition,
		`{changed: [/etc/motd/x]}`:                      ruleCondition,
		`{changed: [/etc/motd, /nowhere]}`:              ruleCondition,
		`{changed: [/etc/containers/systemd]}`:          ruleCondition,
		`{changed: [/etc/]}`:                            ruleDevicePath,
		`{changed: [/etc/../etc/motd]}`:                 ruleDevicePath,
		`{changed: ["/etc/mo\u202Etd"]}`:                ruleDevicePath,
		`{changed: [/etc/gitopsd/agent.yaml]}`:          ruleProtected,
		`{changed: [etc/motd]}`:                         ruleForm,
		`{changed: []}`:                                 ruleSize,
		`{changed: /etc/motd}`:                          ruleType,
		`{}`:                                            ruleMissingField,
		`{always: true, changed: [/etc/motd]}`:          ruleUnknownField,
	} {
		problems := releaseProblems(t, "{files: {/etc/motd: {content: hello}}, units: {edge.service: {content: \"[Service]\\nExecStart=/bin/true\\n\"}}, hooks: {afterUpdating: {check: {run: [/bin/true], if: "+condition+"}}}}")
		switch {
		case want == "" && len(problems) == 0:
		case want != "" && len(problems) == 1 && problems[0].Rule == want && problems[0].Line == 4 &&
			strings.HasPrefix(problems[0].Pointer, "/spec/hooks/afterUpdating/check/if"):
		default:
			t.Errorf("%s: %s, want %q", condition, lines(problems), want)
		}
	}
}

// A hook of all that some devices have the files for is as it should be.
func TestConditionThatIsMetOnSomeDevices(t *testing.T) {
	hooked := repoOf(ruleFleet).
		with("releases/gateways/v1.5.0.yaml", ruleRelease+"{hooks: {afterUpdating: {reload: {run: [/bin/true], if: {changed: [/etc/nginx]}}}}}\n").
		with("devices/gw-2.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-2, labels: {role: gateway, proxy: \"yes\"}}\n")
	problems := load(t, hooked).Problems
	if len(problems) != 1 || problems[0].Rule != ruleCondition || problems[0].File != "releases/gateways/v1.5.0.yaml" {
		t.Errorf("nobody has it: %s", lines(problems))
	}
	some := hooked.with("overlays/proxy.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Overlay\nmetadata: {name: proxy}\n"+
		"spec: {selector: {matchLabels: {proxy: \"yes\"}}, desired: {files: {/etc/nginx/nginx.conf: {content: x}}}}\n")
	if problems := load(t, some).Problems; len(problems) != 0 {
		t.Errorf("one has it: %s", lines(problems))
	}
}
