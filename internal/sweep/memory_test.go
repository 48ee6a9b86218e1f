package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// A daemon that remembers and one that makes everything anew in every pass
// come to the same, byte for byte, whatever happens to their fleets.
// GITOPSD_SEED=n plays one history, GITOPSD_SEEDS=n that many.
func TestMemoryChangesNothing(t *testing.T) {
	first, seeds := uint64(0), uint64(4)
	if n, err := strconv.ParseUint(os.Getenv("GITOPSD_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("GITOPSD_SEED"), 10, 64); err == nil {
		first, seeds = n, 1
	}
	for seed := first; seed < first+seeds; seed++ {
		withFakeTime(t, func(t *testing.T) {
			keeps, forgets := newHistory(t, seed), newHistory(t, seed)
			forgets.forgetful = true
			for i := range 60 {
				keeps.step()
				forgets.step()
				a, b := keeps.outcome(), forgets.outcome()
				if a != b {
					t.Fatalf("GITOPSD_SEED=%d, pass %d after %q\nwith a memory: %s\nwithout: %s\n%s", seed, i, keeps.did, a, b, keeps.differences(forgets))
				}
				keeps.check()
			}
		})
	}
}

// history is a fleet to which things happen.
type history struct {
	*world
	rng       *rand.Rand
	dice      *rand.Rand // for what only looks
	daemon    *Daemon
	remote    *memRemote
	forgetful bool   // before every pass
	racing    func() // what somebody else does first, once
	fleet     map[string]*memberFile
	twin      *fakeDevice // a second machine under some device's name
	refused   string      // delivery ref that the server does not move
	did       []string    // what happened before this pass
}

// memberFile is what the fleet says of a device.
type memberFile struct {
	site, role, hold, pin, serial string
	gone                          bool
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{world: newWorld(t, 3+int(seed%4)), rng: rand.New(rand.NewPCG(seed, 7)), dice: rand.New(rand.NewPCG(seed, 8)), fleet: map[string]*memberFile{}}
	for _, id := range h.ids() {
		h.fleet[id] = &memberFile{site: "berlin", role: "gateway", serial: id}
	}
	h.policy["maxInFlight"] = strconv.Itoa(1 + int(seed%3))
	h.push("a second policy", map[string]string{
		"policies/gateways.yaml": h.policyYAML(),
		"policies/spares.yaml":   "apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: spares}\nspec: {enabled: true, releaseLine: gateways, targetVersion: v1.0.0, offlineAfter: 20m, selector: {matchLabels: {role: spare}}}\n",
	})
	h.repo.refuse = func(ref string) string {
		if ref == h.refused {
			return "not this one"
		}
		return ""
	}
	h.restart()
	return h
}

func (h *history) restart() {
	h.remote = h.world.remote()
	h.remote.onCall = func(_ int, op string) {
		if race := h.racing; race != nil && op == "publish" {
			h.racing = nil
			race()
		}
		if h.forgetful && op == "refs" { // a pass begins, perhaps for the second time
			h.forget()
		}
	}
	h.daemon = h.world.daemon(func(c *Config) { c.Remote = h.remote })
}

// other is another daemon's pass.
func (h *history) other() {
	_, _ = h.world.daemon(func(c *Config) { c.State = "" }).Once(h.t.Context())
}

// forget drops all that is kept from one pass to the next to save work.
func (h *history) forget() {
	h.daemon.memory, h.daemon.rest = memory{}, nil
	if h.daemon.status != nil {
		h.daemon.status.tally = nil
	}
}

// outcome is what one more pass comes to: what it says, and every ref after it.
func (h *history) outcome() string {
	p, err := h.daemon.Once(h.t.Context())
	if err != nil {
		p.Stops = nil // as far as it came
	}
	refs := []string{}
	for _, ref := range slices.Sorted(maps.Keys(h.repo.refs)) {
		refs = append(refs, ref+" "+h.repo.refs[ref])
	}
	seen, problem := json.Marshal(h.daemon.state.seen)
	text, problem2 := json.Marshal([]any{p, fmt.Sprint(err), refs, h.daemon.state.watch, string(seen)})
	if err := errors.Join(problem, problem2); err != nil {
		h.t.Fatal(err)
	}
	return string(text)
}

// check compares what is kept with what would be made, at any time, and what
// is counted with what a count gives.
func (h *history) check() {
	h.t.Helper()
	d, st := h.daemon, h.daemon.status
	if st == nil || st.tally == nil || d.valid == nil {
		return
	}
	m := d.memory
	m.entries, m.devices = slices.Clone(m.entries), slices.Clone(m.devices)
	for range 3 {
		s := Scene{
			Fleet: d.valid.fleet, Status: st, Heard: newPass(d).heardOf, NoTimeouts: h.dice.IntN(3) == 0,
			Now: h.now.Add(time.Duration(h.dice.IntN(240)-120) * time.Minute), Delivered: map[string]bool{},
		}
		for id := range st.Devices {
			s.Delivered[id] = h.dice.IntN(4) == 0
		}
		kept, made := m.input(&s), PlannerInput(s)
		if !reflect.DeepEqual(kept.Devices, made.Devices) {
			h.t.Fatalf("after %q\nkept: %+v\nmade: %+v", h.did, kept.Devices, made.Devices)
		}
	}
	kept := *st.tally
	st.tally = nil
	made := *st.counted()
	st.tally = &kept
	if kept.newest.Before(made.newest) || !maps.Equal(kept.awaiting, made.awaiting) || !maps.Equal(kept.open, made.open) ||
		!maps.Equal(kept.failed, made.failed) || !maps.Equal(kept.payloads, made.payloads) {
		h.t.Fatalf("kept up %+v\ncounted %+v", kept, made)
	}
	if fresh, err := readStatus(h.t.Context(), h.remote, st.Commit, nil); err == nil && !maps.Equal(fresh.blobs, st.blobs) {
		h.t.Fatalf("in memory %d paths, on the branch %d", len(st.blobs), len(fresh.blobs))
	}
}

// differences are the files of the status branch that two histories differ in.
func (h *history) differences(o *history) string {
	ref := branchRef(schema.DefaultStatusBranch)
	a, b := h.repo.commits[h.repo.ref(ref)], o.repo.commits[o.repo.ref(ref)]
	if a == nil || b == nil {
		return ""
	}
	text := fmt.Sprintf("%s\nand\n%s\n", a.message, b.message)
	paths := maps.Clone(a.tree.files())
	maps.Copy(paths, b.tree.files())
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		if x, y := h.repo.file(ref, p), o.repo.file(ref, p); string(x) != string(y) {
			text += fmt.Sprintf("--- %s\n%s+++\n%s", p, x, y)
		}
	}
	return text
}

