package sweep

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// clockOf replaces the time of a device's report by what its clock showed.
func (d *fakeDevice) clockOf(text string) {
	d.heartbeat()
	ref := schema.DefaultReportRefs + d.id
	data := d.repo.file(ref, reportFile)
	now := []byte(d.clock().UTC().Format(time.RFC3339))
	if !bytes.Contains(data, now) {
		d.t.Fatalf("no %s in\n%s", now, data)
	}
	d.repo.force(ref, map[string][]byte{reportFile: bytes.ReplaceAll(data, now, []byte(text))})
}

// A device's clock may show anything; what is written of it can be read again,
// and the others go on.
func TestClockOfADeviceHarmsNobody(t *testing.T) {
	for text, code := range map[string]string{
		"0000-01-01T00:00:00+23:59": "NeverSeen", // no time that anybody could write
		"1970-01-01T00:00:00+23:59": "NeverSeen",
		"1970-01-01T00:00:07Z":      "Current", // never set; it is heard all the same
		"9999-12-31T23:59:59Z":      "Current",
		"9999-12-31T23:59:59-23:59": "NeverSeen",
	} {
		t.Run(text, func(t *testing.T) {
			w, _ := done(t, 2)
			w.add("gw-03")
			w.devices["gw-03"].current = w.devices["gw-01"].current
			w.push("one more", map[string]string{"devices/berlin/gw-03.yaml": deviceYAML("gw-03", "")})
			w.devices["gw-03"].current = schema.SpecRef{Version: "v1.0.0"}
			w.devices["gw-03"].clockOf(text)
			w.state = t.TempDir()
			for range 3 { // each a daemon that has just been started
				w.pass(time.Minute)
				wantNoStop(t, w.sweep(w.daemon()))
			}
			if got := w.code("gw-03"); got != code {
				t.Errorf("the device is %s, want %s\n%s", got, code, w.describe())
			}
			if o := w.status().Devices["gw-03"].Status.Observed; o == nil || (o.Problem != "") != (code == "NeverSeen") {
				t.Errorf("observed is %+v", o)
			}
			w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
			d := w.daemon()
			w.until(d, "the others on v1.1.0", func() bool {
				return w.devices["gw-01"].current.Version == "v1.1.0" && w.devices["gw-02"].current.Version == "v1.1.0"
			})
		})
	}
}

// What a daemon found out and cannot write concerns its device alone.
func TestUnwritableStatusIsOfOneDevice(t *testing.T) {
	w, d := done(t, 3)
	w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	w.pass(time.Minute)
	d.state.seen["gw-01"].At = time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)
	p, err := d.Once(t.Context())
	if err != nil || len(p.Assigned) != 1 {
		t.Fatalf("the others do not go on: %v, %+v", err, p)
	}
	o := w.status().Devices["gw-01"].Status.Observed
	if !strings.Contains(o.Problem, "cannot be recorded") || o.Version != "v1.0.0" {
		t.Fatalf("observed is %+v", o)
	}
	w.heartbeats()
	w.resumes(d)
	if o := w.status().Devices["gw-01"].Status.Observed; o.Problem != "" {
		t.Errorf("the problem stays: %s", o.Problem)
	}
}

func (w *world) heartbeats() {
	for _, id := range w.ids() {
		w.devices[id].heartbeat()
	}
}

// handEdit changes a document of the status branch as a person might.
func (w *world) handEdit(path, old, new string) {
	w.t.Helper()
	ref := branchRef(schema.DefaultStatusBranch)
	text := string(w.repo.file(ref, path))
	if !strings.Contains(text, old) {
		w.t.Fatalf("no %q in %s:\n%s", old, path, text)
	}
	w.repo.push(schema.DefaultStatusBranch, "by hand", w.now, map[string]string{path: strings.Replace(text, old, new, 1)})
}

