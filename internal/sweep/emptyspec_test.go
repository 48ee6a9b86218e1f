package sweep

import (
	"strings"
	"testing"
)

// A spec may want nothing: that is an assignment as any other, which drops what
// the one before had, and no recall.
func TestEmptySpecIsDelivered(t *testing.T) {
	w, d, dev := settled(t, 1)
	w.push("gateways: nothing is managed any more", map[string]string{
		"releases/gateways/v1.1.0.yaml": "apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.1.0}\nspec: {}\n"})
	w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	w.until(d, "the empty spec", func() bool { return dev.current.Version == "v1.1.0" && w.code(dev.id) == "Current" })
	w.push("a device with a spec of its own, which is empty", map[string]string{
		"devices/berlin/" + dev.id + ".yaml": strings.Replace(deviceYAML(dev.id, "  release: none\n"), "role: gateway", "role: gateway, alone: \"true\"", 1)})
	w.rounds(d, 5)
	if got := w.code(dev.id); got != "Current" {
		t.Fatalf("release: none without a part of its own is %s\n%s", got, w.describe())
	}
	doc := w.status().Devices[dev.id].Assignment
	if doc.Spec == nil || len(doc.Spec) != 0 || doc.Digest != dev.current.Digest {
		t.Errorf("the document is %+v", doc)
	}
	generation := doc.Generation
	w.rounds(d, 20)
	if got := w.status().Devices[dev.id].Assignment.Generation; got != generation {
		t.Errorf("generation %d became %d though nothing changed", generation, got)
	}
}
