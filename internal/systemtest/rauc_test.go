//go:build system

package systemtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// raucFiles make a device of two slots: rauc's configuration, its backend for a
// boot loader, and that boot loader. What is booted is the slot that is put in
// place of the system's description. A slot of the real size would add nothing.
var raucFiles = map[string]string{
	"/etc/rauc/system.conf": `[system]
compatible=edge
bootloader=custom
statusfile=/var/lib/rauc.status
mountprefix=/run/rauc/mnt
[handlers]
bootloader-custom-backend=/usr/lib/edge/backend
[keyring]
path=/etc/rauc/cert.pem
[slot.rootfs.0]
device=/var/slots/A
type=raw
bootname=A
[slot.rootfs.1]
device=/var/slots/B
type=raw
bootname=B
`,
	"/usr/lib/edge/backend": `#!/bin/sh
cd /var/lib/bootenv
case $1 in
get-primary) cat primary ;;
set-primary) echo "$2" >primary; echo good >"state-$2" ;;
get-state) cat "state-$2" ;;
set-state) echo "$3" >"state-$2" ;;
esac
`,
	"/usr/lib/edge/boot": `#!/bin/sh
set -e
mknod /dev/loop-control c 10 237
for n in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do mknod /dev/loop$n b 7 $n; done
cd /var/lib/bootenv
slot=$(cat primary)
if grep -qs "VERSION=$(cat refuse)" /var/slots/$slot; then
	echo bad >state-$slot
	if [ $slot = A ]; then slot=B; else slot=A; fi
	echo $slot >primary
fi
echo $slot >/run/slot
cp /var/slots/$slot /usr/lib/os-release
`,
	"/etc/systemd/system/edge-boot.service": `[Unit]
Before=rauc.service gitopsd-agent.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/lib/edge/boot
[Install]
WantedBy=multi-user.target
`,
	"/etc/systemd/system/rauc.service.d/slot.conf": `[Service]
ExecStart=
ExecStart=/bin/sh -c 'exec rauc --mount=/run/rauc/mnt --override-boot-slot=$(cat /run/slot) service'
`,
	"/var/lib/bootenv/primary": "A\n",
	"/var/lib/bootenv/state-A": "good\n",
	"/var/lib/bootenv/state-B": "good\n",
	"/var/lib/bootenv/refuse":  "four\n",
	"/var/slots/A":             slotOf("one"),
	"/var/slots/B":             slotOf("one"),
}

// slotOf is a root file system, as far as this is concerned.
func slotOf(version string) string {
	const size = 4096 // bytes
	return fmt.Sprintf("%-*s\n", size-1, "ID=edge\nIMAGE_VERSION="+version+"\n#")
}

// recipe is the script of the page, with another place for its bundles.
func recipe(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/howto/update-with-rauc.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```sh\n(#!/bin/sh\n.*?)```").FindSubmatch(page)
	if m == nil {
		t.Fatal("the page has no script")
	}
	return strings.Replace(string(m[1]), "https://updates.example.com/edge-os", "/var/bundles", 1)
}

// TestSystemRauc updates a device of two slots with rauc's own tools, and the
// script that the documentation shows: a good bundle, one that fails its
// health check, one that the boot loader does not boot, and one that is not
// there. The system is rebooted; the kernel is not.
func TestSystemRauc(t *testing.T) {
	t.Parallel()
	f := newFleet(newBench(t), t.TempDir())
	f.device("gw-1", "gateways")
	release := func(version, image, health string) {
		t.Helper()
		f.release("gateways", version, fmt.Sprintf("os: {image: %s}\nonDevice: {retries: 0}\nhooks:\n  afterUpdating:\n    healthy: {run: [sh, -c, %q]}\n    mark-good: {run: [rauc, status, mark-good], order: 1000}\n", image, health))
		f.policy("gateways", version, 1, 0)
		f.push(version)
	}
	b := newBox(f, "gw-1")
	for file, content := range raucFiles {
		mode := os.FileMode(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		b.Write(file, content, mode)
	}
	b.Write("/usr/lib/edge/os", recipe(t), 0o755)
	config, err := os.ReadFile(b.Path("/etc/gitopsd/agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var programs strings.Builder
	programs.WriteString("  os:\n    driver: command\n")
	for _, what := range []string{"booted", "staged", "stage", "undo", "reboot"} {
		fmt.Fprintf(&programs, "    %s: [/usr/lib/edge/os, %s]\n", what, what)
	}
	b.Write("/etc/gitopsd/agent.yaml", string(config)+programs.String(), 0o644)
	keys := t.TempDir()
	if out, err := exec.Command("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=edge", "-days", "30",
		"-keyout", filepath.Join(keys, "key.pem"), "-out", filepath.Join(keys, "cert.pem")).CombinedOutput(); err != nil {
		t.Fatalf("make keys: %v\n%s", err, out)
	}
	for _, name := range []string{"key.pem", "cert.pem"} {
		data, err := os.ReadFile(filepath.Join(keys, name))
		if err != nil {
			t.Fatal(err)
		}
		b.Write("/etc/rauc/"+name, string(data), 0o600)
	}
	for _, version := range []string{"two", "three", "four"} {
		b.Write("/root/"+version+"/rootfs.img", slotOf(version), 0o644)
		b.Write("/root/"+version+"/manifest.raucm", "[update]\ncompatible=edge\nversion="+version+"\n[bundle]\nformat=plain\n[image.rootfs]\nfilename=rootfs.img\n", 0o644)
		b.Run("sh", "-c", "mkdir -p /var/bundles && rauc --cert=/etc/rauc/cert.pem --key=/etc/rauc/key.pem bundle /root/"+version+" /var/bundles/"+version+".raucb")
	}
	b.Run("systemctl", "daemon-reload")
	b.Run("systemctl", "enable", "--now", "edge-boot", "gitopsd-agent")

	ends := func(what, code, version, image, reason string) {
		t.Helper()
		f.wait(what, func() error { return f.ended("gw-1", code, version, reason) })
		if got := b.Run("/usr/lib/edge/os", "booted"); got != image+"\n" {
			t.Errorf("%s: booted is %q", what, got)
		}
		if got := b.Run("/usr/lib/edge/os", "staged"); got != "" {
			t.Errorf("%s: %q boots next", what, got)
		}
		if t.Failed() {
			t.Fatal(b.log())
		}
	}
	f.start("daemon", serveArgs(f.path("state"), "--repo", f.bare)...)
	release("v1.0.0", "one", "true")
	ends("what the factory flashed", "Current", "v1.0.0", "one", "")
	release("v1.1.0", "three", `test "$GITOPSD_REBOOT_PENDING" = 1 || grep -q VERSION=no /etc/os-release`)
	ends("one that is not healthy", "Failed", "v1.0.0", "one", "healthy")
	release("v1.2.0", "two", `test "$GITOPSD_REBOOT_PENDING" = 1 || grep -q VERSION=two /etc/os-release`)
	ends("a good one", "Current", "v1.2.0", "two", "")
	release("v1.3.0", "four", "true")
	ends("one that does not boot", "Failed", "v1.2.0", "two", "came back as two")
	release("v1.4.0", "none", "true")
	ends("one that is not there", "Failed", "v1.2.0", "two", "none.raucb")
}
