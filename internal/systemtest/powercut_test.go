//go:build system

package systemtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// powerCuts are in an ordinary run; GITOPSD_POWER_CUTS has more of them.
	powerCuts = 20
	// cutWithin is after a change that a cut comes, at the latest: from the
	// push to the report an update takes this long, because its hooks do.
	cutWithin = 4 * time.Second
	// parts are files of each release beside its version.
	parts = 20
)

// TestSystemPowerCut takes the power from a whole system at any moment of an
// update, or of the rollback of a bad one. It always comes up by itself and
// ends on a good spec: that one's files and no others, with its hook run.
func TestSystemPowerCut(t *testing.T) {
	cuts := powerCuts
	if n, err := strconv.Atoi(os.Getenv("GITOPSD_POWER_CUTS")); err == nil {
		cuts = n
	}
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("GITOPSD_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("GITOPSD_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))

	f := newFleet(newBench(t), t.TempDir())
	f.device("gw-1", "gateways")
	state := 0
	// next publishes a release with files of its own; a bad one fails in the
	// hook, when its files are there.
	next := func(bad bool) string {
		state++
		version, run := fmt.Sprintf("v1.0.%d", state), "[sh, -c, 'sleep 1; echo $GITOPSD_TO > /var/hooked']"
		if bad {
			run = "[sh, -c, 'sleep 1; exit 1']"
		}
		var spec strings.Builder
		fmt.Fprintf(&spec, "hooks:\n  beforeUpdating: {ask: {run: [sleep, '0.5']}}\n  afterUpdating: {note: {run: %s}}\n", run)
		fmt.Fprintf(&spec, "files:\n  /etc/edge/version: {content: %s}\n", version)
		for n := range parts {
			fmt.Fprintf(&spec, "  /etc/edge/%s/part-%02d: {content: %q}\n", version, n, part(version))
		}
		f.release("gateways", version, spec.String())
		f.policy("gateways", version, 1, 0)
		f.push(version)
		return version
	}
	good := next(false)
	f.start("daemon", serveArgs(f.path("state"), "--repo", f.bare)...)
	b := newBox(f, "gw-1")
	b.Run("systemctl", "enable", "--now", "gitopsd-agent")
	f.is("gw-1", "Current", good)

	for n := range cuts {
		bad := rnd.IntN(3) == 0
		version := next(bad)
		for { // also more than once in the same update
			time.Sleep(time.Duration(rnd.Int64N(int64(cutWithin))))
			b.PowerCut()
			b.Boot()
			if rnd.IntN(4) != 0 {
				break
			}
		}
		if bad {
			f.is("gw-1", "Failed", good)
		} else {
			good = version
			f.is("gw-1", "Current", good)
		}
		for _, err := range []error{
			b.has("/etc/edge/version", good),
			b.hasParts(good),
			b.has("/var/hooked", good+"\n"),
			b.only("/etc/edge", good, "version"),
		} {
			if err != nil {
				t.Errorf("after cut %d, in %s (bad %t): %v", n+1, version, bad, err)
			}
		}
		if t.Failed() {
			t.Fatal(b.log())
		}
	}
}

// part is the content of a release's further files.
func part(version string) string { return strings.Repeat(version+"\n", 500) }

// hasParts wants the further files of a release, and no others.
func (b *box) hasParts(version string) error {
	var names []string
	for n := range parts {
		name := fmt.Sprintf("part-%02d", n)
		if err := b.has("/etc/edge/"+version+"/"+name, part(version)); err != nil {
			return err
		}
		names = append(names, name)
	}
	return b.only("/etc/edge/"+version, names...)
}

// only wants a folder of the machine to hold nothing but these.
func (b *box) only(dir string, names ...string) error {
	list, err := os.ReadDir(b.Path(dir))
	if err != nil {
		return err
	}
	var got []string
	for _, e := range list {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, names) {
		return fmt.Errorf("%s holds %q, want %q", dir, got, names)
	}
	return nil
}
