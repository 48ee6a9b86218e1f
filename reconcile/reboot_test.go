package reconcile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// fakeOS has two slots: what is booted and what is staged stand in files, and
// a reboot is a file too, until boot happens.
const (
	osBooted = "/test-os/booted"
	osStaged = "/test-os/staged"
	osBootID = "/test-os/boot-id"
	osAsked  = "/test-os/reboot-asked"
	testLog  = "/test-log"
)

func (d *device) withOS() *device {
	d.t.Helper()
	d.write(osBooted, "os-1\n")
	d.write(osStaged, "")
	d.write(osBootID, "boot-0\n")
	d.cfg.OS = osPrograms()
	return d
}

func osPrograms() *schema.OSConfig {
	sh := func(s string) []string { return []string{"/bin/sh", "-c", s, "os"} }
	return &schema.OSConfig{
		Booted: []string{"/bin/cat", "test-os/booted"},
		Staged: []string{"/bin/cat", "test-os/staged"},
		Stage:  sh(`echo "$1" > test-os/staged`),
		Undo:   []string{"/bin/cp", "/dev/null", "test-os/staged"},
		Reboot: sh("echo x >> test-os/reboot-asked"),
		BootID: osBootID,
	}
}

// boot is the machine coming up again, if a reboot was asked for or force is
// set, into what is staged; into says where instead.
func (d *device) boot(force bool, into string) {
	d.t.Helper()
	if d.content(osAsked) == "" && !force {
		d.t.Fatal("no reboot was asked for")
	}
	if s := d.content(osStaged); into == "" && s != "" {
		into = s
	}
	if into != "" {
		d.write(osBooted, into)
	}
	d.write(osStaged, "")
	d.remove(osAsked)
	d.remove("/run")
	var n int
	fmt.Sscanf(d.content(osBootID), "boot-%d", &n)
	d.write(osBootID, fmt.Sprintf("boot-%d\n", n+1))
}

func osSpec(hooks tree) tree {
	more := tree{"os": tree{"image": "os-2"}}
	for k, v := range hooks {
		more[k] = v
	}
	return v2(more)
}

// logHooks write their names to the log.
func logHooks(points ...string) tree {
	h := tree{}
	for _, p := range points {
		h[p] = tree{"it": tree{"run": []any{"/bin/sh", "-c",
			`echo "` + p + ` pending=$GITOPSD_REBOOT_PENDING back=$GITOPSD_ROLLING_BACK" >> "$GITOPSD_ROOT` + testLog + `"`}}}
	}
	return tree{"hooks": h}
}

func osDevice(t *testing.T) *device {
	t.Helper()
	d := osImage.device(t, func(t *testing.T) *device {
		d := onV1(t).withOS()
		d.wantOnce(0)
		return d
	})
	d.cfg.OS = osPrograms()
	return d
}

func TestOSUpdate(t *testing.T) {
	d := osDevice(t)
	d.assign(2, "v1.1.0", osSpec(logHooks("beforeUpdating", "afterUpdating", "beforeRebooting", "afterRebooting")))
	res := d.wantOnce(0, "reboot into os-2")
	if !res.Rebooting {
		t.Error("the result does not say that it reboots")
	}
	if r := d.control.last(); r.Phase != schema.PhaseRebooting || r.Outcome != "" || !r.Begun || r.Current.Version != "v1.0.0" {
		t.Errorf("report: %+v", r)
	}
	d.boot(false, "")
	starts := strings.Count(d.control.phases(), "Starting")
	d.wantOnce(0, "updated from v1.0.0 to v1.1.0")
	if r := d.control.last(); r.Outcome != schema.OutcomeOK || r.BootID != "boot-1" {
		t.Errorf("report: %+v", r)
	}
	if got := strings.Count(d.control.phases(), "Starting"); got != starts {
		t.Error("it was announced again after the boot")
	}
	want := "beforeUpdating pending=0 back=0\nafterUpdating pending=1 back=0\nbeforeRebooting pending=1 back=0\n" +
		"afterRebooting pending=0 back=0\nafterUpdating pending=0 back=0\n"
	if got := d.content(testLog); got != want {
		t.Errorf("hooks ran:\n%s\nwant\n%s", got, want)
	}
	d.wantOnce(0, "nothing to do")
	if d.content(osAsked) != "" {
		t.Error("another reboot was asked for")
	}
}

