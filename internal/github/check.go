package github

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	gh "github.com/google/go-github/v60/github"

	"github.com/gitopsd/gitopsd/schema"
)

const (
	// annotationsAtOnce is what GitHub takes in one request.
	annotationsAtOnce = 50
	// maxAnnotations bounds those of one run: nobody reads more, and each fifty
	// take a second.
	maxAnnotations = 500
	// maxAnnotation and maxTitle bound the texts of an annotation, in bytes;
	// GitHub allows 64 KiB and 255 characters.
	maxAnnotation = 4 << 10
	maxTitle      = 255
)

// showCheck writes the check run of a head with its annotations, unless the
// newest run shows just that.
func (s *Service) showCheck(ctx context.Context, r *Review) error {
	if !s.forge.checks() {
		return nil
	}
	w := checkWrite{commit: r.Head, name: checkName, conclusion: "success", title: clip(clean(r.Validate.Words), maxTitle)}
	if r.Validate.State != Success {
		w.conclusion = "failure"
	}
	w.summary = fmt.Sprintf("%d problems were found.", len(r.Problems))
	shown := slices.Clone(r.Problems)
	slices.SortStableFunc(shown, func(a, b schema.Problem) int { return cmp.Compare(rank(a), rank(b)) })
	if len(shown) > maxAnnotations {
		shown = shown[:maxAnnotations]
		w.summary = fmt.Sprintf("%d problems were found; the first %d are shown. `gitopsd validate` lists all of them.", len(r.Problems), maxAnnotations)
	}
	all := make([]*gh.CheckRunAnnotation, len(shown))
	for i, p := range shown {
		all[i] = annotation(p)
	}
	sum, err := digest(w, all)
	if err != nil {
		return err
	}
	w.content = sum
	latest, err := s.forge.latestCheck(ctx, r.Head, checkName)
	if err != nil || latest.content == w.content {
		return err
	}
	// A run that an earlier try did not complete is left behind: the newest one
	// of its name is what counts.
	id := int64(0)
	for !w.last {
		n := min(len(all), annotationsAtOnce)
		w.annotations, all = all[:n], all[n:]
		w.last = len(all) == 0
		if id, err = s.forge.writeCheck(ctx, id, w); err != nil {
			return err
		}
	}
	return nil
}

// rank puts errors before warnings, which may be left out sooner.
func rank(p schema.Problem) int {
	if p.Severity == schema.SeverityError {
		return 0
	}
	return 1
}

// digest tells whether two runs show the same.
func digest(w checkWrite, all []*gh.CheckRunAnnotation) (string, error) {
	data, err := json.Marshal([]any{w.conclusion, w.title, w.summary, all})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// annotation is a problem at its place. What is wrong with a whole file stands
// at its first line.
func annotation(p schema.Problem) *gh.CheckRunAnnotation {
	line := max(p.Line, 1)
	level := "failure"
	if p.Severity == schema.SeverityWarning {
		level = "warning"
	}
	message := p.Message
	if p.Hint != "" {
		message += "\n" + p.Hint
	}
	a := &gh.CheckRunAnnotation{
		Path: gh.String(p.File), StartLine: &line, EndLine: &line, AnnotationLevel: &level,
		Message: gh.String(clip(message, maxAnnotation)), Title: gh.String(clip(or(p.Rule, "gitopsd"), maxTitle)),
	}
	if p.Line > 0 && p.Column > 0 {
		a.StartColumn, a.EndColumn = gh.Int(p.Column), gh.Int(p.Column)
	}
	return a
}
