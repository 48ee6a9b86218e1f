package schema

import (
	"slices"
	"testing"
)

func TestDocumentAt(t *testing.T) {
	for path, want := range map[string][3]string{
		"policies/gateways.yaml":              {"Policy", "gateways", ""},
		"releases/gateways/v1.yaml":           {"Release", "v1", "gateways"},
		"releases/gateways/v1/release.yaml":   {"Release", "v1", "gateways"},
		"releases/gateways/v1/edge.yaml":      {},
		"overlays/sites/berlin.yaml":          {"Overlay", "berlin", ""},
		"devices/berlin/gw-01.yaml":           {"Device", "gw-01", ""},
		"devices/berlin/files/gw-01.yaml":     {},
		"files/motd":                          {},
		"README.md":                           {},
		"devices/berlin/gw-01.yml":            {},
		"devices/berlin/\x1b/gw-01.yaml":      {},
		"releases/gateways/v1/a/release.yaml": {},
	} {
		kind, name, line := DocumentAt(path)
		if got := [3]string{string(kind), name, line}; got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}

func TestSourcesOf(t *testing.T) {
	fleet := load(t, repoOf(smallFleet))
	want := []string{"files/edge.conf", "files/static.conf"} // the last although the device replaces it
	if got := fleet.SourcesOf("gw-berlin-01"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := fleet.SourcesOf("gw-nowhere-01"); got != nil {
		t.Errorf("of no device: %v", got)
	}
}