func TestOSAlreadyBootedNeedsNoReboot(t *testing.T) {
	d := osDevice(t)
	d.write(osBooted, "os-2\n")
	d.assign(2, "v1.1.0", osSpec(nil))
	d.wantOnce(0, "updated")
	if d.content(osAsked) != "" {
		t.Error("a reboot was asked for")
	}
}

func TestB105_OSCameBackOld(t *testing.T) {
	d := osDevice(t)
	before := d.snapshot()
	d.assign(2, "v1.1.0", osSpec(nil))
	d.wantOnce(0, "reboot into os-2")
	d.boot(false, "os-1\n")
	d.wantOnce(1, "failed", "the system came back as os-1", "back on v1.0.0")
	r := d.control.last()
	if r.Outcome != schema.OutcomeFailed || !r.Begun || !strings.Contains(r.Reason, "came back as os-1") || r.Stage != string(StageReboot) {
		t.Errorf("report: %+v", r)
	}
	if got := d.snapshot(); got != before {
		t.Errorf("the device is\n%s\nwant\n%s", got, before)
	}
	d.wantOnce(0, "ended as failed")
}

func TestFailureBeforeTheRebootDropsWhatIsStaged(t *testing.T) {
	d := osDevice(t)
	d.assign(2, "v1.1.0", osSpec(hook("afterUpdating", "/bin/false")))
	d.wantOnce(1, "failed", "back on v1.0.0")
	if s := d.content(osStaged); s != "" || d.content(osAsked) != "" {
		t.Errorf("staged: %q, reboot asked: %q", s, d.content(osAsked))
	}
}

func TestFailureAfterTheBootGoesBackThroughAnother(t *testing.T) {
	d := osDevice(t)
	before := d.snapshot()
	d.assign(2, "v1.1.0", osSpec(hook("afterRebooting", "/bin/sh", "-c", "echo no modem; exit 1")))
	d.wantOnce(0, "reboot into os-2")
	d.boot(false, "")
	res := d.wantOnce(0, "reboot into os-1")
	if !res.Rebooting {
		t.Fatalf("%+v", res)
	}
	if r := d.control.last(); r.Phase != schema.PhaseRollingBack || r.Outcome != "" {
		t.Errorf("report before the second reboot: %+v", r)
	}
	d.boot(false, "")
	d.wantOnce(1, "failed", "no modem", "back on v1.0.0")
	if r := d.control.last(); r.Outcome != schema.OutcomeFailed || r.Phase != schema.PhaseError {
		t.Errorf("report: %+v", r)
	}
	if got := d.content(osBooted); got != "os-1\n" || d.snapshot() != before {
		t.Errorf("booted %q, device\n%s", got, d.snapshot())
	}
}

// The new system comes up again and again without getting to its end.
func TestB100_ThreeBootsWithoutSuccessEndInTheOldSystem(t *testing.T) {
	d := osDevice(t)
	d.assign(2, "v1.1.0", osSpec(nil))
	d.wantOnce(0, "reboot into os-2")
	dead := false
	die := func(op, path string) error {
		// the record of the boot is written, then the power goes
		if dead {
			return errDead
		}
		if op == "syncdir" && path == stateDir {
			dead = true
		}
		return nil
	}
	for i := range maxBoots {
		d.boot(i > 0, "os-2\n")
		d.cfg.Step, dead = die, false
		d.control.dead = func() bool { return dead }
		d.once()
	}
	d.cfg.Step, d.control.dead = nil, nil
	d.boot(true, "os-2\n")
	d.wantOnce(0, "reboot into os-1")
	d.boot(false, "")
	d.wantOnce(1, "failed", "3 boots into it without success", "back on v1.0.0")
	if got := d.content(osBooted); got != "os-1\n" {
		t.Errorf("booted: %q", got)
	}
}

