//go:build system

package systemtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// webSpec is a release with an application of three quadlets.
func webSpec(image, more string) string {
	return fmt.Sprintf(`files: {/etc/edge/mark: {content: mark}}
onDevice: {retries: 0}
applications:
  web:
    quadlet:
      web.container:
        content: |
          [Container]
          Image=%s
          ContainerName=web
          Volume=data.volume:/data
          Network=edge.network
          PublishPort=8080:8080
          %s
          [Install]
          WantedBy=multi-user.target
      data.volume: {content: "[Volume]\n"}
      edge.network: {content: "[Network]\n"}
    health: {http: {url: "http://127.0.0.1:8080/"}, timeout: 20s, stableFor: 3s}
`, image, more)
}

// serves wants the container to answer with a version, and to be the only one.
func (b *box) serves(version string) error {
	return errors.Join(b.answers(version), b.prints("web", "podman", "ps", "--all", "--format", "{{.Names}}"))
}

// answers wants the application to answer with a version.
func (b *box) answers(version string) error {
	out, err := b.Try(b.f.Context(), "curl", "--silent", "--show-error", "--max-time", "5", "http://127.0.0.1:8080/")
	if err != nil || out != version {
		return fmt.Errorf("the application answers %q (%v), want %q", out, err, version)
	}
	return nil
}

// prints wants a program to say these words and no others.
func (b *box) prints(want string, argv ...string) error {
	out, err := b.Try(b.f.Context(), argv...)
	if got := strings.Join(strings.Fields(out), " "); err != nil || got != want {
		return fmt.Errorf("%s says %q (%v), want %q", strings.Join(argv, " "), got, err, want)
	}
	return nil
}

// tellOnFailure adds to a failed test what the machine knows of it.
func (b *box) tellOnFailure() {
	b.f.Cleanup(func() {
		if b.f.Failed() {
			// The context of the test has ended by now.
			out, err := b.Try(context.Background(), "sh", "-c", "podman ps --all; podman images; systemctl list-jobs; systemctl status --no-pager --full --lines=0 compose-web web; "+
				"journalctl --no-pager --boot --lines=40 --unit=web --unit=edge-network; journalctl --no-pager --boot --lines=60 _SYSTEMD_UNIT=compose-web.service + UNIT=compose-web.service; "+
				"journalctl --no-pager --output=cat --unit=gitopsd-agent")
			b.f.Logf("%s (%v)", out, err)
		}
	})
}

// next releases a version and sends the device there.
func (b *box) next(version, spec string) {
	b.f.Helper()
	b.f.release("gateways", version, spec)
	b.f.policy("gateways", version, 1, 0)
	b.f.push(version)
}

// must ends the test at the first thing that is wrong.
func (b *box) must(what string, errs ...error) {
	b.f.Helper()
	for _, err := range errs {
		if err != nil {
			b.f.Errorf("%s: %v", what, err)
		}
	}
	if b.f.Failed() {
		b.f.FailNow()
	}
}

