package protocoltest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// kind is what becomes of a version on a device.
type kind int

const (
	good       kind = iota
	fails           // after it has begun, for good; where there is a reboot, after that
	failsAgain      // after it has begun, and it is tried again
	refuses         // before anything has changed
	observes        // it is only compared with
)

var versions = []string{"v1.0.0", "v1.1.0", "v1.2.0"}

// policies hand out the same releases, each to devices of one role. Nobody
// cares for those that are spare.
var policies = []string{"gateways", "sensors"}

const (
	gateway = iota
	sensor
	spare
)

var roles = []string{gateway: "gateway", sensor: "sensor", spare: "spare"}

// place is where a device stands in the fleet repository.
type place struct {
	gone  bool
	role  int
	moved bool // into a folder
	hold  bool
}

func (p *place) path(i int) string {
	folder := ""
	if p.moved {
		folder = "site/"
	}
	return fmt.Sprintf("devices/%sgw-%d.yaml", folder, i+1)
}

func (w *world) kind(version string) kind {
	if version == versions[1] {
		return w.uncertain
	}
	return good
}

// image is the operating system that comes with a version; "" = none.
func (w *world) image(version string) string {
	if !w.boots {
		return ""
	}
	return "os-" + version
}

func (w *world) policyYAML(name string) []byte {
	var b strings.Builder
	role := roles[gateway]
	if name != policies[0] {
		role = roles[sensor]
	}
	fmt.Fprintf(&b, `apiVersion: gitopsd.dev/v1alpha1
kind: Policy
metadata: {name: %s}
spec:
  enabled: true
  selector: {matchLabels: {role: %s}}
  releaseLine: gateways
  targetVersion: %s
  rollbackFrom: [%s]
  maxInFlight: %d
  minAvailable: 0
  failureLimit: %d
  refusalLimit: 10
  maxAttempts: %d
  backoff: {base: 1m, factor: 1}
  pickupTimeout: %s
  updateTimeout: %s
`, name, role, w.target, strings.Join(others(w.target), ", "), w.maxInFlight, w.failLimit, w.maxAttempts, schema.Duration(pickupTimeout), schema.Duration(updateTimeout))
	if w.settle {
		fmt.Fprintf(&b, "  settle: %s\n", schema.Duration(settleTime))
	}
	if w.paused {
		b.WriteString("  paused: {reason: look}\n")
	}
	return []byte(b.String())
}

// others are the versions but one.
func others(version string) []string {
	return slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return v == version })
}

// deviceYAML is a device with a digest of its own.
func (w *world) deviceYAML(i int) []byte {
	p, hold := &w.places[i], ""
	if p.hold {
		hold = "  hold: {reason: disk being replaced}\n"
	}
	return fmt.Appendf(nil, "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata:\n  name: gw-%d\n  labels: {role: %s}\nspec:\n  vars: {serial: \"%d\"}\n%s",
		i+1, roles[p.role], i+1, hold)
}

func (w *world) releaseYAML(version string) []byte {
	more := ""
	if image := w.image(version); image != "" {
		more = fmt.Sprintf("  os: {image: %s}\n", image)
	}
	switch k := w.kind(version); {
	case k == fails && w.boots:
		more += "  hooks: {afterRebooting: {check: {run: [/bin/false]}}}\n"
	case k == fails:
		more += "  hooks: {afterUpdating: {check: {run: [/nonexistent/check]}}}\n"
	case k == failsAgain:
		more += fmt.Sprintf("  onDevice: {retries: %d}\n", w.retries)
	case k == observes:
		more += "  onDevice: {mode: observe}\n"
	case k == refuses:
		more += "  requires: {paths: [/nonexistent]}\n"
	}
	return fmt.Appendf(nil, `apiVersion: gitopsd.dev/v1alpha1
kind: Release
metadata: {name: %s}
spec:
  files:
    /etc/version: {content: "%[1]s {{.vars.serial}}\n", template: true}
    /etc/%[1]s: {content: "only of this one\n"}
%s`, version, more)
}

// fleet is the whole fleet repository.
func (w *world) fleet() map[string][]byte {
	files := w.policyFiles()
	for i := range w.places {
		files[w.places[i].path(i)] = w.deviceYAML(i)
	}
	for _, v := range versions {
		files["releases/gateways/"+v+".yaml"] = w.releaseYAML(v)
	}
	return files
}

func (w *world) policyFiles() map[string][]byte {
	files := map[string][]byte{}
	for _, name := range policies {
		files["policies/"+name+".yaml"] = w.policyYAML(name)
	}
	return files
}

// targetOf is where a device is to go, by what stands on main.
func (w *world) targetOf(id string) string {
	if w.plans != nil {
		return w.plans.now.target(w.plans.now.device(id))
	}
	return w.target
}

func (w *world) push(message string, files map[string][]byte) {
	w.logf("OPERATOR: %s", message)
	w.repo.Push("main", message, w.now, files)
}

func (w *world) pushPolicy(message string) { w.push(message, w.policyFiles()) }

// change writes what was decided about one device.
func (w *world) change(i int, message string, f func(p *place)) {
	p := &w.places[i]
	files := map[string][]byte{}
	if !p.gone {
		files[p.path(i)] = nil
	}
	f(p)
	if !p.gone {
		files[p.path(i)] = w.deviceYAML(i)
	}
	w.push(message+" "+w.devices[i].id, files)
}

func (w *world) hold(i int, on bool) {
	if w.places[i].hold != on {
		w.change(i, map[bool]string{true: "hold", false: "release"}[on], func(p *place) { p.hold = on })
	}
}

// acceptDeletions is the line without which no fleet loses all its devices.
const acceptDeletions = "\n\nGitopsd-Accept-Deletions: 9\n\nof which one is"

// remove takes a device out of the fleet, or brings it back. One always stays.
func (w *world) remove(i int, accepted bool) {
	if w.places[i].gone {
		w.change(i, "bring back", func(p *place) { p.gone = false })
		return
	}
	there := 0
	for _, p := range w.places {
		if !p.gone {
			there++
		}
	}
	if there == 1 {
		return
	}
	message := "remove"
	if accepted {
		message += acceptDeletions
	}
	w.change(i, message, func(p *place) { p.gone = true })
}

// move gives a device another role and with it another policy, or puts its
// file elsewhere.
func (w *world) move(i, n int) {
	switch n % 3 {
	case 0:
		w.change(i, "another role for", func(p *place) { p.role = map[int]int{gateway: sensor, sensor: gateway, spare: gateway}[p.role] })
	case 1:
		w.change(i, "another folder for", func(p *place) { p.moved = !p.moved })
	case 2:
		w.change(i, "no use for", func(p *place) { p.role = spare })
	}
}
