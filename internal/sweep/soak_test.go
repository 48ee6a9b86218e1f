package sweep

import (
	"testing"
	"time"
)

// Two daemons hear the last report of a soak on either side of its end. What
// the one has seen must not be taken back by the other, which would go on
// until the next heartbeat.
func TestTwoDaemonsAgreeOnASoak(t *testing.T) {
	const soak = 45 * time.Minute
	for _, step := range []struct {
		name, key, value string
		done             func(w *world) int
	}{
		{"wave", "waves", "[{name: canary, selector: {matchLabels: {role: gateway}}, soak: 45m}]",
			func(w *world) int { return w.status().Fleet.Rollouts[0].Waves[0].Done }},
		{"pilot", "pilot", "{count: 1, soak: 45m}",
			func(w *world) int { return w.status().Fleet.Rollouts[0].Pilot.Done }},
	} {
		t.Run(step.name, func(t *testing.T) {
			w, a := done(t, 1)
			other := t.TempDir()
			b := w.daemon(func(c *Config) { c.State = other })
			w.sweep(b)
			w.change("gateways: "+step.name, step.key, step.value, "targetVersion", "v1.1.0")
			w.until(a, "the end of the attempt", func() bool { return w.on("v1.1.0") == 1 && w.code("gw-01") == "Current" })
			w.sweep(b)
			end := lastAttempt(w.status().Devices["gw-01"].Status).EndedAt.Add(soak)
			w.pass(end.Sub(w.now) - time.Second)
			w.devices["gw-01"].heartbeat()
			w.sweep(a)
			if step.done(w) != 0 {
				t.Fatalf("done a second before the end of the soak")
			}
			w.pass(time.Second)
			w.sweep(b)
			if step.done(w) != 1 {
				t.Fatalf("not done by a report that was heard at the end of the soak")
			}
			before := w.commits()
			for range 5 {
				w.pass(time.Second)
				w.sweep(a)
				w.pass(time.Second)
				w.sweep(b)
			}
			if got := w.commits() - before; got != 0 {
				t.Errorf("%d commits while nothing is heard: %q", got, w.subjects(got))
			}
		})
	}
}

// Where a device is on its target without an attempt, the soak counts from
// what the record says of it, and so does its end.
func TestTwoDaemonsAgreeOnASoakWithoutAnAttempt(t *testing.T) {
	w, a := done(t, 1)
	other := t.TempDir()
	b := w.daemon(func(c *Config) { c.State = other })
	dev := w.devices["gw-01"]
	w.change("gateways: a canary", "waves", "[{name: canary, selector: {matchLabels: {role: gateway}}, soak: 45m}]")
	dev.install = "set up by hand"
	dev.heartbeat()
	w.sweep(a)
	w.sweep(b)
	successes := func() int { return w.status().Fleet.Rollouts[0].Waves[0].Done }
	end := w.status().Devices["gw-01"].Status.Observed.Since.Add(45 * time.Minute)
	w.pass(end.Sub(w.now) - time.Second)
	dev.heartbeat()
	w.sweep(a)
	if w.code("gw-01") != "Current" || successes() != 0 {
		t.Fatalf("a second before the end of the soak %d are done: %s", successes(), w.describe())
	}
	w.pass(time.Second)
	w.sweep(b)
	before := w.commits()
	if successes() != 1 {
		t.Fatalf("not done by a report that was heard at the end of the soak")
	}
	for range 5 {
		w.sweep(a)
		w.sweep(b)
	}
	if got := w.commits() - before; got != 0 {
		t.Errorf("%d commits while nothing is heard: %q", got, w.subjects(got))
	}
}
