package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// checkChanges loads the fleet as it would be, and refuses what would be wrong then
// and is not now.
func (a *app) checkChanges(t *workTree, changes []fileChange) error {
	after, err := t.loader.Load(&changedSource{source: t.source, changes: changes})
	if err != nil {
		return fmt.Errorf("cannot check the change: %w", err)
	}
	type problem struct{ file, rule, pointer, message string }
	known := map[problem]bool{}
	for _, p := range t.fleet.Problems {
		known[problem{p.File, p.Rule, p.Pointer, p.Message}] = true
	}
	var wrong []schema.Problem
	for _, p := range after.Problems {
		if p.Severity == schema.SeverityError && !known[problem{p.File, p.Rule, p.Pointer, p.Message}] {
			wrong = append(wrong, p)
		}
	}
	if len(wrong) == 0 {
		t.fleet = after
		return nil
	}
	for _, p := range wrong {
		a.sayln("%s", problemText(p))
	}
	return withHint(&exitError{code: exitContent, err: fmt.Errorf("nothing was written: with this change the fleet would have %s", plural(len(wrong), "more error"))},
		"correct what stands above first; its lines are those of the files after the change")
}

// changedSource is a folder with changes that are not written yet.
type changedSource struct {
	source  schema.Source
	changes []fileChange
}

// Entries lists the files with those that change.
func (s *changedSource) Entries() ([]schema.Entry, error) {
	entries, err := s.source.Entries()
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(slices.Clone(entries), func(e schema.Entry) bool { return s.change(e.Path) != nil })
	for i := range s.changes {
		c := &s.changes[i]
		e := schema.Entry{Path: c.path, Size: int64(len(c.after))}
		if c.copyOf != nil {
			e = *c.copyOf
			e.Path = c.path
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b schema.Entry) int { return strings.Compare(a.Path, b.Path) })
	return entries, nil
}

// Read reads a file as it would be.
func (s *changedSource) Read(e schema.Entry, limit int64) ([]byte, error) {
	c := s.change(e.Path)
	switch {
	case c == nil:
		return s.source.Read(e, limit)
	case c.copyOf != nil:
		return s.source.Read(*c.copyOf, limit)
	case int64(len(c.after)) > limit:
		return nil, schema.ErrTooLarge
	}
	return c.after, nil
}

func (s *changedSource) change(path string) *fileChange {
	for i := range s.changes {
		if s.changes[i].path == path {
			return &s.changes[i]
		}
	}
	return nil
}
