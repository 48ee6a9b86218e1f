package sweep

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

var epoch = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

// world is a fleet repository in memory, its devices, and a clock.
type world struct {
	t       *testing.T
	repo    *memRepo
	now     time.Time
	up      time.Duration
	boot    string
	devices map[string]*fakeDevice
	policy  map[string]string // fields of the policy's spec
	state   string
	read    *Status // the status branch as read last
}

func newWorld(t *testing.T, devices int) *world {
	w := &world{
		t: t, repo: newMemRepo(), now: epoch, up: time.Hour, boot: "boot-1",
		devices: map[string]*fakeDevice{},
		policy:  map[string]string{"enabled": "true", "targetVersion": "v1.0.0", "updateTimeout": "30m"},
		state:   t.TempDir(),
	}
	files := map[string]string{}
	for i := 1; i <= devices; i++ {
		id := fmt.Sprintf("gw-%02d", i)
		files["devices/berlin/"+id+".yaml"] = deviceYAML(id, "")
		w.add(id)
	}
	files["policies/gateways.yaml"] = w.policyYAML()
	for _, v := range []string{"v1.0.0", "v1.1.0", "v1.2.0"} {
		files["releases/gateways/"+v+".yaml"] = releaseYAML(v)
	}
	files["files/motd"] = "welcome\n"
	w.push("first commit", files)
	return w
}

func (w *world) add(id string) *fakeDevice {
	d := newFakeDevice(w.t, w.repo, func() time.Time { return w.now }, id)
	w.devices[id] = d
	return d
}

// deviceYAML is a device of its own kind: its variable makes its digest
// differ from every other's.
func deviceYAML(id, more string) string {
	return fmt.Sprintf("apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata:\n  name: %s\n  labels: {role: gateway}\nspec:\n  vars: {serial: \"%s\"}\n%s", id, id, more)
}

func releaseYAML(version string) string {
	return fmt.Sprintf(`apiVersion: gitopsd.dev/v1alpha1
kind: Release
metadata:
  name: %s
spec:
  files:
    /etc/version: {content: "%s {{.vars.serial}}\n", template: true}
    /etc/motd: {source: files/motd}
    /etc/name: {source: files/name.tmpl, template: true}
`, version, version)
}

func (w *world) policyYAML() string {
	var b strings.Builder
	b.WriteString("apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: gateways}\nspec:\n  selector: {matchLabels: {role: gateway}}\n")
	for _, k := range slices.Sorted(maps.Keys(w.policy)) {
		fmt.Fprintf(&b, "  %s: %s\n", k, w.policy[k])
	}
	return b.String()
}

func (w *world) push(message string, files map[string]string) string {
	if files == nil {
		files = map[string]string{}
	}
	if _, ok := files["files/name.tmpl"]; !ok {
		files["files/name.tmpl"] = "name={{.device.name}}\n"
	}
	return w.repo.push("main", message, w.now, files)
}

// change merges a change of the policy: key, value pairs.
func (w *world) change(message string, kv ...string) string {
	for i := 0; i < len(kv); i += 2 {
		if kv[i+1] == "" {
			delete(w.policy, kv[i])
		} else {
			w.policy[kv[i]] = kv[i+1]
		}
	}
	return w.push(message, map[string]string{"policies/gateways.yaml": w.policyYAML()})
}

func (w *world) remote() *memRemote { return &memRemote{memRepo: w.repo} }

