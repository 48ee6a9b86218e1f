package units

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
	"github.com/gitopsd/gitopsd/schema"
)

const (
	// journalLines is how much of a unit's end is told, in lines; a failure is
	// bounded in bytes too.
	journalLines = 30
	// journalLimit is for a journal on a slow card, in seconds.
	journalLimit = 20
)

// Journal gives the end of what a unit has said since a time in this boot, for
// a failure's output, without what looks like a secret; "" where nothing can
// be had.
func Journal(ctx context.Context, unit string, since time.Time) string {
	argv := []string{"journalctl", "--no-pager", "--quiet", "--output=cat", "--boot", fmt.Sprintf("--lines=%d", journalLines), "--unit=" + unit}
	if !since.IsZero() {
		argv = append(argv, fmt.Sprintf("--since=@%d", since.Unix()))
	}
	out, err := hooks.Command(ctx, argv, "/", nil, journalLimit)
	if err != nil {
		return ""
	}
	return failure.WithoutSecrets(ownWords(out))
}

// ownWords leaves out what systemd says of every start and stop, so that what
// the program said of itself is not cut.
func ownWords(journal string) string {
	var kept []string
	for line := range strings.SplitSeq(journal, "\n") {
		word, _, _ := strings.Cut(line, " ")
		if slices.Contains([]string{"Starting", "Started", "Stopping", "Stopped", "Closed", "Listening"}, word) || strings.HasSuffix(line, ": Deactivated successfully.") {
			continue
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n")
}

// jobFailure makes a failure of what [Manager.Do] says of one job.
func (c *Controller) jobFailure(ctx context.Context, err error, since time.Time) error {
	var j *JobError
	if !errors.As(err, &j) {
		return failed("", err)
	}
	return c.unitFailure(ctx, j.class(), j.Unit, since, j)
}

// unitFailure tells what became of a unit, with the end of its journal.
func (c *Controller) unitFailure(ctx context.Context, class schema.FailureClass, unit string, since time.Time, err error) error {
	return &failure.Error{Class: class, Component: component, Element: unit, Output: c.journal(ctx, unit, since), Err: err}
}
