//go:build system

package systemtest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// appPowerCuts are in an ordinary run; GITOPSD_POWER_CUTS has more of them.
const appPowerCuts = 3

// inTime makes an application be judged within the time between two cuts.
var inTime = strings.NewReplacer("timeout: 20s, stableFor: 3s", "timeout: 10s, stableFor: 2s", "timeout: 15s, stableFor: 2s", "timeout: 10s, stableFor: 2s")

// TestSystemPowerCutApplication takes the power at any moment of an update of
// an application, of quadlets or of compose, or of the rollback of one that does
// not become healthy. Each time the container of a good spec runs in the end,
// alone.
func TestSystemPowerCutApplication(t *testing.T) {
	t.Parallel()
	cuts := cutsOf(appPowerCuts)
	rnd := seeded(t)

	f := newFleet(newBench(t), t.TempDir())
	f.device("gw-1", "gateways")
	b := newBox(f, "gw-1")
	b.tellOnFailure()
	reg := newRegistry(b)
	state := 0
	next := func(bad bool) (version string) {
		state++
		version = fmt.Sprintf("v1.0.%d", state)
		digest, spec := reg.image("web", version, version), ""
		if rnd.IntN(2) == 0 {
			more := "Environment=N=" + version
			if bad {
				more += " MODE=end\n          [Service]\n          Restart=always\n          RestartSec=1"
			}
			spec = webSpec(reg.addr+"/web@"+digest, more)
		} else {
			more := "            environment: {N: " + version + "}"
			if bad {
				more = "            environment: {MODE: end}"
			}
			spec = composeSpec(reg.addr+"/web", version, more)
		}
		f.release("gateways", version, inTime.Replace(spec))
		f.policy("gateways", version, 1, 0)
		f.push(version)
		return version
	}
	good := next(false)
	f.start("daemon", serveArgs(f.path("state"), "--repo", f.bare)...)
	b.Run("systemctl", "enable", "--now", "gitopsd-agent")
	f.is("gw-1", "Current", good)

	for n := range cuts {
		bad := rnd.IntN(3) == 0
		version := next(bad)
		// The pull, the switch and the time in which it must stay healthy.
		time.Sleep(time.Duration(rnd.Int64N(int64(10 * time.Second))))
		b.PowerCut()
		b.Boot()
		if bad {
			f.is("gw-1", "Failed", good)
		} else {
			good = version
			f.is("gw-1", "Current", good)
		}
		if err := b.serves(good); err != nil {
			t.Fatalf("after cut %d, in %s (bad %t): %v", n+1, version, bad, err)
		}
	}
}
