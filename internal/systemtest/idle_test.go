//go:build system

package systemtest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// idleMinutes is how long an ordinary run looks on; GITOPSD_IDLE_MINUTES
	// says otherwise.
	idleMinutes = 1
	// idleInterval is between two polls, here and of the reference.
	idleInterval = "5s"
	// idleMemory is what an idle agent may have of its own, in KiB: 12 MB.
	idleMemory = 12_000_000 / 1024
	idleConfig = `apiVersion: gitopsd.dev/v1alpha1
kind: AgentConfig
spec:
  device: gw-1
  repo: {url: "http://%s/fleet.git"}
  interval: ` + idleInterval + `
`
	// fetchUnit is what a script would do instead of an agent.
	fetchUnit = `[Service]
WorkingDirectory=/var/clone
ExecStart=/bin/sh -c 'while sleep ` + idleInterval + `; do git fetch --quiet --no-tags --depth 1 http://%s/fleet.git +refs/gitopsd/devices/gw-1:refs/heads/assigned; done'
`
)

// TestSystemIdleAgent looks on while the packaged agent has nothing to do on a
// device with files and a unit, beside a service that runs git fetch as often.
func TestSystemIdleAgent(t *testing.T) {
	t.Parallel()
	minutes := idleMinutes
	if n, err := strconv.Atoi(os.Getenv("GITOPSD_IDLE_MINUTES")); err == nil {
		minutes = n
	}
	f := newFleet(newBench(t), t.TempDir())
	f.device("gw-1", "gateways")
	f.release("gateways", "v1.0.0", `units: {edge.service: {content: "[Service]\nExecStart=/bin/sleep infinity\n", state: started}}
files: {/etc/edge/version: {content: one}}
`)
	f.policy("gateways", "v1.0.0", 1, 0)
	f.push("v1.0.0")
	daemon := f.start("daemon", serveArgs(f.path("state"), "--repo", f.bare)...)
	b := newBox(f, "gw-1")
	b.Write("/etc/gitopsd/agent.yaml", fmt.Sprintf(idleConfig, b.repository), 0o644)
	b.Run("systemctl", "enable", "--now", "gitopsd-agent")
	f.is("gw-1", "Current", "v1.0.0")
	if err := daemon.end(); err != nil { // it would take time of the processors
		t.Error(err)
	}
	b.Run("git", "init", "--quiet", "/var/clone")
	b.Write("/etc/systemd/system/fetch.service", fmt.Sprintf(fetchUnit, b.repository), 0o644)
	b.Run("systemctl", "daemon-reload")
	b.Run("systemctl", "start", "fetch")
	time.Sleep(10 * time.Second) // both have polled, and what the update had to tell is told

	agent, fetch := b.used("gitopsd-agent"), b.used("fetch")
	b.git.ResetTraffic()
	most := int64(0)
	for end := time.Now().Add(time.Duration(minutes) * time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		most = max(most, b.ofProcess("status", "RssAnon:"))
	}
	polls, _, _ := b.git.Traffic()
	agent, fetch = b.used("gitopsd-agent").less(agent), b.used("fetch").less(fetch)
	t.Logf("%d minutes, %d requests, one poll in %s: the agent has %d KiB of its own at most, has taken %s and written %d bytes; git fetch has taken %s, %.1f times as long",
		minutes, polls, idleInterval, most, agent.time, agent.written, fetch.time, float64(fetch.time)/float64(agent.time))
	if most == 0 || most > idleMemory {
		t.Errorf("the agent has %d KiB of its own, want at most %d", most, idleMemory)
	}
	if agent.written != 0 {
		t.Errorf("the agent has written %d bytes", agent.written)
	}
	if agent.time == 0 || agent.time > fetch.time {
		t.Errorf("the agent takes %s, git fetch %s", agent.time, fetch.time)
	}
}

// taken is what a service has used since it started.
type taken struct {
	time    time.Duration // of the processors, children too
	written int64         // bytes to disks, by the agent alone
}

func (t taken) less(before taken) taken {
	return taken{t.time - before.time, t.written - before.written}
}

func (b *box) used(service string) taken {
	b.f.Helper()
	out := b.Run("systemctl", "show", "--value", "--property=CPUUsageNSec", service)
	n, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
	if err != nil {
		b.f.Fatalf("the time of %s is %q", service, out)
	}
	u := taken{time: time.Duration(n)}
	if service == "gitopsd-agent" {
		u.written = b.ofProcess("io", "write_bytes:")
	}
	return u
}

// ofProcess is a number of what the kernel says of the agent's process.
func (b *box) ofProcess(file, key string) int64 {
	b.f.Helper()
	out := b.Run("sh", "-c", "cat /proc/$(systemctl show --value --property=MainPID gitopsd-agent)/"+file)
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == key {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				b.f.Fatal(err)
			}
			return n
		}
	}
	b.f.Fatalf("%s has no %s:\n%s", file, key, out)
	return 0
}
