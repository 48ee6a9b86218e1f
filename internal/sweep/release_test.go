package sweep

import (
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// A device that failed and was removed keeps its policy halted, also where an
// overlay selected only that device, so that the rollout is another one with
// it gone. What lifts the halt is another content of the release.
func TestRemovedFailureHaltsUntilTheReleaseChanges(t *testing.T) {
	w := newWorld(t, 4)
	victim := w.devices["gw-01"]
	w.push("a site of one", map[string]string{
		"overlays/one.yaml": "apiVersion: gitopsd.dev/v1alpha1\nkind: Overlay\nmetadata: {name: one}\nspec:\n  selector: {matchLabels: {site: one}}\n" +
			"  desired: {files: {/etc/site: {content: \"one\\n\"}}}\n",
		"devices/berlin/gw-01.yaml": strings.Replace(deviceYAML("gw-01", ""), "{role: gateway}", "{role: gateway, site: one}", 1),
	})
	d := w.daemon()
	w.until(d, "everybody on v1.0.0", func() bool { return w.on("v1.0.0") == 4 })
	for _, dev := range w.devices {
		dev.held = dev != victim
		dev.heartbeat()
	}
	victim.bad["v1.1.0"] = true
	w.rounds(d, 2)
	w.change("gateways: v1.1.0", "targetVersion", "v1.1.0", "minAvailable", "0")
	w.until(d, "a failure", func() bool { return w.code(victim.id) == "Failed" })
	if a := lastAttempt(w.status().Devices[victim.id].Status); a.Release == "" {
		t.Fatalf("the attempt knows no release: %+v", a)
	}
	for _, dev := range w.devices {
		dev.held = false
		dev.rest()
	}
	w.push("remove it", map[string]string{"devices/berlin/" + victim.id + ".yaml": ""})
	delete(w.devices, victim.id)
	for range 10 {
		if p := w.round(d); len(p.Assigned) > 0 {
			t.Fatalf("assigned %+v, though the release that failed is the same\n%s", p.Assigned, w.describe())
		}
	}
	w.push("fix the release", map[string]string{"releases/gateways/v1.1.0.yaml": strings.Replace(releaseYAML("v1.1.0"), "/etc/motd", "/etc/motd2", 1)})
	w.until(d, "the others on v1.1.0", func() bool { return w.on("v1.1.0") == 3 })
}

// An attempt that ends by the first report that is seen of it had started.
func TestAnEndTellsTheStart(t *testing.T) {
	for _, bad := range []bool{true, false} {
		w, d, dev := settled(t, 2)
		dev.bad["v1.1.0"] = bad
		for dev.ended < 2 {
			dev.poll() // announced, done and reported between two passes
		}
		if !bad {
			dev.last.Begun = true
			dev.heartbeat()
		}
		w.pass(time.Minute)
		w.sweep(d)
		a := w.attempt(dev.id, 2)
		if a.StartedAt == nil || !a.StartedAt.Equal(w.now) || a.StartSeq != dev.seq || a.EndedAt == nil {
			t.Errorf("bad %v: the attempt is %+v", bad, a)
		}
	}
	w, d, dev := settled(t, 2)
	dev.refuses["v1.1.0"] = true
	dev.poll()
	w.pass(time.Minute)
	w.sweep(d)
	if a := w.attempt(dev.id, 2); a.Outcome != schema.OutcomeRefused || a.StartedAt != nil {
		t.Errorf("the refused attempt is %+v", a)
	}
}

// What a device waits after stands in its reason.
func TestBackoffTellsItsCause(t *testing.T) {
	w, d, dev := settled(t, 3)
	dev.busy = true
	w.until(d, "the attempt is over", func() bool { return w.attempt(dev.id, 2).Outcome != "" })
	dev.busy = false
	w.round(d)
	if v := w.status().Devices[dev.id].Status.Verdict; v.Code != "Backoff" || !strings.Contains(v.Reason, ": deferred (no failure) because waiting: busy") && !strings.Contains(v.Reason, ": deferred (no failure) because busy") {
		t.Errorf("its verdict is %+v", v)
	}
}

// What a person does about the device that failed does not make the release a
// better one: the others wait until its content changes.
func TestHaltOutlivesWhatIsDoneAboutTheDevice(t *testing.T) {
	const own = "  release: none\n  desired: {files: {/etc/own: {content: \"own\\n\"}}}\n"
	for name, change := range map[string]string{"pinned": "  pin: v1.0.0\n", "a spec of its own": own} {
		t.Run(name, func(t *testing.T) {
			w, d, victim := settled(t, 4)
			victim.bad["v1.1.0"] = true
			w.until(d, "a failure", func() bool { return w.code(victim.id) == "Failed" })
			w.push(name, map[string]string{"devices/berlin/" + victim.id + ".yaml": deviceYAML(victim.id, change)})
			victim.bad = map[string]bool{}
			for range 15 {
				for _, m := range w.round(d).Assigned {
					if m.Device != victim.id {
						t.Fatalf("%s is assigned, though the release that failed is the same\n%s", m, w.describe())
					}
				}
			}
			if got := w.codes()["Halted"]; got != 3 {
				t.Fatalf("%d others are halted\n%s", got, w.describe())
			}
			a := lastAttempt(w.status().Devices[victim.id].Status)
			if change == own && (a.Release != planner.ReleaseNone || a.Outcome != schema.OutcomeOK) {
				t.Fatalf("the attempt at its own spec is %+v\n%s", a, w.describe())
			}
		})
	}
}
