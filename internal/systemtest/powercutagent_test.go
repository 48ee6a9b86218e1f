//go:build system

package systemtest

import (
	"fmt"
	"testing"
	"time"
)

// agentPowerCuts are in an ordinary run; GITOPSD_POWER_CUTS has more of them.
const agentPowerCuts = 3

// TestSystemPowerCutAgent takes the power at any moment of an update that
// brings the agent itself, or of the way back from one that cannot reach
// control or does not even run. Each time the agent of a good spec runs in the
// end, from a file that is whole, with nothing left of others.
func TestSystemPowerCutAgent(t *testing.T) {
	t.Parallel()
	cuts := cutsOf(agentPowerCuts)
	rnd := seeded(t)

	f := newFleet(newBench(t), t.TempDir())
	f.device("gw-1", "gateways")
	b, spec := newProgramBox(f)
	state := 0
	next := func(agent, control string) (version string) {
		state++
		version = fmt.Sprintf("v2.0.%d", state)
		f.release("gateways", version, spec(agent, control))
		f.policy("gateways", version, 1, 0)
		f.push(version)
		return version
	}
	agents := []string{"v1.1.0", "v1.2.0", ""}
	good, agent := next("v1.1.0", ""), "v1.1.0"
	f.start("daemon", serveArgs(f.path("state"), "--repo", f.bare)...)
	b.Run("systemctl", "enable", "--now", "gitopsd-agent")
	f.is("gw-1", "Current", good)

	for n := range cuts {
		tried, control, bad := agents[rnd.IntN(len(agents))], "", false
		switch rnd.IntN(4) {
		case 0:
			tried, control, bad = "v1.3.0", "http://192.0.2.1/fleet.git", true
		case 1:
			tried, bad = "v1.4.0", true
		}
		version := next(tried, control)
		// The fetch, the new program's start and its confirmation; with the way
		// back, or the three starts of one that ends at once.
		within := 3 * time.Second
		if bad {
			within = 7 * time.Second
		}
		time.Sleep(time.Duration(rnd.Int64N(int64(within))))
		b.PowerCut()
		b.Boot()
		if bad {
			f.is("gw-1", "Failed", good)
		} else {
			good, agent = version, tried
			f.is("gw-1", "Current", good)
		}
		f.wait(fmt.Sprintf("the agent %q after cut %d, in %s with %q (bad %t)", agent, n+1, version, tried, bad), func() error { return b.runsAs(agent) })
		if err := b.has("/etc/edge/agent", agent); err != nil {
			t.Fatal(err)
		}
	}
}
