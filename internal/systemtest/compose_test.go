//go:build system

package systemtest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// composeSpec is a release with an application of compose, whose image has the
// tag as a variable.
func composeSpec(image, tag, more string) string {
	return fmt.Sprintf(`files: {/etc/edge/mark: {content: mark}}
onDevice: {retries: 0}
applications:
  web:
    compose:
      content: |
        services:
          web:
            image: "%s:${TAG}"
            container_name: web
            networks: [front]
            ports: ["8080:8080"]
            restart: always
            volumes: [data:/data]
%s
        networks: {front: {}}
        volumes: {data: {}}
      env: {TAG: "%s"}
    health: {http: {url: "http://127.0.0.1:8080/"}, timeout: 15s, stableFor: 2s}
`, image, more, tag)
}

// TestSystemCompose runs an application of compose through its life on real
// systemd, podman and podman-compose.
func TestSystemCompose(t *testing.T) {
	t.Parallel()
	f := newFleet(newBench(t), t.TempDir())
	f.device("gw-1", "gateways")
	b := newBox(f, "gw-1")
	reg := newRegistry(b)
	reg.image("web", "1", "one")
	reg.image("web", "2", "two")
	image := reg.addr + "/web"
	b.tellOnFailure()

	check := `
            healthcheck: {test: ["CMD", "/app", "check"], interval: 1s, retries: 2}`
	debug := `
          debug: {image: "` + image + `:2", profiles: [debug], networks: [front]}`
	b.next("v1.0.0", composeSpec(image, "1", check+debug+`
          more: {image: "`+image+`:2", networks: [front], restart: always}`))
	f.start("daemon", serveArgs(f.path("state"), "--repo", f.bare)...)
	b.Run("systemctl", "enable", "--now", "gitopsd-agent")
	f.is("gw-1", "Current", "v1.0.0")
	running := []string{"podman", "ps", "--all", "--sort=names", "--format={{.Names}} {{.State}}"}
	b.must("the first release", b.answers("one"), b.prints("web running web_more_1 running", running...))

	// B81: what a profile has not started is as wanted. What somebody has started
	// by it is nobody's orphan when something else is put right, for which
	// podman-compose makes the others anew, because it sees another set of services.
	b.Run("podman-compose", "--project-name=web", "--file=/etc/containers/compose/web/compose.yaml", "--profile=debug", "up", "--detach", "debug")
	b.Run("podman", "rm", "--force", "web_more_1")
	b.Write("/etc/edge/mark", "other", 0o644)
	f.wait("what was removed runs again, and nothing else is gone", func() error {
		return b.prints("web running web_debug_1 running web_more_1 running", running...)
	})

	// The service that is not there any more goes, and an update begins as the file
	// says: without what was started by hand.
	b.next("v2.0.0", composeSpec(image, "2", check+debug))
	f.is("gw-1", "Current", "v2.0.0")
	b.must("another tag", b.serves("two"), b.prints("one one two", "cat", "/var/lib/containers/storage/volumes/web_data/_data/starts"))

	sick := strings.Replace(composeSpec(image, "1", check+`
            environment: {MODE: sick}`), "timeout: 15s", "timeout: 5s", 1)
	b.next("v2.1.0", strings.ReplaceAll(sick, "front", "back"))
	f.is("gw-1", "Failed", "v2.0.0")
	b.must("after a container that its check does not like", b.serves("two"), b.prints("podman web_front", "podman", "network", "ls", "--format", "{{.Name}}"))
	if log := b.log(); !strings.Contains(log, "the container web is unhealthy") {
		t.Errorf("nothing is said of the check:\n%s", log)
	}

	// One service is well, and one ends again and again, which podman hides and
	// podman-compose does not tell. The way back finds no registry.
	b.next("v3.0.0", composeSpec(image, "1", `
          worker:
            image: "`+image+`:2"
            network_mode: host
            restart: always
            environment: {MODE: end}`))
	f.wait("the update has started", func() error {
		return b.prints("web_worker_1", "podman", "ps", "--all", "--filter=name=worker", "--format={{.Names}}")
	})
	reg.set(true)
	f.is("gw-1", "Failed", "v2.0.0")
	b.must("after the bad update", b.serves("two"))
	if log := b.log(); !strings.Contains(log, "web_worker_1 was restarted") || !strings.Contains(log, "nothing works here") {
		t.Errorf("nothing is said of the restarts:\n%s", log)
	}
	reg.set(false)

	// A repair of a file compares everything.
	b.Run("podman", "stop", "web")
	b.Write("/etc/edge/mark", "other", 0o644)
	f.wait("the application runs again", func() error { return b.serves("two") })

	boot := b.AwaitBoot("")
	b.Run("systemctl", "--no-block", "reboot")
	b.AwaitBoot(boot)
	f.wait("the application runs after a reboot", func() error { return b.serves("two") })
	b.PowerCut()
	b.Boot()
	f.wait("the application runs after a power cut", func() error { return b.serves("two") })

	b.next("v4.0.0", webSpec(image+":1", ""))
	f.is("gw-1", "Current", "v4.0.0")
	b.must("as quadlets", b.serves("one"), b.prints("", "podman", "pod", "ps", "--quiet"))
	b.next("v5.0.0", composeSpec(image, "1", ""))
	f.is("gw-1", "Current", "v5.0.0")
	b.must("as compose again", b.serves("one"))

	// Another project names its network. Both may be new, or change, at once, and
	// the network stays until nobody names it.
	names := func(more string) string {
		return `
  shop:
    compose:
      content: |
        services: {web: {image: "` + image + `:1", networks: [front], restart: always}}
        networks: {front: {external: true, name: web_front}}
        # ` + more + `
    health: {timeout: 15s, stableFor: 2s}
`
	}
	b.next("v5.1.0", composeSpec(image, "2", "")+names("new"))
	f.is("gw-1", "Current", "v5.1.0")
	b.next("v5.2.0", composeSpec(image, "1", "")+names("changed"))
	f.is("gw-1", "Current", "v5.2.0")
	b.Run("podman", "network", "create", "--label", "io.podman.compose.project=web", "web_default")
	b.next("v5.3.0", "onDevice: {retries: 0}\napplications:"+names("alone"))
	f.is("gw-1", "Current", "v5.3.0")
	b.must("the network is named still", b.prints("shop_web_1 running", running...), b.prints("podman web_front", "podman", "network", "ls", "--format", "{{.Name}}"))

	t.Log(b.Run("sh", "-c", "grep RssAnon /proc/$(systemctl show --value --property=MainPID gitopsd-agent)/status"))
	b.next("v6.0.0", "files: {/etc/edge/mark: {content: mark}}")
	f.is("gw-1", "Current", "v6.0.0")
	b.must("without the application",
		b.prints("", "podman", "ps", "--all", "--quiet"),
		b.prints("", "podman", "pod", "ps", "--quiet"),
		b.prints("podman", "podman", "network", "ls", "--format", "{{.Name}}"),
		b.prints("systemd-data web_data", "ls", "/var/lib/containers/storage/volumes"),
		b.prints("", "systemctl", "list-units", "--all", "--plain", "--no-legend", "compose-*", "web*"))
	for _, p := range []string{"/etc/containers/compose", "/etc/systemd/system/multi-user.target.d"} {
		if _, err := os.Stat(b.Path(p)); err == nil {
			t.Errorf("the folder %s stays", p)
		}
	}
}
