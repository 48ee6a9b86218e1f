package protocoltest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// fleetModel is a fleet repository as its operators mean it: what the daemon
// has to make of one commit. A value is never changed once it is committed.
type fleetModel struct {
	policies [2]policyModel
	devices  []deviceModel
	max      limitModel // of the fleet; 0 = no limit
	budgets  []budgetModel
	freezes  []freezeModel
	paused   bool
	overlay  int // edition of what all devices get
	invalid  bool
	retry    time.Time // failures before are forgotten; zero = none are
}

type policyModel struct {
	name         string
	target       string
	down         bool // devices that are newer may go down to it
	paused       bool
	max          limitModel
	minAvailable int
	failureLimit int
	pilot        int // 0 = none
	pilotSoak    time.Duration
	waves        []waveModel
	budgets      []budgetModel
	windows      []windowModel
	freezes      []freezeModel
	minInterval  time.Duration
}

type deviceModel struct {
	id, policy, site, role string
	gone                   bool // not in the repository now
	hold                   bool
	pin                    string // a version; "" = none
}

// limitModel is a count or a percentage.
type limitModel struct {
	n       int
	percent bool
}

func (l limitModel) String() string {
	if l.percent {
		return fmt.Sprintf("%d%%", l.n)
	}
	return fmt.Sprint(l.n)
}

// of is the limit of so many devices; a percentage rounds down, to 1 at least.
func (l limitModel) of(devices int) int {
	if l.percent {
		return max(1, l.n*devices/100)
	}
	return l.n
}

type waveModel struct {
	name, label, value string // of its selector
	threshold          int    // percent
	minSuccess         int
	soak               time.Duration
	optional           bool
}

type budgetModel struct {
	label string // that groups
	max   limitModel
}

// windowModel is open on days of the week, zone east of Greenwich.
type windowModel struct {
	days            []time.Weekday // none = all
	start, duration time.Duration
	zone            string
	east            time.Duration
}

type freezeModel struct{ from, to time.Time }

func (m *fleetModel) clone() *fleetModel {
	c := *m
	c.devices = slices.Clone(m.devices)
	return &c
}

func (m *fleetModel) policy(name string) *policyModel {
	for i := range m.policies {
		if m.policies[i].name == name {
			return &m.policies[i]
		}
	}
	return nil
}

// device is one of the repository.
func (m *fleetModel) device(id string) *deviceModel {
	for _, d := range m.present() {
		if d.id == id {
			return d
		}
	}
	return nil
}

func (m *fleetModel) present() []*deviceModel {
	var list []*deviceModel
	for i := range m.devices {
		if d := &m.devices[i]; !d.gone {
			list = append(list, d)
		}
	}
	return list
}

// target is where a device is to go.
func (m *fleetModel) target(d *deviceModel) string {
	if d.pin != "" {
		return d.pin
	}
	return m.policy(d.policy).target
}

func (d *deviceModel) label(key string) string {
	switch key {
	case "site":
		return d.site
	case "role":
		return d.role
	}
	return ""
}

// wave is the index of a device's wave; the rest is one more than all.
func (p *policyModel) wave(d *deviceModel) int {
	for i, w := range p.waves {
		if d.label(w.label) == w.value {
			return i
		}
	}
	return len(p.waves)
}

// open says whether windows let anybody go; the zones have no summer time.
func (p *policyModel) open(t time.Time) bool {
	const day = 24 * time.Hour
	for _, w := range p.windows {
		local := t.UTC().Add(w.east)
		for back := range 2 {
			start := local.Truncate(day).Add(-time.Duration(back) * day).Add(w.start)
			today := len(w.days) == 0 || slices.Contains(w.days, start.Weekday())
			if today && !local.Before(start) && local.Before(start.Add(w.duration)) {
				return true
			}
		}
	}
	return len(p.windows) == 0
}

func frozen(list []freezeModel, t time.Time) bool {
	return slices.ContainsFunc(list, func(f freezeModel) bool { return !t.Before(f.from) && t.Before(f.to) })
}

func list(b *strings.Builder, key string, items []string) {
	if len(items) > 0 {
		fmt.Fprintf(b, "  %s: [%s]\n", key, strings.Join(items, ", "))
	}
}

func budgetsYAML(budgets []budgetModel) []string {
	var out []string
	for _, b := range budgets {
		out = append(out, fmt.Sprintf("{groupBy: [%s], maxUnavailable: %s}", b.label, b.max))
	}
	return out
}

func freezesYAML(freezes []freezeModel) []string {
	var out []string
	for _, f := range freezes {
		out = append(out, fmt.Sprintf("{from: %s, to: %s, note: holidays}", f.from.Format(time.RFC3339), f.to.Format(time.RFC3339)))
	}
	return out
}

