package planner

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the outcomes in testdata")

// caseNow is the present of all cases.
var caseNow = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// TestCases runs the cases in testdata. Each is a pair of files in an
// archive: <name>/in and <name>/want. What a case leaves out:
//
//   - a policy is called p, is enabled, goes to v1.5.0, and calls a device
//     offline after 15m;
//   - a device is governed by p, seen a minute ago, online, idle, at v1.4.0,
//     its target is v1.5.0 with a digest of its own, in rollout r1;
//   - an attempt is the device's, at its target, of the same installation;
//   - what a device said is fresh.
//
// Times are written relative to now ("-20m"), durations as "1h".
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runArchive(t, file) })
	}
}

func runArchive(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []txtar.File
	for _, f := range archive.Files {
		name, kind, _ := strings.Cut(f.Name, "/")
		if kind != "in" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			in := readCase(t, f.Data)
			before := marshal(t, in)
			got := describe(Plan(in))
			if after := marshal(t, in); before != after {
				t.Errorf("Plan changed its input:\n%s", cmp.Diff(before, after))
			}
			out = append(out, f, txtar.File{Name: name + "/want", Data: []byte(got)})
			i := slices.IndexFunc(archive.Files, func(w txtar.File) bool { return w.Name == name+"/want" })
			if *update {
				return
			}
			if i < 0 {
				t.Fatal("no outcome is written: run with -update, and read it")
			}
			if diff := cmp.Diff(string(archive.Files[i].Data), got); diff != "" {
				t.Errorf("in:\n%s\nwant (-) got (+):\n%s", f.Data, diff)
			}
		})
	}
	if *update && !t.Failed() {
		archive.Files = out
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func marshal(t *testing.T, in Input) string {
	t.Helper()
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// describe writes a plan for people, one line for each finding.
func describe(r Result) string {
	var b strings.Builder
	for _, d := range r.Decisions {
		what := "start"
		switch {
		case d.OnTarget:
			what = "on target"
		case d.End != "":
			what = "end " + string(d.End)
		case d.Recall != "":
			what = "recall " + string(d.Recall)
		}
		fmt.Fprintf(&b, "# %s/%d %s: %s", d.Device, d.Attempt, what, d.Because)
		if d.Stage != "" {
			fmt.Fprintf(&b, " (stage %s)", d.Stage)
		}
		b.WriteString("\n")
	}
	for _, v := range r.Verdicts {
		fmt.Fprintf(&b, "%s %s", v.Device.ID, v.Code)
		if v.Position > 0 {
			fmt.Fprintf(&b, " %d", v.Position)
		}
		if !v.NotBefore.IsZero() {
			fmt.Fprintf(&b, " until %s", at(v.NotBefore))
		}
		fmt.Fprintf(&b, ": %s", v.Reason)
		if v.Detail != "" {
			fmt.Fprintf(&b, " [%s]", v.Detail)
		}
		b.WriteString("\n")
	}
	for _, p := range r.Policies {
		fmt.Fprintf(&b, "= %s %s: N %d, slots %d, in flight %d, available %d, failed %d, refused %d",
			p.Policy, p.Target, p.N, p.Slots, p.InFlight, p.Available, p.Failed, p.Refused)
		if p.Halted {
			fmt.Fprintf(&b, ", halted by %s", strings.Join(p.HaltedBy, " "))
		}
		b.WriteString("\n")
		for _, w := range p.Warnings {
			fmt.Fprintf(&b, "! %s\n", w)
		}
	}
	return b.String()
}

// caseFile is the form of an input in testdata; the values of its maps have
// the fields of the types of this package.
type caseFile struct {
	Own        *string                   `json:"own"`
	Watching   string                    `json:"watching"`
	Stopped    string                    `json:"stopped"`
	NoTimeouts bool                      `json:"no_timeouts"`
	Policy     map[string]any            `json:"policy"`
	Policies   map[string]map[string]any `json:"policies"`
	Devices    map[string]map[string]any `json:"devices"`
}

func readCase(t *testing.T, data []byte) Input {
	t.Helper()
	var c caseFile
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		t.Fatal(err)
	}
	in := Input{Now: caseNow, OwnVersion: "v1.5.0", Stopped: c.Stopped, NoTimeouts: c.NoTimeouts}
	if c.Own != nil {
		in.OwnVersion = *c.Own
	}
	if c.Watching != "" {
		in.Watching = caseTime(t, c.Watching)
	}
	if c.Policies == nil {
		c.Policies = map[string]map[string]any{"p": c.Policy}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Policies)) {
		in.Policies = append(in.Policies, fill(t, Policy{
			Name: name, Enabled: true, TargetVersion: "v1.5.0", Line: name, OfflineAfter: 15 * time.Minute,
		}, c.Policies[name]))
	}
	for _, key := range slices.Sorted(maps.Keys(c.Devices)) {
		in.Devices = append(in.Devices, readDevice(t, key, c.Devices[key]))
	}
	return in
}

// readDevice reads one device. A key may have a suffix after a slash, so that
// two devices can have one id.
func readDevice(t *testing.T, key string, fields map[string]any) Device {
	id, _, _ := strings.Cut(key, "/")
	attempts, _ := fields["attempts"].([]any)
	delete(fields, "attempts")
	if said, ok := fields["said"].(map[string]any); ok {
		if _, told := said["fresh"]; !told {
			said["fresh"] = true
		}
	}
	d := fill(t, Device{
		ID: id, Policy: "p", Version: "v1.4.0", ProtocolVersion: 1, Seen: true, Online: true,
		LastSeen: caseNow.Add(-time.Minute), InstallID: "i-" + id, Rollout: "r1",
		Target: Target{Version: "v1.5.0", Digest: "v1.5.0-" + id},
	}, fields)
	for i, a := range attempts {
		fields, _ := a.(map[string]any)
		d.Attempts = append(d.Attempts, fill(t, Attempt{
			Number: int64(i + 1), Policy: "p", Line: "p", Target: d.Target, Rollout: d.Rollout, InstallID: d.InstallID,
			AssignedAt: caseNow.Add(-2 * time.Minute),
		}, fields))
	}
	return d
}

// fill sets the fields that a case writes on top of the defaults.
func fill[T any](t *testing.T, v T, fields map[string]any) T {
	t.Helper()
	b, err := json.Marshal(inUnits(t, "", fields))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// inUnits turns the forms of times and durations of a case into those of the
// JSON encoding.
func inUnits(t *testing.T, name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for k, e := range v {
			m[k] = inUnits(t, k, e)
		}
		return m
	case string:
		switch name {
		case "pickup_timeout", "update_timeout", "settle", "base", "cap", "offline_after", "absent_after", "heartbeat":
			d, err := time.ParseDuration(v)
			if err != nil {
				t.Fatal(err)
			}
			return d
		case "last_seen", "offline_since", "forget_before", "assigned_at", "pickup_from", "started_at", "on_target_at", "ended_at":
			return caseTime(t, v)
		}
	}
	return v
}

func caseTime(t *testing.T, s string) time.Time {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return caseNow.Add(d)
}
