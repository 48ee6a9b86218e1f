//go:build system

package systemtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ostreeMomentCuts are in an ordinary run; GITOPSD_POWER_CUTS has more of them.
const ostreeMomentCuts = 3

// ostreeMomentSpec has a version, an image, an agent, and what has to work on the
// system that is to stay.
const ostreeMomentSpec = `onDevice: {retries: 0}
os: {image: %[2]s, driver: ostree}
%[3]shooks:
  beforeRebooting: {note: {run: [sh, -c, 'echo %[1]s > /var/leaving; sleep 0.3']}}
  afterRebooting: {note: {run: [sh, -c, 'echo %[1]s > /var/rebooted; sleep 0.3']}}
  afterUpdating: {note: {run: [sh, -c, 'echo %[1]s > /var/hooking; sleep 0.3; test "$GITOPSD_REBOOT_PENDING" = 1 || %[4]s; echo %[1]s > /var/hooked']}}
files:
  /etc/edge/version: {content: %[1]s}
  /etc/edge/%[1]s: {content: only here}
`

// running is the version whose image runs; "" = the machine is between two boots.
func (m *marked) running() string {
	name, err := os.ReadFile(m.Live("/usr/lib/edge-image"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

func (m *marked) isStarted() bool { return m.running() == m.version }

// isStartedBack says that the image of before runs again.
func (m *marked) isStartedBack() bool {
	return m.state("pending.json", rebootIsBack) && m.running() != "" && !m.isStarted()
}

// isNext says that the boot loader would boot the image.
func (m *marked) isNext() bool { return strings.Contains(m.Path("/usr"), m.image) }

// isThere says that something of the running machine matches a path.
func isThere(pattern string) func(*marked) bool {
	return func(m *marked) bool {
		found, err := filepath.Glob(m.Live(strings.Replace(pattern, "IMAGE", m.image, 1)))
		return err == nil && len(found) > 0
	}
}

var momentsOfOSTreeCuts = []moment{
	{name: "it is pulled", seen: isThere("/sysroot/ostree/repo/state/IMAGE.commitpartial")},
	{name: "it is to be staged", seen: func(m *marked) bool { return m.state("pending.json", m.image) }},
	{name: "it is unpacked", seen: isThere("/sysroot/ostree/deploy/edge/deploy/IMAGE.*")},
	{name: "it is staged", seen: isThere("/run/ostree/staged-deployment")},
	{name: "hooks run before the reboot", seen: hasRun("/var/leaving")},
	{name: "the reboot is asked for", seen: hasState("pending.json", rebootAsked)},
	{name: "the boot loader has it", seen: (*marked).isNext},
	{name: "it boots", seen: (*marked).isStarted},
	{name: "its boot is on disk", seen: hasState("pending.json", `"boots":1`)},
	{name: "hooks run after the reboot", seen: hasRun("/var/rebooted")},
	{name: "it is confirmed", seen: hasState("pending.json", confirms)},
	{name: "it is the current one", seen: (*marked).isCurrent},
	{name: "it boots, twice", seen: (*marked).isStarted, then: []func(*marked) bool{(*marked).isStarted}},
	{name: "it has failed", bad: true, seen: (*marked).hasEnded},
	{name: "the boot loader has the old one", bad: true, seen: func(m *marked) bool { return m.hasEnded() && !m.isNext() }},
	{name: "the reboot back is asked for", bad: true, seen: hasState("pending.json", rebootIsBack)},
	{name: "the old one boots", bad: true, seen: (*marked).isStartedBack},
	{name: "files are put back", bad: true, seen: (*marked).isBack},
	{name: "its agent is to take over", agent: another, seen: (*marked).isRecorded},
	{name: "its agent is counted", agent: another, seen: isCounted(1)},
	{name: "it is the current one, and its agent on trial", agent: another, seen: (*marked).isCurrent},
	{name: "its agent gives way because of it", agent: another, bad: true, seen: (*marked).gaveWay},
	{name: "its agent is given up", agent: crashes, bad: true, seen: isGivenUp},
	{name: "the old one boots because of the agent", agent: crashes, bad: true, seen: (*marked).isStartedBack},
}

// TestSystemPowerCutMomentsOSTree takes the power from a whole system at chosen
// moments of an update of the operating system by ostree, with its real
// reboots, some of them with an agent in the same release. It ends on a good
// image with the agent, the files and the hooks of that, and nothing is staged.
func TestSystemPowerCutMomentsOSTree(t *testing.T) {
	t.Parallel()
	cuts := cutsOf(ostreeMomentCuts)
	rnd := seeded(t)

	f := newFleet(newBench(t), t.TempDir())
	f.device("gw-1", "gateways")
	b, image := newOSTreeBox(f, "gw-1")
	b.restartsSoon()
	m, agent := newMarked(b), b.agents()
	good, runs := "v1.0.0", ""
	release := func(runs, works string) {
		f.release("gateways", m.version, fmt.Sprintf(ostreeMomentSpec, m.version, m.image, agent(runs), works))
		f.policy("gateways", m.version, 1, 0)
		f.push(m.version)
	}
	m.version, m.image = good, image
	release(runs, "true")
	f.start("daemon", serveArgs(f.path("state"), "--repo", f.bare)...)
	f.is("gw-1", "Current", good)

	next := inTurn(rnd, momentsOfOSTreeCuts)
	for n := range cuts {
		mo := next()
		tried := mo.agentOf(runs)
		m.version, m.program = fmt.Sprintf("v1.0.%d", n+1), sumOf(f, tried)
		m.image = b.image(m.version)
		works := "true"
		if mo.bad && mo.agent != crashes {
			works = "exit 1"
		}
		m.cut(mo, rnd.IntN(2) == 0, func() { release(tried, works) })
		if mo.bad {
			f.failed("gw-1", "Failed", m.version, good)
		} else {
			good, image, runs = m.version, m.image, tried
			f.is("gw-1", "Current", good)
		}
		m.settles(mo, runs)
		m.holds(mo, errors.Join(b.booted(image), b.etc(good), m.has("/var/hooked", good+"\n")))
	}
}
