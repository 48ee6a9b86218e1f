package schema

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What stands in the text of a unit or a quadlet file is judged line by line.
func TestTextsOfUnits(t *testing.T) {
	const good = "[Unit]\nDescription=x\n[Service]\nExecStart=/bin/a \\\n# why\n  b\n[Install]\nWantedBy=multi-user.target\n"
	for _, c := range []struct{ keys, text, want string }{
		{"units a.service", good, ""},
		{"units a.service", strings.ReplaceAll(good, "\n", "\r\n"), ""},
		{"units a.service", "\ufeff; c\n\n [Service] \n ExecStart = /bin/a\n[X-Ours]\nwhat=ever\n", ""},
		{"units a.target", "# nothing but a name\n", ""},
		{"units a.service", "# nothing\n", "1 unit-syntax: no section"},
		{"units a.service", "ExecStart=/bin/a\n[Service]\nExecStart=/bin/a\n", "1 unit-unread: before the first section"},
		{"units a.service", "[Servce]\nExecStart=/bin/a\n", "1 unit-syntax: [Service]?"},
		{"units a.service", "[service]\nExecStart=/bin/a\n", "1 unit-syntax: [Service]?"},
		{"units a.service", "[Ours]\na=b\n[Service]\n", ""},
		{"units a.service", "[Service\nExecStart=/bin/a\n", "1 unit-syntax: no ] at its end"},
		{"units a.service", "[Service]\nExecStart=/bin/a\n  --more\n", "3 unit-unread: neither"},
		{"units a.service", "[Service]\nExecStart=/bin/a\n=======\n", "3 unit-unread: neither"},
		{"units a.service", "[Service]\rExecStart=/bin/a\r", ""},
		{"units a.service", "[Unit]\nDescription=a \\\\\n[Service]\nExecStart=/bin/a\\ \n[Install]\n", ""}, // neither goes on
		{"units a.service", "[Unit]\nDescription=a \\\n[Service]\nExecStart=/bin/a\n", "4 unit-unread: stands in [Unit]"},
		{"units a.service", "[Service]\nExecStart=/bin/a \\\n# the end", ""},
		{"units a.service", "[Unit]\nExecStart=/bin/a\n", "2 unit-unread: stands in [Unit]"},
		{"units a.service", "[Service]\nExecStart=/bin/a\n[Instal]\n", "3 unit-unread: [Install]?"},
		{"units a.socket", "[Unit]\n[Soket]\n", "2 unit-syntax: [Socket]?"},
		{"units a.automount", "# its name says all\n", ""},
		{"units a.target", "[Targt]\n", "1 unit-unread: [Target]?"},
		{"units a.service", "[Service]\nExecStrat=/bin/a\n", "2 unit-unread: ExecStart?"},
		{"units a.service", "[Service]\nMemoryMax=1\nUMask=7\nSlice=a.slice\n", ""},
		{"units a.timer", "[Timer]\nOnUnitInactiveSec=1\nOnUnitActivSec=1\n", "3 unit-unread: OnUnitActiveSec?"},
		{"units a.service dropIns b", "", ""},
		{"units a.service dropIns b", "[Instal]\n", "1 unit-unread: [Install]?"},
		{"applications a quadlet a.container", "[Unit]\n[Container]\nImage=a:1\n[Service]\nRestart=always\n[Quadlet]\nDefaultDependencies=false\n[Pd]\n", ""},
		{"applications a quadlet a.container", "[Containr]\nImage=a:1\n", "1 unit-unread: [Container]?"}, // quadlet-content refuses it
		{"applications a quadlet a.container", "\ufeff[Container]\nImage=a:1\n", "1 unit-syntax: before the first section"},
		{"applications a quadlet a.container", "[Container]\nImage=a:1\n[X-Ours]\nwhat\n", "4 unit-syntax: neither"},
		{"applications a quadlet a.container", "[Container]\nImage=a:1\nExec=a \\ \n b \\\\\n c\n", ""},
		{"applications a quadlet a.container", "Image=a:1\n", "1 unit-syntax: before the first section"},
		{"applications a quadlet a.container", "[Container]\nImage=a:1\nPublishPorts=1:1\nBrandNew=1\n", "3 unit-unread: PublishPort?"},
		{"applications a quadlet a.container", "[Container]\nImage=a:1\n[Service]\nRestrt=always\n", "4 unit-unread: Restart?"},
		{"applications a quadlet a.container.d/b.conf", "[Contaner]\nMemory=1\n", "1 unit-unread: [Container]?"},
	} {
		var got []string
		form, ok := textFormOf(strings.Fields(c.keys))
		if !ok {
			t.Fatalf("%s has no text", c.keys)
		}
		for _, s := range unitSlips(form, c.text) {
			got = append(got, fmt.Sprintf("%d %s: %s; %s", s.line, s.rule, s.msg, s.hint))
		}
		at, words, _ := strings.Cut(c.want, ": ")
		if len(got) != min(len(c.want), 1) || len(got) == 1 && (!strings.HasPrefix(got[0], at+": ") || !strings.Contains(got[0], words)) {
			t.Errorf("%s: %q: got %q, want %q", c.keys, c.text, got, c.want)
		}
	}
}

