package sweep

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// loadedFleet is the fleet at one source commit.
type loadedFleet struct {
	commit  string
	subject string
	author  string
	fleet   *schema.Fleet
	entries []schema.Entry // of the commit, by path
}

// Restrictions hold devices and policies back beyond what the fleet says.
type Restrictions struct {
	All      string            // reason why everything is paused; "" = it is not
	Hold     map[string]string // device → reason
	Paused   map[string]string // policy → reason
	Disabled map[string]bool   // policy
}

// validate settles which fleet is planned by: the head, or, where that is
// stopped, the one swept last, with whatever the head only restricts. The brake
// restricts both.
func (p *pass) validate(ctx context.Context) error {
	p.restrict = Braked(&p.d.brake.reading.Brake)
	if p.sourceStopped() || p.stale {
		return p.useSwept(ctx)
	}
	lf, err := p.loadHead(ctx)
	if err != nil {
		if !isBroken(err) {
			return err
		}
		p.stop(stop{
			kind:    conditionInvalid,
			reason:  "InvalidFleet",
			message: fmt.Sprintf("%s cannot be read: %s", short(p.head), cause(err)),
			remedy:  "push a commit whose files git can read (git fsck says what is wrong)",
		})
		return p.useSwept(ctx)
	}
	p.d.loaded = lf
	if !lf.fleet.Valid() {
		p.stop(stop{
			kind:    conditionInvalid,
			reason:  "InvalidFleet",
			message: describeProblems(lf),
			remedy:  "correct the files and push; gitopsd validate shows the same problems before the merge",
		})
		p.restrict = p.restrict.and(restrictionsOf(lf.fleet))
		return p.useSwept(ctx)
	}
	ok, err := p.deletions(ctx, lf.fleet)
	if err != nil {
		return err
	}
	if !ok {
		return p.useSwept(ctx)
	}
	p.use(lf)
	return nil
}

func (p *pass) loadHead(ctx context.Context) (*loadedFleet, error) {
	if p.broken != nil {
		return nil, p.broken
	}
	return p.load(ctx, p.head, p.d.loaded)
}

// sourceStopped says whether a guard refused the head.
func (p *pass) sourceStopped() bool {
	if p.head == "" {
		return true
	}
	for _, s := range p.stops {
		if s.reason == "HistoryRewritten" {
			return true
		}
	}
	return false
}

func (p *pass) use(lf *loadedFleet) {
	p.d.valid = lf
	p.fleet = lf
	p.result.SourceCommit = lf.commit
}

// useSwept plans by the fleet swept last. Where that cannot be read any more
// (a rewritten history, a fresh clone) nothing is planned at all, and only
// the stop is written.
func (p *pass) useSwept(ctx context.Context) error {
	swept := p.status.swept()
	if swept == "" {
		return nil
	}
	known := p.d.valid
	if known == nil || known.commit != swept {
		known = p.d.loaded
	}
	lf, err := p.load(ctx, swept, known)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		if p.d.news("swept", swept) {
			p.d.log.WarnContext(ctx, "the fleet swept last cannot be read any more; nothing is decided until the stop is resolved",
				keyCommit, swept, keyError, err.Error())
		}
		return nil
	}
	if lf.fleet.Valid() {
		p.use(lf)
	}
	return nil
}

// load reads the fleet at a commit, unless known is it.
func (p *pass) load(ctx context.Context, commit string, known *loadedFleet) (*loadedFleet, error) {
	if known != nil && known.commit == commit {
		return known, nil
	}
	lf := &loadedFleet{commit: commit}
	err := p.d.cfg.Remote.Log(ctx, commit, "", func(_, author string, _ time.Time, message string) bool {
		lf.author = oneLine(author)
		subject, _, _ := strings.Cut(message, "\n")
		lf.subject = oneLine(subject)
		return false
	})
	if err != nil {
		return nil, fmt.Errorf("read the source commit %s: %w", short(commit), err)
	}
	src := newCommitSource(ctx, p.d.cfg.Remote, commit)
	if lf.fleet, err = p.d.loader.Load(src); err != nil {
		return nil, fmt.Errorf("load the fleet at %s: %w", short(commit), err)
	}
	lf.entries = src.listed
	return lf, nil
}

// describeProblems lists the first errors with their positions.
func describeProblems(lf *loadedFleet) string {
	const shown = 20 // a screen; validate shows all
	var b strings.Builder
	n := 0
	for _, problem := range lf.fleet.Problems {
		if problem.Severity != schema.SeverityError {
			continue
		}
		if n++; n > shown {
			continue
		}
		fmt.Fprintf(&b, "\n%s:%d:%d: %s (%s)", oneLine(problem.File), problem.Line, problem.Column, oneLine(problem.Message), problem.Rule)
		if problem.Hint != "" {
			fmt.Fprintf(&b, "; %s", oneLine(problem.Hint))
		}
	}
	if n > shown {
		fmt.Fprintf(&b, "\nand %d more", n-shown)
	}
	noun := "problems"
	if n == 1 {
		noun = "problem"
	}
	return fmt.Sprintf("%s has %d %s:%s", short(lf.commit), n, noun, b.String())
}

// restrictionsOf is what a head that is not valid says in the way of holding
// back, as far as it could be read.
func restrictionsOf(f *schema.Fleet) Restrictions {
	r := Restrictions{Hold: map[string]string{}, Paused: map[string]string{}, Disabled: map[string]bool{}}
	for _, m := range f.Devices {
		if m.Device != nil && m.Device.Spec.Hold != nil {
			r.Hold[m.ID] = m.Device.Spec.Hold.Reason
		}
	}
	if f.Document != nil && f.Document.Spec.Paused != nil {
		r.All = or(f.Document.Spec.Paused.Reason, "paused")
	}
	for _, policy := range f.Policies {
		if policy.Spec.Paused != nil {
			r.Paused[policy.Metadata.Name] = policy.Spec.Paused.Reason
		}
		if !policy.Spec.Enabled {
			r.Disabled[policy.Metadata.Name] = true
		}
	}
	return r
}