func TestB100_RollbackRebootsAreBounded(t *testing.T) {
	d := osDevice(t)
	d.assign(2, "v1.1.0", osSpec(hook("afterRebooting", "/bin/false")))
	d.wantOnce(0, "reboot into os-2")
	d.boot(false, "")
	for range maxBoots {
		d.wantOnce(0, "reboot into os-1")
		d.boot(false, "os-2\n") // it will not go back
	}
	d.wantOnce(1, "rollback incomplete", "after 3 reboots the system is still os-2")
	if r := d.control.last(); r.Phase != schema.PhaseError || !strings.Contains(r.Reason, "rollback incomplete") {
		t.Errorf("report: %+v", r)
	}
	if d.content(osAsked) != "" {
		t.Error("yet another reboot")
	}
	// somebody puts it right by hand
	d.boot(true, "os-1\n")
	d.wantOnce(1, "failed", "back on v1.0.0")
}

// Power cycles of a system that runs well count for nothing, also where each
// cuts off the agent's start, and are not held against what comes after them.
func TestB101_PowerCyclesOfAGoodSystem(t *testing.T) {
	d := osDevice(t)
	d.assign(2, "v1.1.0", osSpec(nil))
	d.wantOnce(0, "reboot")
	d.boot(false, "")
	d.wantOnce(0, "updated")
	dead := false
	d.control.dead = func() bool { return dead }
	for range 2 * maxBoots {
		d.boot(true, "os-2\n")
		d.remove("/etc/edge/edge.conf") // there is something to be put right
		d.cfg.Step = func(_, path string) error {
			if dead = dead || path == "/etc/edge/edge.conf"; dead {
				return errDead
			}
			return nil
		}
		if d.once(); !dead {
			t.Fatal("the agent came to its end")
		}
		d.cfg.Step, dead = nil, false
		d.boot(true, "os-2\n")
		d.wantOnce(0, "nothing to do: on v1.1.0")
	}
	d.assign(3, "v1.2.0", osSpec(hook("afterUpdating", "/bin/true")))
	d.wantOnce(0, "updated")
}

func TestRebootThatDoesNotHappen(t *testing.T) {
	d := osDevice(t)
	d.assign(2, "v1.1.0", osSpec(nil))
	d.wantOnce(0, "reboot into os-2")
	d.wantOnce(0, "reboot into os-2") // started again too early: asked for again
	d.clock = d.clock.Add(DefaultBootTimeout)
	d.wantOnce(1, "a retry is due", "has not happened", "back on v1.0.0")
	if d.content(osStaged) != "" {
		t.Error("it is still staged")
	}
}

func TestRebootCommandFails(t *testing.T) {
	d := osDevice(t)
	d.cfg.OS.Reboot = []string{"/bin/false"}
	d.assign(2, "v1.1.0", osSpec(nil))
	d.wantOnce(1, "a retry is due", "back on v1.0.0")
	if d.content(osStaged) != "" {
		t.Error("it is still staged")
	}
}

func TestB104_FilesAreAppliedAgainAfterTheBoot(t *testing.T) {
	d := osDevice(t)
	d.assign(2, "v1.1.0", osSpec(nil))
	d.wantOnce(0, "reboot")
	d.boot(false, "")
	d.write("/etc/edge/edge.conf", "merged at staging\n")
	d.wantOnce(0, "updated")
	if got := d.content("/etc/edge/edge.conf"); got != "version=2\n" {
		t.Errorf("after the boot: %q", got)
	}
}

