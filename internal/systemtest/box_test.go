//go:build system

package systemtest

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/internal/machine"
)

// box is a device: a whole system with the package of this commit installed,
// in a network with nothing but the fleet's git server.
type box struct {
	*machine.Machine
	f          *fleet
	id         string
	git        *gitserver.Server
	cable      *cable // to all that it reaches
	repository string // host and port of the git server
}

// boxServeConfig names the credential as its service has it.
const boxServeConfig = `apiVersion: gitopsd.dev/v1alpha1
kind: ServeConfig
spec:
  repo: {url: "http://%s/fleet.git", credentials: {passwordFile: /run/credentials/gitopsd.service/gitopsd_token}}
  interval: 1s
`

const boxConfig = `apiVersion: gitopsd.dev/v1alpha1
kind: AgentConfig
spec:
  device: %s
  repo: {url: "http://%s/fleet.git"}
  interval: 1s
  heartbeat: 10s
  timeout: 15s
`

// packed builds the packages once for all tests of a run, in a folder of their
// own beside that of others, and gives the deb.
var packed = sync.OnceValues(func() (string, error) {
	module, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	const folder = "bin/packages-tested"
	built := filepath.Join(module, folder)
	if err := os.RemoveAll(built); err != nil {
		return "", err
	}
	if out, err := exec.Command("make", "-C", module, "packages", "PACKAGES="+folder).CombinedOutput(); err != nil {
		return "", fmt.Errorf("make packages: %w\n%s", err, out)
	}
	found, err := filepath.Glob(filepath.Join(built, "*.deb"))
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("make packages has left %q", found)
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
})

// beforeStart is the command by which a page has the daemon's setup checked
// with what its service is given.
func beforeStart(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/howto/check-the-setup.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(page), "```sh\n")[1:] {
		if command, _, _ := strings.Cut(block, "```"); strings.HasPrefix(command, "systemd-run") {
			return command
		}
	}
	t.Fatal("the page has no command that starts with systemd-run")
	return ""
}

// newBox installs the agent of a device on a machine that is up.
func newBox(f *fleet, id string) *box {
	f.Helper()
	b := &box{Machine: machine.New(f), f: f, id: id, cable: &cable{}}
	deb, err := packed()
	if err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(deb)
	if err != nil {
		f.Fatal(err)
	}
	b.Write("/root/gitopsd.deb", string(data), 0o644)
	b.serve()
	b.Boot()
	b.Run("dpkg", "--install", "/root/gitopsd.deb")
	return b
}

// serve lets the machine reach the fleet's repository by http, and configures
// its agent for it.
func (b *box) serve() {
	b.git = gitserver.New(b.f, filepath.Dir(b.f.bare))
	b.repository = b.offer(&http.Server{Handler: b.git})
	b.Write("/etc/gitopsd/agent.yaml", fmt.Sprintf(boxConfig, b.id, b.repository), 0o644)
}

// offer has a server listen where the machine reaches it, until the test ends.
func (b *box) offer(server *http.Server) (address string) {
	b.f.Helper()
	listen, err := net.Listen("tcp", net.JoinHostPort(b.Outside(), "0"))
	if err != nil {
		b.f.Fatal(err)
	}
	go func() { _ = server.Serve(&slowListener{listen, b.cable}) }()
	b.f.Cleanup(func() { server.Close() })
	return listen.Addr().String()
}

// log is what the agent has written to the journal, of all boots.
func (b *box) log() string {
	out, err := b.Try(b.f.Context(), "journalctl", "--no-pager", "--output=cat", "--unit=gitopsd-agent")
	if err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return out
}

// has wants a file of the machine to be as written.
func (b *box) has(file, content string) error {
	data, err := os.ReadFile(b.Path(file))
	if err != nil {
		return err
	}
	if string(data) != content {
		const shown = 100 // bytes
		return fmt.Errorf("%s is %.*q, want %.*q", file, shown, data, shown, content)
	}
	return nil
}

