package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// fetch has on the device what the update takes from elsewhere than control.
func (a *Agent) fetch(ctx context.Context, spec *schema.Spec) error {
	if err := a.fetchProgram(ctx, spec); err != nil {
		return err
	}
	err := a.apps.Prefetch(ctx, spec, a.payload)
	if a.live.reason = ""; err != nil {
		return err
	}
	if spec.OS != nil {
		if a.osTo, err = a.os.Fetch(ctx, spec.OS.Image); err != nil {
			return failureOf("os", spec.OS.Image, err)
		}
	}
	return nil
}

// pulls tells which image is on its way: on a slow line that is what takes the
// time of an update.
func (a *Agent) pulls(ref string, n, of int) {
	a.live.reason = oneLine(fmt.Sprintf("pulling image %d of %d: %s", n, of, ref))
	a.log.Info("pulling an image", "image", ref, "number", n, "of", of)
	a.changed()
}

// newer is the error of a pre-check that ended because control says something
// else by now.
type newer struct{ found }

func (*newer) Error() string { return "another assignment took its place" }

// whileWanted does work that may take long and changes nothing on the device.
// Control is asked meanwhile, as often as ever: what is assigned now ends the
// work, and is its error, a [*newer]. An image that comes slowly, or not at
// all, must not keep a device from being called back.
func (a *Agent) whileWanted(ctx context.Context, work func(context.Context) error) error {
	wanted, end := context.WithCancel(ctx)
	var watch sync.WaitGroup
	var next *found
	f := a.facts()
	watch.Go(func() {
		if next = a.awaitNewer(wanted, f); next != nil {
			end()
		}
	})
	err := work(wanted)
	end()
	watch.Wait()
	if next == nil || ctx.Err() != nil {
		return err
	}
	if len(next.delivery.Payloads) > 0 {
		a.payloads = next.delivery.Payloads
	}
	return &newer{*next}
}

// awaitNewer asks control until it says something else than to go on with what
// is desired; nil = ctx has ended before.
func (a *Agent) awaitNewer(ctx context.Context, f facts) *found {
	for {
		timer := time.NewTimer(a.pollWait())
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		d, problem, err := a.control.Look(ctx)
		if err != nil {
			continue // nobody says anything else
		}
		switch verdict, _ := admit(f, d, problem); verdict {
		case admitGoOn, admitNothing:
		default:
			return &found{d, problem}
		}
	}
}

// superseded gives what took the place of the work that failed so.
func superseded(err error) (next *found, is bool) {
	var n *newer
	if errors.As(err, &n) {
		return &n.found, true
	}
	return nil, false
}
