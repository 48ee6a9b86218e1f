package reconcile

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/progress"
	"github.com/gitopsd/gitopsd/schema"
)

const (
	defaultConfirm = 5 * time.Minute        // as long as slow networks take to come back
	answerWait     = 20 * time.Second       // of one question, so that a black hole leaves time for more
	firstAsk       = 250 * time.Millisecond // between questions, doubling
	lastAsk        = 5 * time.Second        //
	// resolverAge is how long Go's resolver goes by what it has read of
	// /etc/hosts and /etc/resolv.conf, and a bit.
	resolverAge = 5500 * time.Millisecond
)

// confirming says that the confirmation of the desired attempt has begun:
// everything before it is done.
func (a *Agent) confirming() bool {
	p := a.store.pending
	return p != nil && !p.Rollback && !p.Deadline.IsZero() && a.store.desired != nil && p.Attempt == a.store.desired.Attempt
}

// confirm proves that control is still reachable, within the time that the
// spec gives it. That it is pending stands on disk, so that a crash in the
// middle neither forgets it nor gives it more time. A boot in the middle gives
// it its time anew, because the network has to come up first; how many there
// may be is bounded by maxResumes.
func (a *Agent) confirm(ctx context.Context, spec *schema.Spec) error {
	within := defaultConfirm
	if c := spec.Confirm; c != nil {
		if c.Off && !a.onTrial() { // a new agent is no good without control
			return nil
		}
		within = c.Within.D(defaultConfirm)
	}
	left := within
	if a.confirming() {
		left = max(within-a.since(a.store.pending.Asking), 0)
	} else {
		p := pending{}
		if a.store.pending != nil {
			p = *a.store.pending
		}
		p.Attempt, p.Deadline, p.Asking = a.store.desired.Attempt, a.now().Add(within), a.instant()
		if err := a.store.savePending(&p); err != nil {
			return err
		}
	}
	timeout, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	// An answer from where a name led before would prove nothing.
	if stale := a.resolverStale(); stale > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout.Done():
		case <-time.After(stale):
		}
	}
	wait, began, waits := firstAsk, a.up(), false
	for {
		progress.Within(ctx, stepLimit)
		err := a.answers(ctx, timeout, reach(spec))
		if err == nil && a.onTrial() {
			err = a.converses(timeout)
		}
		if err == nil && !a.clockSet() {
			err = errNoClock // nothing would ever be polled
		}
		if err == nil {
			if waits {
				a.log.Info("control answers: the update is confirmed", "after", (a.up() - began).Round(time.Second))
			}
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !waits {
			waits = true
			a.log.Info("the update waits for control to answer, and is taken back if it does not in time", "left", left.Round(time.Second), "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout.Done():
			return failure.Permanent("confirm", "", "no answer within %s: %w", within, err)
		case <-time.After(wait):
			wait = min(2*wait, lastAsk)
		}
	}
}

// resolverStale is how long the resolver of this process may still go by files
// that have changed meanwhile.
func (a *Agent) resolverStale() (left time.Duration) {
	for _, file := range []string{"/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf"} { // of the host: the root has no resolver
		for _, look := range []func(string) (os.FileInfo, error){os.Lstat, os.Stat} {
			info, err := look(file)
			if err != nil {
				continue
			}
			if age := a.now().Sub(info.ModTime()); age >= 0 {
				left = max(left, resolverAge-age)
			}
		}
	}
	return left
}

// answers asks once. The first question gets a moment even when no time is
// left, because a restart may have used it up.
func (a *Agent) answers(ctx, timeout context.Context, urls []string) error {
	one, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	if d, ok := timeout.Deadline(); ok {
		if left := time.Until(d); left < answerWait {
			cancel()
			one, cancel = context.WithTimeout(ctx, max(left, time.Second))
			defer cancel()
		}
	}
	if err := a.control.Answers(one); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	for _, u := range urls {
		if err := reachable(one, u); err != nil {
			return err
		}
	}
	return nil
}

// converses proves that this program can do all that another update of it will
// need: read what is assigned, and be heard.
func (a *Agent) converses(ctx context.Context) error {
	if _, _, err := a.look(ctx); err != nil {
		return fmt.Errorf("what is assigned cannot be read: %w", err)
	}
	if err := a.reports.flush(ctx); err != nil {
		return fmt.Errorf("its report was not accepted: %w", err)
	}
	return nil
}

// reachable asks a URL; an answer of any kind will do.
func reachable(ctx context.Context, u string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return err
	}
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	c := &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := c.Do(req)
	if err != nil {
		return fmt.Errorf("reach: %w", err)
	}
	return res.Body.Close()
}

func reach(spec *schema.Spec) []string {
	if spec.Confirm == nil || spec.Confirm.Off {
		return nil
	}
	return spec.Confirm.Reach
}
