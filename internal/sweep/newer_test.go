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
