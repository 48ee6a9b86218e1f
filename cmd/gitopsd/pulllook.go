package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/internal/advice"
	"github.com/gitopsd/gitopsd/internal/comment"
	"github.com/gitopsd/gitopsd/internal/github"
	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

// maxPullStore is the size of the copy of pull requests, in bytes, from which
// on it begins anew: whoever may open a pull request must not fill the disk.
const maxPullStore = 1 << 30

// pullLook looks at pull requests for the daemon. What they hold is read, and
// nothing of it is ever run. It serves one goroutine.
type pullLook struct {
	spec   schema.ServeSpec
	own    string  // version of this program
	reader *reader // of the daemon's repositories, for the present status
	config repo.Config
	pulls  *repo.Repo // a copy of its own; nil = not open

	bytes     int64         // see pullBytes
	documents int64         // see pullDocuments
	reading   time.Duration // see pullReading
}

// newPullLook uses the daemon's repositories for the present status, and a copy
// below state for what strangers sent.
func newPullLook(spec schema.ServeSpec, own string, fleet, reports *repo.Repo, state string, logger *slog.Logger) *pullLook {
	return &pullLook{
		spec: spec, own: own, reader: &reader{spec: spec, fleet: fleet, reports: reports},
		config: repo.Config{
			URL: spec.Repo.URL, Credentials: credentialsOf(spec.Repo), Store: filepath.Join(state, "pulls.git"),
			Timeout: spec.Timeout.D(defaultTimeout), Logger: logger,
		},
		bytes: pullBytes, documents: pullDocuments, reading: pullReading,
	}
}

func (l *pullLook) close() error {
	if l.pulls == nil {
		return nil
	}
	return l.pulls.Close()
}

// open opens the copy, which begins empty with each start of the daemon and
// whenever it has grown too large.
func (l *pullLook) open() error {
	if l.pulls != nil && sizeBelow(l.config.Store, maxPullStore) {
		return nil
	}
	if l.pulls != nil {
		if err := l.pulls.Close(); err != nil {
			return err
		}
		l.pulls = nil
	}
	if err := os.RemoveAll(l.config.Store); err != nil {
		return err
	}
	pulls, err := repo.Open(l.config)
	l.pulls = pulls
	return err
}

// sizeBelow says whether a folder holds less than so many bytes.
func sizeBelow(dir string, limit int64) bool {
	var size int64
	// What cannot be read is not counted; it shows when it is used.
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return size < limit
}

// gone is for a commit that was announced and is not there, maybe not yet.
type gone struct{ what string }

func (e *gone) Error() string { return e.what }

// Kind is that of package repo's errors.
func (*gone) Kind() string { return "not-found" }

// lookLimit bounds one look, so that no pull request keeps the others waiting
// for ever; the first one fetches the whole history of the branch.
const lookLimit = 10 * time.Minute

// look validates a pull request, and says what it would do.
func (l *pullLook) look(ctx context.Context, p github.Pull) (github.Review, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	if err := l.open(); err != nil {
		return github.Review{}, err
	}
	branch := or(l.spec.Branch, schema.DefaultBranch)
	baseRef, headRef := branchPrefix+branch, fmt.Sprintf("refs/pull/%d/head", p.Number)
	refs, err := l.pulls.Refs(ctx, baseRef, headRef)
	if err != nil {
		return github.Review{}, err
	}
	tip := refs[baseRef]
	switch {
	case tip == "":
		return github.Review{}, &gone{"there is no branch " + branch}
	case refs[headRef] != p.Head:
		return github.Review{}, &gone{fmt.Sprintf("%s is at %s", headRef, or(refs[headRef], "nothing"))}
	}
	// The branch comes first: of the pull request only what it adds is counted.
	if err := l.pulls.Fetch(ctx, baseRef, tip, true); err != nil {
		return github.Review{}, err
	}
	switch err := l.pulls.FetchAtMost(ctx, headRef, p.Head, l.bytes); {
	case errors.Is(err, repo.ErrTooLarge):
		return l.refusal(p, &tooMuch{fmt.Sprintf("its commits hold more than the %d MiB that are fetched", l.bytes>>20)}), nil
	case err != nil:
		return github.Review{}, err
	}
	reading, cancel := context.WithTimeout(ctx, l.reading)
	defer cancel()
	review, err := l.compare(reading, p, tip)
	var much *tooMuch
	switch {
	case errors.As(err, &much):
		return l.refusal(p, much), nil
	case err != nil && ctx.Err() == nil && reading.Err() != nil:
		return l.refusal(p, &tooMuch{"reading and comparing it takes longer than " + l.reading.String()}), nil
	}
	return review, err
}

