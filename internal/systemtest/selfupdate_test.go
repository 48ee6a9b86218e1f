//go:build system

package systemtest

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// programs are builds of gitopsd with a version of their own, and two that only
// pass for one; each is built once for all tests of a run.
var programs = func() map[string]func() (string, error) {
	all := map[string]func() (string, error){}
	add := func(version, pkg, flags string) {
		all[version] = sync.OnceValues(func() (string, error) {
			gitopsd, err := binary()
			if err != nil {
				return "", err
			}
			exe := filepath.Join(filepath.Dir(gitopsd), "gitopsd-"+version)
			out, err := exec.Command("go", "build", "-o", exe, "-ldflags", flags, pkg).CombinedOutput()
			if err != nil {
				return "", fmt.Errorf("build %s: %w\n%s", version, err, out)
			}
			return exe, nil
		})
	}
	for _, version := range []string{"v1.1.0", "v1.2.0", "v1.3.0"} {
		add(version, "github.com/gitopsd/gitopsd/cmd/gitopsd", "-s -w -X main.stampedVersion="+version)
	}
	add("v1.4.0", "./testdata/badagent", "-X main.version=v1.4.0")
	add("v1.5.0", "./testdata/badagent", "-X main.version=v1.5.0 -X main.does=hang")
	return all
}()

// program is the path of a build.
func program(f *fleet, version string) string {
	f.Helper()
	exe, err := programs[version]()
	if err != nil {
		f.Fatal(err)
	}
	return exe
}

// quickUnit has the device's systemd lose patience soon.
const quickUnit = "[Service]\nWatchdogSec=4s\nTimeoutStartSec=4s\nRestartSec=1s\n"

func (b *box) restartsSoon() {
	b.f.Helper()
	b.Write("/etc/systemd/system/gitopsd-agent.service.d/quick.conf", quickUnit, 0o644)
	b.Run("systemctl", "daemon-reload")
}

const controlConfig = `apiVersion: gitopsd.dev/v1alpha1
kind: AgentConfig
spec:
  device: %s
  repoFrom: /etc/edge/control
  reports: {repo: {url: "%s", credentials: {passwordFile: /run/credentials/gitopsd-agent.service/gitopsd_token}}}
  interval: 1s
  heartbeat: 10s
  timeout: 2s
`

// agents lets the machine fetch programs. What it gives makes the part of a spec
// that names one; "" is that of the package.
func (b *box) agents() func(version string) string {
	b.f.Helper()
	dir := b.f.TempDir()
	from := b.offer(&http.Server{Handler: http.FileServer(http.Dir(dir))})
	return func(version string) string {
		b.f.Helper()
		if version == "" {
			return ""
		}
		data, err := os.ReadFile(program(b.f, version))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, version), data, 0o644)
		}
		if err != nil {
			b.f.Fatal(err)
		}
		return fmt.Sprintf("agent: {version: %s, url: 'http://%s/%s', sha256: '%x'}\n", version, from, version, sha256.Sum256(data))
	}
}

// newProgramBox is a box whose releases bring its agent, and say where control
// is. spec gives such a release, with its files at the end.
func newProgramBox(f *fleet) (b *box, spec func(version, control string) string) {
	b = newBox(f, "gw-1")
	b.tellOnFailure()
	control := "http://" + b.repository + "/fleet.git"
	b.Write("/etc/gitopsd/agent.yaml", fmt.Sprintf(controlConfig, b.id, control), 0o644)
	b.Write("/etc/gitopsd/credentials/token", "secret\n", 0o600)
	b.Write("/etc/edge/control", control+"\n", 0o644)
	b.restartsSoon()
	agent := b.agents()
	return b, func(version, instead string) string {
		f.Helper()
		return fmt.Sprintf("onDevice: {retries: 0}\nconfirm: {within: 3s}\n%sfiles:\n  /etc/edge/control: {content: %q}\n  /etc/edge/agent: {content: %q}\n",
			agent(version), cmp.Or(instead, control)+"\n", version)
	}
}

// runsAs wants the agent to be a version, as the daemon is told and as the
// device says itself, with nothing left of others; "" is the one of the package.
func (b *box) runsAs(version string) error {
	managed := version != ""
	if !managed {
		version = b.packagedVersion()
	}
	s, err := b.f.now()
	if err != nil {
		return err
	}
	if o := s.devices[b.id].Observed; o == nil || o.AgentVersion != version {
		return fmt.Errorf("the daemon is told of %+v, want the agent %s", o, version)
	}
	exe := b.Run("sh", "-c", "readlink /proc/$(systemctl show --value --property=MainPID gitopsd-agent)/exe; cat /proc/$(systemctl show --value --property=MainPID gitopsd-agent)/comm")
	if strings.HasPrefix(exe, "/var/lib/gitopsd/agent/") != managed || !strings.HasSuffix(exe, "/gitopsd\ngitopsd\n") {
		return fmt.Errorf("the agent %s is %s", version, exe)
	}
	// Its code is that somebody should look, after an update that failed.
	if out, _ := b.Try(b.f.Context(), "gitopsd", "agent", "status"); !strings.Contains(out, "agent     "+version+"\n") || strings.Contains(out, "trial") || strings.Contains(out, "NO AGENT") {
		return errors.New(out)
	}
	kept, err := filepath.Glob(b.Path("/var/lib/gitopsd/agent/*/*"))
	if err != nil || (len(kept) == 1) != managed || len(kept) > 1 {
		return fmt.Errorf("as %s there lie %v (%v)", version, kept, err)
	}
	return nil
}