func (p *policyModel) yaml(w *world, retry time.Time) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: gitopsd.dev/v1alpha1
kind: Policy
metadata: {name: %s}
spec:
  enabled: true
  selector: {matchLabels: {fleet: %[1]s}}
  releaseLine: gateways
  targetVersion: %s
  maxInFlight: %s
  minAvailable: %d
  failureLimit: %d
  refusalLimit: 20
  maxAttempts: %d
  backoff: {base: 1m, factor: 1}
  pickupTimeout: %s
  updateTimeout: %s
`, p.name, p.target, p.max, p.minAvailable, p.failureLimit, w.maxAttempts, schema.Duration(pickupTimeout), schema.Duration(updateTimeout))
	if p.down {
		list(&b, "rollbackFrom", others(p.target))
	}
	if w.settle {
		fmt.Fprintf(&b, "  settle: %s\n", schema.Duration(settleTime))
	}
	if p.paused {
		b.WriteString("  paused: {reason: look}\n")
	}
	if p.pilot > 0 {
		fmt.Fprintf(&b, "  pilot: {count: %d, soak: %s}\n", p.pilot, schema.Duration(p.pilotSoak))
	}
	if p.minInterval > 0 {
		fmt.Fprintf(&b, "  minInterval: %s\n", schema.Duration(p.minInterval))
	}
	if !retry.IsZero() {
		fmt.Fprintf(&b, "  forgetFailuresBefore: %s\n", retry.Format(time.RFC3339))
	}
	var waves, windows []string
	for _, v := range p.waves {
		waves = append(waves, fmt.Sprintf("{name: %s, selector: {matchLabels: {%s: %s}}, successThreshold: %d%%, minSuccess: %d, soak: %s, optional: %v}",
			v.name, v.label, v.value, v.threshold, v.minSuccess, schema.Duration(v.soak), v.optional))
	}
	for _, v := range p.windows {
		days := ""
		for _, d := range v.days {
			days += d.String()[:3] + ", "
		}
		if days != "" {
			days = "days: [" + strings.TrimSuffix(days, ", ") + "], "
		}
		windows = append(windows, fmt.Sprintf("{%sstart: \"%02d:%02d\", duration: %s, timeZone: %s}",
			days, int(v.start.Hours()), int(v.start.Minutes())%60, schema.Duration(v.duration), v.zone))
	}
	list(&b, "waves", waves)
	list(&b, "windows", windows)
	list(&b, "budgets", budgetsYAML(p.budgets))
	list(&b, "freezes", freezesYAML(p.freezes))
	return []byte(b.String())
}

func (d *deviceModel) yaml() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata:\n  name: %s\n  labels: {fleet: %s, site: %s, role: %s}\nspec:\n  vars: {serial: \"%[1]s\"}\n",
		d.id, d.policy, d.site, d.role)
	if d.hold {
		b.WriteString("  hold: {reason: disk being replaced}\n")
	}
	if d.pin != "" {
		fmt.Fprintf(&b, "  pin: %s\n", d.pin)
	}
	return []byte(b.String())
}

// files are all of the repository but the releases; nil content is no file.
func (m *fleetModel) files(w *world) map[string][]byte {
	files := map[string][]byte{"policies/broken.yaml": nil, "fleet.yaml": nil}
	for i := range m.policies {
		p := &m.policies[i]
		files["policies/"+p.name+".yaml"] = p.yaml(w, m.retry)
	}
	for i := range m.devices {
		d := &m.devices[i]
		if files["devices/"+d.id+".yaml"] = nil; !d.gone {
			files["devices/"+d.id+".yaml"] = d.yaml()
		}
	}
	files["overlays/all.yaml"] = fmt.Appendf(nil,
		"apiVersion: gitopsd.dev/v1alpha1\nkind: Overlay\nmetadata: {name: all}\nspec:\n  desired: {files: {/etc/motd: {content: \"edition %d\\n\"}}}\n", m.overlay)
	if m.invalid {
		files["policies/broken.yaml"] = []byte("apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: broken}\nspec: {maxInFlight: none}\n")
	}
	var b strings.Builder
	if m.paused {
		b.WriteString("  paused: {reason: storm}\n")
	}
	if m.max.n > 0 {
		fmt.Fprintf(&b, "  maxInFlight: %s\n", m.max)
	}
	list(&b, "budgets", budgetsYAML(m.budgets))
	list(&b, "freezes", freezesYAML(m.freezes))
	if b.Len() > 0 {
		files["fleet.yaml"] = []byte("apiVersion: gitopsd.dev/v1alpha1\nkind: Fleet\nspec:\n" + b.String())
	}
	return files
}
