//go:build system

package systemtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// appPowerCuts are in an ordinary run; GITOPSD_POWER_CUTS has more of them.
const appPowerCuts = 3

// inTime makes an application be judged within the time between two cuts.
var inTime = strings.NewReplacer("timeout: 20s, stableFor: 3s", "timeout: 10s, stableFor: 2s", "timeout: 15s, stableFor: 2s", "timeout: 10s, stableFor: 2s")

// appKind is a way to write the application of the tests.
type appKind struct {
	spec, bad func(image, version string) string
	pods      string // that it has, with the number of their containers
}

var appKinds = []appKind{
	{
		func(image, version string) string { return webSpec(image+":"+version, "Environment=N="+version) },
		func(image, version string) string {
			return webSpec(image+":"+version, "Environment=MODE=end\n          [Service]\n          Restart=always\n          RestartSec=1")
		},
		"",
	},
	{
		func(image, version string) string {
			return composeSpec(image, version, "            environment: {N: "+version+"}")
		},
		func(image, version string) string {
			return composeSpec(image, version, "            environment: {MODE: end}")
		},
		"pod_web 1",
	},
	{
		func(image, version string) string { return podSpec(image+":"+version, "") },
		func(image, version string) string { return podSpec(image+":"+version, "Environment=MODE=sick") },
		"systemd-edge 2",
	},
	{
		func(image, version string) string { return kubeSpec(image+":"+version, "") },
		func(image, version string) string {
			return kubeSpec(image+":"+version, "env: [{name: MODE, value: end}]")
		},
		"edge 2",
	},
}

// TestSystemPowerCutApplication takes the power at any moment of an update of
// an application, of quadlets, pods or of compose, or of the rollback of one that
// does not become healthy. Each time the containers of a good spec run in the
// end, alone.
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
	next := func(bad bool) (version, pods string) {
		state++
		version = fmt.Sprintf("v1.0.%d", state)
		reg.image("web", version, version)
		kind := appKinds[rnd.IntN(len(appKinds))]
		write := kind.spec
		if bad {
			write = kind.bad
		}
		f.release("gateways", version, inTime.Replace(write(reg.addr+"/web", version)))
		f.policy("gateways", version, 1, 0)
		f.push(version)
		return version, kind.pods
	}
	good, pods := next(false)
	f.start("daemon", serveArgs(f.path("state"), "--repo", f.bare)...)
	b.Run("systemctl", "enable", "--now", "gitopsd-agent")
	f.is("gw-1", "Current", good)

	for n := range cuts {
		bad := rnd.IntN(3) == 0
		version, itsPods := next(bad)
		// The pull, the switch and the time in which it must stay healthy.
		time.Sleep(time.Duration(rnd.Int64N(int64(10 * time.Second))))
		b.PowerCut()
		b.Boot()
		if bad {
			f.is("gw-1", "Failed", good)
		} else {
			good, pods = version, itsPods
			f.is("gw-1", "Current", good)
		}
		// What the device itself could not start at its boot, the agent starts: podman
		// falls over some of what a cut leaves of its own.
		f.wait(fmt.Sprintf("the application after cut %d, in %s (bad %t)", n+1, version, bad), func() error {
			// A rule that podman left of another container would keep the port from this one.
			return errors.Join(b.answers(good), b.inPods(pods), b.prints("1", "sh", "-c", "nft list ruleset | grep --count 'dport 8080 dnat '"))
		})
	}
}

// inPods wants these pods and no others, and no container outside of them but
// the one of an application without a pod, and the one that keeps a document.
func (b *box) inPods(pods string) error {
	alone := map[string]string{"": "web", "edge 2": "service"}[pods]
	return errors.Join(b.prints(pods, "podman", "pod", "ps", "--format", "{{.Name}} {{.NumberOfContainers}}"),
		b.prints(alone, "sh", "-c", "podman ps --all --format '{{.PodName}} {{.Names}}' | sed -n 's/^ //p' | sed 's/.*-service$/service/'"))
}
