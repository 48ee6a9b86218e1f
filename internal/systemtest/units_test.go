//go:build system

package systemtest

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

const (
	// unitsSpec is what all releases of the test have; the first %s is the part
	// that differs.
	unitsSpec = `units:
%s
  edge@.service: {content: "[Service]\nExecStart=/bin/sleep infinity\nDescription=%%i\n[Install]\nWantedBy=multi-user.target\n"}
  edge@one.service: {enabled: true, state: started}
  once.service: {content: "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo run >> /var/once'\n", state: started}
  plain.socket: {content: "[Socket]\nListenStream=/run/plain.sock\n[Install]\nWantedBy=sockets.target\n", enabled: true, state: started}
  plain.service: {content: "[Service]\nExecStart=/bin/sleep infinity\n"}
  stubborn.service: {content: "[Service]\nExecStart=/bin/sh -c 'trap : TERM; while :; do sleep 1; done'\nTimeoutStopSec=2\n", state: started}
  quiet.service: {state: masked}
  hidden.service: {enabled: true, state: started}
  ready.service: {content: "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n", enabled: true, state: started}
files:
  /etc/user.conf: {content: "%s", restart: [user.service]}
  /etc/edge/version: {content: "%s"}
`
	// edgeUnit may start once an hour, as far as systemd is concerned.
	edgeUnit   = `  edge.service: {content: "[Unit]\nStartLimitBurst=1\nStartLimitIntervalSec=1h\n[Service]\nEnvironment=TOKEN_SECRET=hunter2hunter2\nExecStart=%s\n%s\n[Install]\nWantedBy=multi-user.target\n", enabled: true, state: started}`
	deviceUnit = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
)

func edgeRelease(exec, more, conf string) string {
	return fmt.Sprintf(unitsSpec, fmt.Sprintf(edgeUnit, exec, more), conf, conf)
}

// show gives one property of each unit.
func (b *box) show(property string, units ...string) map[string]string {
	b.f.Helper()
	all := map[string]string{}
	for _, u := range units {
		all[u] = strings.TrimSpace(b.Run("systemctl", "show", "--value", "--property="+property, u))
	}
	return all
}

// failed waits until a version has failed on a device, which is on another one.
func (f *fleet) failed(id, code, version, on string) {
	f.Helper()
	f.wait(version+" failed on "+id, func() error {
		s, err := f.now()
		if err != nil {
			return err
		}
		if err := s.is(id, code, on); err != nil {
			return err
		}
		all := s.devices[id].Attempts
		if last := all[len(all)-1]; last.Version != version {
			return fmt.Errorf("the last attempt is of %s", last.Version)
		}
		return nil
	})
}