func TestBootTimeout(t *testing.T) {
	d := osDevice(t)
	d.cfg.BootTimeout = 1200 * time.Millisecond
	d.assign(2, "v1.1.0", osSpec(nil))
	d.wantOnce(0, "reboot into os-2")
	d.boot(false, "")
	d.control.answers = func() error { return errors.New("no route") }
	d.wantOnce(0, "reboot into os-1")
	d.boot(false, "")
	d.wantOnce(1, "failed", "boot.timeout")
}

func TestB103_SomethingElseIsStaged(t *testing.T) {
	d := osDevice(t)
	d.write(osStaged, "os-0\n")
	d.assign(2, "v1.1.0", osSpec(nil))
	d.wantOnce(0, "reboot into os-2")
	if got := d.content(osStaged); got != "os-2\n" {
		t.Errorf("staged: %q", got)
	}
	d.boot(false, "")
	d.write(osStaged, "os-0\n")
	d.wantOnce(0, "updated")
	if got := d.content(osStaged); got != "" {
		t.Errorf("the next boot would be into %q", got)
	}
}

func TestOSDriftIsReported(t *testing.T) {
	d := osDevice(t)
	d.assign(2, "v1.1.0", osSpec(nil))
	d.wantOnce(0, "reboot")
	d.boot(false, "")
	d.wantOnce(0, "updated")
	d.boot(true, "os-1\n")
	d.wantOnce(0)
	if r := d.control.last(); fmt.Sprint(r.Drift) != "[os]" || r.Reason != "" || !strings.Contains(r.DriftReason, "os-1 is booted") {
		t.Errorf("report: %+v", r)
	}
}

// lastMinute is a driver that puts in place what is staged when the system goes
// down, and forgets it when the power goes before.
type lastMinute struct{ slots }

func (l lastMinute) Has(ctx context.Context, version string) (bool, error) {
	booted, err := l.Booted(ctx)
	staged, err2 := l.Staged(ctx)
	return version == booted || version == staged, errors.Join(err, err2)
}

// No boot was into an image that was not in place yet, so none has shown that it
// is no good.
func TestThePowerGoesBeforeTheImageIsInPlace(t *testing.T) {
	d := osDevice(t)
	d.cfg.Driver = lastMinute{slots{d: d}}
	d.assign(2, "v1.1.0", osSpec(nil))
	d.wantOnce(0, "reboot into os-2")
	d.boot(false, "os-1\n")
	d.wantOnce(0, "reboot into os-2")
	d.wantOnce(0, "reboot into os-2") // started again too early
	d.boot(false, "")
	d.wantOnce(0, "updated from v1.0.0 to v1.1.0")

	d.assign(3, "v1.2.0", v2(tree{"os": tree{"image": "os-3"}}))
	d.wantOnce(0, "reboot into os-3")
	for range maxBoots - 1 { // it never is
		d.boot(false, "os-2\n")
		d.wantOnce(0, "reboot into os-3")
	}
	d.boot(false, "os-2\n")
	d.wantOnce(1, "failed", "the system came back as os-2", "back on v1.1.0")
}

