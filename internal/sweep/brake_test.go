package sweep

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// brake pushes a brake.yaml as it is written; "" takes the file away.
func (w *world) brake(text string) {
	w.t.Helper()
	w.repo.push(schema.BrakeBranch, "brake", w.now, map[string]string{brakeFile: text})
}

func (w *world) brakeIs(reason, words string) {
	w.t.Helper()
	c := w.condition(conditionBrake)
	switch {
	case reason == "" && c != nil:
		w.t.Errorf("the brake is off, and fleet.yaml says %+v", c)
	case reason != "" && (c == nil || c.Reason != reason || !strings.Contains(c.Message, words)):
		w.t.Errorf("fleet.yaml says %+v of the brake, want %s: %q", c, reason, words)
	}
}

// A policy that is braked takes back what has not begun and starts nobody,
// without a commit on the source branch, and goes on when the brake is off.
func TestBrakePolicy(t *testing.T) {
	w, d, dev := settled(t, 3)
	w.brake("policies: {gateways: they lose their uplink}\n")
	w.rounds(d, 6)
	if dev.acted[2] || w.on("v1.1.0") != 0 {
		t.Fatalf("somebody went on\n%s", w.describe())
	}
	if a := w.attempt(dev.id, 2); a.Outcome != schema.OutcomeDeferred {
		t.Fatalf("what had not begun is %+v, want taken back", a)
	}
	w.brakeIs(reasonBrakeOn, "policy gateways")
	verdict := w.status().Devices[dev.id].Status.Verdict
	if verdict.Code != "Backoff" && !strings.Contains(verdict.Reason, "by the brake: they lose their uplink") {
		t.Errorf("%s is told %+v", dev.id, verdict)
	}
	before := w.commits()
	w.rounds(d, 5)
	if n := w.commits() - before; n != 0 {
		t.Errorf("%d commits while the brake only stays on: %q", n, w.subjects(n))
	}
	w.brake("")
	w.until(d, "everybody on v1.1.0", func() bool { return w.on("v1.1.0") == 3 })
	w.brakeIs("", "")
}

// What has started goes on to its end: the brake is no emergency stop for a
// device in the middle of its work.
func TestBrakeLeavesWhatHasStarted(t *testing.T) {
	w, d, dev := settled(t, 3)
	for !dev.acted[2] {
		w.round(d)
	}
	w.brake("all: {reason: wrong image}\n")
	w.rounds(d, 6)
	if a := w.attempt(dev.id, 2); a.Outcome != schema.OutcomeOK {
		t.Errorf("what had started is %+v, want ok", a)
	}
	if n := w.on("v1.1.0"); n != 1 {
		t.Errorf("%d devices on v1.1.0, want the one that had started\n%s", n, w.describe())
	}
}

// A device that is braked is held as if the fleet said so, and the others go.
func TestBrakeDevice(t *testing.T) {
	w, d, dev := settled(t, 3)
	w.brake("devices:\n  " + dev.id + ": {reason: I am looking at it}\n  gw-99: {reason: a mistake in typing}\n")
	w.until(d, "the two others on v1.1.0", func() bool { return w.on("v1.1.0") == 2 })
	w.brakeIs(reasonBrakeOn, "device gw-99 (there is none of that name)")
	if dev.acted[2] {
		t.Error("the device that was braked has moved")
	}
	doc := w.status().Devices[dev.id].Assignment
	if doc.Hold == nil || doc.Hold.Reason != "by the brake: I am looking at it" {
		t.Errorf("the device is told %+v", doc.Hold)
	}
}

