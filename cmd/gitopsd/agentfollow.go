package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/gitopsd/gitopsd/internal/agentsocket"
	"github.com/gitopsd/gitopsd/schema"
)

// followEvery is between two looks at what the device does.
const followEvery = 2 * time.Second

// follow writes a line whenever the device is at something else, until it is
// stopped: who waits for minutes wants to know for what.
func (d *device) follow(ctx context.Context, w io.Writer, every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		last := ""
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			reply, nobody, err := d.answer(ctx, agentsocket.Request{Do: agentsocket.DoStatus})
			if nobody || err != nil || reply.Standing == nil {
				continue // another agent takes over
			}
			if text := workText(&reply.Standing.Report); text != "" && text != last {
				last = text
				fmt.Fprintln(w, clean(text))
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// workText is what a device does to get to a version; "" = nothing.
func workText(r *schema.Report) string {
	switch r.Phase {
	case schema.PhasePreparing, schema.PhaseStarting, schema.PhaseApplying, schema.PhaseVerifying, schema.PhaseRebooting, schema.PhaseRollingBack:
	default:
		return ""
	}
	if r.Desired == nil {
		return phaseText(r)
	}
	return r.Desired.Version + ": " + phaseText(r)
}
