//go:build linux

package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Each run has control groups of its own, or the next one finds them busy.
var hierarchies = []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"}

// freezeTimeout is for processes that the kernel holds in a system call.
const freezeTimeout = 2 * time.Second

// power keeps the machine on through its reboots, until it goes off or the
// power is cut.
func (m *Machine) power() {
	defer close(m.ended)
	for {
		err := m.once()
		m.mu.Lock()
		m.nspawn, m.leader = 0, 0
		var exit *exec.ExitError
		again := !m.cut && errors.As(err, &exit) && exit.ExitCode() == rebooting
		if !again {
			m.fail = err
		}
		m.mu.Unlock()
		if !again {
			return
		}
	}
}

// once is one boot, to its end.
func (m *Machine) once() error {
	console, err := os.OpenFile(filepath.Join(m.dir, "console"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer console.Close()
	if err := m.forget(); err != nil {
		return err
	}
	var enter strings.Builder
	for _, h := range hierarchies {
		group := filepath.Join(h, m.name)
		if err := os.Mkdir(group, 0o755); err != nil {
			return err
		}
		defer removeGroups(group)
		fmt.Fprintf(&enter, "echo $$ > %s/cgroup.procs; ", group)
	}
	disk := []string{"--directory=" + m.Path("/")}
	if m.sysroot != "" {
		if disk, err = m.deployed(); err != nil {
			return err
		}
	}
	c := exec.Command("sh", append([]string{"-c", "set -e; " + enter.String() + `exec "$@"`, "sh", "systemd-nspawn",
		"--quiet", "--register=no", "--keep-unit", "--network-namespace-path=/run/netns/" + m.name, "--console=pipe",
		"--capability=all", "--system-call-filter=add_key keyctl bpf",
		"--bind=" + filepath.Join(m.dir, "containers") + ":/var/lib/containers", // an overlay cannot lie on an overlay
		"--boot"}, disk...)...)
	c.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1",
		"SYSTEMD_NSPAWN_API_VFS_WRITABLE=network") // for the bridges of podman; what the host shares stays read-only
	c.Stdout, c.Stderr = console, console
	if err := c.Start(); err != nil {
		return err
	}
	m.mu.Lock()
	m.nspawn = c.Process.Pid
	if m.cut { // between two boots, when there was nothing to be ended
		_ = c.Process.Kill()
	}
	m.mu.Unlock()
	done := make(chan struct{})
	go func() { // systemd-nspawn does not say who the first process is
		for {
			if pid := child(c.Process.Pid); up(pid) {
				m.mu.Lock()
				m.leader = pid
				m.mu.Unlock()
				return
			}
			select {
			case <-done:
				return
			case <-time.After(lookEvery):
			}
		}
	}()
	err = c.Wait()
	close(done)
	return err
}

// child is the pid of a process's only child; 0: it has none.
func child(pid int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0
	}
	field, _, _ := bytes.Cut(data, []byte(" "))
	n, err := strconv.Atoi(string(field))
	if err != nil {
		return 0
	}
	return n
}

// up says whether a container's first process has entered its namespaces: not
// before it is systemd.
func up(pid int) bool {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return err == nil && string(name) == "systemd\n"
}

func removeGroups(group string) {
	var all []string
	_ = filepath.WalkDir(group, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, p)
		}
		return nil
	})
	for _, p := range slices.Backward(all) {
		_ = syscall.Rmdir(p)
	}
}

// PowerCut ends every process of the machine at this instant. What the system
// had written but not synced stays, because the host keeps it: it is the power
// cut of a disk whose cache has a battery.
func (m *Machine) PowerCut() {
	m.mu.Lock()
	m.cut = true
	pid, ended := m.leader, m.ended
	if pid == 0 {
		pid = m.nspawn // its child dies with it
	}
	m.mu.Unlock()
	if ended == nil {
		return
	}
	thaw := m.freeze()
	if pid != 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL) // takes its whole pid namespace with it
		for !dead(pid) {
			time.Sleep(time.Millisecond)
		}
	}
	thaw() // systemd-nspawn, which is in the group too
	<-ended
}

// dead says whether a process, and with it its pid namespace, has ended.
func dead(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := bytes.Cut(stat, []byte(") "))
	return err != nil || bytes.HasPrefix(state, []byte("Z"))
}

// freeze stops every process of the machine at once. Without it some would see
// others end, the first of them all among these, and act on it.
func (m *Machine) freeze() (thaw func()) {
	group := filepath.Join(hierarchies[0], m.name)
	set := func(to string) error { return os.WriteFile(filepath.Join(group, "cgroup.freeze"), []byte(to), 0) }
	thaw = func() { _ = set("0") } // the group goes with its last process
	if err := set("1"); err != nil {
		return thaw // not booted
	}
	for end := time.Now().Add(freezeTimeout); time.Now().Before(end); time.Sleep(time.Millisecond) {
		events, err := os.ReadFile(filepath.Join(group, "cgroup.events"))
		if err != nil || bytes.Contains(events, []byte("frozen 1")) {
			return thaw
		}
	}
	m.t.Log("the machine did not freeze: its processes end one after another")
	return thaw
}
