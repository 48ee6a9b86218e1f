//go:build system

package systemtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// twoSystems is a device of two slots, as far as an agent sees that: what is
// staged is booted by the next boot, and the other slot has what was before.
var twoSystems = map[string]string{
	"/usr/lib/edge/os": `#!/bin/sh
set -e
cd /var/os
case $1 in
booted) cat booted ;;
staged) if [ -e staged ]; then cat staged; fi ;;
stage) echo "$2" > new; sync new; mv new staged ;;
undo) if [ -e staged ]; then rm staged; else cp other new; sync new; mv new staged; fi ;;
boot) if [ -e staged ]; then cp booted other; mv staged booted; fi ;;
esac
`,
	"/etc/systemd/system/edge-boot.service": `[Unit]
Before=gitopsd-agent.service
[Service]
Type=oneshot
ExecStart=/usr/lib/edge/os boot
[Install]
WantedBy=multi-user.target
`,
	"/var/os/booted": "factory\n",
}

const twoSystemsConfig = `  os:
    driver: command
    booted: [/usr/lib/edge/os, booted]
    staged: [/usr/lib/edge/os, staged]
    stage: [/usr/lib/edge/os, stage]
    undo: [/usr/lib/edge/os, undo]
    reboot: [systemctl, --no-block, reboot]
`

// momentSpec has a version, an image, what its hooks do after the reboot and
// after the update, and more files.
const momentSpec = `onDevice: {retries: 0}
os: {image: %[2]s}
hooks:
  afterRebooting: {note: {run: [sh, -c, 'echo %[1]s > /var/rebooted; sleep 0.3; %[3]s']}}
  afterUpdating: {note: {run: [sh, -c, 'echo %[1]s > /var/hooking; sleep 0.3; %[4]s; echo %[1]s > /var/hooked']}}
files:
  /etc/edge/version: {content: "%[1]s"}
`

func (m *marked) half() bool { return m.reads("/etc/edge/"+m.version+"/part-10") != "" }

var momentsOfCuts = []moment{
	{name: "it is assigned", seen: func(m *marked) bool { return m.state("desired.json", m.version) }},
	{name: "it is announced", asks: stepAnnounce},
	{name: "it looks again", asks: stepLookAgain},
	{name: "it begins", seen: hasState("attempts.json", goesForward)},
	{name: "half of the files are there", seen: (*marked).half},
	{name: "hooks run", seen: hasRun("/var/hooking")},
	{name: "it is confirmed", asks: stepConfirm},
	{name: "it is the current one", seen: (*marked).isCurrent},
	{name: "it goes back", bad: true, seen: hasState("attempts.json", goesBack)},
	{name: "half of the files are gone", bad: true, seen: func(m *marked) bool { return m.state("attempts.json", goesBack) && !m.half() }},
	{name: "the system is staged", image: true, seen: func(m *marked) bool { return m.reads("/var/os/staged") == m.image+"\n" }},
	{name: "the reboot is asked for", image: true, seen: hasState("pending.json", rebootAsked)},
	{name: "the new system boots", image: true, seen: func(m *marked) bool { return m.reads("/var/os/booted") == m.image+"\n" }},
	{name: "hooks run after the reboot", image: true, seen: hasRun("/var/rebooted")},
	{name: "the reboot back is asked for", image: true, bad: true, seen: hasState("pending.json", rebootIsBack)},
	{name: "the old system boots again", image: true, bad: true, seen: func(m *marked) bool {
		return m.state("pending.json", rebootIsBack) && m.reads("/var/os/booted") != m.image+"\n"
	}},
}

// TestSystemPowerCutMoments takes the power from a whole system at chosen
// moments of an update, a reboot, a confirmation and a rollback. It comes up by
// itself and ends on a good spec with its system, and nothing else is left.
// Each moment has its turn; GITOPSD_POWER_CUTS has more of them.
func TestSystemPowerCutMoments(t *testing.T) {
	t.Parallel()
	cuts := cutsOf(len(momentsOfCuts))
	rnd := seeded(t)

	f := newFleet(newBench(t), t.TempDir())
	f.device("gw-1", "gateways")
	m := newMarked(newBox(f, "gw-1"))
	m.image = "factory"
	for file, content := range twoSystems {
		m.Write(file, content, 0o755)
	}
	m.Write("/etc/gitopsd/agent.yaml", fmt.Sprintf(boxConfig, m.id, m.repository)+twoSystemsConfig, 0o644)
	release := func(n int, mo *moment) {
		m.version = fmt.Sprintf("v1.0.%d", n)
		afterReboot, afterUpdate := "true", "true"
		switch {
		case mo.image && mo.bad:
			afterReboot = "false"
		case mo.bad:
			afterUpdate = `exit 1`
		}
		if mo.image {
			m.image = "system-" + m.version
		}
		var spec strings.Builder
		fmt.Fprintf(&spec, momentSpec, m.version, m.image, afterReboot, afterUpdate)
		for n := range parts {
			fmt.Fprintf(&spec, "  /etc/edge/%s/part-%02d: {content: %q}\n", m.version, n, part(m.version))
		}
		f.release("gateways", m.version, spec.String())
		f.policy("gateways", m.version, 1, 0)
		f.push(m.version)
	}
	release(0, &moment{})
	good, system := m.version, m.image
	f.start("daemon", serveArgs(f.path("state"), "--repo", f.bare)...)
	m.Run("systemctl", "enable", "edge-boot", "gitopsd-agent")
	m.Run("systemctl", "start", "gitopsd-agent")
	f.is("gw-1", "Current", good)

	next := inTurn(rnd, momentsOfCuts)
	for n := range cuts {
		mo := next()
		m.cut(mo, rnd.IntN(2) == 0, func() { release(n+1, mo) })
		if mo.bad {
			f.failed("gw-1", "Failed", m.version, good)
			m.image = system
		} else {
			good, system = m.version, m.image
			f.is("gw-1", "Current", good)
		}
		err := errors.Join(m.has("/etc/edge/version", good), m.hasParts(good), m.only("/etc/edge", good, "version"),
			m.has("/var/hooked", good+"\n"), m.has("/var/os/booted", system+"\n"))
		if left := m.reads("/var/os/staged"); left != "" {
			err = errors.Join(err, fmt.Errorf("%q is staged", left))
		}
		m.holds(mo, err)
	}
}