// Numbers that no daemon counted up to stop it before it writes one that
// nobody can read; rebuilding gets rid of them.
func TestNumbersOutOfRange(t *testing.T) {
	const device, assigned = "devices/berlin/gw-01.yaml", "assigned/berlin/gw-01.yaml"
	for _, n := range []int64{1<<53 - 1, saneNumber, saneNumber - 1} {
		for _, edit := range []struct{ path, field string }{{device, "generation: "}, {assigned, "generation: "}, {device, "attempt: "}, {assigned, "attempt: "}} {
			t.Run(fmt.Sprint(n, " ", edit.path, " ", edit.field), func(t *testing.T) {
				w, _ := done(t, 2)
				source := w.repo.ref("refs/heads/main")
				w.handEdit(edit.path, edit.field+"1\n", fmt.Sprintf("%s%d\n", edit.field, n))
				w.change("gateways: v1.1.0", "targetVersion", "v1.1.0", "maxInFlight", "2", "minAvailable", "0")
				w.heartbeats()
				w.state = t.TempDir()
				var p Pass
				for range 4 {
					var err error
					w.pass(time.Minute)
					if p, err = w.daemon().Once(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				wantStop(t, p, "StatusUnreadable")
				w.state = t.TempDir()
				d := w.daemon(func(c *Config) { c.Accept.StatusLoss = source })
				wantNoStop(t, w.sweep(d)) // before the device sees what was written
				w.resumes(d)
			})
		}
	}
}

func TestDeliveryNumberOutOfRangeIsWrittenOver(t *testing.T) {
	w, _ := done(t, 2)
	ref := schema.DefaultDeviceRefs + "gw-01"
	text := string(w.repo.file(ref, assignmentFile))
	w.repo.force(ref, map[string][]byte{assignmentFile: []byte(strings.Replace(text, "generation: 1\n", fmt.Sprintf("generation: %d\n", int64(1<<53-1)), 1))})
	d := w.daemon()
	wantNoStop(t, w.sweep(d))
	if got := string(w.repo.file(ref, assignmentFile)); got != text {
		t.Fatalf("the delivery is\n%s", got)
	}
}

// What people write into commits reaches nobody's terminal as it stands.
func TestEscapesOfCommitsAreNotPassedOn(t *testing.T) {
	w, d := done(t, 2)
	w.change("\x1b[2J\x07 v1.1.0 \u202e!", "targetVersion", "v1.1.0")
	w.rounds(d, 4)
	for c := w.repo.commits[w.repo.ref(branchRef(schema.DefaultStatusBranch))]; c != nil; c = w.repo.commits[c.parent] {
		if strings.ContainsAny(c.message, "\x1b\x07\u202e") {
			t.Errorf("a status commit says %q", c.message)
		}
		for p, f := range c.tree.files() {
			if !strings.HasPrefix(p, payloadsDir) && bytes.ContainsAny(w.repo.blobs[f.blob], "\x1b\x07\u202e") {
				t.Errorf("%s says %q", p, w.repo.blobs[f.blob])
			}
		}
	}
	because := w.status().Fleet
	if !strings.Contains(because.Subject, "v1.1.0") {
		t.Errorf("the subject is %q", because.Subject)
	}
}

// Ten thousand devices that fail at once fit into the documents about them.
func TestListsOfDevicesAreBounded(t *testing.T) {
	p := newPass(&Daemon{})
	p.status = newStatus()
	p.now = epoch
	p.fleet = &loadedFleet{fleet: &schema.Fleet{}}
	for i := range 10_000 {
		st := &schema.DeviceStatus{Attempts: []schema.Attempt{{
			Attempt: 1, Policy: "gateways", Version: "v1.0.0", Digest: "sha256:00", Rollout: "sha256:00", InstallID: "a",
			AssignedAt: epoch, EndedAt: &epoch, Outcome: schema.OutcomeFailed, Message: strings.Repeat("x", 500),
		}}}
		st.Metadata.Name = fmt.Sprintf("gw-%05d", i)
		p.drafts = append(p.drafts, &draft{id: st.Metadata.Name, status: st})
	}
	for at, m := range p.failureMarks() {
		if _, err := schema.Encode(m); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
	for _, dr := range p.drafts {
		dr.status.Attempts[0].Outcome = ""
	}
	out := []schema.RolloutStatus{{Policy: "gateways", State: stateRolling, Next: []string{}, Failed: []string{}}}
	p.inFlight(out, map[string]int{"gateways": 0})
	fleet := &schema.FleetStatus{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindFleetStatus},
		Format:   Format, SweptAt: epoch, Rollouts: out,
	}
	if _, err := schema.Encode(fleet); err != nil {
		t.Error(err)
	}
}