// Whatever stands there and is not understood stops everything, and says so.
func TestBrakeUnreadable(t *testing.T) {
	for name, text := range map[string]string{
		"no YAML":       "all: [\n",
		"a typing slip": "polices: {gateways: stop}\n",
		"another kind":  "kind: Policy\nall: {reason: x}\n",
		"too large":     "all: {reason: x}\n" + strings.Repeat("# "+strings.Repeat("x", 1000)+"\n", 1100),
	} {
		t.Run(name, func(t *testing.T) {
			w, d, _ := settled(t, 2)
			w.brake(text)
			w.rounds(d, 5)
			if n := w.on("v1.1.0"); n != 0 {
				t.Errorf("%d devices went on\n%s", n, w.describe())
			}
			w.brakeIs(reasonBrakeBad, "everything is paused")
			w.brake("")
			w.until(d, "everybody on v1.1.0", func() bool { return w.on("v1.1.0") == 2 })
		})
	}
}

// A branch without the file, as one that was just made, stops nothing.
func TestBrakeBranchWithoutTheFile(t *testing.T) {
	w, d, _ := settled(t, 2)
	w.repo.push(schema.BrakeBranch, "a note", w.now, map[string]string{"README.md": "the brake\n"})
	w.until(d, "everybody on v1.1.0", func() bool { return w.on("v1.1.0") == 2 })
}

// A file that was to be the brake and has another name stops everything:
// somebody wanted to stop something.
func TestBrakeMisnamed(t *testing.T) {
	for _, name := range []string{"brake.yml", "Brake.yaml", "sub/brake.yaml", "stop.YAML", "brake"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			w.repo.push(schema.BrakeBranch, "stop", w.now, map[string]string{name: "all: smoke\n", "README.md": "the brake\n", "a.yaml/README": ""})
			d := w.daemon()
			w.rounds(d, 3)
			if n := w.on("v1.0.0"); n != 0 {
				t.Errorf("%d devices were assigned something", n)
			}
			w.brakeIs(reasonBrakeBad, "everything is paused")
			if c := w.condition(conditionBrake); c == nil || !strings.Contains(c.Remedy, "rename "+name+" to brake.yaml") {
				t.Errorf("the condition is %+v", c)
			}
			w.brake("{}")
			w.until(d, "everybody on v1.0.0", func() bool { return w.on("v1.0.0") == 2 })
			w.brakeIs("", "")
		})
	}
}

// A branch that is gone holds nothing back, and somebody should hear of it.
func TestBrakeBranchGone(t *testing.T) {
	w := newWorld(t, 2)
	w.brake("all: later\n")
	var logs bytes.Buffer
	d := w.daemon(func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&logs, nil)) })
	w.rounds(d, 2)
	w.brake("{}")
	w.rounds(d, 1)
	if text := logs.String(); !strings.Contains(text, `level=INFO msg="the brake is off"`) || strings.Contains(text, "branch is gone") {
		t.Errorf("after brake off:\n%s", text)
	}
	w.brake("all: later\n")
	w.rounds(d, 1)
	w.repo.set(branchRef(schema.BrakeBranch), "")
	w.rounds(d, 3)
	if n := strings.Count(logs.String(), `level=WARN msg="the brake branch is gone; nothing is held back by it any more"`); n != 1 {
		t.Errorf("told %d times:\n%s", n, logs.String())
	}
}

// The brake works beside a head that is invalid, and beside a stop.
func TestBrakeBesideAnInvalidHead(t *testing.T) {
	w, d, dev := settled(t, 3)
	w.push("broken", map[string]string{"policies/gateways.yaml": "spec: [\n"})
	w.brake("devices: {" + dev.id + ": wait}\n")
	w.rounds(d, 3)
	if doc := w.status().Devices[dev.id].Assignment; doc.Hold == nil || dev.acted[2] {
		t.Errorf("the device is not held: %+v, acted %v", doc.Hold, dev.acted[2])
	}
}

// A daemon that begins while the brake is on obeys it in its first pass.
func TestBrakeBeforeTheDaemon(t *testing.T) {
	w := newWorld(t, 2)
	w.brake("all: later\n")
	d := w.daemon()
	w.rounds(d, 4)
	if n := w.on("v1.0.0"); n != 0 {
		t.Errorf("%d devices were assigned something", n)
	}
	w.pass(time.Minute)
	w.brake("all: false\n")
	w.until(d, "everybody on v1.0.0", func() bool { return w.on("v1.0.0") == 2 })
}
