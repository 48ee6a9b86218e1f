package sweep

import (
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// The report of an agent that is newer than the daemon counts; what the daemon
// does not know of it is left out.
func TestReportOfANewerAgentCounts(t *testing.T) {
	report := schema.Report{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindReport}, Metadata: schema.Metadata{Name: "gw-1"},
		InstallID: "a", Sequence: 3, AgentVersion: "v9.0.0", ProtocolVersion: 1, Capabilities: []string{"files"},
		Phase: schema.PhaseUpdated, ReportedAt: epoch,
	}
	data, err := schema.Encode(&report)
	if err != nil {
		t.Fatal(err)
	}
	newer := append([]byte("power: {source: mains}\n"), data...)
	r, problem := readReport("gw-1", map[string][]byte{reportFile: newer}, true)
	if problem != "" || r == nil || r.Sequence != 3 {
		t.Errorf("%q, %+v", problem, r)
	}
	if _, problem := readReport("gw-1", map[string][]byte{reportFile: append([]byte("sequence: 4\n"), data...)}, true); problem == "" {
		t.Error("a report with two sequences is taken")
	}
}

// A newer daemon, or one of the same fleet that has not been updated yet,
// writes more into its documents, and a release of last year has a spec that
// today's rules refuse. The fleet goes on, nothing is written for that alone,
// and a device's spec is passed on as it is when its document changes.
func TestStatusOfANewerDaemonStopsNobody(t *testing.T) {
	const device, assigned = "devices/berlin/gw-01.yaml", "assigned/berlin/gw-01.yaml"
	w, d := done(t, 2)
	w.handEdit(fleetFile, "sourceCommit:", "shard: 3\nsourceCommit:")
	w.handEdit(device, "verdict:\n", "energy: {saved: 7}\nverdict:\n  cost: 3\n")
	w.handEdit(assigned, "generation:", "after: gw-02\ngeneration:")
	w.handEdit(assigned, "spec:\n", "spec:\n  sensors: {a: [1]}\n  hooks: {beforeBreakfast: {x: {run: sh}}}\n")
	tip := w.repo.ref(branchRef(schema.DefaultStatusBranch))
	once := func(d *Daemon) {
		t.Helper()
		p, err := d.Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wantNoStop(t, p)
	}
	once(d)
	once(w.daemon())
	if now := w.repo.ref(branchRef(schema.DefaultStatusBranch)); now != tip {
		t.Errorf("it was written without a change: %v", w.subjects(3))
	}
	w.push("hold it", map[string]string{device: deviceYAML("gw-01", "  hold: {reason: look}\n")})
	once(d)
	a := w.status().Devices["gw-01"].Assignment
	if a.Hold == nil || a.Spec["sensors"] == nil || a.Spec["hooks"] == nil {
		t.Errorf("the device is given %+v", a)
	}
}
