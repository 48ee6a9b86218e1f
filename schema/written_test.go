package schema

import (
	"fmt"
	"strings"
	"testing"
)

// What is written at a place is found in releases of one version, in overlays and
// in the document of one device, and never as it is rendered.
func TestWritten(t *testing.T) {
	const head = "apiVersion: gitopsd.dev/v1alpha1\nkind: "
	r := repoOf(ruleFleet).
		with("releases/gateways/v1.5.0.yaml", head+"Release\nmetadata: {name: v1.5.0}\nspec: {os: {image: 'edge:{{ .device.name }}'}, files: {/etc/a: {content: 'a {{ .device.name }}', template: true}, /etc/b: {source: ./b}}}\n").
		with("releases/gateways/v1.6.0.yaml", head+"Release\nmetadata: {name: v1.6.0}\nspec: {files: {/etc/a: {content: other}}}\n").
		with("releases/gateways/b", "of a file\n").
		with("overlays/o.yaml", head+"Overlay\nmetadata: {name: o}\nspec: {desired: {files: {/etc/a: {contentBase64: aGVsbG8=}}}}\n").
		with("devices/gw-1.yaml", head+"Device\nmetadata: {name: gw-1, labels: {role: gateway}}\nspec: {desired: {files: {/etc/a: {content: own}}}}\n")
	fleet := load(t, r)
	if !fleet.Valid() {
		t.Fatal(lines(fleet.Problems))
	}
	for _, c := range []struct{ version, id, pointer, want string }{
		{"v1.5.0", "", "/files/~1etc~1a", "a {{ .device.name }}|hello"},
		{"v1.6.0", "", "/files/~1etc~1a", "other|hello"},
		{"", "gw-1", "/files/~1etc~1a", "own"},
		{"v1.5.0", "gw-1", "/files/~1etc~1a", "a {{ .device.name }}|hello|own"},
		{"v1.5.0", "", "/files/~1etc~1b", "id of 10 bytes"},
		{"v1.5.0", "", "/os/image", "edge:{{ .device.name }}"},
		{"v9.0.0", "nobody", "/files/~1etc~1c", ""},
		{"", "", "/files/~1etc~1a", ""},
	} {
		var got []string
		for _, p := range fleet.Written(c.version, c.id, c.pointer) {
			if p.ID != "" {
				p.Data = fmt.Appendf(nil, "id of %d bytes", p.Size)
			}
			got = append(got, string(p.Data))
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%s of %q and %q: got %q, want %q", c.pointer, c.version, c.id, got, c.want)
		}
	}
}
