package sweep

import (
	"testing"
	"time"
)

// Two builds of gitopsd on one repository, with a policy that follows the build:
// each takes back what the other has assigned, so that neither gets its way.
// Nothing comes of it but commits, and it ends with the older one.
func TestTwoBuildsOfOneDaemon(t *testing.T) {
	const devices = 3
	w := newWorld(t, devices)
	w.push("two versions of gitopsd", map[string]string{"releases/gateways/v0.1.0.yaml": releaseYAML("v0.1.0"), "releases/gateways/v0.2.0.yaml": releaseYAML("v0.2.0")})
	w.change("no version", "targetVersion", "")
	older := w.daemon()
	w.until(older, "all are on v0.1.0", func() bool { return w.on("v0.1.0") == devices })
	newer := w.daemon(func(c *Config) { c.OwnVersion, c.State = "v0.2.0", t.TempDir() })
	for range 20 {
		for _, d := range []*Daemon{newer, older} {
			for _, id := range w.ids() {
				w.devices[id].poll()
			}
			w.pass(30 * time.Second)
			w.beat()
			if _, err := d.Once(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.checkStatus()
		}
	}
	if c := w.codes(); c["Failed"]+c["Lost"]+c["Halted"] > 0 {
		t.Errorf("devices failed over it: %v\n%s", c, w.describe())
	}
	w.until(newer, "all are on v0.2.0", func() bool { return w.on("v0.2.0") == devices })
	for range 20 { // one that comes back finds devices that are newer, and leaves them
		w.pass(30 * time.Second)
		if _, err := older.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if w.on("v0.2.0") != devices {
		t.Errorf("devices went back:\n%s", w.describe())
	}
}