// compare reads what was fetched.
func (l *pullLook) compare(ctx context.Context, p github.Pull, tip string) (github.Review, error) {
	branch := or(l.spec.Branch, schema.DefaultBranch)
	c := &pullComparison{look: l, ctx: ctx, loader: &schema.Loader{OwnVersion: l.own, Stop: ctx.Err}, now: time.Now()}
	head := &side{place: preview.Place{Name: p.HeadRef, Commit: p.Head}, files: c.source(p.Head)}
	err := l.affordable(ctx, tip, head.files)
	if err == nil {
		head.fleet, err = c.problemsOf(head.files)
	}
	if err != nil {
		return github.Review{}, fmt.Errorf("cannot read the fleet of %s: %w", p.Head, err)
	}
	review := github.Review{Head: p.Head, Problems: advice.Check(head.fleet, c.now)}
	wrong, warnings := tally(review.Problems)
	words := "valid"
	if wrong > 0 {
		words = plural(wrong, "error")
	}
	if warnings > 0 {
		words += ", " + plural(warnings, "warning")
	}
	if !head.fleet.Valid() {
		review.Validate = github.Verdict{State: github.Failure, Words: words}
		review.Plan = github.Verdict{State: github.Failure, Words: "there is no plan before the errors are corrected"}
		review.Comment = comment.RenderProblems(head.place, review.Problems, comment.Options{Command: l.command(head.place, nil)})
		return review, nil
	}
	if head, err = c.load(head.place); err != nil {
		return github.Review{}, err
	}
	review.Base = tip
	review.Validate = github.Verdict{State: github.Success, Words: words}
	base, note, err := c.base(branch, tip, p.Head)
	if err != nil {
		return github.Review{}, err
	}
	plan, err := c.plan(head, base, note)
	var e *repo.Error
	switch {
	case errors.As(err, &e), ctx.Err() != nil:
		return github.Review{}, err
	case err != nil: // a person has to do something before there is a plan
		review.Plan = github.Verdict{State: github.Failure, Words: "there is no plan: " + redactText(err.Error())}
		return review, nil
	}
	for _, problem := range review.Problems {
		plan.Summary.Warnings = append(plan.Summary.Warnings, warningText(problem))
	}
	review.Plan = github.Verdict{State: github.Success, Words: planWords(plan)}
	review.Comment = comment.Render(plan, comment.Options{Command: l.command(plan.Head, plan.Base)})
	return review, nil
}

// command is the line that shows the same in a clone. A folder on the daemon's
// machine says nothing to whoever reads it.
func (l *pullLook) command(head preview.Place, base *preview.Place) string {
	s := sides{dir: ".", spec: l.spec}
	if l.reader.fleet.Path() != "" {
		s.spec.Repo.URL = ""
	}
	return s.command(head, base)
}

// planWords is a plan in a few words.
func planWords(p *preview.Plan) string {
	changed := 0
	for i := range p.Changes {
		changed += len(p.Changes[i].Devices)
	}
	words := []string{plural(changed, "device") + " changed", plural(p.Summary.Upgrades, "upgrade") + " next"}
	if p.Summary.Recalls > 0 {
		words = append(words, plural(p.Summary.Recalls, "recall"))
	}
	if n := len(p.Summary.Warnings); n > 0 {
		words = append(words, plural(n, "warning"))
	}
	return strings.Join(words, ", ")
}

// pullComparison compares two commits of the copy.
type pullComparison struct {
	look   *pullLook
	ctx    context.Context // of one look; what reads files has none of its own
	loader *schema.Loader
	now    time.Time
}

func (c *pullComparison) load(place preview.Place) (*side, error) {
	f := c.source(place.Commit)
	fleet, err := c.loader.Load(f)
	if err != nil {
		return nil, fmt.Errorf("cannot read the fleet of %s: %w", place.Commit, err)
	}
	return &side{place: place, fleet: fleet, files: f}, nil
}

// base is where the pull request left the branch; nil where that is nothing to
// compare with, and the note says why.
func (c *pullComparison) base(branch, tip, head string) (*side, string, error) {
	commit, err := c.look.pulls.MergeBase(c.ctx, tip, head)
	if err != nil || commit == "" {
		return nil, "it has no commit in common with " + branch, err
	}
	place := preview.Place{Name: branch, Commit: commit}
	if commit != tip {
		place.Name = "where it left " + branch
	}
	base, err := c.load(place)
	switch {
	case err != nil:
		return nil, "", err
	case base.fleet.Files == 0 && len(base.fleet.Problems) == 0:
		return nil, place.Name + " holds no fleet", nil
	case !base.fleet.Valid():
		return nil, place.Name + " is not valid itself", nil
	}
	return base, "", nil
}

// plan compares both with the present status.
func (c *pullComparison) plan(head, base *side, note string) (*preview.Plan, error) {
	present, err := readPresent(c.ctx, c.look.reader)
	if err != nil {
		return nil, err
	}
	in := preview.Input{
		Now: c.now, Note: note, Present: present.devices, Standing: present.standing(),
		Head:          head.revision(present.plan(head.fleet, c.now, c.look.own)),
		DeletionLimit: func(total int) int { return sweep.DeletionLimit(head.fleet, total) },
	}
	if base != nil {
		revision := base.revision(present.plan(base.fleet, c.now, c.look.own))
		in.Base = &revision
	}
	return preview.Compare(in), nil
}
