package github

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// firstRetry and lastRetry bound the waits after trouble; the rate limit
	// has waits of its own.
	firstRetry = 5 * time.Second
	lastRetry  = 10 * time.Minute
	// keepReview is how long what was found out is still true enough to be
	// written after trouble.
	keepReview = 10 * time.Minute
)

// PullRequest queues what a webhook told. It never waits; of several events of
// one pull request the newest counts. The error says that there is no place.
func (s *Service) PullRequest(e Event) error {
	switch {
	case e.Number <= 0:
		return fmt.Errorf("%d is no pull request", e.Number)
	case e.Action == "closed":
		s.queue.drop(e.Number)
		return nil
	case !slices.Contains(actions, e.Action):
		return nil
	}
	want := e.Head
	if !isHash(want) {
		want = ""
	}
	return s.queue.put(&item{number: e.Number, want: want})
}

// actions are those that change what there is to look at.
var actions = []string{"", "opened", "synchronize", "reopened", "edited", "ready_for_review"}

// Run works until the context ends, which is not an error.
func (s *Service) Run(ctx context.Context) error {
	poll := time.Now() // at once: what was missed while nothing ran
	pollTries := 0
	for ctx.Err() == nil {
		if s.showFleet(ctx) {
			continue
		}
		now := time.Now()
		if !poll.After(now) {
			wait := s.cfg.Interval
			if err := s.look(ctx); err != nil && ctx.Err() == nil {
				wait = max(backoff(pollTries), min(s.cfg.Interval, lastRetry))
				pollTries++
				s.trouble("poll", err)
			} else if err == nil {
				pollTries = 0
				s.well("poll")
			}
			poll = time.Now().Add(wait)
			continue
		}
		it, work, next := s.queue.take(ctx, now)
		if it != nil {
			s.finish(ctx, it, s.work(work, it), context.Cause(work))
			continue
		}
		if next.IsZero() || poll.Before(next) {
			next = poll
		}
		if at := s.fleet.next(); !at.IsZero() && at.Before(next) {
			next = at
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-s.queue.wake:
		}
		timer.Stop()
	}
	return nil
}

// finish decides what becomes of an item after the work on it.
func (s *Service) finish(ctx context.Context, it *item, err, cause error) {
	s.queue.done()
	subject := pullText(it.number)
	switch {
	case ctx.Err() != nil, errors.Is(cause, errSuperseded), errors.Is(err, errAwaited):
	case err == nil:
		s.well(subject)
	case errors.Is(err, errSuperseded):
		it.review, it.want = nil, ""
		it.ready = time.Now().Add(firstRetry)
		s.queue.again(it)
	default:
		s.trouble(subject, err)
		it.ready = time.Now().Add(backoff(it.tries))
		it.tries++
		s.queue.again(it)
	}
}

// backoff is how long to wait after so many tries.
func backoff(tries int) time.Duration { return min(firstRetry<<min(tries, 10), lastRetry) }

// look finds out which pull requests are open, and queues those that were not
// looked at yet.
func (s *Service) look(ctx context.Context) error {
	list, err := s.forge.pulls(ctx, s.cfg.Branch)
	if err != nil {
		return err
	}
	open := map[int]bool{}
	for _, p := range list {
		open[p.Number] = true
		if s.known[p.Number].head == p.Head {
			continue
		}
		if err := s.queue.put(&item{number: p.Number, want: p.Head, polled: true}); err != nil {
			s.trouble("queue", err)
		}
	}
	for number := range s.known {
		if !open[number] {
			s.forget(number)
		}
	}
	s.tryAgain()
	return nil
}

// tryAgain takes up one of the pull requests that are known where it is time to
// see whether a right that was missing has been given.
func (s *Service) tryAgain() {
	for _, until := range s.off {
		if time.Now().Before(until) {
			continue
		}
		for number := range s.known {
			if err := s.queue.put(&item{number: number}); err != nil {
				s.trouble("queue", err)
			}
			return
		}
	}
}

// said is what was logged last, by subject, so that nothing is said twice.
type said map[string]string

// trouble logs an error once, until it is another one.
func (s *Service) trouble(subject string, err error) {
	text := err.Error()
	if s.said[subject] == text {
		return
	}
	s.said[subject] = text
	s.log.Warn("GitHub: "+text, "about", subject, "remedy", remedy(err))
}

// troubleOnce logs an error once, whatever its words.
func (s *Service) troubleOnce(subject string, err error) {
	if _, there := s.said[subject]; !there {
		s.trouble(subject, err)
	}
}

// well ends trouble.
func (s *Service) well(subject string) {
	if _, there := s.said[subject]; there {
		delete(s.said, subject)
		s.log.Info("GitHub: it works again", "about", subject)
	}
}

// forget drops what is known of a pull request that is no longer ours.
func (s *Service) forget(number int) {
	delete(s.known, number)
	for subject := range s.said {
		if strings.HasSuffix(subject, pullText(number)) {
			delete(s.said, subject)
		}
	}
}

func pullText(number int) string { return fmt.Sprintf("pull request %d", number) }

// remedy is what a person can do about an error.
func remedy(err error) string {
	switch kindOf(err) {
	case kindCredentials:
		return "check the token, or the App's id and private key, and the clock of this machine; gitopsd doctor tries them"
	case kindPermission:
		return "give the App or the token the permission; gitopsd doctor lists those that are missing"
	case kindNotFound:
		return "check the repository, and that the App is installed there or the token may see it; gitopsd doctor tries"
	case kindRefused:
		return "this is not tried again before the pull request changes"
	}
	return "it is tried again"
}

func isHash(s string) bool {
	const sha1, sha256 = 40, 64 // digits
	if len(s) != sha1 && len(s) != sha256 {
		return false
	}
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return false
		}
	}
	return true
}