// packagedVersion is what the program of the package tells.
func (b *box) packagedVersion() string {
	b.f.Helper()
	words := strings.Fields(b.Run("gitopsd", "--version"))
	if len(words) < 2 {
		b.f.Fatalf("the program of the package says %q", words)
	}
	return words[1]
}

// TestSystemSelfUpdate has releases bring the agent of a whole system: with a
// daemon that is itself updated, and without a target version, agents follow
// it. One that ends at once, one that hangs and one that cannot reach control
// give way to the old one by themselves.
func TestSystemSelfUpdate(t *testing.T) {
	t.Parallel()
	f := newFleet(newBench(t), t.TempDir())
	f.device("gw-1", "gateways")
	match := strings.Replace(fmt.Sprintf(policyText, "gateways", "", 1, 0), "  targetVersion: \n", "", 1)
	f.write("policies/gateways.yaml", match)
	b, spec := newProgramBox(f)
	for _, version := range []string{"v1.1.0", "v1.2.0"} {
		f.release("gateways", version, spec(version, ""))
	}
	f.push("releases for two versions of gitopsd")
	f.exe = program(f, "v1.1.0")
	daemon := f.start("daemon", serveArgs(f.path("state"), "--repo", f.bare)...)

	b.Run("systemctl", "enable", "--now", "gitopsd-agent")
	pid := b.show("MainPID", "gitopsd-agent")["gitopsd-agent"]
	packaged := b.Run("sha256sum", "/usr/bin/gitopsd")
	f.is("gw-1", "Current", "v1.1.0")
	f.wait("the daemon's version", func() error { return b.runsAs("v1.1.0") })
	if err := daemon.end(); err != nil {
		t.Error(err)
	}
	f.exe = program(f, "v1.2.0")
	f.start("daemon", serveArgs(f.path("state"), "--repo", f.bare)...)
	f.is("gw-1", "Current", "v1.2.0")
	f.wait("the daemon's next version", func() error { return b.runsAs("v1.2.0") })
	if now, n := b.show("MainPID", "gitopsd-agent")["gitopsd-agent"], b.show("NRestarts", "gitopsd-agent")["gitopsd-agent"]; now != pid || n != "0" {
		t.Errorf("the service is process %s after %s restarts, was %s", now, n, pid)
	}

	if out := b.Run("sh", "-c", "ls -l /proc/"+pid+"/fd"); strings.Count(out, "/var/lib/gitopsd/lock") != 1 {
		t.Errorf("the process has open\n%s", out)
	}

	for _, bad := range []struct{ version, control, words string }{
		{"v1.4.0", "", "it was started 3 times, and did not prove itself"},
		{"v1.5.0", "", "it was started 3 times, and did not prove itself"},
		{"v1.3.0", "http://192.0.2.1/fleet.git", "no answer within 3s"},
	} {
		f.release("gateways", bad.version, spec(bad.version, bad.control))
		f.policy("gateways", bad.version, 1, 0)
		f.push(bad.version)
		f.wait("who waits for "+bad.version, func() error {
			if out, err := b.Try(f.Context(), "gitopsd", "agent", "run-now", "--wait"); err == nil || !strings.Contains(out, bad.words) {
				return fmt.Errorf("it ends with %v: %s", err, out)
			}
			return nil
		})
		f.failed("gw-1", "Failed", bad.version, "v1.2.0")
		f.wait("the old agent after "+bad.version, func() error { return b.runsAs("v1.2.0") })
		s, err := f.now()
		if err != nil {
			t.Fatal(err)
		}
		if all := s.devices["gw-1"].Attempts; !strings.Contains(all[len(all)-1].Message, bad.words) {
			t.Errorf("%s failed with %q, want %q", bad.version, all[len(all)-1].Message, bad.words)
		}
		if err := b.has("/etc/edge/agent", "v1.2.0"); err != nil {
			t.Error(err)
		}
	}

	if log := b.log(); !strings.Contains(log, "Watchdog timeout") {
		t.Errorf("the one that hung was not ended by the watchdog\n%s", log)
	}

	boot := b.AwaitBoot("")
	b.Run("systemctl", "--no-block", "reboot")
	b.AwaitBoot(boot)
	f.wait("the agent after a boot", func() error { return b.runsAs("v1.2.0") })
	b.Run("dpkg", "--install", "/root/gitopsd.deb")
	f.wait("the agent after its package came anew", func() error { return b.runsAs("v1.2.0") })
	if now := b.Run("sha256sum", "/usr/bin/gitopsd"); now != packaged {
		t.Errorf("the program of the package is %s, was %s", now, packaged)
	}

	f.release("gateways", "v1.6.0", spec("", ""))
	f.policy("gateways", "v1.6.0", 1, 0)
	f.push("a release that says nothing of the agent")
	f.is("gw-1", "Current", "v1.6.0")
	f.wait("the agent of the package", func() error { return b.runsAs("") })
	t.Log(b.Run("sh", "-c", "grep RssAnon /proc/$(systemctl show --value --property=MainPID gitopsd-agent)/status"))
}