// step lets the devices go on, and a few things happen.
func (h *history) step() {
	h.did, h.refused, h.racing, h.remote.failAt = nil, "", nil, 0
	h.elapse()
	for _, id := range h.ids() {
		if h.rng.IntN(4) > 0 {
			h.devices[id].poll()
		}
		if h.rng.IntN(5) == 0 {
			h.devices[id].heartbeat()
		}
	}
	if h.twin != nil {
		turn(h.twin)
	}
	for range h.rng.IntN(3) {
		things := []func(string, *memberFile, *fakeDevice) string{
			h.device, h.device, h.broken, h.member, h.member, h.policies, h.operations,
		}
		id := h.ids()[h.rng.IntN(len(h.devices))]
		if what := things[h.rng.IntN(len(things))](id, h.fleet[id], h.devices[id]); what != "" {
			h.did = append(h.did, what)
		}
	}
}

// elapse lets some time pass: as a rule a minute, at times more than a limit.
func (h *history) elapse() {
	by := time.Minute
	switch h.rng.IntN(12) {
	case 0:
		by = 0
	case 1:
		by = time.Duration(h.rng.IntN(40)) * time.Minute
	case 2:
		by = 2 * time.Hour
	case 3:
		by = time.Second
	}
	h.pass(by)
	if h.rng.IntN(40) == 0 {
		h.now = h.now.Add(time.Duration(h.rng.IntN(10)-5) * 4 * time.Minute) // somebody sets the clock
		h.did = append(h.did, "clock")
	}
}

// device is what happens on a device.
func (h *history) device(id string, _ *memberFile, dev *fakeDevice) string {
	switch h.rng.IntN(9) {
	case 0:
		dev.busy = !dev.busy
		dev.heartbeat()
		return id + " busy"
	case 1:
		dev.held = !dev.held
		dev.heartbeat()
		return id + " held"
	case 2, 3:
		dev.off = !dev.off
		return id + " off"
	case 4:
		dev.bad["v1.1.0"] = !dev.bad["v1.1.0"]
		return id + " bad"
	case 5:
		dev.refuses["v1.2.0"] = !dev.refuses["v1.2.0"]
		return id + " refuses"
	case 6:
		dev.install += "'"
		dev.seq, dev.ended, dev.step, dev.desired, dev.current = 0, 0, stepIdle, nil, schema.SpecRef{Version: AssumedVersion}
		dev.heartbeat()
		return id + " anew"
	case 7:
		dev.current.Version, dev.current.Digest = "v1.0.0", "sha256:other"
		dev.heartbeat()
		return id + " rolled back"
	}
	h.twin = nil
	if h.rng.IntN(3) == 0 {
		h.twin = newFakeDevice(h.t, h.repo, func() time.Time { return h.now }, id)
		h.twin.install = "install-twin"
		return id + " twice"
	}
	return ""
}

// broken is what happens to reports and deliveries.
func (h *history) broken(id string, _ *memberFile, dev *fakeDevice) string {
	report, delivery := schema.DefaultReportRefs+id, schema.DefaultDeviceRefs+id
	switch h.rng.IntN(6) {
	case 0:
		h.repo.force(report, map[string][]byte{reportFile: fmt.Appendf(nil, "kind: nonsense %d\n", h.rng.IntN(9))})
		return id + " unreadable"
	case 1:
		h.repo.set(report, "")
		return id + " silent"
	case 2:
		dev.seq = max(0, dev.seq-2)
		dev.heartbeat()
		return id + " goes back"
	case 3:
		h.refused = delivery
		return id + " not delivered"
	case 4:
		h.repo.set(delivery, "")
		h.daemon.repairedAt = time.Time{}
		return id + " delivery lost"
	}
	h.repo.force(schema.DefaultReportRefs+"stranger", map[string][]byte{reportFile: benchReport(h.t, 1, 1, false, h.now)})
	return "stranger"
}

