//go:build system

package systemtest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// agentMomentCuts are in an ordinary run; GITOPSD_POWER_CUTS has more of them.
const agentMomentCuts = 3

// The agents that a release may bring.
const (
	another  = "a good one"
	packaged = "the one of the package"
	deaf     = "v1.3.0" // the release takes control away from it
	crashes  = "v1.4.0"
	hangs    = "v1.5.0"
)

// agentOf is the version that a moment's release brings to a device that runs
// this one; "" is the one of the package.
func (mo *moment) agentOf(runs string) string {
	good := []string{"v1.1.0", "v1.2.0"}
	switch mo.agent {
	case "":
		return runs
	case another:
		return good[(slices.Index(good, runs)+1)%len(good)]
	case packaged:
		return ""
	}
	return mo.agent
}

// sumOf is the sum of a program; "" is that of the package.
func sumOf(f *fleet, version string) string {
	f.Helper()
	if version == "" {
		return ""
	}
	data, err := os.ReadFile(program(f, version))
	if err != nil {
		f.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))
}

const agentFiles = "/var/lib/gitopsd/agent"

func (m *marked) hasProgram() bool {
	_, err := os.Stat(m.Path(agentFiles + "/" + m.program + "/gitopsd"))
	return err == nil
}

// isFetching says that the program has a place, and is not there yet.
func (m *marked) isFetching() bool {
	_, err := os.Stat(m.Path(agentFiles + "/" + m.program))
	return err == nil && !m.hasProgram()
}

const onTrial = `"trial":`

// isRecorded says that the program is to take over, and was not started yet.
func (m *marked) isRecorded() bool {
	return m.state("agent.json", onTrial) && !m.state("agent.json", `"starts":`)
}

// isCounted says that this start of it is on disk.
func isCounted(start int) func(*marked) bool {
	return hasState("agent.json", fmt.Sprintf(`"starts":%d`, start))
}

// hasTakenOver says that the process of the agent runs the program.
func (m *marked) hasTakenOver() bool {
	exe, err := os.Readlink(m.Live("/proc/" + m.pid + "/exe"))
	return err == nil && strings.Contains(exe, m.program)
}

// isGivenUp says that the program is not started any more.
var isGivenUp = hasState("agent.json", `"gaveUp":`)

// gaveWay says that the program is not to run any more, because it failed.
func (m *marked) gaveWay() bool { return m.hasEnded() && !m.state("agent.json", onTrial) }

// isBack says that the files of before are there again.
func (m *marked) isBack() bool {
	return m.hasEnded() && m.reads("/etc/edge/version") != m.version
}

var momentsOfAgentCuts = []moment{
	{name: "its program is fetched", agent: another, seen: (*marked).isFetching},
	{name: "its program is in place", agent: another, seen: (*marked).hasProgram},
	{name: "its program is to take over", agent: another, seen: (*marked).isRecorded},
	{name: "its start is counted", agent: another, seen: isCounted(1)},
	{name: "it has taken over", agent: another, seen: (*marked).hasTakenOver},
	{name: "it runs hooks on trial", agent: another, seen: hasRun("/var/hooking")},
	{name: "it asks control", agent: another, asks: stepConfirm},
	{name: "its release is the current one", agent: another, seen: (*marked).isCurrent},
	{name: "it is kept", agent: another, seen: func(m *marked) bool { return m.isCurrent() && !m.state("agent.json", onTrial) }},
	{name: "it has but its last start", agent: another, seen: isCounted(1), then: []func(*marked) bool{isCounted(2)}},
	{name: "none of its starts is left", agent: another, bad: true, seen: isCounted(1), then: []func(*marked) bool{isCounted(2), isCounted(3)}},
	{name: "that of the package is to take over", agent: packaged, seen: (*marked).isRecorded},
	{name: "that of the package is counted", agent: packaged, seen: isCounted(1)},
	{name: "that of the package is on trial", agent: packaged, seen: hasRun("/var/hooking")},
	{name: "it waits for control in vain", agent: deaf, bad: true, seen: hasState("pending.json", confirms)},
	{name: "it has failed", agent: deaf, bad: true, seen: (*marked).hasEnded},
	{name: "the old one is to take over again", agent: deaf, bad: true, seen: (*marked).gaveWay},
	{name: "the old one puts back", agent: deaf, bad: true, seen: (*marked).isBack},
	{name: "it crashes", agent: crashes, bad: true, seen: isCounted(2)},
	{name: "it is given up", agent: crashes, bad: true, seen: isGivenUp},
	{name: "it was given up and has failed", agent: crashes, bad: true, seen: isGivenUp, then: []func(*marked) bool{(*marked).hasEnded}},
	{name: "it hangs", agent: hangs, bad: true, seen: isCounted(2)},
}

