package reconcile

import (
	"syscall"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// What had begun ends as failed even when nobody knows any more what it was:
// a recall must not make it look as if it had never begun.
func TestLostDesiredOfABegunAttemptIsAFailure(t *testing.T) {
	begun := func(d *device) { // killed in the middle
		dead := false
		d.cfg.Step = func(op, path string) error {
			dead = dead || (op == "rename" && path == "/opt/new/deep/file")
			if dead {
				return errDead
			}
			return nil
		}
		d.control.dead = func() bool { return dead }
		d.once()
		d.cfg.Step, d.control.dead = nil, nil
	}
	waiting := func(d *device) { // put back, to be tried again
		d.cfg.Step = func(op, path string) error {
			if op == "rename" && path == "/opt/new/deep/file" {
				return syscall.ENOSPC
			}
			return nil
		}
		d.wantOnce(1, "a retry is due")
		d.cfg.Step = nil
	}
	for name, until := range map[string]func(d *device){"in the middle": begun, "between two tries": waiting} {
		t.Run(name, func(t *testing.T) {
			d := onV1(t)
			d.assign(2, "v1.1.0", v2(nil))
			until(d)
			d.write(desiredFile, "{")
			d.recall(2)
			d.once()
			r := d.control.last()
			if r.Attempt != 2 || r.Outcome != schema.OutcomeFailed || !r.Begun || r.Phase != schema.PhaseError {
				t.Errorf("report: attempt %d %s, outcome %q, begun %v; want attempt 2 failed, begun", r.Attempt, r.Phase, r.Outcome, r.Begun)
			}
			if d.content("/etc/edge/edge.conf") != "version=1\n" {
				t.Errorf("the device is\n%s", d.snapshot())
			}
		})
	}
}

// What was done is done, also when power goes between the record of the spec
// and the record of the attempt, and the spec that was desired is lost then.
func TestLostDesiredOfADoneAttemptIsASuccess(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v1.1.0", v2(nil))
	done, dead := false, false
	d.cfg.Step = func(op, path string) error {
		if op == "rename" && path == currentFile {
			done = true
		}
		if dead = dead || done && op == "create"; dead {
			return errDead
		}
		return nil
	}
	d.control.dead = func() bool { return dead }
	d.once()
	if !dead {
		t.Fatal("the device was not killed between the two records")
	}
	d.cfg.Step, d.control.dead = nil, nil
	d.write(desiredFile, "{")
	d.once()
	r := d.control.last()
	if r.Attempt != 2 || r.Outcome != schema.OutcomeOK || r.Current.Version != "v1.1.0" || r.Phase != schema.PhaseUpdated {
		t.Errorf("report: attempt %d %s at %s, outcome %q; want attempt 2 ok at v1.1.0", r.Attempt, r.Phase, r.Current.Version, r.Outcome)
	}
}
