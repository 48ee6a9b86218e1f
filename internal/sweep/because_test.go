package sweep

import (
	"strings"
	"testing"
)

// What led to a rollout is remembered while a device is to go by it, and no
// longer: a daemon sees many rollouts.
func TestBecauseIsForgotten(t *testing.T) {
	w, d := done(t, 2)
	for _, v := range []string{"v1.1.0", "v1.2.0"} {
		commit := w.change("gateways: "+v, "targetVersion", v)
		w.until(d, "one on "+v, func() bool { return w.on(v) == 1 })
		w.push("nothing that matters", map[string]string{"README.md": v})
		w.until(d, "everybody on "+v, func() bool { return w.on(v) == 2 })
		for _, id := range w.ids() {
			if got := w.status().Devices[id].Assignment.Because.Commit; got != commit {
				t.Errorf("%s went to %s because of %s, want %s", id, v, got, commit)
			}
		}
		if len(d.because) != 1 {
			t.Errorf("at %s the daemon remembers %v, want one rollout", v, d.because)
		}
	}
}

// Who is asked at three in the morning is who made the change that counts:
// of the device's own part, or that of going back.
func TestBecauseOfOneDevice(t *testing.T) {
	w, d := done(t, 3)
	wants := func(id, commit string) {
		t.Helper()
		if got := w.status().Devices[id].Assignment.Because.Commit; got != commit {
			t.Errorf("%s was assigned what it has by %s, want %s", id, got, commit)
		}
	}
	first := w.status().Devices["gw-01"].Assignment.Because.Commit
	own := w.push("another serial number", map[string]string{"devices/berlin/gw-02.yaml": strings.Replace(deviceYAML("gw-02", ""), `serial: "gw-02"`, `serial: "other"`, 1)})
	w.until(d, "gw-02 has its own", func() bool { return w.status().Devices["gw-02"].Assignment.Attempt == 2 && w.on("v1.0.0") == 3 })
	wants("gw-02", own)
	wants("gw-01", first)

	// Two go to another version and back; gw-01 stays where it was.
	w.push("gw-01 stays", map[string]string{"devices/berlin/gw-01.yaml": deviceYAML("gw-01", "  pin: v1.0.0\n")})
	w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	w.until(d, "two on v1.1.0", func() bool { return w.on("v1.1.0") == 2 })
	back := w.change("gateways: back", "targetVersion", "v1.0.0", "rollbackFrom", "[v1.1.0]")
	w.until(d, "one is back", func() bool { return w.on("v1.0.0") == 2 })
	w.push("nothing that matters", map[string]string{"README.md": "x"})
	restarted := w.daemon()
	w.until(restarted, "all are back", func() bool { return w.on("v1.0.0") == 3 })
	wants("gw-02", back)
	wants("gw-03", back)
	wants("gw-01", first)
}
