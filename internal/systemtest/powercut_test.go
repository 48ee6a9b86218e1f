//go:build system

package systemtest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// powerCuts are in an ordinary run; GITOPSD_POWER_CUTS has more of them.
	powerCuts = 10
	// cutWithin is after a change that a cut comes, at the latest: from the
	// push to the report an update takes this long, because its hooks do and
	// its units have to stay up.
	cutWithin = 7 * time.Second
	// parts are files of each release beside its version.
	parts = 20
)

// cutsOf is how often the power goes in one test.
func cutsOf(ordinary int) int {
	if n, err := strconv.Atoi(os.Getenv("GITOPSD_POWER_CUTS")); err == nil {
		return n
	}
	return ordinary
}

// TestSystemPowerCut takes the power from a whole system at any moment of an
// update, or of the rollback of a bad one. It always comes up by itself and
// ends on a good spec: that one's files and units and no others, each running
// with what stands on the disk, and its hook run.
func TestSystemPowerCut(t *testing.T) {
	t.Parallel()
	cuts := cutsOf(powerCuts)
	rnd := seeded(t)

	f := newFleet(newBench(t), t.TempDir())
	f.device("gw-1", "gateways")
	state := 0
	// next publishes a release with files and a unit of its own beside a unit
	// that all have; a bad one fails in the hook, when its files are there, or
	// because of a unit that does not start.
	next := func(bad bool) string {
		state++
		version, run, start := fmt.Sprintf("v1.0.%d", state), "[sh, -c, 'sleep 1; echo $GITOPSD_TO > /var/hooked']", stays
		switch {
		case bad && rnd.IntN(2) == 0:
			start = "exit 1"
		case bad:
			run = "[sh, -c, 'sleep 1; exit 1']"
		}
		var spec strings.Builder
		fmt.Fprintf(&spec, "hooks:\n  beforeUpdating: {ask: {run: [sleep, '0.5']}}\n  afterUpdating: {note: {run: %s}}\n", run)
		fmt.Fprintf(&spec, "onDevice: {retries: 0}\n%sfiles:\n  /etc/edge/version: {content: %s, restart: [edge.service]}\n", unitsOf(version, start), version)
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
			b.runsUnits(good),
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

// stays is what a unit does that runs.
const stays = "exec sleep infinity"

// unitsOf is the part of a spec with a unit that all releases have, which does
// this, and one of its own. Each notes with which file it runs.
func unitsOf(version, does string) string {
	text := "units:\n"
	for name, does := range map[string]string{"edge.service": does, "only-" + version + ".service": stays} {
		unit := fmt.Sprintf("[Service]\nExecStart=/bin/sh -c 'echo %s $(cat /etc/edge/version) > /run/%s; %s'\n[Install]\nWantedBy=multi-user.target\n", version, name, does)
		text += fmt.Sprintf("  %s: {content: %q, enabled: true, state: started}\n", name, unit)
	}
	return text
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

// runsUnits wants the units of a release to run with what stands on the disk, and
// no units of another one to be left.
func (b *box) runsUnits(version string) error {
	own := "only-" + version + ".service"
	for _, name := range []string{"edge.service", own} {
		// What is in /run is only there while the machine runs.
		if got, want := b.Run("cat", "/run/"+name), version+" "+version+"\n"; got != want {
			return fmt.Errorf("%s runs with %q, want %q", name, got, want)
		}
	}
	out := b.Run("sh", "-c", "systemctl list-units --all --plain --no-legend 'only-*' edge.service; systemctl list-unit-files --no-legend 'only-*'; ls /etc/systemd/system/multi-user.target.wants | grep only-")
	var wrong []string
	for line := range strings.Lines(out) {
		unit := strings.Fields(line)[0]
		if (unit != own && unit != "edge.service") || (strings.Contains(line, " loaded ") && !strings.Contains(line, " active ")) {
			wrong = append(wrong, line)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("units of the release %s: %q", version, wrong)
	}
	return nil
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