// TestSystemUnits gives units to the systemd of a whole system: what is as
// wanted is not touched, a bad one is refused or rolled back, what drifts is put
// right, and what is dropped is as it was.
func TestSystemUnits(t *testing.T) {
	t.Parallel()
	f := newFleet(newBench(t), t.TempDir())
	f.policy("gateways", "v1.0.0", 1, 0)
	f.device("gw-1", "gateways")
	sleep := "/bin/sleep infinity"
	f.release("gateways", "v1.0.0", edgeRelease(sleep, "", "one"))
	f.push("v1.0.0")
	f.start("daemon", serveArgs(f.path("state"), "--repo", f.bare)...)
	b := newBox(f, "gw-1")
	for _, u := range []string{"user", "quiet", "hidden"} {
		b.Write("/usr/lib/systemd/system/"+u+".service", deviceUnit, 0o644)
	}
	b.Write("/etc/systemd/system/ready.service", deviceUnit, 0o644)
	b.Run("systemctl", "daemon-reload")
	b.Run("systemctl", "enable", "--now", "user.service", "quiet.service", "ready.service")
	b.Run("systemctl", "mask", "hidden.service")
	was := b.show("InvocationID", "ready.service", "user.service")

	b.Run("systemctl", "enable", "--now", "gitopsd-agent")
	f.is("gw-1", "Current", "v1.0.0")
	running := []string{"edge.service", "edge@one.service", "plain.socket", "stubborn.service", "hidden.service", "ready.service", "user.service"}
	wants := func(when string, active, inactive []string) {
		t.Helper()
		for _, u := range active {
			if s := b.show("ActiveState", u)[u]; s != "active" {
				t.Errorf("%s: %s is %s", when, u, s)
			}
		}
		for _, u := range inactive {
			if s := b.show("ActiveState", u)[u]; s != "inactive" {
				t.Errorf("%s: %s is %s", when, u, s)
			}
		}
	}
	wants("first", running, []string{"quiet.service", "once.service", "plain.service"})
	for u, want := range map[string]string{"edge.service": "enabled", "edge@one.service": "enabled", "plain.socket": "enabled", "quiet.service": "masked", "hidden.service": "enabled"} {
		if out, _ := b.Try(t.Context(), "systemctl", "is-enabled", u); strings.TrimSpace(out) != want {
			t.Errorf("%s is %s, want %s", u, out, want)
		}
	}
	if is := b.show("InvocationID", "ready.service")["ready.service"]; is != was["ready.service"] {
		t.Error("what was as wanted was started again")
	}
	if is := b.show("InvocationID", "user.service")["user.service"]; is == was["user.service"] {
		t.Error("the reader of a changed file was not started again")
	}

	// Only what changed restarts, although systemd would not let it.
	was = b.show("InvocationID", running...)
	f.release("gateways", "v2.0.0", edgeRelease(sleep, "TimeoutStopSec=7", "one"))
	f.policy("gateways", "v2.0.0", 1, 0)
	f.push("v2.0.0")
	f.is("gw-1", "Current", "v2.0.0")
	is := b.show("InvocationID", running...)
	if is["edge.service"] == was["edge.service"] || b.show("TimeoutStopUSec", "edge.service")["edge.service"] != "7s" {
		t.Error("the changed unit does not run as changed")
	}
	delete(was, "edge.service")
	edge := is["edge.service"]
	delete(is, "edge.service")
	if !maps.Equal(was, is) {
		t.Errorf("what was as wanted was touched: %v, was %v", is, was)
	}

	// What cannot be is refused, in the words of who found it, and nothing moves.
	f.release("gateways", "v3.0.0", "onDevice: {retries: 0}\nunits:\n"+fmt.Sprintf(edgeUnit, "/opt/nothing/here", "")+"\n  nowhere.service: {state: started}\n  dbus-org.freedesktop.login1.service: {state: started}\n  systemd-logind.service: {enabled: true}\n")
	f.policy("gateways", "v3.0.0", 1, 0)
	f.push("v3.0.0")
	f.failed("gw-1", "Refused", "v3.0.0", "v2.0.0")
	for _, words := range []string{"nowhere.service: no file makes this unit here", "another name of systemd-logind.service", "systemd-logind.service: it cannot be enabled (static)"} {
		if !strings.Contains(b.log(), words) {
			t.Errorf("nobody says %q", words)
		}
	}
	f.release("gateways", "v3.0.1", edgeRelease("/opt/nothing/here", "", "one"))
	f.policy("gateways", "v3.0.1", 1, 0)
	f.push("v3.0.1")
	f.failed("gw-1", "Refused", "v3.0.1", "v2.0.0")
	if log := b.log(); !strings.Contains(log, "systemd-analyze finds it broken") || !strings.Contains(log, "/opt/nothing/here is not executable") {
		t.Error("nobody says what is wrong with the unit")
	}
	if now := b.show("InvocationID", "edge.service")["edge.service"]; now != edge {
		t.Error("a refused unit has moved the good one")
	}

	// One that does not start, and one that starts again and again.
	for version, exec := range map[string]string{
		"v4.0.0": `/bin/sh -c 'echo cannot open the port, token=abcdef1234567 >&2; exit 3'`,
		"v5.0.0": "/bin/sh -c 'sleep 0.5; exit 1'",
	} {
		more := ""
		if version == "v5.0.0" {
			more = "Restart=always\\nRestartSec=1s" // longer than between two looks
		}
		f.release("gateways", version, edgeRelease(exec, more, "bad"))
		f.policy("gateways", version, 1, 0)
		f.push(version)
		f.failed("gw-1", "Failed", version, "v2.0.0")
		wants("after "+version, running, nil)
		if b.show("TimeoutStopUSec", "edge.service")["edge.service"] != "7s" || b.has("/etc/user.conf", "one") != nil {
			t.Errorf("after %s the old unit is not back", version)
		}
	}
	log := b.log()
	if !strings.Contains(log, "cannot open the port, token=[removed]") || strings.Contains(log, "abcdef1234567") {
		t.Error("the failure has not the end of the unit's journal, or a secret in it")
	}
	if strings.Contains(log, "final=false") {
		t.Error("a release whose unit fails was tried again")
	}
	if !strings.Contains(log, "it ends again and again") {
		t.Error("nobody says that the unit is restarted again and again")
	}

	// Somebody stops a unit and changes its file: both come back.
	b.Run("sh", "-c", "systemctl stop edge.service plain.socket; systemctl disable edge.service; echo '# by hand' >> /etc/systemd/system/edge.service")
	f.wait("the drift is repaired", func() error {
		for _, u := range []string{"edge.service", "plain.socket"} {
			if s := b.show("ActiveState", u)[u]; s != "active" {
				return fmt.Errorf("%s is %s", u, s)
			}
		}
		return nil
	})
	if out := b.Run("cat", "/var/once"); strings.Count(out, "run") != 1 {
		t.Errorf("what runs once has run: %s", out)
	}

	// A socket that changes makes room for itself.
	b.Run("systemctl", "start", "plain.service")
	f.release("gateways", "v6.0.0", strings.Replace(edgeRelease(sleep, "", "six"), "ListenStream=/run/plain.sock", "ListenStream=/run/plainer.sock", 1))
	f.policy("gateways", "v6.0.0", 1, 0)
	f.push("v6.0.0")
	// Meanwhile the system's own update has systemd execute itself anew.
	b.Run("sh", "-c", "for n in 1 2 3 4 5 6 7 8 9 10 11 12; do systemctl daemon-reexec; sleep 0.5; done")
	f.is("gw-1", "Current", "v6.0.0")
	wants("with another socket", append(running, "plain.service"), nil)
	b.Run("test", "-S", "/run/plainer.sock")

	// All is dropped: what was made goes, what was there is as it was.
	user := b.show("InvocationID", "user.service")["user.service"]
	f.release("gateways", "v7.0.0", "onDevice: {retries: 0}\nfiles: {/etc/edge/version: {content: seven}}\n")
	f.policy("gateways", "v7.0.0", 1, 0)
	f.push("v7.0.0")
	f.is("gw-1", "Current", "v7.0.0")
	wants("dropped", []string{"user.service", "ready.service", "quiet.service"}, []string{"edge.service", "edge@one.service", "plain.socket", "plain.service", "stubborn.service", "hidden.service"})
	if now := b.show("InvocationID", "user.service")["user.service"]; now == user {
		t.Error("the reader of a dropped file was not started again")
	}
	if out := b.Run("sh", "-c", "ls -A /etc/systemd/system /etc/systemd/system/*.wants; systemctl --failed --no-legend"); strings.Contains(out, "edge") || strings.Contains(out, "plain") || strings.Contains(out, "stubborn") || strings.Contains(out, "once") {
		t.Errorf("there stays\n%s", out)
	}
	if out, _ := b.Try(t.Context(), "systemctl", "is-enabled", "hidden.service"); strings.TrimSpace(out) != "masked" {
		t.Errorf("what the administrator had masked is %s", out)
	}
	if out, err := b.Try(t.Context(), "cat", "/var/lib/gitopsd/units.json"); err == nil {
		t.Errorf("what was before is still remembered\n%s", out)
	}
	t.Log(b.Run("sh", "-c", "grep RssAnon /proc/$(systemctl show --value --property=MainPID gitopsd-agent)/status"))
	if t.Failed() {
		t.Log(b.log())
	}
}
