package units

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