// TestSystemPowerCutMomentsAgent takes the power from a whole system at chosen
// moments of an update that brings the agent itself: while its program comes,
// takes over, is counted, proves itself, and while it gives way to the old one.
// In the end the agent of a good spec runs, with the files and units of that and
// no others.
func TestSystemPowerCutMomentsAgent(t *testing.T) {
	t.Parallel()
	cuts := cutsOf(agentMomentCuts)
	rnd := seeded(t)

	f := newFleet(newBench(t), t.TempDir())
	f.device("gw-1", "gateways")
	b, spec := newProgramBox(f)
	m := newMarked(b)
	state := 0
	release := func(agent string) {
		state++
		m.version, m.program = fmt.Sprintf("v2.0.%d", state), sumOf(f, agent)
		control := ""
		if agent == deaf {
			control = "http://192.0.2.1/fleet.git"
		}
		text := spec(agent, control) + "  /etc/edge/version: {content: " + m.version + ", restart: [edge.service]}\n" + unitsOf(m.version, stays) +
			fmt.Sprintf("hooks: {afterUpdating: {note: {run: [sh, -c, 'echo %[1]s > /var/hooking; sleep 0.5; echo %[1]s > /var/hooked']}}}\n", m.version)
		f.release("gateways", m.version, text)
		f.policy("gateways", m.version, 1, 0)
		f.push(m.version)
	}
	good, runs := "", ""
	becomes := func(agent string) {
		release(agent)
		good, runs = m.version, agent
	}
	becomes("v1.1.0")
	f.start("daemon", serveArgs(f.path("state"), "--repo", f.bare)...)
	b.Run("systemctl", "enable", "--now", "gitopsd-agent")
	f.is("gw-1", "Current", good)

	next := inTurn(rnd, momentsOfAgentCuts)
	for range cuts {
		mo := next()
		if mo.agent == packaged && runs == "" {
			becomes("v1.1.0")
			f.is("gw-1", "Current", good)
		}
		agent := mo.agentOf(runs)
		m.pid = b.show("MainPID", "gitopsd-agent")["gitopsd-agent"]
		m.cut(mo, rnd.IntN(2) == 0, func() { release(agent) })
		if mo.bad {
			f.failed("gw-1", "Failed", m.version, good)
		} else {
			good, runs = m.version, agent
			f.is("gw-1", "Current", good)
		}
		m.settles(mo, runs)
		m.holds(mo, errors.Join(m.has("/etc/edge/version", good), m.has("/etc/edge/agent", runs), m.only("/etc/edge", "agent", "control", "version"),
			m.has("/var/hooked", good+"\n"), m.runsUnits(good)))
	}
}

// settles waits until an agent runs and nothing half done is left in its folder.
func (m *marked) settles(mo *moment, agent string) {
	m.f.Helper()
	m.f.wait(fmt.Sprintf("the agent %q after the cut when %s", agent, mo.name), func() error {
		if left := leftovers(m.f.bench, m.Path("/var/lib/gitopsd")); len(left) > 0 {
			return fmt.Errorf("left are %q", left)
		}
		if m.state("agent.json", onTrial) || m.state("attempts.json", `"direction":`) || m.reads("/var/lib/gitopsd/pending.json") != "" {
			return fmt.Errorf("an update is on its way: %s %s %s", m.reads("/var/lib/gitopsd/agent.json"), m.reads("/var/lib/gitopsd/attempts.json"), m.reads("/var/lib/gitopsd/pending.json"))
		}
		return m.runsAs(agent)
	})
}
