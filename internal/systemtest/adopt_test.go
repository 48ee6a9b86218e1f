//go:build system

package systemtest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
)

// adopted is what runs on the machine before any agent does, asItIs tells all
// of it in one text, and everyFile what else might change.
var (
	adopted = []string{"web.service", "edge.service", "tool.service"}
	asItIs  = `cd /etc; find containers/systemd systemd/system edge.conf -type f -o -type l | grep -v gitopsd | sort | xargs ls -ld --time-style=+ | sed 's/^\(\S*\) *[0-9]*/\1/'
find containers/systemd systemd/system edge.conf -type f | sort | xargs sha256sum
systemctl is-enabled edge.service tool.service
systemctl is-active web.service edge.service tool.service
podman ps --format '{{.Names}} {{.Image}}'`
	everyFile = `find /etc /usr /root -xdev -newer /root/gitopsd.deb -type f ! -path '*gitopsd-agent.service' | sort | xargs --no-run-if-empty sha256sum; podman images --quiet | sort`
)

// TestSystemAdopted writes down a machine that runs, has an agent look at what
// would become of it, and then take it over: nothing restarts, and nothing
// differs. What releases change after that is undone by a reset, to what was
// there in the beginning.
func TestSystemAdopted(t *testing.T) {
	t.Parallel()
	f := newFleet(newBench(t), t.TempDir())
	f.policy("gateways", "v1.0.0", 1, 0)
	f.release("gateways", "v1.0.0", "onDevice: {retries: 0}\napplications: {web: {health: {stableFor: 2s}}}")
	b := newBox(f, "gw-1")
	b.tellOnFailure()
	reg := newRegistry(b)
	reg.image("web", "1", "one")
	reg.image("web", "2", "two")
	b.Write("/etc/containers/systemd/web.container", fmt.Sprintf("[Container]\nImage=%s/web:1\nContainerName=web\nVolume=data.volume:/data\nNetwork=host\n[Install]\nWantedBy=multi-user.target\n", reg.addr), 0o644)
	b.Write("/etc/containers/systemd/data.volume", "[Volume]\n", 0o644)
	b.Write("/etc/systemd/system/edge.service", deviceUnit, 0o644)
	b.Write("/etc/systemd/system/edge.service.d/10-memory.conf", "[Service]\nMemoryMax=200M\n", 0o644)
	b.Write("/usr/lib/systemd/system/tool.service", deviceUnit, 0o644)
	b.Write("/etc/edge.conf", "one\n", 0o640)
	b.Run("podman", "pull", "--quiet", reg.addr+"/web:1")
	b.Run("systemctl", "daemon-reload")
	b.Run("systemctl", "enable", "edge.service", "tool.service")
	b.Run(append([]string{"systemctl", "start"}, adopted...)...)
	before, ran := b.Run("sh", "-c", asItIs), b.show("InvocationID", adopted...)

	doc := b.Run("sh", "-c", "gitopsd agent import --device gw-1 --label role=gateways --application web --unit edge.service --unit tool.service --file /etc/edge.conf --secrets 2>/dev/null")
	f.write("devices/gw-1.yaml", doc)
	code, spec := f.run("render", "gw-1", f.tree)
	b.Write("/root/gw-1.yaml", spec, 0o600)
	if out, err := b.Try(t.Context(), "gitopsd", "agent", "diff", "--spec", "/root/gw-1.yaml"); code != 0 || err != nil {
		t.Errorf("what was just written down differs (%v):\n%s\nof\n%s", err, out, spec)
	}

	// What is to become of it later is only looked at first.
	changed := doc
	for was, is := range map[string]string{
		"/web:1\n": "/web:2\n", "MemoryMax=200M": "MemoryMax=300M",
		"          one\n":            "          two\n        restart: [web.service]\n",
		"          web.container:\n": "          web.container.d/10-label.conf: {content: \"[Container]\\nLabel=edge=yes\\n\"}\n          web.container:\n",
		"      tool.service:\n":      "      web.service: {dropIns: {10-memory: {content: \"[Service]\\nMemoryMax=400M\\n\"}}}\n      own.service:\n        content: |\n          [Unit]\n          Requires=more-network.service\n          [Service]\n          ExecStart=/bin/sleep infinity\n        state: started\n      tool.service:\n        state: stopped\n        dropIns: {own: {content: \"[Service]\\nMemoryMax=100M\\n\"}}\n",
		"    applications:\n":        "    applications:\n      more:\n        health: {stableFor: 2s}\n        quadlet:\n          more.network: {content: \"[Network]\\n\"}\n",
	} {
		if strings.Count(changed, was) != 1 {
			t.Fatalf("the document has not one %q:\n%s", was, doc)
		}
		changed = strings.Replace(changed, was, is, 1)
	}
	f.write("devices/gw-1.yaml", strings.Replace(changed, "    applications:\n", "    onDevice: {mode: observe}\n    applications:\n", 1))
	f.push("what gw-1 would become")
	f.start("daemon", serveArgs(f.path("state"), "--repo", f.bare)...)
	files := b.Run("sh", "-c", everyFile)
	b.Run("systemctl", "enable", "--now", "gitopsd-agent")
	f.is("gw-1", "Observing", "v0.0.0")
	out, err := b.Try(t.Context(), "gitopsd", "agent", "diff")
	for _, want := range []string{"change /etc/edge.conf", "change /etc/containers/systemd/web.container", "create units own.service",
		"change units tool.service (it is active instead of stopped)", "create applications more", "create applications web"} {
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("what it observes (%v) lacks %q:\n%s", err, want, out)
		}
	}
	if now := b.Run("sh", "-c", asItIs); now != before || !maps.Equal(b.show("InvocationID", adopted...), ran) {
		t.Errorf("by being looked at the machine became\n%s\nof\n%s", now, before)
	}
	if now := b.Run("sh", "-c", everyFile); now != files {
		t.Errorf("by being looked at the machine has the files\n%s\nand had\n%s", now, files)
	}

	reg.set(true) // what runs needs no registry
	f.write("devices/gw-1.yaml", doc)
	f.push("gw-1 as it is")
	f.is("gw-1", "Current", "v1.0.0")
	reg.set(false)
	if is := b.show("InvocationID", adopted...); !maps.Equal(is, ran) {
		t.Errorf("what ran as it was written down was started again: %v, was %v", is, ran)
	}
	if now := b.Run("sh", "-c", asItIs); now != before {
		t.Errorf("by the takeover the machine became\n%s\nof\n%s", now, before)
	}
	if out, err = b.Try(t.Context(), "gitopsd", "agent", "diff"); err != nil {
		t.Errorf("the machine differs from what was written down (%v)\n%s", err, out)
	}

	// What does not run any more is drift, for who asks too.
	b.Run("gitopsd", "agent", "hold", "--reason", "looking")
	b.Run("systemctl", "stop", "web.service")
	out, err = b.Try(t.Context(), "gitopsd", "agent", "diff", "--current")
	if want := "change applications web (web.service is inactive)"; err == nil || !strings.Contains(out, want) {
		t.Errorf("with web stopped (%v) the difference lacks %q:\n%s", err, want, out)
	}
	b.Run("systemctl", "start", "web.service")
	b.Run("gitopsd", "agent", "unhold")

	// Everything that was taken over changes, and more comes.
	f.write("devices/gw-1.yaml", changed)
	f.push("all of it changes")
	f.wait("the changed machine", func() error {
		return errors.Join(b.serves("two"), b.has("/etc/edge.conf", "two\n"),
			b.prints("300M 100M", "sh", "-c", "grep -h -o '[0-9]*M$' /etc/systemd/system/edge.service.d/10-memory.conf /etc/systemd/system/tool.service.d/own.conf"),
			b.prints("419430400", "systemctl", "show", "--value", "--property=MemoryMax", "web.service"),
			b.prints("yes", "podman", "inspect", "--format", "{{.Config.Labels.edge}}", "web"),
			b.prints("active inactive", "sh", "-c", "systemctl is-active own.service tool.service || true"))
	})
	f.is("gw-1", "Current", "v1.0.0")

	// A file that the container reads.
	one := b.show("InvocationID", "web.service")
	f.write("devices/gw-1.yaml", strings.Replace(changed, "          two\n", "          three\n", 1))
	f.push("a file that a container reads")
	f.wait("the container with its file", func() error {
		if maps.Equal(b.show("InvocationID", "web.service"), one) {
			return errors.New("it was not started again")
		}
		return errors.Join(b.serves("two"), b.has("/etc/edge.conf", "three\n"))
	})
	f.is("gw-1", "Current", "v1.0.0")

	if log := b.log(); strings.Contains(log, "drift repaired") {
		t.Errorf("a success has left something to be repaired:\n%s", log)
	}
	b.Run("systemctl", "disable", "--now", "gitopsd-agent")
	if out, err := b.Try(t.Context(), "gitopsd", "agent", "reset", "--dry-run"); err == nil || !strings.Contains(out, "own.service") || !strings.Contains(out, "web") {
		t.Errorf("what a reset would do is (%v)\n%s", err, out)
	}
	b.Run("gitopsd", "agent", "reset", "--yes")
	if now := b.Run("sh", "-c", asItIs); now != before {
		t.Errorf("after a reset the machine is\n%s\nwas\n%s", now, before)
	}
	if err := errors.Join(b.serves("one"), b.prints("", "sh", "-c", "systemctl list-units --all --plain --no-legend 'own*' 'more*'; podman network ls --quiet --filter name=more")); err != nil {
		t.Error(err)
	}
	for _, file := range []string{"/etc/systemd/system/own.service", "/var/lib/gitopsd/attempts.json", "/etc/containers/systemd/more", "/etc/containers/systemd/web.container.d", "/etc/systemd/system/web.service.d"} {
		if _, err := os.Lstat(b.Path(file)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after a reset there is %s (%v)", file, err)
		}
	}
}
