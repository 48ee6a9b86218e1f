package reconcile

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// stuck is a driver whose images never come.
type stuck struct{ slots }

func (stuck) Fetch(ctx context.Context, _ string) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// What cannot be fetched keeps nothing newer away, and no recall.
func TestNewerAssignmentEndsAFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		d.withOS()
		d.cfg.Driver = stuck{slots{d: d}}
		d.wantOnce(0)
		d.assign(1, "v1.0.0", v1)
		d.wantOnce(0, "updated")
		r := d.start()
		wait := func(minutes int) {
			time.Sleep(time.Duration(minutes) * time.Minute)
			synctest.Wait()
		}
		d.assign(2, "v1.1.0", osSpec(nil))
		wait(10)
		if rep := d.control.last(); rep.Phase != schema.PhasePreparing || d.work().Tries != 0 {
			t.Errorf("while the image does not come: %s, %d tries", rep.Phase, d.work().Tries)
		}
		d.assign(3, "v1.2.0", v2(nil))
		wait(2)
		if rep := d.control.last(); rep.Current.Version != "v1.2.0" || rep.Outcome != schema.OutcomeOK {
			t.Errorf("a newer release was not taken: %+v", rep)
		}
		d.assign(4, "v1.3.0", osSpec(nil))
		wait(10)
		d.recall(4)
		wait(2)
		if rep := d.control.last(); rep.Phase != schema.PhaseUpdated || rep.Desired != nil || rep.Recalled != 4 || len(rep.Failures) != 0 {
			t.Errorf("a recall was not heard: %+v", rep)
		}
		r.end(t)
	})
}
