package reconcile

import (
	"os"
	"testing"
)

// A file is a secret by whatever name a spec reaches it, and also where nothing
// but the record of what is managed says so.
func TestSecret_NotShownByAnotherName(t *testing.T) {
	for name, prepare := range map[string]func(d *secretDevice){
		"as ever":              func(*secretDevice) {},
		"current.json is lost": func(d *secretDevice) { d.remove(currentFile) },
		"the record is lost": func(d *secretDevice) {
			d.remove("/var/lib/gitopsd/managed.json")
			d.remove("/var/lib/gitopsd/managed.copy.json")
		},
	} {
		d := onFirst(t)
		prepare(d)
		if err := os.Symlink("edge", d.host("/etc/alias")); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d.host(secretFile), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, spec := range []tree{filesSpec(map[string]string{"/etc/alias/password": "x\n"}, nil), filesSpec(map[string]string{"/etc/other": "x\n"}, nil)} {
			c, err := CompareSpec(t.Context(), d.cfg, spec, true)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, one := range c.Changes {
				if one.Name != secretFile && one.Name != "/etc/alias/password" {
					continue
				}
				found = true
				if one.Hidden != "it is a secret" || one.From != nil || one.To != nil {
					t.Errorf("%s: %+v", name, one)
				}
			}
			if !found && name != "the record is lost" {
				t.Errorf("%s: nothing is told of it: %+v", name, c.Changes)
			}
		}
	}
}
