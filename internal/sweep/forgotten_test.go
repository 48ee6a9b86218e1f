package sweep

import (
	"testing"
	"time"
)

// A device that went back by itself, after its success was forgotten: its
// verdict stays what it is, however many reports say the same.
func TestForgottenSuccessDoesNotAlternate(t *testing.T) {
	w, d := done(t, 2)
	dev := w.devices["gw-01"]
	w.pass(time.Minute)
	w.change("gateways: try again, in a window", "forgetFailuresBefore", w.now.Format(time.RFC3339),
		"windows", "[{days: [Fri], start: \"03:00\", duration: 1h, timeZone: UTC}]")
	w.pass(time.Minute)
	dev.current.Version, dev.current.Digest = "v0.9.0", ""
	dev.heartbeat()
	w.sweep(d)
	w.wantCodes(map[string]int{"Current": 1, "Window": 1})
	before := w.commits()
	for range 5 {
		w.pass(time.Minute)
		w.sweep(d)
		dev.heartbeat()
		w.sweep(d)
	}
	if got := w.commits() - before; got != 0 {
		t.Errorf("%d commits by reports that say nothing new: %q", got, w.subjects(got))
	}
	w.wantCodes(map[string]int{"Current": 1, "Window": 1})
}
