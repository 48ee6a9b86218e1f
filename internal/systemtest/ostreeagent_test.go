//go:build system

package systemtest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// notingSpec has each of its hooks note on which system, and by which program,
// it was run.
const notingSpec = `onDevice: {retries: 0}
os: {image: %[2]s, driver: ostree}
%[3]shooks:
  beforeRebooting: {note: {run: [/usr/lib/edge-note, leave]}}
  afterRebooting: {note: {run: [/usr/lib/edge-note, arrive]}}
  afterUpdating: {note: {run: [/usr/lib/edge-note, prove]}, works: {order: 1, run: [sh, -c, 'test "$GITOPSD_REBOOT_PENDING" = 1 || %[4]s']}}
files:
  /etc/edge/version: {content: %[1]s}
  /etc/edge/%[1]s: {content: only here}
`

const noter = `#!/bin/sh
echo "$1 $(cat /usr/lib/edge-image) $(readlink /proc/$PPID/exe)" >> /var/notes
`

// TestSystemOSTreeAgent has releases bring an operating system and the agent at
// once. The new agent takes over on the new system, and not before. Where either
// is no good, the old agent is back first, and goes back to the old system.
func TestSystemOSTreeAgent(t *testing.T) {
	t.Parallel()
	f := newFleet(newBench(t), t.TempDir())
	f.device("gw-1", "gateways")
	b, image := newOSTreeBox(f, "gw-1")
	b.restartsSoon()
	agent := b.agents()
	release := func(version, image, runs, works string) {
		f.release("gateways", version, fmt.Sprintf(notingSpec, version, image, agent(runs), works))
		f.policy("gateways", version, 1, 0)
		f.push(version)
	}
	release("v2.0.0", image, "", "true")
	f.start("daemon", serveArgs(f.path("state"), "--repo", f.bare)...)
	f.is("gw-1", "Current", "v2.0.0")
	good, runs := "v2.0.0", ""

	for _, next := range []struct {
		version, agent, works string
		refused               bool
		reason                string // "" = it is good
		notes                 string
	}{
		{
			version: "v2.1.0", agent: "v1.1.0", works: "true",
			notes: "prove one package; leave one package; arrive v2.1.0 package; prove v2.1.0 v1.1.0",
		},
		{
			version: "v2.2.0", agent: "v1.2.0", works: "true", refused: true, reason: "came back as",
			notes: "prove v2.1.0 v1.1.0; leave v2.1.0 v1.1.0; prove v2.1.0 v1.1.0",
		},
		{
			version: "v2.3.0", agent: "v1.2.0", works: "false", reason: "afterUpdating/works",
			notes: "prove v2.1.0 v1.1.0; leave v2.1.0 v1.1.0; arrive v2.3.0 v1.1.0; prove v2.3.0 v1.2.0; " +
				"leave v2.3.0 v1.1.0; arrive v2.1.0 v1.1.0; prove v2.1.0 v1.1.0",
		},
		{
			version: "v2.4.0", agent: crashes, works: "true", reason: "it was started 3 times, and did not prove itself",
			notes: "prove v2.1.0 v1.1.0; leave v2.1.0 v1.1.0; arrive v2.4.0 v1.1.0; " +
				"leave v2.4.0 v1.1.0; arrive v2.1.0 v1.1.0; prove v2.1.0 v1.1.0",
		},
	} {
		b.Write("/var/notes", "", 0o644)
		brings := b.image(next.version)
		if next.refused {
			b.Refuse(brings)
		}
		release(next.version, brings, next.agent, next.works)
		if next.reason == "" {
			good, image, runs = next.version, brings, next.agent
			f.is("gw-1", "Current", good)
		} else {
			f.wait(next.reason, func() error { return f.ended("gw-1", "Failed", good, next.reason) })
		}
		f.wait("the agent of "+good, func() error { return b.runsAs(runs) })
		if err := errors.Join(b.booted(image), b.etc(good), b.noted(next.notes)); err != nil {
			t.Fatalf("%s: %v\n%s", next.version, err, b.log())
		}
	}
}

// noted wants the hooks to have come in this order.
func (b *box) noted(want string) error {
	data, err := os.ReadFile(b.Path("/var/notes"))
	if err != nil {
		return err
	}
	got := strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", "; ")
	got = strings.ReplaceAll(got, "/usr/bin/gitopsd", "package")
	for _, version := range []string{"v1.1.0", "v1.2.0"} {
		got = strings.ReplaceAll(got, agentFiles+"/"+sumOf(b.f, version)+"/gitopsd", version)
	}
	if got != want {
		return fmt.Errorf("hooks came as\n%s\nwant\n%s", got, want)
	}
	return nil
}
