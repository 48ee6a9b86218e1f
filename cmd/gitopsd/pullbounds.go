package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/internal/comment"
	"github.com/gitopsd/gitopsd/internal/github"
	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/schema"
)

// A pull request is looked at within the daemon, whose memory and time are the
// fleet's: whoever may open one must not be able to use them up.
const (
	// pullBytes bounds what is fetched of a pull request, beside the branch: as
	// much as all of them may take, see maxPullStore.
	pullBytes = maxPullStore
	// pullDocuments bounds the documents that a pull request changes, in bytes,
	// each with pullDocument on top: what is made of a document takes ten times
	// its size. Ten thousand devices that change have half of it.
	pullDocuments = 64 << 20
	pullDocument  = 2 << 10
	// pullReading bounds the time for reading and comparing what was fetched.
	pullReading = 5 * time.Minute
)

// tooMuch is a pull request that is not looked at because of what it would
// cost. Another try would come to the same.
type tooMuch struct{ why string }

func (e *tooMuch) Error() string { return e.why }

// refusal is what a pull request is told that is not looked at.
func (l *pullLook) refusal(p github.Pull, much *tooMuch) github.Review {
	place := preview.Place{Name: p.HeadRef, Commit: p.Head}
	problem := schema.Problem{
		File: "(the whole change)", Severity: schema.SeverityError, Message: much.why,
		Hint: "split it, or look at it on a machine of your own",
	}
	return github.Review{
		Head:     p.Head,
		Validate: github.Verdict{State: github.Failure, Words: "not looked at: " + much.why},
		Plan:     github.Verdict{State: github.Failure, Words: "there is no plan of what was not looked at"},
		Comment:  comment.RenderProblems(place, []schema.Problem{problem}, comment.Options{Command: l.command(place, nil)}),
	}
}

// affordable refuses what changes too many documents, or too large ones. A
// document counts wherever it stands: a tree may name one a thousand times.
func (l *pullLook) affordable(ctx context.Context, tip string, head schema.Source) error {
	there := map[string]string{}
	err := l.pulls.Walk(ctx, tip, func(path, blob string, _ uint32) error {
		if isYAML(path) {
			there[path] = blob
		}
		return nil
	})
	if err != nil {
		return err
	}
	entries, err := head.Entries()
	if err != nil {
		return err
	}
	sizes := map[string]int64{}
	var total int64
	for _, e := range entries {
		if top, _, _ := strings.Cut(e.Path, "/"); !isYAML(e.Path) || there[e.Path] == e.ID || top == "files" || e.Mode == schema.ModeSubmodule {
			continue
		}
		size, known := sizes[e.ID]
		if !known {
			const largest = 1 << 20 // of a document that is read at all
			data, err := head.Read(e, largest)
			if err != nil && ctx.Err() != nil {
				return err
			}
			size = int64(len(data)) // none of one that is too large
			sizes[e.ID] = size
		}
		if total += size + pullDocument; total > l.documents {
			return &tooMuch{fmt.Sprintf("the documents that it changes have more than %d MiB", l.documents>>20)}
		}
	}
	return nil
}

// problemsOf finds what is wrong with a fleet without keeping its devices. Only
// of a valid one is it bounded what they hold.
func (c *pullComparison) problemsOf(files schema.Source) (*schema.Fleet, error) {
	loader := schema.Loader{OwnVersion: c.look.own, ProblemsOnly: true, Stop: c.ctx.Err}
	return loader.Load(files)
}

// source is a fleet of the copy.
func (c *pullComparison) source(commit string) *files {
	return newFiles(sweep.Source(c.ctx, c.look.pulls, commit))
}
