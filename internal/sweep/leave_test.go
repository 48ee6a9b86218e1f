package sweep

import (
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// away removes a device that does not hear of it, until its record is put
// away.
func (w *world) away(d *Daemon, id string) {
	w.t.Helper()
	w.devices[id].off = true
	w.remove(id)
	w.until(d, id+" is retired", func() bool {
		w.devices[id].off = true
		return w.status().Retired[id] != nil
	})
}

func TestRemovalThatNobodySawStaysDelivered(t *testing.T) {
	w, d, dev := settled(t, 4)
	w.away(d, dev.id)
	doc := dev.read()
	if doc == nil || !doc.Removed || doc.Spec != nil {
		t.Fatalf("where an old document may still come, the device finds %+v", doc)
	}
	// A push that was held up for all that time comes to nothing.
	late := w.remote()
	orphan, err := late.Orphan(t.Context(), map[string]string{})
	if err != nil {
		t.Fatal(err)
	}
	ref := schema.DefaultDeviceRefs + dev.id
	if refused, err := late.Publish(t.Context(), nil, map[string][2]string{ref: {"", orphan}}); err != nil || refused[ref] == "" {
		t.Fatalf("a delivery by the value of an absent ref was taken: %v, %v", refused, err)
	}
	dev.off = false
	w.rounds(d, 61) // an hour, for the look at all deliveries
	if w.repo.ref(ref) != "" {
		t.Fatal("it knows that it left, and its delivery is still there")
	}
}

func TestBackWithoutAnAssignmentIsStillTold(t *testing.T) {
	w, d, dev := settled(t, 4)
	w.away(d, dev.id)
	generation := w.status().generation(dev.id)
	w.push("it is back, and held", map[string]string{"devices/berlin/" + dev.id + ".yaml": deviceYAML(dev.id, "  hold: {reason: look}\n")})
	dev.off = false
	w.rounds(d, 3)
	if doc := dev.read(); doc == nil || doc.Removed || doc.Spec != nil || doc.Generation <= generation || doc.Hold == nil {
		t.Fatalf("a device that is back and held finds %+v", doc)
	}
	w.push("it is released", map[string]string{"devices/berlin/" + dev.id + ".yaml": deviceYAML(dev.id, "")})
	w.until(d, "everybody on v1.1.0", func() bool { return w.on("v1.1.0") == 4 })
}

func TestLateRepairOfAnAbsentRef(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w, d, dev := settled(t, 4)
		ref := schema.DefaultDeviceRefs + dev.id
		late := w.remote()
		other := w.daemon(func(c *Config) { c.Remote, c.State = late, "" })
		w.sweep(other)
		// This daemon has listed the status branch, and stands still.
		n := 0
		late.onCall = func(_ int, op string) {
			if op != "refs" {
				return
			}
			if n++; n == 2 {
				w.remove(dev.id)
				w.until(d, "its delivery is gone", func() bool { return w.repo.ref(ref) == "" })
			}
		}
		other.unsure[dev.id] = true
		w.sweep(other)
		if n < 2 {
			t.Fatal("the deliveries were not looked at")
		}
		if w.repo.ref(ref) != "" {
			t.Fatalf("an old document is back: %+v", dev.read())
		}
	})
}

func TestRefusalIsForgottenWithItsDevice(t *testing.T) {
	w, d := done(t, 4)
	w.repo.refuse = func(ref string) string {
		if ref == schema.DefaultDeviceRefs+"gw-02" {
			return "stands elsewhere"
		}
		return ""
	}
	w.push("hold", map[string]string{"devices/berlin/gw-02.yaml": deviceYAML("gw-02", "  hold: {reason: look}\n")})
	w.rounds(d, 3)
	if len(w.status().Fleet.Conditions) == 0 {
		t.Fatal("the refusal is not told")
	}
	w.repo.refuse = nil
	other := w.daemon(func(c *Config) { c.State = "" })
	w.remove("gw-02")
	w.until(other, "it is retired", func() bool { return w.status().Retired["gw-02"] != nil })
	w.pass(time.Minute)
	w.sweep(d)
	if c := w.status().Fleet.Conditions; len(c) != 0 {
		t.Fatalf("what was refused to a device that is gone is told on: %+v", c)
	}
}
