package reconcile

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/osimage"
	"github.com/gitopsd/gitopsd/schema"
)

// bootcDevice is a device of which the stand-in for bootc boots the image
// edge/os:1; the test reboots it.
func bootcDevice(t *testing.T) *device {
	t.Helper()
	bin, err := filepath.Abs("internal/osimage/testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	d := osDevice(t)
	d.cfg.OS = nil
	d.cfg.Driver = rebooting{Driver: osimage.New(d.root, &schema.OSConfig{Driver: schema.OSBootc}), d: d}
	d.write("/test-bootc/booted", "edge/os:1 sha256:one\n")
	d.write("/test-bootc/registry", "edge/os:1 sha256:one\nedge/os@sha256:one sha256:one\nedge/os:2 sha256:two\n")
	return d
}

// rebooting is a driver whose reboots the test makes.
type rebooting struct {
	osimage.Driver
	d *device
}

func (r rebooting) Reboot(ctx context.Context) error { return slots{d: r.d}.Reboot(ctx) }
func (r rebooting) BootID() (string, error)          { return slots{d: r.d}.BootID() }

// bootBootc boots as bootc's systems do: the staged image, the one that is
// queued, or, where it does not boot, the old one.
func (d *device) bootBootc(refused string) {
	d.t.Helper()
	const dir = "/test-bootc/"
	booted, next := d.content(dir+"booted"), d.content(dir+"staged")
	if _, err := os.Stat(d.host(dir + "queued")); err == nil {
		next = d.content(dir + "rollback")
	} else if next == "" {
		next = booted
	}
	if next != booted {
		d.write(dir+"booted", next)
		d.write(dir+"rollback", booted)
		if refused != "" && strings.HasPrefix(next, refused) {
			d.write(dir+"booted", booted)
			d.write(dir+"rollback", next)
		}
	}
	d.remove(dir + "staged")
	d.remove(dir + "queued")
	d.boot(false, "")
}

func bootcSpec(hooks tree) tree {
	more := tree{"os": tree{"image": "edge/os:2", "driver": schema.OSBootc}}
	for k, v := range hooks {
		more[k] = v
	}
	return v2(more)
}

func TestBootcUpdate(t *testing.T) {
	d := bootcDevice(t)
	d.assign(2, "v1.1.0", bootcSpec(logHooks("beforeRebooting", "afterRebooting")))
	d.wantOnce(0, "reboot into edge/os@sha256:two")
	d.write("/test-bootc/registry", "edge/os:2 sha256:three\n") // the tag moves
	d.bootBootc("")
	d.wantOnce(0, "updated from v1.0.0 to v1.1.0")
	d.wantOnce(0, "nothing to do")
	if r := d.control.last(); r.Outcome != schema.OutcomeOK || len(r.Drift) > 0 {
		t.Errorf("report: %+v", r)
	}
	if got := d.content(testLog); !strings.Contains(got, "beforeRebooting pending=1") || !strings.Contains(got, "afterRebooting pending=0") {
		t.Errorf("hooks ran:\n%s", got)
	}
}

func TestBootcComesBack(t *testing.T) {
	for name, c := range map[string]struct {
		spec    tree
		refused string
		reboots int
		says    string
	}{
		"not healthy":       {bootcSpec(hook("afterRebooting", "/bin/false")), "", 2, "afterRebooting"},
		"does not boot":     {bootcSpec(nil), "edge/os:2", 1, "came back as edge/os@sha256:one"},
		"fails before that": {bootcSpec(hook("beforeRebooting", "/bin/false")), "", 0, "beforeRebooting"},
	} {
		t.Run(name, func(t *testing.T) {
			d := bootcDevice(t)
			d.assign(2, "v1.1.0", c.spec)
			for range c.reboots {
				d.wantOnce(0, "reboot into")
				d.bootBootc(c.refused)
			}
			d.wantOnce(1, "failed", c.says, "back on v1.0.0")
			booted, err := d.cfg.Driver.Booted(t.Context())
			staged, err2 := d.cfg.Driver.Staged(t.Context())
			if booted != "edge/os@sha256:one" || staged != "" && staged != booted || err != nil || err2 != nil {
				t.Errorf("booted %q (%v), next %q (%v)", booted, err, staged, err2)
			}
		})
	}
}
