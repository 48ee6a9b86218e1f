package sweep

import "testing"

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