// member is what people do to a device in the fleet.
func (h *history) member(id string, m *memberFile, _ *fakeDevice) string {
	files := map[string]string{"devices/" + m.site + "/" + id + ".yaml": ""}
	switch h.rng.IntN(7) {
	case 0, 1:
		m.gone = !m.gone
	case 2:
		m.site = []string{"berlin", "hamburg"}[h.rng.IntN(2)]
	case 3:
		m.role = []string{"gateway", "gateway", "spare", "none"}[h.rng.IntN(4)]
	case 4:
		m.hold = []string{"", "hold: {reason: repair}"}[h.rng.IntN(2)]
	case 5:
		m.pin = []string{"", "pin: v1.1.0"}[h.rng.IntN(2)]
	case 6:
		m.serial = fmt.Sprint(h.rng.IntN(3))
	}
	if !m.gone {
		files["devices/"+m.site+"/"+id+".yaml"] = fmt.Sprintf(
			"apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata:\n  name: %s\n  labels: {role: %s, site: %s}\nspec:\n  vars: {serial: \"%s\"}\n  %s\n  %s\n",
			id, m.role, m.site, m.serial, m.hold, m.pin)
	}
	h.push("device "+id, files)
	return fmt.Sprintf("%s is %+v", id, *m)
}

// policies is what people do to everybody.
func (h *history) policies(id string, _ *memberFile, _ *fakeDevice) string {
	one := func(values ...string) string { return values[h.rng.IntN(len(values))] }
	key, value := "targetVersion", one("v1.0.0", "v1.1.0", "v1.2.0")
	switch h.rng.IntN(16) {
	case 0:
		key, value = "enabled", one("true", "false", "true")
	case 1:
		key, value = "paused", one("", "{reason: later}")
	case 2:
		key, value = "maxInFlight", one("1", "2", "50%")
	case 3:
		key, value = "offlineAfter", one("", "10m", "1h")
	case 4:
		key, value = "settle", one("", "5m")
	case 5:
		key, value = "updateTimeout", one("5m", "30m")
	case 6:
		key, value = "forgetFailuresBefore", text(h.now.Add(time.Duration(h.rng.IntN(60)-30)*time.Minute))
	case 7:
		key, value = "targetVersion", "v9.9.9" // nobody made it
	case 8:
		key, value = "failureLimit", one("0", "2")
	case 9:
		key, value = "waves", one("", "[{name: hamburg, selector: {matchLabels: {site: hamburg}}, soak: 3m, optional: true}]")
	case 10:
		key, value = "pilot", one("", "{count: 1, soak: 2m}")
	case 11:
		key, value = "windows", one("", "[{start: \"11:00\", duration: 90m, timeZone: UTC}]")
	case 12:
		key, value = "budgets", one("", "[{groupBy: [site], maxUnavailable: 1}]")
	}
	h.change(key, key, value)
	return key + " " + value
}

// operations is what happens to the daemon.
func (h *history) operations(id string, _ *memberFile, _ *fakeDevice) string {
	note := func() {
		h.repo.push(schema.DefaultStatusBranch, "by hand", h.now, map[string]string{"notes": text(h.now)})
	}
	switch h.rng.IntN(10) {
	case 0:
		if h.rng.IntN(2) == 0 { // and another one remembers nothing of the reports
			h.state = h.t.TempDir()
			for _, id := range h.ids() {
				h.repo.set(schema.DefaultReportRefs+id, "")
			}
		}
		h.restart()
		return "restart"
	case 1:
		h.other()
		return "another daemon"
	case 2:
		h.racing = h.other
		return "race"
	case 3, 4:
		h.racing = note
		return "race that changes nothing"
	case 5, 6:
		h.remote.failAt, h.remote.after = h.remote.calls+3+h.rng.IntN(3), h.rng.IntN(2) == 0
		return "cut off"
	case 7:
		h.brake([]string{"", "devices: {" + id + ": a look at it}\n", "policies: {gateways: not now}\n", "all: everybody waits\n", "nonsense"}[h.rng.IntN(5)])
		return "brake"
	case 8:
		h.push("a release", map[string]string{"releases/gateways/v1.1.0.yaml": releaseYAML("v1.1.0") + fmt.Sprintf("    /etc/extra: {content: \"%d\\n\"}\n", h.rng.IntN(9))})
		return "release"
	}
	h.repo.push(schema.DefaultStatusBranch, "by hand", h.now, map[string]string{"payloads/00/00": "left over\n", "failures/gateways/v0.yaml": "kind: nonsense\n"})
	return "status by hand"
}
