//go:build system

package systemtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// byHand is a project that somebody runs by podman-compose alone.
const byHand = `services:
  web:
    image: "%[1]s/web:${TAG}"
    container_name: web
    ports: ["8080:8080"]
    volumes: ["data:/data", "/srv/web:/srv/web:ro"]
    env_file: .env
    restart: always
    depends_on: [one, two]
  one: {image: "%[1]s/web:2", environment: ["WORDS=one 'and more'"], restart: always}
  two: {image: "%[1]s/web:2", restart: always}
volumes: {data: {}}
`

// TestSystemComposeTakenOver has a project that runs by hand become an
// application without a restart, fail without one, and be an application as any
// other from then on.
func TestSystemComposeTakenOver(t *testing.T) {
	t.Parallel()
	f := newFleet(newBench(t), t.TempDir())
	f.policy("gateways", "v1.0.0", 1, 0)
	f.release("gateways", "v1.0.0", "onDevice: {retries: 0}")
	b := newBox(f, "gw-1")
	b.tellOnFailure()
	reg := newRegistry(b)
	reg.image("web", "1", "one")
	reg.image("web", "2", "two")
	b.Write("/opt/shop/compose.yaml", fmt.Sprintf(byHand, reg.addr), 0o644)
	b.Write("/opt/shop/.env", "TAG=1\nWORDS=a b\n", 0o644)
	b.Run("sh", "-c", "cd /opt/shop && podman-compose up --detach")
	f.wait("the project by hand", func() error { return b.answers("one") })
	containers := func() string {
		return b.Run("sh", "-c", "podman container inspect --format '{{.Id}} {{.State.StartedAt}}' web shop_one_1 shop_two_1")
	}
	were := containers()
	reg.image("web", "1", "moved") // which nobody has asked for

	doc := b.Run("sh", "-c", "gitopsd agent import --device gw-1 --label role=gateways --application shop 2>/dev/null")
	doc = strings.Replace(doc, "      shop:\n", "      shop:\n        health: {command: ['true'], stableFor: 2s}\n", 1)
	f.write("devices/gw-1.yaml", doc)
	code, spec := f.run("render", "gw-1", f.tree)
	for _, c := range []struct{ what, spec, want string }{
		{"as it is", spec, ""},
		{"with another folder", strings.Replace(spec, "/srv/web:/srv/web", "/srv/none:/srv/web", 1), "cannot applications shop (the project shop has containers that the agent has not made and cannot take over: podman-compose would make the container "},
	} {
		b.Write("/root/gw-1.yaml", c.spec, 0o600)
		out, err := b.Try(t.Context(), "gitopsd", "agent", "diff", "--spec", "/root/gw-1.yaml")
		if code != 0 || err == nil || !strings.Contains(out, "create /etc/containers/compose/shop/compose.yaml") ||
			strings.Contains(out, "applications shop") != (c.want != "") || !strings.Contains(out, c.want) {
			t.Errorf("%s it differs (%d, %v) by\n%s\nof\n%s", c.what, code, err, out, c.spec)
		}
	}
	b.must("looked at only", b.prints("", "sh", "-c", "ls -d /srv/none 2>/dev/null || true"), b.prints("podman shop_default", "podman", "network", "ls", "--format", "{{.Name}}"))

	// It would be another one, and a bad one at that.
	bad := strings.Replace(doc, "['true']", "['false'], timeout: 1s", 1)
	f.write("devices/gw-1.yaml", strings.Replace(bad, "TAG=1", "TAG=2", 1))
	f.push("gw-1 as it does not run")
	f.start("daemon", serveArgs(f.path("state"), "--repo", f.bare)...)
	b.Run("systemctl", "enable", "--now", "gitopsd-agent")
	f.wait("a refusal", func() error {
		if !strings.Contains(b.log(), "cannot take over") {
			return errors.New("the agent has refused nothing")
		}
		return nil
	})
	if now := containers(); now != were {
		t.Errorf("the containers became\n%s\nof\n%s", now, were)
	}

	// It is not to their liking, and so it is nobody's again.
	f.write("devices/gw-1.yaml", bad)
	f.push("gw-1 as nobody likes it")
	f.is("gw-1", "Failed", "")
	b.must("after a failure", b.answers("one"), b.unitless())

	f.write("devices/gw-1.yaml", doc)
	f.push("gw-1 as it is")
	f.is("gw-1", "Current", "v1.0.0")
	b.must("taken over", b.answers("one"), b.prints("active", "systemctl", "is-active", "compose-shop.service"),
		b.prints("", "sh", "-c", "ls -d /run/systemd/system/compose-* 2>/dev/null || true"))
	if now := containers(); now != were {
		t.Errorf("the containers became\n%s\nof\n%s", now, were)
	}
	if log := b.log(); strings.Contains(log, "made anew") || strings.Contains(log, "drift repaired") || !strings.Contains(log, "it is not healthy") {
		t.Errorf("the agent says\n%s", log)
	}

	b.Run("systemctl", "restart", "compose-shop.service")
	f.wait("a restart", func() error { return b.answers("one") })
	if now := containers(); now == were {
		t.Errorf("a restart has left\n%s", now)
	}
	// What an agent leaves that was killed in the moment of a takeover.
	b.Write("/run/systemd/system/compose-shop.service.d/zz-gitopsd-idle.conf", "[Service]\nExecStartPre=\nExecStart=\nExecStart=true\nExecStop=\nExecStopPost=\n", 0o644)
	b.Run("systemctl", "daemon-reload")
	f.write("devices/gw-1.yaml", strings.Replace(doc, "TAG=1", "TAG=2", 1))
	f.push("another tag")
	f.wait("the update", func() error { return b.answers("two") })
	f.is("gw-1", "Current", "v1.0.0")
	b.must("on the volume of before", b.prints("one one two", "cat", "/var/lib/containers/storage/volumes/shop_data/_data/starts"))
	f.device("gw-1", "gateways")
	f.push("without it")
	f.wait("nothing of it is left", func() error {
		return errors.Join(b.prints("", "podman", "ps", "--all", "--quiet"), b.prints("", "podman", "pod", "ps", "--quiet"), b.unitless(),
			b.prints("podman", "podman", "network", "ls", "--format", "{{.Name}}"))
	})
}

// unitless wants no unit of a compose file to be known, or to be kept from its
// work.
func (b *box) unitless() error {
	return b.prints("", "sh", "-c", "systemctl list-units --all --plain --no-legend 'compose-*'; ls -d /run/systemd/system/compose-* 2>/dev/null || true")
}
