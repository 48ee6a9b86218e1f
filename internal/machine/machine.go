//go:build linux

package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// bootTimeout is for a boot on a busy host; an idle one needs a second.
	bootTimeout = 90 * time.Second
	// runTimeout is for a program inside that a test does not bound itself.
	runTimeout = 2 * time.Minute
	// stateTimeout is for asking a system that may just be coming up or going
	// down, and then does not answer.
	stateTimeout = 10 * time.Second
	// pipeGrace is how long the output is waited for of a program that did not
	// end in time: its children may still have it.
	pipeGrace = time.Second
	// lookEvery is how often a state of the machine is asked for.
	lookEvery = 50 * time.Millisecond
	// rebooting is what systemd-nspawn ends with where the system inside asked
	// to be booted again.
	rebooting = 133
)

// Machine is one system. Its methods are safe for concurrent use, but for Boot.
type Machine struct {
	t      testing.TB
	name   string
	number int
	dir    string // the overlay and the console
	near   string // the host's end of the link
	// sysroot is where ostree has its deployments; "" = the root is a copy of
	// the shared tree.
	sysroot string

	mu     sync.Mutex
	ended  chan struct{} // closed when the present run of boots has ended
	cut    bool          // the power is, or is being, cut
	nspawn int           // pid of the container's parent; 0: off
	leader int           // the host's pid of the first process inside; 0: not there yet
	fail   error         // why the run ended
	// refused is an image that the boot loader does not boot.
	refused string
}

// New makes a machine that is off. It skips the test where the host cannot boot
// one, and fails it instead with GITOPSD_NO_SKIP set.
func New(t testing.TB) *Machine {
	t.Helper()
	m := fresh(t)
	lower, err := tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"upper", "work", "root", "containers"} {
		if err := os.Mkdir(filepath.Join(m.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	layers := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", lower, filepath.Join(m.dir, "upper"), filepath.Join(m.dir, "work"))
	if err := unix.Mount("overlay", m.Path("/"), "overlay", 0, layers); err != nil {
		t.Fatalf("mount the root of the machine: %v", err)
	}
	m.cleanup(func() error { return unix.Unmount(m.Path("/"), unix.MNT_DETACH) })
	m.cleanup(func() error { m.PowerCut(); return nil })
	m.configure()
	return m
}

// fresh is a machine with a network and without a disk.
func fresh(t testing.TB) *Machine {
	t.Helper()
	if why := missing(); why != "" {
		if os.Getenv("GITOPSD_NO_SKIP") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	m := &Machine{t: t, dir: t.TempDir()}
	if err := m.reserve(); err != nil {
		t.Fatal(err)
	}
	if err := m.wire(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *Machine) cleanup(f func() error) {
	m.t.Cleanup(func() {
		if err := f(); err != nil {
			m.t.Errorf("clean up %s: %v", m.name, err)
		}
	})
}

// configure makes podman work inside a container of the host.
func (m *Machine) configure() {
	m.Write("/etc/containers/containers.conf", `[containers]
default_ulimits = ["nofile=16384:16384", "nproc=16384:16384"]
pids_limit = 0
`, 0o644)
	m.Write("/etc/containers/storage.conf", "[storage]\ndriver = \"overlay\"\nrunroot = \"/run/containers/storage\"\ngraphroot = \"/var/lib/containers/storage\"\n", 0o644)
	m.Write("/etc/hostname", m.name+"\n", 0o644)
}

func missing() string {
	if os.Geteuid() != 0 {
		return "booting a machine needs root"
	}
	for program, pkg := range map[string]string{"systemd-nspawn": "systemd-container", "mmdebstrap": "mmdebstrap", "nsenter": "util-linux", "ip": "iproute2"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Sprintf("booting a machine needs %s: install %s", program, pkg)
		}
	}
	return ""
}

// Path is where a file of the machine lies on the host, also while it is off.
func (m *Machine) Path(file string) string {
	if m.sysroot != "" {
		return m.deployedPath(file)
	}
	return filepath.Join(m.dir, "root", file)
}

// Live is where a file of the running machine lies on the host, also one that
// is only there while it runs: of /proc, of /run, of the system that is booted.
// While the machine is off there is none.
func (m *Machine) Live(file string) string {
	return filepath.Join("/proc", strconv.Itoa(m.pid()), "root", file)
}

// Write puts a file into the machine, with its folders.
func (m *Machine) Write(file, content string, mode os.FileMode) {
	m.t.Helper()
	at := m.Path(file)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(content), mode); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Chmod(at, mode); err != nil {
		m.t.Fatal(err)
	}
}

// Boot switches the machine on and waits until it is up: until systemd says
// running, or degraded, which a unit under test may well make it.
func (m *Machine) Boot() {
	m.t.Helper()
	m.mu.Lock()
	m.ended, m.cut, m.fail = make(chan struct{}), false, nil
	m.mu.Unlock()
	go m.power()
	m.AwaitBoot("")
}

// AwaitBoot waits until the machine is up with another boot id than the one
// given, and returns it.
func (m *Machine) AwaitBoot(not string) string {
	m.t.Helper()
	end := time.Now().Add(bootTimeout)
	for {
		id, state := m.state()
		if id != "" && id != not && (state == "running" || state == "degraded") {
			return id
		}
		m.mu.Lock()
		fail, ended := m.fail, m.ended
		m.mu.Unlock()
		select {
		case <-ended:
			m.t.Fatalf("the machine went off: %v\n%s", fail, m.Console())
		case <-time.After(lookEvery):
		}
		if time.Now().After(end) {
			m.t.Fatalf("the machine is not up after %s: boot %q, state %q\n%s", bootTimeout, id, state, m.Console())
		}
	}
}

// state asks for the boot id and what systemd says of itself.
func (m *Machine) state() (boot, state string) {
	ctx, cancel := context.WithTimeout(context.Background(), stateTimeout)
	defer cancel()
	out, _ := m.Try(ctx, "sh", "-c", "cat /proc/sys/kernel/random/boot_id; systemctl is-system-running")
	boot, state, _ = strings.Cut(strings.TrimSpace(out), "\n")
	return boot, state
}

func (m *Machine) pid() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leader
}

// Run runs a program inside and gives what it printed; that it fails, fails the
// test.
func (m *Machine) Run(argv ...string) string {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), runTimeout)
	defer cancel()
	out, err := m.Try(ctx, argv...)
	if err != nil {
		m.t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return out
}

// errOff is given for a machine that is off, or only just being switched on.
var errOff = errors.New("the machine is off")

// Try runs a program inside and gives what it printed, standard error too.
func (m *Machine) Try(ctx context.Context, argv ...string) (string, error) {
	pid := m.pid()
	if pid == 0 {
		return "", errOff
	}
	c := exec.CommandContext(ctx, "nsenter", append([]string{"-t", strconv.Itoa(pid), "-a", "--"}, argv...)...)
	c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "HOME=/root"}
	c.WaitDelay = pipeGrace
	out, err := c.CombinedOutput()
	return string(out), err
}

// Console is what the machine has printed, of all its boots.
func (m *Machine) Console() string {
	data, err := os.ReadFile(filepath.Join(m.dir, "console"))
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(data))
}
