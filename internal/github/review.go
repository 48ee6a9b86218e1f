package github

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gitopsd/gitopsd/internal/comment"
)

// Names of what is written on commits.
const (
	contextValidate = "gitopsd/validate"
	contextPlan     = "gitopsd/plan"
	contextFleet    = "gitopsd/fleet"
	checkName       = "gitopsd"
)

// maxWords is what GitHub allows as the description of a status, in
// characters; fewer bytes are never more characters.
const maxWords = 140

// Waits for a commit that was announced: a server may tell of it before it
// gives it out.
const (
	firstAwait = 2 * time.Second
	maxAwaits  = 5 // doubled each: a minute altogether
)

// feature is what a missing right costs.
type feature string

const (
	featureStatus  feature = "commit statuses"
	featureCheck   feature = "check runs"
	featureComment feature = "comments"
)

// offFor is how long something that may not be done is not tried again: a
// person may give the right meanwhile.
const offFor = time.Hour

// work does what is to be done about one pull request.
func (s *Service) work(ctx context.Context, it *item) error {
	p, err := s.forge.pull(ctx, it.number)
	switch {
	case kindOf(err) == kindNotFound:
		s.forget(it.number)
		return s.gone(it, err)
	case err != nil:
		return err
	case !p.Open || p.BaseRef != s.cfg.Branch:
		s.forget(it.number)
		return nil
	case !isHash(p.Head):
		return fmt.Errorf("the API names no commit as the head of pull request %d", it.number)
	}
	if it.stale {
		return s.markStale(ctx, p)
	}
	if it.want != "" && it.want != p.Head && !it.polled {
		// The API may lag behind the event, or the event is an old one.
		if it.tries < maxAwaits {
			return s.await(it)
		}
		if s.known[p.Number].head == p.Head {
			return nil
		}
	}
	it.want = p.Head
	if s.known[p.Number].head == p.Head && it.polled {
		return nil
	}
	if it.polled {
		done, err := s.standing(ctx, p)
		if err != nil || done {
			return err
		}
	}
	if it.review == nil || it.review.Head != p.Head || time.Since(it.at) > keepReview {
		review, err := s.cfg.Look(ctx, p)
		var k interface{ Kind() string }
		if errors.As(err, &k) && (k.Kind() == "not-found" || k.Kind() == "race") {
			if it.tries < maxAwaits {
				return s.await(it)
			}
			return s.gone(it, err)
		}
		if err != nil {
			return fmt.Errorf("look at pull request %d: %w", p.Number, err)
		}
		it.review, it.at = &review, time.Now()
	}
	return s.write(ctx, it.number, it.review)
}

// await comes back to an item a little later.
func (s *Service) await(it *item) error {
	it.ready = time.Now().Add(firstAwait << it.tries)
	it.tries++
	s.queue.again(it)
	return errAwaited
}

// gone gives up on a commit that is not to be had. The next look at all pull
// requests tries again, as long as it is a head.
func (s *Service) gone(it *item, err error) error {
	s.trouble("the head of "+pullText(it.number),
		fmt.Errorf("the commit %s of pull request %d was announced and is not to be found: %w", or(short(it.want), "(unknown)"), it.number, err))
	return nil
}

// standing says whether all that would be written of a head stands there
// already, from before this daemon began, or by another one.
func (s *Service) standing(ctx context.Context, p Pull) (bool, error) {
	there, err := s.forge.statuses(ctx, p.Head)
	if err != nil || there[contextValidate].State == "" {
		return false, unlessRefused(err)
	}
	comments, err := s.ownComments(ctx, p.Number)
	if err != nil || len(comments) != 1 {
		return false, unlessRefused(err)
	}
	mark := comments[0].mark
	if mark.Head != p.Head {
		return false, nil
	}
	s.remember(p.Number, known{head: p.Head, base: mark.Base, stale: comments[0].body != comment.Stale(comments[0].body, "")})
	return true, nil
}

// unlessRefused lets go on where something may not be read: what may be written
// shows when it is.
func unlessRefused(err error) error {
	switch kindOf(err) {
	case kindPermission, kindRefused, kindNotFound:
		return nil
	}
	return err
}

// remember notes what stands at a pull request, and whether its banner has to
// be put right: the branch may have moved meanwhile.
func (s *Service) remember(number int, k known) {
	s.known[number] = k
	s.judge(number, k)
}

// write brings to GitHub what was found out, the statuses first: merging may
// depend on them.
func (s *Service) write(ctx context.Context, number int, r *Review) error {
	// What was looked at may be old by now.
	p, err := s.forge.pull(ctx, number)
	switch {
	case err != nil:
		return err
	case !p.Open:
		s.forget(number)
		return nil
	case p.Head != r.Head:
		return errSuperseded
	}
	about := pullText(number)
	var all error
	for _, step := range []struct {
		of feature
		do func() error
	}{
		{featureStatus, func() error { return s.showVerdicts(ctx, r) }},
		{featureCheck, func() error { return s.showCheck(ctx, r) }},
		{featureComment, func() error { return s.showComment(ctx, number, r.text()) }},
	} {
		err := s.try(ctx, step.of, about, step.do)
		if k := kindOf(err); k == kindLimited || k == kindCredentials {
			return err // the other steps would come to the same
		}
		all = errors.Join(all, err)
	}
	if all != nil {
		return all
	}
	if r.Comment == "" {
		return nil // the next look at all pull requests comes back to it
	}
	s.well("the head of " + about)
	s.fleet.saw(r.Base)
	s.remember(number, known{head: r.Head, base: r.Base})
	s.log.Info("GitHub: a pull request was looked at", "pull", number, "commit", short(r.Head), "validate", r.Validate.Words, "plan", r.Plan.Words)
	return nil
}

// try does one thing. A right that is missing, and a request that is not
// wanted, are said once and do not keep the other things from being done.
func (s *Service) try(ctx context.Context, of feature, about string, do func() error) error {
	if until, off := s.off[of]; off && time.Now().Before(until) {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err := do()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch kindOf(err) {
	case kindPermission:
		if ofOne(err) {
			s.trouble(string(of)+" of "+about, err)
			return nil
		}
		s.off[of] = time.Now().Add(offFor)
		s.troubleOnce(string(of), fmt.Errorf("no %s are written: %w", of, err))
		return nil
	case kindRefused, kindNotFound:
		s.trouble(string(of)+" of "+about, err)
		return nil
	case "":
		if err == nil {
			s.works(of)
		}
	}
	return err
}

// works ends what a missing right cost: whatever it was missing for is looked at
// again with the next look at all pull requests.
func (s *Service) works(of feature) {
	if _, was := s.off[of]; was {
		delete(s.off, of)
		clear(s.known)
	}
	s.well(string(of))
}

// showVerdicts writes the statuses of a head, as far as they are not there.
func (s *Service) showVerdicts(ctx context.Context, r *Review) error {
	there, err := s.forge.statuses(ctx, r.Head)
	if err != nil {
		return err
	}
	for _, one := range []struct {
		context string
		Verdict
	}{{contextValidate, r.Validate}, {contextPlan, r.Plan}} {
		want := Status{Context: one.context, State: one.State, Description: clip(clean(one.Words), maxWords)}
		if want.State == "" || there[one.context] == want {
			continue
		}
		if err := s.forge.setStatus(ctx, r.Head, want); err != nil {
			return err
		}
	}
	return nil
}
