package reconcile

import (
	"context"
	"errors"
	"fmt"

	"github.com/gitopsd/gitopsd/schema"
)

// succeed makes the desired spec the current one. The order holds at a crash:
// once current.json is written, the rest is repeated.
func (a *Agent) succeed(ctx context.Context) Result {
	d := a.store.desired
	from := a.store.current.Version
	if a.store.current.Attempt != d.Attempt {
		r, err := a.store.whole(desiredFile)
		if err != nil {
			return a.stateFailed(err)
		}
		r.OKAt, r.OK, r.OS = a.now(), a.instant(), a.store.attempts.of(d.Attempt).OSTo
		if err := a.store.saveCurrent(r); err != nil {
			return a.stateFailed(err)
		}
	}
	if err := a.settleProgram(); err != nil {
		return a.stateFailed(err)
	}
	a.settleSecrets(ctx)
	att := a.store.attempts.clone()
	att.end(ended{Attempt: d.Attempt, Version: d.Version, Digest: d.Digest, Outcome: schema.OutcomeOK, Begun: true, At: a.now()})
	att.Direction, att.Incomplete, att.Work, att.Dropped = steady, "", work{}, 0
	if err := a.store.saveAttempts(att); err != nil {
		return a.stateFailed(err)
	}
	if err := errors.Join(a.store.dropDesired(), a.store.savePending(nil)); err != nil {
		return a.stateFailed(err)
	}
	a.looked, a.drift, a.driftReason = true, nil, ""
	a.noteUnits(ctx)
	a.prune()
	a.settleApplications(ctx)
	loadBallast(a.root, a.freeDisk())
	a.rest()
	a.log.Info("updated", "version", d.Version, "attempt", d.Attempt, "from", from)
	a.tell(ctx)
	if a.elsewhere() { // what proved itself was given up when all was done but this
		return a.handOver()
	}
	if from == d.Version {
		return Result{Summary: "updated to a new configuration of " + d.Version}
	}
	return Result{Summary: fmt.Sprintf("updated from %s to %s", from, d.Version)}
}

// settleSecrets has the secrets go that the spec has dropped, also where the
// agent is told to end just now. Where that cannot be done, it is with the next
// repair of drift, or the next update.
func (a *Agent) settleSecrets(ctx context.Context) {
	spec, err := a.store.currentSpec()
	if err == nil {
		err = a.files.Settle(context.WithoutCancel(ctx), wholeSet(spec))
	}
	if err != nil {
		a.log.Warn("secrets that were dropped may stay for a while", "error", err)
	}
}