// TestSystemApplications runs an application of quadlets through its life on
// real systemd and podman, with images from a registry outside.
func TestSystemApplications(t *testing.T) {
	t.Parallel()
	f := newFleet(newBench(t), t.TempDir())
	f.device("gw-1", "gateways")
	b := newBox(f, "gw-1")
	reg := newRegistry(b)
	reg.image("web", "1", "one")
	two, bad := reg.image("web", "2", "two"), reg.image("web", "3", "three")
	b.tellOnFailure()
	b.next("v1.0.0", webSpec(reg.addr+"/web:1", ""))
	f.start("daemon", serveArgs(f.path("state"), "--repo", f.bare)...)
	b.Run("systemctl", "enable", "--now", "gitopsd-agent")
	f.is("gw-1", "Current", "v1.0.0")
	b.must("the first release", b.serves("one"))

	b.next("v2.0.0", webSpec(reg.addr+"/web@"+two, ""))
	f.is("gw-1", "Current", "v2.0.0")
	b.must("an image by digest", b.serves("two"), b.prints("one two", "cat", "/var/lib/containers/storage/volumes/systemd-data/_data/starts"))

	// B78: only the environment changes, then only a file that it reads: what
	// runs is another container each time, with that.
	web := func(property string) string {
		return strings.TrimSpace(b.Run("podman", "inspect", "--format", "{{"+property+"}}", "web"))
	}
	ran := web(".Id")
	b.next("v2.1.0", webSpec(reg.addr+"/web@"+two, "Environment=SIZE=large"))
	f.is("gw-1", "Current", "v2.1.0")
	if is := web(".Id"); is == ran || !strings.Contains(web(".Config.Env"), "SIZE=large") {
		t.Errorf("with another environment the container %s, before %s, has %s", is, ran, web(".Config.Env"))
	}
	ran = web(".Id")
	b.next("v2.2.0", strings.Replace(webSpec(reg.addr+"/web@"+two, "Environment=SIZE=large"), "{content: mark}", "{content: another, restart: [web.service]}", 1))
	f.is("gw-1", "Current", "v2.2.0")
	if is := web(".Id"); is == ran {
		t.Error("with another file the container is the same")
	}

	// It ends again and again, which Restart=always hides; the way back finds
	// no registry.
	b.next("v3.0.0", webSpec(reg.addr+"/web@"+bad, "Environment=MODE=end\n          [Service]\n          Restart=always\n          RestartSec=1"))
	b.f.wait("the bad image is there", func() error {
		_, err := b.Try(t.Context(), "podman", "image", "exists", reg.addr+"/web@"+bad)
		return err
	})
	reg.set(true)
	f.is("gw-1", "Failed", "v2.2.0")
	b.must("after the bad update", b.serves("two"))
	if log := b.log(); !strings.Contains(log, "nothing works here (it is not healthy: ") {
		t.Errorf("nothing is said of the restarts, or of the cause:\n%s", log)
	}

	// One that runs and is unwell is told in its own words, and not in those of
	// the attempt before.
	b.next("v3.1.0", strings.Replace(webSpec(reg.addr+"/web@"+two, "Environment=SIZE=large"), `:8080/"}, timeout: 20s`, `:8080/sick"}, timeout: 3s`, 1))
	f.failed("gw-1", "Failed", "v3.1.0", "v2.2.0")
	log := b.log()
	if log = log[strings.LastIndex(log, "attempt failed"):]; !strings.Contains(log, "answers 503 Service Unavailable instead of 200: two: a queue is stuck") || strings.Contains(log, "nothing works here") {
		t.Errorf("of an application that is unwell it says\n%s", log)
	}

	b.interruptedPull(reg)

	b.next("v5.0.0", webSpec(reg.addr+"/web@sha256:"+strings.Repeat("0", 64), ""))
	f.is("gw-1", "Backoff", "v4.0.0")
	b.must("a digest that is not there", b.serves("four"))

	// A repair of a file compares everything.
	b.Run("systemctl", "stop", "web.service")
	b.Write("/etc/edge/mark", "other", 0o644)
	b.f.wait("the application runs again", func() error { return b.serves("four") })

	b.PowerCut()
	b.Boot()
	b.f.wait("the application runs after a power cut", func() error { return b.serves("four") })

	asked := reg.requests()
	f.write("policies/gateways.yaml", fmt.Sprintf(policyText, "gateways", "v2.0.0", 1, 0)+"  rollbackFrom: [v4.0.0]\n")
	f.push("back to the second release")
	f.is("gw-1", "Current", "v2.0.0")
	b.must("the second release again", b.serves("two"))
	if reg.requests() != asked {
		t.Errorf("an image that was there by its digest was asked for")
	}

	b.pods(reg)
	b.next("v9.0.0", "files: {/etc/edge/mark: {content: mark}}")
	f.is("gw-1", "Current", "v9.0.0")
	b.must("without the application",
		b.prints("", "podman", "ps", "--all", "--quiet"),
		b.prints("", "podman", "pod", "ps", "--quiet"),
		b.prints("podman", "podman", "network", "ls", "--format", "{{.Name}}"),
		b.prints("systemd-data", "podman", "volume", "ls", "--format", "{{.Name}}"),
		b.prints("", "systemctl", "list-units", "--all", "--plain", "--no-legend", "web*", "edge*", "data-volume*"),
		b.prints("", "sh", "-c", "ip -brief link show type bridge; ip -brief link show type veth | grep -v host0; nft list ruleset | grep 8080 || true"))
	if _, err := os.Stat(b.Path("/etc/containers/systemd/web")); err == nil {
		t.Error("its folder stays")
	}
}
