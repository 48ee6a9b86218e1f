package sweep

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	// firstRetry and lastRetry bound the waits after errors: soon enough for
	// a server that restarts, seldom enough for one that is down.
	firstRetry = 2 * time.Second
	lastRetry  = 5 * time.Minute
	// passLimit is more than a pass ever takes, a first clone over a slow line
	// included; each of its operations has a limit of its own.
	passLimit = 2 * time.Hour
)

// Run sweeps until the context ends, which is not an error. An error of a
// pass is logged once and tried again, with growing waits.
func (d *Daemon) Run(ctx context.Context) error {
	changes, stopped, err := d.watch(ctx)
	if err != nil {
		// Polling goes on without it.
		d.log.WarnContext(ctx, "the repository cannot be watched; changes are found by polling", keyFile, d.cfg.WatchPath, keyError, err.Error())
	}
	defer func() { <-stopped }()
	retry := backoff.NewExponentialBackOff()
	retry.InitialInterval = firstRetry
	retry.MaxInterval = lastRetry
	var lastGood, failing time.Time
	for {
		d.progress(passLimit)
		_, err := d.Once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		wait := d.cfg.Interval
		if err != nil {
			wait = retry.NextBackOff()
			if failing.IsZero() {
				failing = d.cfg.Now()
			}
			if d.news("pass", err.Error()) {
				d.log.ErrorContext(ctx, "the sweep could not be done: "+err.Error(), keySince, logTime(failing), keyLastGood, logTime(lastGood),
					keyInterval, wait.Round(time.Second).String())
			}
		} else {
			retry.Reset()
			if d.news("pass", "") {
				d.log.InfoContext(ctx, "the sweep works again", keySince, logTime(failing))
			}
			lastGood, failing = d.cfg.Now(), time.Time{}
			wait = d.lookAgain(ctx, wait)
		}
		d.progress(wait + passLimit)
		if !d.pause(ctx, wait, changes) {
			return nil
		}
	}
}

func (d *Daemon) progress(within time.Duration) {
	if d.cfg.Progress != nil {
		d.cfg.Progress(within)
	}
}

// logTime is a time for a log line; the zero time is never.
func logTime(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}

// pause waits for the next pass: its time, or a reason to come sooner. It
// gives false when there will be none.
func (d *Daemon) pause(ctx context.Context, wait time.Duration, changes <-chan struct{}) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-d.announced.wake:
	case <-changes:
	}
	return true
}
