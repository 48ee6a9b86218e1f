package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

// remembering is control that remembers why it did not answer last, for the
// hint at the end of a one-shot run. It serves one run in one goroutine.
type remembering struct {
	reconcile.Control
	err error // of the last look; nil = it was answered
}

// Look looks, and remembers the error.
func (c *remembering) Look(ctx context.Context) (schema.Delivery, string, error) {
	d, problem, err := c.Control.Look(ctx)
	c.err = err
	return d, problem, err
}

// noAnswer is how package reconcile begins the summary of a run that heard
// nothing.
const noAnswer = "control did not answer"

// notAsked is how it begins its log of a device without a clock; its summary
// says the same.
const notAsked = "control is not asked"

// ended is the error of a one-shot run whose last look was not answered: the
// address once, and what to do.
func (c *remembering) ended(summary string) error {
	err := errors.New(summary)
	var e *repo.Error
	if !errors.As(c.err, &e) {
		return err
	}
	if strings.HasPrefix(summary, noAnswer+":") {
		err = fmt.Errorf("%s: %s: %w", noAnswer, e.URL, e.Err)
	}
	if e.Hint != "" {
		return withHint(err, "%s", e.Hint)
	}
	return repoHint(&hinted{err, e}, e.URL)
}

// hinted is an error with the repository's error that a hint is found by.
type hinted struct {
	error
	repo *repo.Error
}

// Unwrap is what happened at the repository.
func (h *hinted) Unwrap() error { return h.repo }
