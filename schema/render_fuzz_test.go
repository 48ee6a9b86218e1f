package schema

import (
	"fmt"
	"strings"
	"testing"
)

// FuzzRender: any release, overlay and payload over one fleet are rendered or
// found wrong, the same each time, and what was rendered can be applied.
func FuzzRender(f *testing.F) {
	const release, overlay, payload = "releases/gateways/v1.5.0.yaml", "overlays/sites/berlin.yaml", "files/edge.conf"
	base := repoOf(smallFleet)
	f.Add(base.files[release], base.files[overlay], base.files[payload])
	for _, text := range []string{"{{ .vars.none }}", "{{ if }}", "{{ .device.labels.site | upper }}", "\x00\xff", strings.Repeat("{{ .device.name }}", 100)} {
		f.Add(base.files[release], base.files[overlay], text)
		desired := fmt.Sprintf("files: {/etc/x: {content: %q, template: true}}", text)
		f.Add(base.files[release], strings.Replace(base.files[overlay], `files: {/etc/edge/site.conf: {content: "site=berlin\n"}}`, desired, 1), text)
	}
	f.Fuzz(func(t *testing.T, rel, over, text string) {
		src := base.with(release, rel).with(overlay, over).with(payload, text)
		first, again := load(t, src), load(t, src)
		if a, b := lines(first.Problems), lines(again.Problems); a != b {
			t.Fatalf("two readings:\n%s\n\n%s", a, b)
		}
		for i, m := range first.Devices {
			o := again.Devices[i]
			if m.Rendered == nil {
				if o.Rendered != nil {
					t.Fatalf("%s is rendered sometimes", m.ID)
				}
				continue
			}
			if o.Rendered == nil || m.Rendered.Digest != o.Rendered.Digest || m.Rollout != o.Rollout {
				t.Fatalf("%s has two digests", m.ID)
			}
			if _, err := DecodeSpec(m.Rendered.Spec); err != nil {
				t.Fatalf("%s is rendered, but cannot be applied: %v", m.ID, err)
			}
			if digest, err := Digest(m.Rendered.Spec); err != nil || digest != m.Rendered.Digest {
				t.Fatalf("%s: digest %s, %v; rendered %s", m.ID, digest, err, m.Rendered.Digest)
			}
		}
	})
}
