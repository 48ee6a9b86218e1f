package schema

import (
	"strings"
	"testing"
)

// A unit that would stop, replace or disable what the agent stands on is told of
// by its line, wherever its text stands.
func TestUnitsThatTakeTheAgentAway(t *testing.T) {
	const run = "[Service]\nExecStart=/bin/a\n"
	for _, c := range []struct{ keys, text, want string }{
		{"units a.service", "[Unit]\nConflicts=gitopsd-agent.service\n" + run, "2 Conflicts"},
		{"units a.service", "[Unit]\nConflicts=b.service \\\n\"gitopsd-agent.service\"\n" + run, "2 Conflicts"},
		{"units a.service", "[Unit]\nConflicts=shutdown.target rescue.service systemd-udevd.service\nConflicts=basic.target\n" + run, "3 Conflicts"},
		{"units a.service", "[Unit]\nPropagatesStopTo=dbus.service\n" + run, "2 PropagatesStopTo"},
		{"units a.service dropIns b", "[Install]\nAlias=b.service\nAlias=gitopsd-agent.service dbus.service", "3 Alias 3 Alias"},
		{"units a.service", run + "[Install]\nAlias=reboot.target\n", "4 Alias"},
		{"units a.mount", "[Mount]\n[Install]\nAlias=var.mount\nRequiredBy=local-fs.target\n", "3 Alias"},
		{"units a.service", run + "[Install]\nRequiredBy=gitopsd-agent.service\nWantedBy=gitopsd-agent.service\n", "4 RequiredBy"},
		{"units a.service", run + "[Install]\nRequiredBy=sysinit.target\n", "4 RequiredBy"},
		{"units a.service", run + "[Install]\nAlso=gitopsd-agent.service\n", "4 Also"},
		{"units a.socket", "[Socket]\nListenStream=1\nService=gitopsd-agent.service\n", "3 Service"},
		{"units a.service", "[Unit]\nRequires=gitopsd-agent.service\nAfter=gitopsd-agent.service\nOnFailure=reboot.target\nWants=poweroff.target\n" + run, ""},
		{"units a.service", "[X-Ours]\nConflicts=gitopsd-agent.service\n# Conflicts=gitopsd-agent.service\n" + run, ""},
		{"applications a quadlet a.container", "[Container]\nImage=a:1\n[Install]\nAlias=gitopsd-agent.service\n", "4 Alias"},
		{"applications a quadlet a.container.d/b.conf", "[Unit]\nConflicts=gitopsd.service\n", "2 Conflicts"},
		{"files /etc/systemd/system/a.service", "[Unit]\nConflicts=gitopsd-agent.service\nnothing else is looked at\n", "2 Conflicts"},
		{"files /etc/systemd/system/a.service.d/b.conf", "[Unit]\nConflicts=gitopsd-agent.service\n", "2 Conflicts"},
		{"files /usr/local/lib/systemd/system/target.d/b.conf", "[Unit]\nConflicts=gitopsd-agent.service\n", "2 Conflicts"},
		{"files /etc/containers/systemd/a/a.container", "[Unit]\nConflicts=gitopsd-agent.service\n", "2 Conflicts"},
		{"files /etc/containers/systemd/a.container.d/b.conf", "[Unit]\nConflicts=gitopsd-agent.service\n", "2 Conflicts"},
		{"files /etc/systemd/network/a.network", "[Unit]\nConflicts=gitopsd-agent.service\n", "none"},
		{"files /etc/edge.conf", "[Unit]\nConflicts=gitopsd-agent.service\n", "none"},
	} {
		form, ok := textFormOf(strings.Fields(c.keys))
		var got []string
		for _, s := range unitSlips(form, c.text) {
			key, _, _ := strings.Cut(strings.SplitAfterN(s.msg, ": ", 2)[1], "=")
			if got = append(got, itoa(s.line)+" "+key); s.rule != ruleUnitProtected || s.warning || s.hint == "" {
				t.Errorf("%s: %+v", c.keys, s)
			}
		}
		switch is := strings.Join(got, " "); {
		case !ok && c.want == "none":
		case !ok || is != c.want:
			t.Errorf("%s %q: %t %q, want %q", c.keys, c.text, ok, is, c.want)
		}
	}
}

// It is found in a document and in a source of one.
func TestTakenUnitsArePlaced(t *testing.T) {
	f := load(t, repoOf(ruleFleet).with("releases/gateways/v1.5.0.yaml", ruleRelease+`
  files: {/etc/systemd/system/a.service: {source: files/a.service}}
  units:
    b.service:
      content: |
        [Service]
        ExecStart=/bin/b
        [Install]
        Alias=gitopsd-agent.service
`).with("files/a.service", "[Unit]\nConflicts=gitopsd-agent.service\n"))
	got := lines(f.Problems)
	for _, want := range []string{
		"releases/gateways/v1.5.0.yaml:12:0 /spec/units/b.service/content error unit-protected: gitopsd-agent.service is protected: Alias= takes its place",
		"files/a.service:2:0  error unit-protected: gitopsd-agent.service is protected: Conflicts= stops it",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