// TestSystemPackage installs the package on a whole system: the service comes
// up with its configuration, updates the device, outlives a reboot, goes with
// its package, and goes on where it was when it comes back.
func TestSystemPackage(t *testing.T) {
	t.Parallel()
	f := newFleet(newBench(t), t.TempDir())
	f.policy("gateways", "v1.0.0", 1, 0)
	f.device("gw-1", "gateways")
	f.release("gateways", "v1.0.0", "files: {/etc/edge/version: {content: one}, /etc/issue: {content: one}}")
	f.release("gateways", "v2.0.0", "files: {/etc/edge/version: {content: two}, /etc/issue: {content: two}}")
	f.push("the first release")
	f.start("daemon", serveArgs(f.path("state"), "--repo", f.bare)...)
	b := newBox(f, "gw-1")

	if out := b.Run("systemd-analyze", "verify", "/usr/lib/systemd/system/gitopsd-agent.service", "/usr/lib/systemd/system/gitopsd.service"); strings.TrimSpace(out) != "" {
		t.Errorf("the units are\n%s", out)
	}
	if out, err := b.Try(t.Context(), "systemctl", "is-enabled", "gitopsd-agent", "gitopsd"); err == nil {
		t.Errorf("a fresh package has its services\n%s", out)
	}
	b.Write("/etc/issue", "of before", 0o640)
	b.label("/etc/issue")
	b.Run("systemctl", "enable", "--now", "gitopsd-agent")
	f.is("gw-1", "Current", "v1.0.0")
	b.labelled("/etc/issue", "one")
	b.Write("/etc/gitopsd/credentials/token", "secret\n", 0o600)
	b.Write("/etc/gitopsd/serve.yaml", fmt.Sprintf(boxServeConfig, b.repository), 0o644)
	for _, when := range []string{"before the daemon's first start", "beside the daemon"} {
		if out := b.Run("sh", "-c", beforeStart(t)); !regexp.MustCompile(`state folder +ok +/var/lib/.*gitopsd-serve\b`).MatchString(out) {
			t.Errorf("%s the doctor looks at another folder:\n%s", when, out)
		}
		b.Run("systemctl", "enable", "--now", "gitopsd") // a second daemon does no harm
	}
	f.wait("a daemon in the machine", func() error {
		if out := b.Run("journalctl", "--no-pager", "--output=cat", "--unit=gitopsd"); !strings.Contains(out, "serving") || strings.Contains(out, "could not") {
			return errors.New(out)
		}
		return nil
	})
	if out := b.Run("journalctl", "--no-pager", "--output=cat", "--unit=gitopsd"); strings.Contains(out, "the clock is guarded by recorded times only") {
		t.Errorf("its sandbox hides the time since boot\n%s", out)
	}
	for _, unit := range []string{"gitopsd-agent", "gitopsd"} {
		if out := b.Run("systemctl", "show", unit, "--property=ActiveState,WatchdogUSec,Type,NRestarts"); !strings.Contains(out, "ActiveState=active") ||
			!strings.Contains(out, "Type=notify") || !strings.Contains(out, "WatchdogUSec=2min") || !strings.Contains(out, "NRestarts=0") {
			t.Errorf("the service %s is\n%s", unit, out)
		}
	}

	b.Run("gitopsd", "agent", "hold", "--reason", "on the bench")
	boot := b.AwaitBoot("")
	b.Run("systemctl", "--no-block", "reboot")
	b.AwaitBoot(boot)
	f.policy("gateways", "v2.0.0", 1, 0)
	f.push("the second release")
	f.is("gw-1", "Held", "v1.0.0")
	b.asked()
	b.Run("gitopsd", "agent", "unhold")
	f.is("gw-1", "Current", "v2.0.0")
	b.labelled("/etc/issue", "two")

	b.Run("dpkg", "--remove", "gitopsd")
	if out, err := b.Try(t.Context(), "pgrep", "-l", "gitopsd"); err == nil {
		t.Errorf("without its package there still runs\n%s", out)
	}
	if err := b.has("/etc/edge/version", "two"); err != nil {
		t.Error(err)
	}
	f.policy("gateways", "v1.0.0", 1, 0)
	f.write("policies/gateways.yaml", fmt.Sprintf(policyText, "gateways", "v1.0.0", 1, 0)+"  rollbackFrom: [v2.0.0]\n")
	f.push("back to the first release")
	b.Run("dpkg", "--install", "/root/gitopsd.deb")
	f.is("gw-1", "Current", "v1.0.0")
	b.Run("systemctl", "is-active", "gitopsd-agent", "gitopsd")

	if out, err := b.Try(t.Context(), "gitopsd", "agent", "reset", "--yes"); err == nil {
		t.Errorf("a reset beside the agent\n%s", out)
	}
	b.Run("systemctl", "disable", "--now", "gitopsd-agent")
	b.Run("gitopsd", "agent", "reset", "--yes")
	b.labelled("/etc/issue", "of before")
	for _, file := range []string{"/etc/edge", "/var/lib/gitopsd/attempts.json"} {
		if _, err := os.Lstat(b.Path(file)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after a reset there is %s (%v)", file, err)
		}
	}
	b.Run("dpkg", "--purge", "gitopsd")
	if left, err := filepath.Glob(b.Path("/etc/systemd/system/*/gitopsd*")); err != nil || len(left) > 0 {
		t.Errorf("a purge leaves %q (%v)", left, err)
	}
	if t.Failed() {
		t.Log(b.log())
	}
}

// attributes are what a file has beside its content and mode where a system
// labels its files, and what somebody has noted.
var attributes = map[string]string{"security.selinux": "system_u:object_r:etc_t:s0\x00", "user.note": "by hand"}

func (b *box) label(file string) {
	b.f.Helper()
	for name, value := range attributes {
		if err := unix.Setxattr(b.Path(file), name, []byte(value), 0); err != nil {
			b.f.Fatalf("%s: %v", name, err)
		}
	}
}

// labelled wants a file to have its label, whatever its content became.
func (b *box) labelled(file, content string) {
	b.f.Helper()
	if err := b.has(file, content); err != nil {
		b.f.Error(err)
	}
	for name, want := range attributes {
		got := make([]byte, 100)
		n, err := unix.Getxattr(b.Path(file), name, got)
		if err != nil || string(got[:n]) != want {
			b.f.Errorf("%s of %s is %q (%v), want %q", name, file, got[:max(n, 0)], err, want)
		}
	}
}

// asked speaks to the agent of a held device while that has no network.
func (b *box) asked() {
	if err := b.Unplug(); err != nil {
		b.f.Fatal(err)
	}
	out, _ := b.Try(b.f.Context(), "gitopsd", "agent", "status") // its code may be that control is away
	for _, want := range []string{"version   v1.0.0\n", "hold      on the bench\n"} {
		if !strings.Contains(out, want) || strings.Contains(out, "NO AGENT") {
			b.f.Errorf("the status is\n%s\nwithout %q", out, want)
		}
	}
	if out, err := b.Try(b.f.Context(), "setpriv", "--reuid=65534", "--clear-groups", "gitopsd", "agent", "status"); err == nil || !strings.Contains(out, "permission denied") {
		b.f.Errorf("nobody is told %v\n%s", err, out)
	}
	if err := b.Plug(); err != nil {
		b.f.Fatal(err)
	}
}
