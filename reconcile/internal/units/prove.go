package units

import (
	"errors"
	"path"
	"slices"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/progress"
	"github.com/gitopsd/gitopsd/schema"
)

// begun is when jobs began, and the starts that they end.
type begun struct {
	at    time.Duration // on [Clock]
	ended []string
}

func (f *finishing) begin(jobs []Job) (begun, error) {
	var ends []string
	for _, j := range jobs {
		if j.Verb == Restart || j.Verb == TryRestart {
			ends = append(ends, j.Unit)
		}
	}
	states, err := f.m.States(f.ctx, ends...)
	if err != nil {
		return begun{}, failed("", err)
	}
	b := begun{at: Clock()}
	for i := range states {
		b.ended = append(b.ended, states[i].Invocation)
	}
	return b, nil
}

// proveEvery is how often started units are looked at.
const proveEvery = 250 * time.Millisecond

// prove looks whether what was started stays so, also what ran before: one that
// ends at once, or that systemd starts again and again, has not started.
func (f *finishing) prove(jobs []Job, bad []error, b begun) []error {
	var watch []string
	for _, j := range jobs {
		if j.Verb != TryReload && !slices.ContainsFunc(bad, func(err error) bool { return failure.From(err).Element == j.Unit }) {
			watch = append(watch, j.Unit)
		}
	}
	if len(watch) == 0 {
		return nil
	}
	progress.Within(f.ctx, f.steady+2*callLimit)
	var errs []error
	tick := time.NewTicker(proveEvery)
	defer tick.Stop()
	over := time.NewTimer(f.steady)
	defer over.Stop()
	for last := false; ; {
		states, err := f.m.States(f.ctx, watch...)
		if err != nil {
			return append(errs, failed("", err))
		}
		for i := range states {
			if why := fell(&states[i]); why != "" {
				errs = append(errs, f.unitFailure(f.ctx, schema.ClassPermanent, states[i].Name, b, errors.New(why)))
				watch = slices.DeleteFunc(watch, func(n string) bool { return n == states[i].Name })
			}
		}
		if last || len(watch) == 0 {
			return errs
		}
		select {
		case <-f.ctx.Done():
			return errs
		case <-over.C:
			last = true
		case <-tick.C:
		}
	}
}

// fell says why a unit that was started is not as it should be, or "".
func fell(s *State) string {
	switch {
	case s.Unmet:
		return ""
	case s.Active == "failed":
		return "it failed after its start: " + s.Result
	case s.Sub == "auto-restart" || s.Restarts > 0:
		return "it ends again and again, and systemd restarts it"
	case s.Running(), s.Active == "activating":
		return ""
	case s.Oneshot && s.Result == "success":
		return ""
	case path.Ext(s.Name) == ".service":
		return "it ended after its start, and its file does not say that it may (Type=oneshot or RemainAfterExit=yes)"
	}
	return ""
}