// What is wrong in a text has its place where the text stands: in the document,
// in a file of its own, or in what a template renders to.
func TestPlacesOfTexts(t *testing.T) {
	repo := repoOf(ruleFleet).
		with("releases/gateways/v1.5.0.yaml", `apiVersion: gitopsd.dev/v1alpha1
kind: Release
metadata: {name: v1.5.0}
spec:
  units:
    a.service:
      content: |
        [Service]
        ExecStrat=/bin/a
    b.service: {source: files/b.service}
    c.service: {content: "[Service]\n{{ if true }}oops{{ end }}\n", template: true}
`).with("files/b.service", "[Service]\nExecStart=/bin/b\n\nGroop=x\n")
	got := lines(load(t, repo).Problems)
	for _, want := range []string{
		"releases/gateways/v1.5.0.yaml:9:0 /spec/units/a.service/content warning unit-unread: ", "files/b.service:4:0  warning unit-unread: ",
		"releases/gateways/v1.5.0.yaml:11:", "(line 2 of what the template renders to)",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// A unit is enabled by what its file, a drop-in or its template says.
func TestEnabledUnitsSayWhatStartsThem(t *testing.T) {
	const run, install = `"[Service]\nExecStart=/bin/a\n"`, `"[Install]\nWantedBy=multi-user.target\n"`
	for spec, want := range map[string]string{
		`{units: {a.service: {content: ` + run + `}}}`:                                                                            "",
		`{units: {a.service: {enabled: true}}}`:                                                                                   "",
		`{units: {a.service: {content: ` + run + `, enabled: true}}}`:                                                             "unit-cannot-be",
		`{units: {a.service: {content: ` + run + `, enabled: true, dropIns: {b: {content: ` + install + `}}}}}`:                   "",
		`{units: {a.service: {content: ` + run + `, enabled: true, dropIns: {b: {content: "[Install]\nAlso=b.service\n"}}}}}`:     "unit-cannot-be",
		`{units: {a.service: {content: ` + run + `, enabled: true, dropIns: {b: {content: ` + install + `, template: true}}}}}`:   "",
		`{units: {a@b.service: {content: ` + run + `, enabled: true}, a@.service: {dropIns: {b: {content: ` + install + `}}}}}`:   "",
		`{units: {a.service: {source: nowhere, enabled: true}}}`:                                                                  ruleSourceMissing,
		`{units: {a.service: {contentBase64: W1NlcnZpY2VdCkV4ZWNTdGFydD0vYmluL2EK, enabled: true}, b.service: {enabled: false}}}`: "unit-cannot-be",
	} {
		problems := releaseProblems(t, spec)
		if rule := rulesOf(problems); rule != want {
			t.Errorf("%s: want %q, got\n%s", spec, want, lines(problems))
		}
	}
}

func rulesOf(problems []Problem) string {
	var names []string
	for _, p := range problems {
		names = append(names, p.Rule)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

// Podman finds pods and images by the files that make them, and those that the
// agent shows it are the applications'.
func TestQuadletsThatNameOthers(t *testing.T) {
	const web = `web.container: {content: "[Container]\nImage=reg/web:1\n%s\n"}`
	app := func(line, more string) string {
		return `{applications: {web: {quadlet: {` + fmt.Sprintf(web, line) + more + `}}}}`
	}
	for spec, want := range map[string]string{
		app("", ""):                                                      "",
		app("ServiceName=gitopsd-agent", ""):                             ruleUnitProtected,
		app("ServiceName=dbus", ""):                                      ruleUnitProtected,
		app("Pod=shop.pod", ""):                                          ruleQuadletContent,
		app("Image=web.image", ""):                                       ruleQuadletContent,
		app("Image=web.build", ""):                                       ruleQuadletContent,
		app("Image=%i.image", ""):                                        "",
		app("Pod=a.pod\\nPod=", ""):                                      "",
		app("Volume=d.volume:/d\\nVolume=", ""):                          "",
		app("Volume=d.volume:/d", ""):                                    ruleQuadletMissing,
		app("Volume=d.volume:/d", `, d.volume: {content: "[Volume]\n"}`): "",
		app("Network=host", ""):                                          "",
		app("Volume=/srv/x.volume:/d", ""):                               "",
		`{applications: {net: {quadlet: {n.network: {content: "[Network]\n"}}}}}`:                                                                              ruleNothingRuns,
		`{applications: {net: {quadlet: {n.network: {content: "[Network]\n"}}}, web: {quadlet: {` + fmt.Sprintf(web, "Network=n.network:ip=10.0.0.2") + `}}}}`: "",
	} {
		problems := releaseProblems(t, spec)
		if rule := rulesOf(problems); rule != want {
			t.Errorf("%s: want %q, got\n%s", spec, want, lines(problems))
		}
	}
}

// What a text can be wrong in is bounded, and so is what its words are compared with.
func TestHostileTextsOfUnits(t *testing.T) {
	form, _ := textFormOf([]string{"units", "a.service"})
	var keys strings.Builder
	keys.WriteString("[Service]\n")
	for i := range 60_000 {
		fmt.Fprintf(&keys, "ExecStartPrePostReload%d=\n", i)
	}
	for name, text := range map[string]string{
		"keys": keys.String(), "sections": strings.Repeat("[Servce]\n", 100_000), "lines": strings.Repeat("x\n", 500_000),
		"one line": "[Service]\n" + strings.Repeat("a\\\n", 300_000), "brackets": strings.Repeat("[", 1<<20), "NUL": "[Service]\n\x00=\x00\n",
	} {
		if n := len(unitSlips(form, text)); n > maxUnitSlips {
			t.Errorf("%s: %d slips", name, n)
		}
	}
}
