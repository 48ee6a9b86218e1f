package sweep

import (
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// A device that only observes takes a slot as long as that takes, keeps nobody
// from going, is left in peace after it, and is upgraded once it shall be.
func TestObservingDevice(t *testing.T) {
	w, d := done(t, 3)
	const path = "devices/berlin/gw-02.yaml"
	w.push("gw-02 only observes", map[string]string{path: deviceYAML("gw-02", "  desired: {onDevice: {mode: observe}}\n")})
	w.change("gateways: v1.1.0", "targetVersion", "v1.1.0")
	w.until(d, "the others are on v1.1.0", func() bool { return w.on("v1.1.0") == 2 && w.code("gw-02") == string(planner.Observing) })
	rec := w.status().Devices["gw-02"]
	a := lastAttempt(rec.Status)
	if a.Outcome != schema.OutcomeObserved || a.StartedAt != nil || a.Message != "2 things would change" || a.Release != planner.ReleaseNone {
		t.Errorf("its attempt is %+v", a)
	}
	if rec.Assignment.Spec == nil || rec.Assignment.Attempt != a.Attempt {
		t.Errorf("its document is %+v", rec.Assignment)
	}
	if dev := w.devices["gw-02"]; dev.current.Version != "v1.0.0" || dev.acted[a.Attempt] {
		t.Errorf("the device is %s", dev)
	}
	if !strings.Contains(rec.Status.Verdict.Reason, "2 things would change") {
		t.Errorf("its reason is %q", rec.Status.Verdict.Reason)
	}
	before := w.commits()
	for range 20 {
		w.pass(time.Minute)
		w.beat()
		w.sweep(d)
	}
	if w.commits() != before {
		t.Error("a device that observes makes commits")
	}

	w.push("gw-02 is managed", map[string]string{path: deviceYAML("gw-02", "")})
	w.until(d, "everybody is on v1.1.0", func() bool { return w.on("v1.1.0") == 3 })
	if a := lastAttempt(w.status().Devices["gw-02"].Status); a.Outcome != schema.OutcomeOK || a.StartedAt == nil {
		t.Errorf("its attempt is %+v", a)
	}
}

// What comes and goes on a device by itself is for whoever reads its report: git
// has nothing of it, however often it changes.
func TestStatesOfADeviceAreNotCommitted(t *testing.T) {
	w, d := done(t, 2)
	before := w.commits()
	dev := w.devices["gw-01"]
	for i := range 10 {
		r := dev.last
		state := map[bool]string{true: schema.ApplicationRunning, false: schema.ApplicationFailed}[i%2 == 0]
		r.Applications = []schema.ApplicationState{{Name: "web", State: state}}
		r.Units = []schema.UnitState{{Name: "edge.service", State: map[bool]string{true: "active", false: "failed"}[i%2 == 0]}}
		r.Monitors = []schema.MonitorState{{Name: "root", Level: schema.LevelCritical, Used: 90 + i}}
		r.Drift, r.DriftReason = []string{"applications/web"}[:i%2], map[bool]string{false: "application web is failed"}[i%2 == 0]
		r.WouldChange = &schema.WouldChange{Version: "v1.1.0", Count: i, Differences: []schema.Difference{}}
		dev.report(r)
		w.pass(time.Minute)
		w.sweep(d)
	}
	if w.commits() != before {
		t.Errorf("%d commits were made of what a device says of itself", w.commits()-before)
	}
}
