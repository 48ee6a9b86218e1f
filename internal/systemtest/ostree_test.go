//go:build system

package systemtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/internal/machine"
)

const ostreeConfig = `  os: {driver: ostree, remote: edge}
  boot: {timeout: 1m}
`

// newOSTreeBox is a device whose system is an image, with the package of this
// commit in each. It is up, on the image "one".
func newOSTreeBox(f *fleet, id string) (b *box, one string) {
	f.Helper()
	b = &box{Machine: machine.NewOSTree(f), f: f, id: id}
	one = b.image("one")
	b.Deploy(one)
	b.serve()
	config, err := os.ReadFile(b.Path("/etc/gitopsd/agent.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	b.Write("/etc/gitopsd/agent.yaml", string(config)+ostreeConfig, 0o644)
	b.Boot()
	b.Run("systemctl", "enable", "--now", "gitopsd-agent")
	return b, one
}

// image makes an image that says its name in /usr/lib/edge-image and has the
// program of notingSpec, and gives its commit.
func (b *box) image(name string) string {
	b.f.Helper()
	deb, err := packed()
	if err != nil {
		b.f.Fatal(err)
	}
	dir := b.f.TempDir()
	if out, err := exec.Command("dpkg-deb", "--extract", deb, dir).CombinedOutput(); err != nil {
		b.f.Fatalf("unpack the package: %v\n%s", err, out)
	}
	if err := os.Rename(filepath.Join(dir, "etc"), filepath.Join(dir, "usr/etc")); err != nil {
		b.f.Fatal(err)
	}
	writeFile(b.f, filepath.Join(dir, "usr/lib/edge-image"), name+"\n", 0o644)
	writeFile(b.f, filepath.Join(dir, "usr/lib/edge-note"), noter, 0o755)
	return b.Image(name, dir)
}

// booted wants the device to run an image, with nothing staged.
func (b *box) booted(commit string) error {
	out, err := b.Try(b.f.Context(), "ostree", "admin", "status")
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if first, _, _ := strings.Cut(out, "\n"); !strings.HasPrefix(first, "* edge "+commit+".") {
		return fmt.Errorf("the deployments are\n%swant %s booted, and next", out, commit)
	}
	return nil
}

// etc wants the files of a release in the running system, and no others.
func (b *box) etc(version string) error {
	if err := b.has("/etc/edge/version", version); err != nil {
		return err
	}
	return b.only("/etc/edge", version, "version")
}

// TestSystemOSTree replaces the whole operating system, with real reboots: by
// a good one, by one that fails its health check, by one that the boot loader
// does not boot, with the power going while it is staged and when it has booted,
// and by one that loses it in each of its boots.
func TestSystemOSTree(t *testing.T) {
	t.Parallel()
	f := newFleet(newBench(t), t.TempDir())
	f.device("gw-1", "gateways")
	release := func(version, image, hooks string) {
		t.Helper()
		f.release("gateways", version, fmt.Sprintf("os: {image: %q, driver: ostree}\nfiles:\n  /etc/edge/version: {content: %s}\n  /etc/edge/%s: {content: only here}\nhooks: {%s}\n", image, version, version, hooks))
		f.policy("gateways", version, 1, 0)
		f.push(version)
	}
	b, one := newOSTreeBox(f, "gw-1")
	f.start("daemon", serveArgs(f.path("state"), "--repo", f.bare)...)
	holds := func(when string, errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
		if t.Failed() {
			t.Fatal(b.log())
		}
	}
	// failed waits for the end of an attempt that was not there before.
	failed := func(on, reason string) {
		t.Helper()
		f.wait(reason, func() error { return f.ended("gw-1", "Failed", on, reason) })
	}
	release("v1.0.0", one, "")
	f.is("gw-1", "Current", "v1.0.0")
	holds("the image that is there", b.booted(one), b.etc("v1.0.0"))

	two := b.image("two")
	release("v1.1.0", "two", healthy("two")) // a branch
	f.is("gw-1", "Current", "v1.1.0")
	b.image("two") // the branch moves: nothing comes of it
	holds("a good one", b.booted(two), b.etc("v1.1.0"), b.lists(one, true))

	release("v1.1.1", b.image("never"), "beforeRebooting: {no: {run: ['false']}}")
	failed("v1.1.0", "beforeRebooting/no")
	holds("one that fails before the reboot", b.booted(two), b.etc("v1.1.0"), b.lists(one, true))

	three := b.image("three")
	release("v1.2.0", three, healthy("another"))
	failed("v1.1.0", "afterUpdating/healthy")
	holds("one that is not healthy", b.booted(two), b.etc("v1.1.0"))

	four := b.image("four")
	b.Refuse(four)
	release("v1.3.0", four, healthy("four"))
	failed("v1.1.0", "came back as "+two[:12])
	holds("one that does not boot", b.booted(two), b.etc("v1.1.0"), b.lists(four, false))

	five := b.image("five")
	const slow = "beforeRebooting: {wait: {run: [sleep, '5']}}, afterRebooting: {wait: {run: [sleep, '5']}}, "
	release("v1.4.0", five, slow+healthy("five"))
	f.wait("five staged", func() error { return b.says("(staged)", "ostree", "admin", "status") })
	b.PowerCut()
	b.Boot()
	f.wait("five booted", func() error { return b.says("five", "cat", "/usr/lib/edge-image") })
	b.PowerCut()
	b.Boot()
	f.is("gw-1", "Current", "v1.4.0")
	holds("one whose power was cut", b.booted(five), b.etc("v1.4.0"))

	const endless = "afterRebooting: {wait: {run: [sh, -c, 'touch /run/endless; sleep 50'], timeout: 1m}}, "
	release("v1.5.0", b.image("six"), endless+healthy("six"))
	for range 3 { // boots
		f.wait("six at work", func() error { return b.says("", "cat", "/run/endless") })
		b.PowerCut()
		b.Boot()
	}
	failed("v1.4.0", "3 boots into it without success")
	holds("one that never gets done", b.booted(five), b.etc("v1.4.0"))
}

// ended wants a device's last attempt to have ended so, for this reason.
func (f *fleet) ended(id, code, on, reason string) error {
	s, err := f.now()
	if err != nil {
		return err
	}
	if err := s.is(id, code, on); err != nil {
		return err
	}
	if why := s.devices[id].Observed.Reason; !strings.Contains(why, reason) {
		return fmt.Errorf("the reason is %q, want %q", why, reason)
	}
	return nil
}

// healthy is a release's check of the system that will stay.
func healthy(image string) string {
	return fmt.Sprintf(`afterUpdating: {healthy: {run: [sh, -c, 'test "$GITOPSD_REBOOT_PENDING" = 1 || grep -qx %s /usr/lib/edge-image']}}`, image)
}

// says wants a program inside to print something.
func (b *box) says(what string, argv ...string) error {
	out, err := b.Try(b.f.Context(), argv...)
	if err == nil && !strings.Contains(out, what) {
		err = fmt.Errorf("%q says\n%swant %q", argv, out, what)
	}
	return err
}

// lists wants a deployment of an image to be there, or not.
func (b *box) lists(commit string, want bool) error {
	if err := b.says(commit, "ostree", "admin", "status"); (err == nil) != want {
		return fmt.Errorf("deployed is %s: %t, want %t", commit, err == nil, want)
	}
	return nil
}
