//go:build system

package systemtest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

const (
	networkConfig = `apiVersion: gitopsd.dev/v1alpha1
kind: AgentConfig
spec:
  device: %s
  repo: {url: "http://control:%s/fleet.git", credentials: {passwordFile: /etc/edge-token}}
  interval: 1s
  heartbeat: 10m
  timeout: 3s
`
	// networkSpec has a version, a firewall, how long it waits for control, and
	// more files.
	networkSpec = `onDevice: {retries: 50, backoff: {base: 1s, cap: 2s}}
files:
  /etc/edge/version: {content: "%s"}
  /etc/edge/net.nft: {content: "table inet edge\ndelete table inet edge\n%s"}
%s
hooks:
  afterUpdating: {net: {run: [nft, --file, /etc/edge/net.nft]}}
confirm: {within: %s}
`
	hostsFile = "127.0.0.1 localhost\n%s control\n"
	// cutOff lets nothing new out. What is established goes on.
	cutOff = `table inet edge { chain out { type filter hook output priority 0; ct state established,related accept; oifname host0 drop; }; }\n`
	// atEase and briefly are how long control may be away.
	atEase, briefly = "1m", "3s"
	// cutShort is how long the network is away where nothing tells.
	cutShort = 3 * time.Second
)

// disturbed is a device whose network has faults.
type disturbed struct {
	*box
	*moments
	t    *testing.T
	from int // where the log of the present release begins
	made int
	good string
}

// TestSystemNetwork cuts, slows and loses what goes over a device's network in
// each step of an update. What has not begun waits, is no failure, and goes on
// by itself when the network is back; what has begun outlives a cut that is
// short, and is taken back by one that is long or that it has made itself. The
// same goes for credentials that change. GITOPSD_NETWORK=all has every fault in
// every step.
func TestSystemNetwork(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)

	f := newFleet(newBench(t), t.TempDir())
	f.device("gw-1", "gateways")
	d := &disturbed{box: newBox(f, "gw-1"), moments: &moments{}, t: t}
	reg := newRegistry(d.box)
	f.Cleanup(func() {
		if t.Failed() {
			t.Log(d.said())
		}
	})
	d.git.Require("git", "first")
	d.git.Intercept(d.intercept)
	_, port, _ := strings.Cut(d.repository, ":")
	d.Write("/etc/gitopsd/agent.yaml", fmt.Sprintf(networkConfig, d.id, port), 0o644)
	d.Write("/etc/edge-token", "first\n", 0o600)
	d.Write("/etc/hosts", fmt.Sprintf(hostsFile, d.Outside()), 0o644)
	d.next(atEase, "", "")
	f.start("daemon", serveArgs(f.path("state"), "--repo", f.bare)...)
	d.Run("systemctl", "enable", "--now", "gitopsd-agent")
	d.current("the first release")

	all, turn := os.Getenv("GITOPSD_NETWORK") == "all", rnd.IntN(len(faults))
	for i, o := range order {
		for n, ft := range faults {
			if all || n == (i+turn)%len(faults) {
				d.disturb(o.step, ft, rnd.IntN(2) == 0)
			}
		}
	}
	d.cutOffFor(faults[rnd.IntN(outages)])
	d.cutsItselfOff("a firewall", briefly, cutOff, "")
	// What a process knows of its names it keeps for five seconds.
	d.cutsItselfOff("a name that leads elsewhere", "7s", "", `  /etc/hosts: {content: "127.0.0.1 localhost control\n"}`)
	d.lockedOut()
	reg.login("first")
	d.login(reg, "first")
	for n, ft := range faults {
		if all || n == turn {
			d.imageOver(reg, ft)
		}
	}
	d.imageNeverComes(reg)
	d.lockedOutOfImages(reg)
}

// next publishes a release.
func (d *disturbed) next(within, rules, more string) (version string) {
	d.made++
	d.from = len(d.log())
	version = fmt.Sprintf("v1.0.%d", d.made)
	var parts strings.Builder
	for n := range 5 {
		fmt.Fprintf(&parts, "  /etc/edge/%s/part-%d: {content: %q}\n", version, n, part(version))
	}
	d.f.release("gateways", version, fmt.Sprintf(networkSpec, version, rules, parts.String()+more, within))
	d.f.policy("gateways", version, 1, 0)
	d.f.push(version)
	if d.good == "" {
		d.good = version
	}
	return version
}

