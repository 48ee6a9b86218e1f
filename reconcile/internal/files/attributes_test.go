package files

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gitopsd/gitopsd/schema"
)

// netRaw is cap_net_raw=ep, as ping has it.
const netRaw = "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

func (d *device) give(p string, attrs map[string]string) {
	d.t.Helper()
	for name, value := range attrs {
		err := unix.Setxattr(d.host(p), name, []byte(value), 0)
		if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EPERM) {
			d.t.Skipf("%s cannot be set here: %v", name, err)
		}
		if err != nil {
			d.t.Fatal(err)
		}
	}
}

// attributes lists the names of those that are there.
func (d *device) attributes(p string) string {
	d.t.Helper()
	buf := make([]byte, 1000)
	n, err := unix.Listxattr(d.host(p), buf)
	if err != nil {
		d.t.Fatal(err)
	}
	names := strings.Split(strings.TrimSuffix(string(buf[:n]), "\x00"), "\x00")
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestAttributesFollowAndComeBack(t *testing.T) {
	d := newDevice(t)
	d.put("/opt/ping", "from the factory", 0o755)
	d.give("/opt/ping", map[string]string{"user.note": "by hand", "security.selinux": "system_u:object_r:ping_exec_t:s0\x00", "security.capability": netRaw})
	spec := func(content string) *schema.Spec {
		return &schema.Spec{Files: map[string]*schema.File{"/opt/ping": file(content, "0700")}}
	}
	for _, content := range []string{"of version 1", "of version 2"} {
		d.apply(spec(content))
		if got := d.attributes("/opt/ping"); got != "security.selinux user.note" {
			t.Errorf("%s: %s", content, got)
		}
	}
	d.start(nil)
	if changed := d.apply(spec("of version 2")); len(changed) != 0 {
		t.Errorf("changed after a restart: %v", changed)
	}
	d.apply(nil)
	if got := d.attributes("/opt/ping"); got != "security.capability security.selinux user.note" || d.content("/opt/ping") != "from the factory" {
		t.Errorf("given back: %s, %q", got, d.content("/opt/ping"))
	}

	// A file that went in the meantime comes back with them, too.
	d.apply(spec("of version 1"))
	if err := os.Remove(d.host("/opt/ping")); err != nil {
		t.Fatal(err)
	}
	d.apply(nil)
	if got := d.attributes("/opt/ping"); got != "security.capability security.selinux user.note" {
		t.Errorf("after it was removed: %s", got)
	}
}

// Another owner takes capabilities away, though the content stays.
func TestCapabilitiesComeBackAfterAnotherOwner(t *testing.T) {
	d := newDevice(t)
	d.put("/opt/ping", "same", 0o755)
	d.put("/etc/passwd", "root:x:0:0::/:/bin/sh\nedge:x:12:13::/:/bin/sh\n", 0o644)
	d.put("/etc/group", "root:x:0:\nedge:x:13:\n", 0o644)
	d.give("/opt/ping", map[string]string{"security.capability": netRaw})
	f := file("same", "0755")
	f.Owner, f.Group = "edge", "edge"
	d.apply(&schema.Spec{Files: map[string]*schema.File{"/opt/ping": f}})
	if got := d.attributes("/opt/ping"); got != "" {
		t.Errorf("of another owner: %s", got)
	}
	d.apply(nil)
	if got := d.attributes("/opt/ping"); got != "security.capability" {
		t.Errorf("given back: %q", got)
	}
}
