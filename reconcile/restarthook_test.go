package reconcile

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// restart is a hook that has the agent stopped, in the words of a shell, and ends
// when the agent knows.
const restart = `echo restart >>"$GITOPSD_ROOT/test-log"; echo >"$GITOPSD_ROOT/test-stop"; read x <"$GITOPSD_ROOT/test-stopped"`

func (d *device) fifo(p string) *os.File {
	d.t.Helper()
	if err := syscall.Mkfifo(d.host(p), 0o600); err != nil {
		d.t.Fatal(err)
	}
	f, err := os.OpenFile(d.host(p), os.O_RDWR, 0) // so that neither side waits for the other
	if err != nil {
		d.t.Fatal(err)
	}
	return f
}

// starts runs the agent until it ends by itself, at most so many times. Whatever
// writes to /test-stop has it stopped, as a service manager would, and reads of
// that in /test-stopped.
func (d *device) starts(most int) (n int, res Result) {
	d.t.Helper()
	asked, told := d.fifo("/test-stop"), d.fifo("/test-stopped")
	defer told.Close()
	stops, over := make(chan bool, 1), make(chan bool)
	go func() {
		defer close(over)
		for one := make([]byte, 1); ; {
			if _, err := asked.Read(one); err != nil {
				return
			}
			stops <- true
		}
	}()
	defer func() { asked.Close(); <-over }()
	for n = 1; n <= most; n++ {
		ctx, cancel := context.WithCancel(d.t.Context())
		done := make(chan bool)
		go func() {
			defer close(done)
			a, err := New(d.cfg)
			if err != nil {
				d.t.Errorf("New: %v", err)
				return
			}
			defer a.Close()
			res, _ = a.Once(ctx)
		}()
		select {
		case <-stops:
			cancel()
			_, _ = told.WriteString("stopped\n")
			<-done
		case <-done:
			cancel()
			return n, res
		}
	}
	d.t.Fatalf("%d starts, and it does not end: %s", most, res.Summary)
	return n, res
}

// A hook that restarts the agent, as after a change of its proxy, is not run
// again by the agent that comes up.
func TestHookThatRestartsTheAgent(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v1.1.0", v2(tree{"hooks": tree{"afterUpdating": tree{
		"a": sayHook("before"), "b": tree{"run": []any{"/bin/sh", "-c", restart}}, "c": sayHook("after"),
	}}}))
	n, res := d.starts(5)
	if n != 2 || !strings.Contains(res.Summary, "updated") {
		t.Errorf("%d starts: %s", n, res.Summary)
	}
	if got := d.content("/test-log"); got != "before\nrestart\nafter\n" {
		t.Errorf("ran: %q", got)
	}
}

func TestHookOfTheDeviceThatRestartsTheAgentOnTheWayBack(t *testing.T) {
	d := onV1(t)
	d.write("/etc/gitopsd/hooks.d/afterUpdating/agent.yaml", `run: [/bin/sh, -c, '[ "$GITOPSD_ROLLING_BACK" = 0 ] || { `+restart+"; }']\n")
	before := d.snapshot()
	d.assign(2, "v1.1.0", v2(hook("afterUpdating", "/bin/false")))
	n, res := d.starts(5)
	if n != 2 || !strings.Contains(res.Summary, "back on v1.0.0") {
		t.Errorf("%d starts: %s", n, res.Summary)
	}
	if got := d.content("/test-log"); got != "restart\n" {
		t.Errorf("ran: %q", got)
	}
	if got := d.snapshot(); got != before {
		t.Errorf("the device is\n%s\nwant\n%s", got, before)
	}
}

