package planner

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"sigs.k8s.io/yaml"
)

// caseFile is the form of an input in testdata; the values of its maps have
// the fields of the types of this package.
type caseFile struct {
	Now        string                    `json:"now"` // in full; absent = caseNow
	Own        *string                   `json:"own"`
	Watching   string                    `json:"watching"`
	Stopped    string                    `json:"stopped"`
	NoTimeouts bool                      `json:"no_timeouts"`
	Fleet      map[string]any            `json:"fleet"`
	Policy     map[string]any            `json:"policy"`
	Policies   map[string]map[string]any `json:"policies"`
	Devices    map[string]map[string]any `json:"devices"`
}

// reader reads a case.
type reader struct {
	*testing.T
	now time.Time
}

func readCase(t *testing.T, data []byte) Input {
	t.Helper()
	var c caseFile
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		t.Fatal(err)
	}
	r := reader{t, caseNow}
	if c.Now != "" {
		r.now = r.time(c.Now)
	}
	in := Input{Now: r.now, OwnVersion: "v1.5.0", Stopped: c.Stopped, NoTimeouts: c.NoTimeouts}
	if c.Own != nil {
		in.OwnVersion = *c.Own
	}
	if c.Watching != "" {
		in.Watching = r.time(c.Watching)
	}
	in.Fleet = fill(r, Fleet{}, c.Fleet)
	if c.Policies == nil {
		c.Policies = map[string]map[string]any{"p": c.Policy}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Policies)) {
		fields := c.Policies[name]
		windows := r.windows(fields["windows"])
		delete(fields, "windows")
		p := fill(r, Policy{
			Name: name, Enabled: true, TargetVersion: "v1.5.0", Line: name, OfflineAfter: 15 * time.Minute,
		}, fields)
		p.Windows = windows
		in.Policies = append(in.Policies, p)
	}
	for _, key := range slices.Sorted(maps.Keys(c.Devices)) {
		in.Devices = append(in.Devices, r.device(key, c.Devices[key]))
	}
	return in
}

// device reads one device. A key may have a suffix after a slash, so that two
// devices can have one id.
func (r reader) device(key string, fields map[string]any) Device {
	r.Helper()
	id, _, _ := strings.Cut(key, "/")
	attempts, _ := fields["attempts"].([]any)
	delete(fields, "attempts")
	if said, ok := fields["said"].(map[string]any); ok {
		if _, told := said["fresh"]; !told {
			said["fresh"] = true
		}
	}
	d := fill(r, Device{
		ID: id, Policy: "p", Version: "v1.4.0", ProtocolVersion: 1, Seen: true, Online: true,
		LastSeen: r.now.Add(-time.Minute), InstallID: "i-" + id, Rollout: "r1",
		Target: Target{Version: "v1.5.0", Digest: "v1.5.0-" + id},
	}, fields)
	for i, a := range attempts {
		fields, _ := a.(map[string]any)
		d.Attempts = append(d.Attempts, fill(r, Attempt{
			Number: int64(i + 1), Policy: "p", Line: "p", Target: d.Target, Rollout: d.Rollout, InstallID: d.InstallID,
			AssignedAt: r.now.Add(-2 * time.Minute),
		}, fields))
	}
	return d
}

// windows reads windows as they stand in YAML: {days: [Mon], start: "22:00",
// duration: 6h, zone: Europe/Berlin}.
func (r reader) windows(list any) []Window {
	r.Helper()
	var windows []Window
	all, _ := list.([]any)
	for _, item := range all {
		fields, _ := item.(map[string]any)
		w := Window{Start: -1}
		days, _ := fields["days"].([]any)
		for _, d := range days {
			at := slices.IndexFunc([]string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}, func(s string) bool { return s == d })
			w.Days = append(w.Days, time.Weekday(at))
		}
		if start, ok := fields["start"].(string); ok {
			h, m, _ := strings.Cut(start, ":")
			w.Start = r.duration(h+"h") + r.duration(m+"m")
		}
		if d, ok := fields["duration"].(string); ok {
			w.Duration = r.duration(d)
		}
		if zone, ok := fields["zone"].(string); ok {
			w.Zone = zoneNamed(r, zone)
		}
		windows = append(windows, w)
	}
	return windows
}

func zoneNamed(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// fill sets the fields that a case writes on top of the defaults.
func fill[T any](r reader, v T, fields map[string]any) T {
	r.Helper()
	b, err := json.Marshal(r.inUnits("", fields))
	if err != nil {
		r.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(b, &v); err != nil {
		r.Fatal(err)
	}
	return v
}

// inUnits turns the forms of times and durations of a case into those of the
// JSON encoding.
func (r reader) inUnits(name string, v any) any {
	r.Helper()
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for k, e := range v {
			m[k] = r.inUnits(k, e)
		}
		return m
	case []any:
		list := make([]any, 0, len(v))
		for _, e := range v {
			list = append(list, r.inUnits("", e))
		}
		return list
	case string:
		switch name {
		case "pickup_timeout", "update_timeout", "settle", "base", "cap", "offline_after", "offline_grace", "absent_after", "heartbeat",
			"soak", "min_interval":
			return r.duration(v)
		case "last_seen", "heard_at", "offline_since", "since", "forget_before", "assigned_at", "pickup_from", "started_at", "on_target_at", "ended_at",
			"from", "to":
			return r.time(v)
		}
	}
	return v
}

func (r reader) duration(s string) time.Duration {
	r.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		r.Fatal(err)
	}
	return d
}

func (r reader) time(s string) time.Time {
	r.Helper()
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t
	}
	return r.now.Add(r.duration(s))
}

func marshal(t *testing.T, in Input) string {
	t.Helper()
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
