package units

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// A unit of a package or of the image that a spec had named can be dropped after
// its file has gone with them: nothing is there to give back.
func TestUnitWhoseFileHasGone(t *testing.T) {
	yes, no := true, false
	for name, u := range map[string]*schema.Unit{
		"started": {State: "started", Enabled: &yes}, "stopped": {State: "stopped", Enabled: &no}, "masked": {State: "masked"},
		"enabled": {Enabled: &yes}, "disabled": {Enabled: &no}, "drop-in": {DropIns: map[string]*schema.Body{"x": body("")}},
		"content": unit(fmt.Sprintf(service, "ours"), false, "started"),
	} {
		t.Run(name, func(t *testing.T) {
			d := newDevice(t)
			const lib = "usr/lib/systemd/system/vendor.service"
			d.put(lib, fmt.Sprintf(service, "vendor"))
			d.systemd.links["vendor.service"] = true
			d.systemd.boot()
			d.must(&schema.Spec{Units: map[string]*schema.Unit{"vendor.service": u}})
			if err := os.Remove(filepath.Join(d.dir, lib)); err != nil {
				t.Fatal(err)
			}
			d.systemd.boot() // into the system without it
			root, _, c := d.open()
			defer root.Close()
			if _, err := c.Compare(t.Context(), whole(&schema.Spec{})); err != nil {
				t.Error(err)
			}
			d.must(&schema.Spec{})
			if is := d.is(); strings.Contains(is, "runs") || strings.Contains(is, "etc/systemd/system/") {
				t.Errorf("the device is\n%s", is)
			}
			if told := strings.Join(d.warned, ""); (name == "drop-in") != (told == "") || strings.Count(told, "vendor.service") > 1 {
				t.Errorf("warned %q", d.warned)
			}
			d.logged()
			if d.must(&schema.Spec{}); d.logged() != "" {
				t.Error("it is not forgotten")
			}
		})
	}
}

// A unit that its package or the image masks cannot be started but with a file of
// the spec, also where an administrator had masked it besides.
func TestUnitThatTheVendorMasks(t *testing.T) {
	yes := true
	for name, c := range map[string]struct {
		unit    *schema.Unit
		refused bool
	}{
		"started": {&schema.Unit{State: "started"}, true}, "enabled": {&schema.Unit{Enabled: &yes}, true}, "stopped": {&schema.Unit{State: "stopped"}, false},
		"masked": {&schema.Unit{State: "masked"}, false}, "content": {unit(fmt.Sprintf(service, "ours"), true, "started"), false},
	} {
		for _, twice := range []bool{false, true} {
			d := newDevice(t)
			spec := &schema.Spec{Units: map[string]*schema.Unit{"vendor.service": c.unit}}
			for _, at := range []string{"usr/lib/systemd/system/", "etc/systemd/system/"}[:1+map[bool]int{true: 1}[twice]] {
				if err := os.Symlink("/dev/null", filepath.Join(d.dir, at, "vendor.service")); err != nil {
					t.Fatal(err)
				}
			}
			root, _, ctl := d.open()
			err := ctl.Check(t.Context(), spec, Plan{})
			root.Close()
			if refused := strings.Contains(fmt.Sprint(err), "/usr/lib/systemd/system/vendor.service masks it"); refused != (c.refused && !twice) || err != nil && !refused {
				t.Errorf("%s, twice %t: Check: %v", name, twice, err)
			}
			err = d.apply(spec)
			if f := failure.From(err); err != nil != c.refused || err != nil && f.Class != schema.ClassPermanent {
				t.Errorf("%s, twice %t: %v", name, twice, err)
			}
		}
	}
}