// One that waits for the restart which it asked for never comes to its own end.
func TestHookThatNeverOutlivesTheAgentIsGivenUp(t *testing.T) {
	d := onV1(t)
	d.write("/etc/gitopsd/hooks.d/afterUpdating/agent.yaml", "run: [/bin/sh, -c, '"+restart+"; kill -TERM $$']\n")
	before := d.snapshot()
	d.assign(2, "v1.1.0", v2(nil))
	n, res := d.starts(3 * maxResumes)
	if !strings.Contains(res.Summary, "failed: attempt 2") || !strings.Contains(res.Summary, "agent.yaml") || !strings.Contains(res.Summary, "--no-block") {
		t.Errorf("%d starts: %s", n, res.Summary)
	}
	if got := strings.Count(d.content("/test-log"), "restart"); got != 2*maxResumes {
		t.Errorf("ran %d times, in %d starts", got, n)
	}
	if got := d.snapshot(); got != before {
		t.Errorf("the device is\n%s\nwant\n%s", got, before)
	}
	if r := d.control.last(); r.Outcome != schema.OutcomeFailed || r.Phase != schema.PhaseError {
		t.Errorf("last report: %+v", r)
	}
}

// Whatever else has the agent stopped in the middle, each time, the update ends.
func TestStopsInTheMiddleAreBounded(t *testing.T) {
	d := onV1(t)
	before := d.snapshot()
	d.assign(2, "v1.1.0", v2(nil))
	var stop context.CancelFunc
	d.control.answers = func() error { stop(); return errDead }
	for n := 1; ; n++ {
		ctx, cancel := context.WithCancel(t.Context())
		stop = cancel
		a := d.agent()
		res, err := a.Once(ctx)
		a.Close()
		if err == nil {
			if n <= maxStops || !strings.Contains(res.Summary, "back on v1.0.0") {
				t.Errorf("start %d: %s", n, res.Summary)
			}
			break
		}
		if n > 2*maxStops {
			t.Fatalf("start %d: %s", n, res.Summary)
		}
	}
	if got := d.snapshot(); got != before {
		t.Errorf("the device is\n%s\nwant\n%s", got, before)
	}
}

// Hooks of a way back that is tried again run again once more of it is done.
func TestHooksOfALongWayBack(t *testing.T) {
	d := onV1(t)
	d.write("/etc/gitopsd/hooks.d/afterUpdating/say.yaml", "run: [/bin/sh, -c, 'echo \"back $GITOPSD_ROLLING_BACK\" >>\"$GITOPSD_ROOT/test-log\"']\n")
	d.assign(2, "v1.1.0", v2(hook("afterUpdating", "/bin/false")))
	d.cfg.Step = func(op, p string) error {
		if op == "remove" && p == "/etc/edge/only-2" {
			return syscall.EIO
		}
		return nil
	}
	for range 3 {
		d.wantOnce(1, "rollback incomplete")
	}
	if got := d.content("/test-log"); got != "back 1\n" {
		t.Errorf("in three tries that come to the same, ran: %q", got)
	}
	d.cfg.Step = nil
	d.once()
	if got := d.content("/test-log"); got != "back 1\nback 1\n" {
		t.Errorf("with all that is back, ran: %q", got)
	}
}

// Whichever record of them is the last that is written, the hooks of the way back
// run with what came back.
func TestHooksOfTheWayBackSurviveCrashes(t *testing.T) {
	crashed := true
	for n := 1; crashed; n++ {
		d := onV1(t)
		d.write("/etc/gitopsd/hooks.d/afterUpdating/say.yaml", "run: [/bin/sh, -c, 'cat \"$GITOPSD_ROOT/etc/edge/edge.conf\" >>\"$GITOPSD_ROOT/test-log\"']\n")
		d.assign(2, "v1.1.0", v2(hook("afterUpdating", "/bin/false")))
		left := n
		crashed = false
		d.control.dead = func() bool { return crashed }
		d.cfg.Step = func(op, p string) error {
			if op == "rename" && p == attemptsFile {
				left--
			}
			if crashed = left <= 0; crashed {
				return errDead
			}
			return nil
		}
		d.once()
		d.cfg.Step, d.control.dead = nil, nil
		d.settle()
		if got := d.content("/test-log"); !strings.Contains(got, "version=1\n") {
			t.Errorf("crashed at record %d: ran %q", n, got)
		}
		if n > 30 {
			t.Fatal("it crashes for ever")
		}
	}
}
