package files

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// What the agent needs may be a link, or lie behind one, which may change while
// it runs: neither the name nor what it leads to can be written.
func TestProtectedBehindALink(t *testing.T) {
	d := newDevice(t)
	d.ctl.protected = []string{"/etc/key", "/etc/ssh/host_key"}
	d.put("data/a", "a key", 0o600)
	d.put("data/ssh/host_key", "a key", 0o600)
	link := func(to, at string) {
		t.Helper()
		at = filepath.Join(d.dir, at)
		os.Remove(at)
		if err := os.Symlink(to, at); err != nil {
			t.Fatal(err)
		}
	}
	d.put("etc/x", "", 0o644)
	link("../data/b", "etc/key")
	link("/data/ssh", "etc/ssh")
	refused := func(p string, want bool) {
		t.Helper()
		one := spec(map[string]*schema.File{p: file("gone", "")})
		err := d.ctl.Check(one, nil)
		if is := err != nil && class(err) == schema.ClassPermanent && strings.Contains(err.Error(), p+" is protected: the agent needs it"); is != want || err != nil && !want {
			t.Errorf("check %s: %v", p, err)
		}
		if _, err = d.ctl.Apply(context.Background(), one, nil, Onward); want && err == nil {
			t.Errorf("apply %s: %v", p, err)
		}
	}
	refused("/data/b", true) // where nothing is yet
	refused("/data/ssh/host_key", true)
	refused("/data/ssh/beside", false)
	link("/data/a", "etc/key")
	refused("/data/a", true)
	refused("/data/b", false)
	if d.content("data/a") != "a key" || d.content("data/ssh/host_key") != "a key" {
		t.Errorf("\n%s", d.tree())
	}
}