// daemon makes one with the world's clock; edits adjust its configuration.
func (w *world) daemon(edits ...func(*Config)) *Daemon {
	w.t.Helper()
	cfg := Config{
		Remote: w.remote(), State: w.state, OwnVersion: "v0.1.0",
		Now:    func() time.Time { return w.now },
		Uptime: func() (time.Duration, string, error) { return w.up, w.boot, nil },
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	d, err := New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w *world) pass(by time.Duration) {
	w.now = w.now.Add(by)
	w.up += by
}

func (w *world) ids() []string { return slices.Sorted(maps.Keys(w.devices)) }

// sweep does one pass that must work.
func (w *world) sweep(d *Daemon) Pass {
	w.t.Helper()
	p, err := d.Once(w.t.Context())
	if err != nil {
		w.t.Fatalf("sweep: %v", err)
	}
	w.checkStatus()
	if p.Committed {
		subject := w.subjects(1)[0]
		if strings.HasSuffix(subject, "has news") || strings.HasSuffix(subject, "files") || subject == "status" || len(subject) > maxSubject {
			w.t.Errorf("a status commit does not say what changed: %q", subject)
		}
	}
	if d.rest != nil {
		w.checkRest(d)
	}
	return p
}

// checkRest does once more, and in full, what a daemon may leave out because
// nothing is new: nothing must come of it.
func (w *world) checkRest(d *Daemon) {
	w.t.Helper()
	before := w.commits()
	d.rest = nil
	p, err := d.Once(w.t.Context())
	if err != nil {
		w.t.Fatalf("sweep once more: %v", err)
	}
	if p.Committed || w.commits() != before || len(p.Refused)+len(p.Assigned)+len(p.Ended)+len(p.Recalled) > 0 {
		w.t.Fatalf("a pass that was thought to have nothing to do did %+v: %q", p, w.subjects(w.commits()-before))
	}
}

// round lets every device take a step and the daemon sweep, a minute later.
func (w *world) round(d *Daemon) Pass {
	w.t.Helper()
	for _, id := range w.ids() {
		w.devices[id].poll()
	}
	w.pass(time.Minute)
	w.beat()
	return w.sweep(d)
}

// beat lets every tenth minute be a heartbeat.
func (w *world) beat() {
	if int(w.now.Sub(epoch)/time.Minute)%10 == 0 {
		for _, id := range w.ids() {
			w.devices[id].heartbeat()
		}
	}
}

func (w *world) rounds(d *Daemon, n int) {
	w.t.Helper()
	for range n {
		w.round(d)
	}
}

// until does rounds until a condition holds.
func (w *world) until(d *Daemon, what string, cond func() bool) {
	w.t.Helper()
	for range 200 {
		if cond() {
			return
		}
		w.round(d)
	}
	w.t.Fatalf("never came: %s\n%s", what, w.describe())
}

// status reads the status branch from the repository, as anybody would.
func (w *world) status() *Status {
	w.t.Helper()
	tip := w.repo.ref(branchRef(schema.DefaultStatusBranch))
	if tip == "" {
		return newStatus()
	}
	if w.read == nil || w.read.Commit != tip {
		st, err := readStatus(context.Background(), w.remote(), tip, w.read)
		if err != nil {
			w.t.Fatalf("read the status branch: %v", err)
		}
		w.read = st
	}
	return w.read
}

func (w *world) code(id string) string {
	w.t.Helper()
	rec := w.status().Devices[id]
	if rec == nil {
		return "absent"
	}
	return rec.Status.Verdict.Code
}

func (w *world) codes() map[string]int {
	w.t.Helper()
	if f := w.status().Fleet; f != nil {
		return f.Counts
	}
	return nil
}

func (w *world) wantCodes(want map[string]int) {
	w.t.Helper()
	if got := w.codes(); !maps.Equal(got, want) {
		w.t.Fatalf("codes are %v, want %v\n%s", got, want, w.describe())
	}
}

func (w *world) on(version string) int {
	n := 0
	for _, d := range w.devices {
		if d.current.Version == version {
			n++
		}
	}
	return n
}

func (w *world) commits() int { return w.repo.count(branchRef(schema.DefaultStatusBranch)) }

// subjects are the first lines of the newest n status commits, newest first.
func (w *world) subjects(n int) []string {
	var lines []string
	for c := w.repo.commits[w.repo.ref(branchRef(schema.DefaultStatusBranch))]; c != nil && len(lines) < n; c = w.repo.commits[c.parent] {
		subject, _, _ := strings.Cut(c.message, "\n")
		lines = append(lines, subject)
	}
	return lines
}

func (w *world) describe() string {
	var b strings.Builder
	st := w.status()
	for _, id := range w.ids() {
		fmt.Fprintf(&b, "%s", w.devices[id])
		if rec := st.Devices[id]; rec != nil {
			fmt.Fprintf(&b, "; %s: %s", rec.Status.Verdict.Code, rec.Status.Verdict.Reason)
			for _, a := range rec.Status.Attempts {
				fmt.Fprintf(&b, "; %d %s %s", a.Attempt, a.Version, a.Outcome)
				if a.Recall != nil {
					fmt.Fprintf(&b, " recall %s", a.Recall.Because)
				}
			}
		}
		b.WriteString("\n")
	}
	if st.Fleet != nil {
		fmt.Fprintf(&b, "conditions: %+v\n", st.Fleet.Conditions)
	}
	return b.String()
}

// checkStatus holds the invariants that can be read off at any time: I1 (no
// more slots taken than maxInFlight), I2 and I3 (who acts has an attempt that
// is open or lost).
func (w *world) checkStatus() {
	w.t.Helper()
	limit := w.slots()
	st := w.status()
	taken, acting := 0, 0
	for id, rec := range st.Devices {
		open := 0
		for _, a := range rec.Status.Attempts {
			if a.Outcome == "" {
				open++
			}
		}
		if open > 1 {
			w.t.Fatalf("%s has %d open attempts\n%s", id, open, w.describe())
		}
		taken += open
		d := w.devices[id]
		if d == nil || d.acting() == 0 {
			continue
		}
		var outcome schema.Outcome
		found := false
		for _, a := range rec.Status.Attempts {
			if a.Attempt == d.acting() {
				outcome, found = a.Outcome, true
			}
		}
		switch {
		case !found || (outcome != "" && outcome != schema.OutcomeLost):
			w.t.Fatalf("I3: %s acts on attempt %d, which is %q\n%s", id, d.acting(), outcome, w.describe())
		case outcome == "":
			acting++
		}
	}
	if taken > limit {
		w.t.Fatalf("I1: %d slots taken, maxInFlight is %d\n%s", taken, limit, w.describe())
	}
	if acting > limit {
		w.t.Fatalf("I2: %d devices act, maxInFlight is %d\n%s", acting, limit, w.describe())
	}
}

// slots is the policy's maxInFlight.
func (w *world) slots() int {
	n, err := strconv.Atoi(w.policy["maxInFlight"])
	if err != nil {
		return 1
	}
	return n
}
