package schema

import (
	"testing"
)

const smallFleet = `
-- policies/gateways.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Policy
metadata: {name: gateways}
spec:
  enabled: true
  selector: {matchLabels: {role: gateway}}
  targetVersion: v1.5.0
  maxInFlight: 10%
-- releases/gateways/v1.5.0.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Release
metadata: {name: v1.5.0}
spec:
  os: {image: "edge-{{ .vars.channel }}", driver: command}
  files:
    /etc/edge/edge.conf: {source: files/edge.conf, mode: "0640", owner: edge, template: true}
    /etc/edge/static.conf: {source: files/static.conf}
  directories:
    /var/lib/edge: {}
  hooks:
    afterUpdating:
      check: {run: [/usr/bin/edge-check], timeout: 30s}
-- files/edge.conf --
name = {{ .device.name }}
site = {{ .device.labels.site }}
dns = {{ .vars.dns }}
-- files/static.conf --
static
-- overlays/sites/berlin.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Overlay
metadata: {name: berlin}
spec:
  selector: {matchLabels: {site: berlin}}
  order: 10
  vars: {dns: 192.0.2.53, channel: "6"}
  desired: {files: {/etc/edge/site.conf: {content: "site=berlin\n"}}}
-- devices/berlin/gw-berlin-01.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Device
metadata: {name: gw-berlin-01, labels: {role: gateway, site: berlin, ring: canary}}
spec:
  vars: {channel: "7"}
  desired:
    files:
      /etc/edge/site.conf: null
      /etc/edge/static.conf: {content: "mine\n"}
-- devices/berlin/gw-berlin-02.yaml --
apiVersion: gitopsd.dev/v1alpha1
kind: Device
metadata: {name: gw-berlin-02, labels: {role: gateway, site: berlin}}
`

func TestLoadSmallFleet(t *testing.T) {
	f := load(t, repoOf(smallFleet))
	if len(f.Problems) > 0 {
		t.Fatalf("problems:\n%s", lines(f.Problems))
	}
	m := f.Member("gw-berlin-01")
	if m == nil || m.Rendered == nil {
		t.Fatalf("gw-berlin-01 is not rendered: %+v", m)
	}
	b, _ := canonicalJSON(m.Rendered.Spec)
	t.Logf("%s", b)
	t.Logf("%+v %s", m.Rendered.Needs, m.Rollout)
	for _, o := range f.Origins("gw-berlin-01") {
		t.Logf("%+v", o)
	}
}