// said is what the agent says since the present release was published.
func (d *disturbed) said() string {
	all := d.log()
	return all[min(d.from, len(all)):]
}

func (d *disturbed) says(when, words string) {
	d.t.Helper()
	d.f.wait(when+": the agent says "+words, func() error {
		if said := d.said(); !strings.Contains(said, words) {
			return errors.New(said)
		}
		return nil
	})
}

// current waits until the last release is the device's, by the first attempt.
func (d *disturbed) current(when string) {
	d.t.Helper()
	d.good = fmt.Sprintf("v1.0.%d", d.made)
	d.f.is(d.id, "Current", d.good)
	s, err := d.f.now()
	if err != nil {
		d.t.Fatal(err)
	}
	var outcomes []schema.Outcome
	for _, a := range s.devices[d.id].Attempts {
		if a.Version == d.good {
			outcomes = append(outcomes, a.Outcome)
		}
	}
	if len(outcomes) != 1 || outcomes[0] != schema.OutcomeOK {
		d.t.Errorf("%s: the attempts of %s ended as %q", when, d.good, outcomes)
	}
	d.whole(when)
}

// took is for the sum of them.
func (d *disturbed) took(when string, began time.Time) {
	d.t.Logf("%s: %s", when, time.Since(began).Round(time.Second/10))
}

// whole wants the last good release on the disk, and nothing of another one.
func (d *disturbed) whole(when string) {
	d.t.Helper()
	err := errors.Join(d.has("/etc/edge/version", d.good), d.only("/etc/edge", "net.nft", d.good, "version"))
	for n := range 5 {
		err = errors.Join(err, d.has(fmt.Sprintf("/etc/edge/%s/part-%d", d.good, n), part(d.good)))
	}
	if err != nil {
		d.t.Fatalf("%s: %v\n%s", when, err, d.said())
	}
}

// cut has a fault begin when the next update comes to a step.
func (d *disturbed) cut(step string, ft fault, taken bool) (begun chan error) {
	begun = make(chan error, 1)
	d.at(step, taken, func() { begun <- ft.begin(d.box) })
	return begun
}

// must takes the error of a fault.
func (d *disturbed) must(what string, err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatalf("%s: %v", what, err)
	}
}

func (d *disturbed) begins(when string, begun chan error) {
	d.t.Helper()
	select {
	case err := <-begun:
		d.must(when, err)
	case <-time.After(waitLimit):
		d.t.Fatalf("%s: that step did not come\n%s", when, d.said())
	}
}

// tells is what the agent says while it has no network.
var tells = map[string]string{
	stepPoll:      "control did not answer",
	stepFetch:     "control did not answer",
	stepAnnounce:  "the announcement was not accepted; nothing was begun",
	stepLookAgain: "control did not answer the second look; nothing was begun",
	stepConfirm:   "the update waits for control to answer",
	stepReport:    "report not accepted",
}

// disturb has one fault in one step of an update, which comes to its end.
func (d *disturbed) disturb(step string, ft fault, taken bool) {
	d.t.Helper()
	when := fmt.Sprintf("%s at %s (taken %t)", ft.name, step, taken)
	defer d.took(when, time.Now())
	begun := d.cut(step, ft, taken)
	d.next(atEase, "", "")
	d.begins(when, begun)
	if ft.outage {
		d.says(when, tells[step])
		if step == stepReport {
			d.good = fmt.Sprintf("v1.0.%d", d.made)
		}
		if step != stepConfirm {
			d.whole(when)
			d.notFailed(when)
		}
		d.must(when, ft.end(d.box))
	}
	d.current(when)
	if !ft.outage {
		d.must(when, ft.end(d.box))
	}
	if strings.Contains(d.said(), tells[stepReport]) {
		d.says(when, "reports are accepted again") // or it would be taken for one of the next update
	}
}

// notFailed wants the device to know of no failure.
func (d *disturbed) notFailed(when string) {
	d.t.Helper()
	out, _ := d.Try(d.t.Context(), "gitopsd", "agent", "status", "--output", "json")
	var is struct{ Report schema.Report }
	if err := json.Unmarshal([]byte(out), &is); err != nil {
		d.t.Fatalf("%s: %v\n%s", when, err, out)
	}
	if r := is.Report; r.Current.Version != d.good || len(r.Failures) > 0 || r.Phase == schema.PhaseError {
		d.t.Errorf("%s: the device is %s (%s) on %s, failures %v", when, r.Phase, r.Reason, r.Current.Version, r.Failures)
	}
}

