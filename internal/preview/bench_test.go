package preview_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/schema"
)

// largeChange is a fleet of n devices of which the first few, or all, change:
// with a template that gives each device a payload of its own.
func largeChange(n, changed int) change {
	const api = "apiVersion: gitopsd.dev/v1alpha1\n"
	c := change{base: files{}, head: files{}}
	release := api + "kind: Release\nmetadata: {name: v1.0.0}\nspec:\n  files:\n    /etc/edge/edge.conf: {source: files/edge.conf, mode: \"0640\", template: true}\n  hooks:\n    afterUpdating:\n      check: {run: [/usr/bin/edge-check]}\n  applications:\n    web: {quadlet: {web.container: {content: \"[Container]\\nImage=localhost/web:1\\n\"}}}\n"
	c.base["policies/p.yaml"] = api + "kind: Policy\nmetadata: {name: p}\nspec: {enabled: true, targetVersion: v1.0.0, maxInFlight: 10%}\n"
	c.base["releases/p/v1.0.0.yaml"] = release
	c.base["files/edge.conf"] = "name = {{ .device.name }}\nport = 8080\nlevel = info\n"
	for i := range n {
		id := fmt.Sprintf("gw-%05d", i)
		c.base[fmt.Sprintf("devices/s%02d/%s.yaml", i%50, id)] = fmt.Sprintf("%skind: Device\nmetadata: {name: %s, labels: {site: s%d}}\nspec: {vars: {channel: \"%d\"}}\n", api, id, i%50, i%9)
	}
	for path, text := range c.base {
		c.head[path] = text
	}
	if changed == n {
		c.head["files/edge.conf"] = "name = {{ .device.name }}\nport = 8443\nlevel = info\n"
		c.head["releases/p/v1.0.0.yaml"] = strings.Replace(release, "web:1", "web:2", 1)
		return c
	}
	for i := range changed {
		id := fmt.Sprintf("gw-%05d", i)
		c.head[fmt.Sprintf("devices/s%02d/%s.yaml", i%50, id)] = fmt.Sprintf("%skind: Device\nmetadata: {name: %s, labels: {site: s%d}}\nspec: {vars: {channel: \"%d\"}, desired: {files: {/etc/x: {content: x}}}}\n", api, id, i%50, i%9)
	}
	return c
}

// BenchmarkCompare puts the cost of a comparison beside that of loading and
// planning both sides, which it comes on top of.
func BenchmarkCompare(b *testing.B) {
	const n = 10_000
	for _, changed := range []int{0, 10, n} {
		c := largeChange(n, changed)
		in := c.input(b)
		b.Run(fmt.Sprintf("devices=%d/changed=%d/load-both", n, changed), func(b *testing.B) {
			for b.Loop() {
				var loader schema.Loader
				for _, f := range []files{c.head, c.base} {
					if _, err := loader.Load(f); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
		b.Run(fmt.Sprintf("devices=%d/changed=%d/plan-both", n, changed), func(b *testing.B) {
			for b.Loop() {
				sweep.PlanNow(in.Head.Fleet, nil, nil, now, "v9.0.0")
				sweep.PlanNow(in.Base.Fleet, nil, nil, now, "v9.0.0")
			}
		})
		b.Run(fmt.Sprintf("devices=%d/changed=%d/compare", n, changed), func(b *testing.B) {
			for b.Loop() {
				if p := preview.Compare(in); len(p.Changes) != min(changed, 1) {
					b.Fatalf("%d groups", len(p.Changes))
				}
			}
		})
	}
}