// Image-based systems have an /etc each. The old one is left with the update's
// files in it when the new one boots, and must lose them when it is back.
func TestNothingIsLeftInTheOldSystemsOwnFolder(t *testing.T) {
	for _, cameBack := range []bool{false, true} {
		d := osDevice(t)
		before := d.snapshot()
		spec := osSpec(hook("afterRebooting", "/bin/false"))
		spec["files"].(tree)["/etc/edge/new.conf"] = tree{"content": "new\n"}
		d.assign(2, "v1.1.0", spec)
		d.wantOnce(0, "reboot into os-2")
		if d.content("/etc/edge/new.conf") == "" {
			t.Fatal("the old system was not given the file")
		}
		etc, old, bad := d.host("/etc"), d.host("/etc.os-1"), d.host("/etc.os-2")
		if cameBack {
			d.boot(false, "os-1\n")
		} else {
			d.boot(false, "")
			for _, c := range [][]string{{"cp", "-a", etc, old}, {"cp", "-a", etc, bad}} { // the new system was given a copy
				if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			d.wantOnce(0, "reboot into os-1")
			d.boot(false, "")
			d.remove("/etc")
			d.remove("/etc.os-2")
			if err := os.Rename(old, etc); err != nil {
				t.Fatal(err)
			}
		}
		d.wantOnce(1, "failed", "back on v1.0.0")
		if got := d.snapshot(); got != before {
			t.Errorf("came back by itself=%t: the device is\n%s\nwant\n%s", cameBack, got, before)
		}
	}
}

// What a branch or a tag stands for is found once for an update: the boot must
// lead to that, and a later move of the name is no drift.
func TestMovingImage(t *testing.T) {
	for _, open := range []bool{false, true} { // only staging tells
		d := osDevice(t)
		m := &moving{slots: slots{d: d}, tip: "os-2", open: open}
		d.cfg.Driver = m
		d.assign(2, "v1.1.0", v2(tree{"os": tree{"image": "stable"}}))
		d.wantOnce(0, "reboot into os-2")
		m.tip = "os-3"
		d.boot(false, "")
		d.wantOnce(0, "updated")
		d.wantOnce(0, "nothing to do")
		if r := d.control.last(); len(r.Drift) > 0 || d.content(osBooted) != "os-2\n" {
			t.Errorf("open=%t: booted %q, report %+v", open, d.content(osBooted), r)
		}
		d.assign(3, "v1.2.0", v2(tree{"os": tree{"image": "stable"}, "confirm": tree{"within": "10s"}}))
		d.wantOnce(0, "reboot into os-3")
		d.boot(false, "os-2\n")
		d.wantOnce(1, "failed", "came back as os-2")
		if r := d.control.last(); len(r.Drift) > 0 || d.content(osStaged) != "" {
			t.Errorf("open=%t: staged %q, report %+v", open, d.content(osStaged), r)
		}
	}
}

// What comes in while the device reboots is an attempt of its own: how the one
// before it ended is not held against it, nor to its credit.
func TestAnotherVersionDuringTheReboot(t *testing.T) {
	for _, into := range []string{"", "os-1\n"} {
		d := osDevice(t)
		d.assign(2, "v1.1.0", osSpec(nil))
		d.wantOnce(0, "reboot into os-2")
		d.assign(3, "v1.2.0", v2(tree{"os": tree{"image": "os-3"}}))
		d.boot(false, into)
		d.once()
		want, outcome, from := "v1.1.0", schema.OutcomeOK, "os-2"
		if into != "" {
			want, outcome, from = "v1.0.0", schema.OutcomeFailed, "os-1"
		}
		var ended bool
		for _, r := range d.control.reports {
			if r.Outcome != "" && r.Attempt == 2 {
				ended = r.Outcome == outcome && r.Current.Version == want
			}
			if r.Attempt == 3 && r.Outcome != "" {
				t.Fatalf("boot into %q: the new attempt has ended already: %+v", into, r)
			}
		}
		if !ended {
			t.Fatalf("boot into %q: the old attempt has not ended as %s on %s: %+v", into, outcome, want, d.control.last())
		}
		if d.content(osAsked) == "" {
			d.wantOnce(0, "reboot into os-3")
		}
		if got := d.content(osBooted); got != from+"\n" {
			t.Errorf("booted %q", got)
		}
		d.boot(false, from+"\n")
		d.wantOnce(1, "failed", "came back as "+from)
	}
}

// moving is a driver whose image stands for what its tip is.
type moving struct {
	slots
	tip  string
	open bool
}

func (m *moving) Fetch(context.Context, string) (string, error) {
	if m.open {
		return "", nil
	}
	return m.tip, nil
}

func (m *moving) Stage(ctx context.Context, version string) error {
	if version == "stable" || m.open {
		version = m.tip
	}
	if booted, _ := m.Booted(ctx); m.open && booted == version {
		return nil // there is nothing newer
	}
	return m.slots.Stage(ctx, version)
}