// cutOffFor takes the network for longer than an update waits for control.
func (d *disturbed) cutOffFor(ft fault) {
	d.t.Helper()
	when := ft.name + " for longer than confirm"
	defer d.took(when, time.Now())
	begun := d.cut(stepConfirm, ft, false)
	version := d.next(briefly, "", "")
	d.begins(when, begun)
	d.says(when, "no answer within "+briefly)
	d.f.wait(when+": back", func() error { return d.has("/etc/edge/version", d.good) })
	d.must(when, ft.end(d.box))
	d.f.failed(d.id, "Failed", version, d.good)
	d.whole(when)
}

// cutsItselfOff publishes a release that takes the device off the network.
func (d *disturbed) cutsItselfOff(when, within, rules, more string) {
	d.t.Helper()
	defer d.took(when, time.Now())
	version := d.next(within, rules, more)
	d.f.failed(d.id, "Failed", version, d.good)
	d.says(when, "no answer within "+within)
	d.whole(when)
}

// lockedOut changes the password of the repository, and after a while the one
// that the device has.
func (d *disturbed) lockedOut() {
	d.t.Helper()
	const when = "another password of the repository"
	defer d.took(when, time.Now())
	d.from = len(d.log())
	d.git.Require("git", "second")
	const remedy = "check that the file holds a token that is still valid"
	d.says(when, remedy)
	if out, err := d.Try(d.t.Context(), "gitopsd", "agent", "status"); err == nil || !strings.Contains(out, "rejects the credentials") {
		d.t.Errorf("%s: the status is %v\n%s", when, err, out)
	}
	d.next(atEase, "", "")
	d.whole(when)
	d.Write("/etc/edge-token", "second\n", 0o600)
	d.current(when)
}

// webImage is more of a release: an application whose image says its version.
func webImage(reg *registry, version string) string {
	return fmt.Sprintf(`
applications:
  web:
    quadlet:
      web.container: {content: "[Container]\nImage=%s/web@%s\nContainerName=web\nNetwork=host\n"}
    health: {stableFor: 1s}
`, reg.addr, reg.image("web", version, version))
}

// login gives the device a password of the registry.
func (d *disturbed) login(reg *registry, password string) {
	auth := base64.StdEncoding.EncodeToString([]byte("edge:" + password))
	d.Write("/root/.config/containers/auth.json", fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, reg.addr, auth), 0o600)
}

// imageOver updates an application while the network has a fault in the middle
// of its image.
func (d *disturbed) imageOver(reg *registry, ft fault) {
	d.t.Helper()
	when := ft.name + " in the middle of an image"
	defer d.took(when, time.Now())
	begun := make(chan error, 1)
	reg.atHalf(func() { begun <- ft.begin(d.box) })
	d.next(atEase, "", webImage(reg, ft.name))
	d.begins(when, begun)
	if ft.outage {
		time.Sleep(cutShort) // the agent waits for podman, and says nothing
		d.whole(when)
		d.must(when, ft.end(d.box))
	}
	d.current(when)
	d.must(when, d.serves(ft.name))
	if !ft.outage {
		d.must(when, ft.end(d.box))
	}
}

// imageNeverComes has the registry send half of an image. The next release is
// not kept waiting.
func (d *disturbed) imageNeverComes(reg *registry) {
	d.t.Helper()
	const when = "a release after an image that never comes"
	stalled, over := make(chan error, 1), make(chan struct{})
	d.f.Cleanup(func() { close(over) })
	reg.atHalf(func() {
		stalled <- nil
		<-over
	})
	d.next(atEase, "", webImage(reg, "stuck"))
	d.begins(when, stalled)
	defer d.took(when, time.Now())
	d.next(atEase, "", "")
	d.current(when)
}

// lockedOutOfImages changes the password of the registry, and then the one that
// the device has.
func (d *disturbed) lockedOutOfImages(reg *registry) {
	d.t.Helper()
	const when = "another password of the registry"
	defer d.took(when, time.Now())
	reg.login("second")
	d.next(atEase, "", webImage(reg, "after"))
	d.says(when, "unauthorized")
	d.whole(when)
	d.login(reg, "second")
	d.current(when)
	d.must(when, d.serves("after"))
}
