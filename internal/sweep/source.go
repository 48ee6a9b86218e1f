package sweep

import (
	"context"
	"errors"
	"fmt"

	"github.com/gitopsd/gitopsd/schema"
)

// Modes of git tree entries.
const (
	gitExecutable = 0o100755
	gitSymlink    = 0o120000
	gitSubmodule  = 0o160000
)

// Source gives a fetched commit to package schema. The context bounds every
// later read, because [schema.Source] has none of its own.
func Source(ctx context.Context, r Remote, commit string) schema.Source {
	return newCommitSource(ctx, r, commit)
}

func newCommitSource(ctx context.Context, r Remote, commit string) *commitSource {
	return &commitSource{ctx: ctx, remote: r, commit: commit}
}

type commitSource struct {
	ctx    context.Context // see Source
	remote Remote
	commit string
	listed []schema.Entry // what Entries gave
}

// Entries lists the whole tree; sizes are not known before a blob is read.
func (s *commitSource) Entries() ([]schema.Entry, error) {
	var entries []schema.Entry
	err := s.remote.Walk(s.ctx, s.commit, func(p, blob string, mode uint32) error {
		entries = append(entries, entryOf(p, blob, mode))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the tree of %s: %w", short(s.commit), err)
	}
	s.listed = entries
	return entries, nil
}

func entryOf(path, blob string, mode uint32) schema.Entry {
	e := schema.Entry{Path: path, ID: blob, Size: -1}
	switch mode {
	case gitExecutable:
		e.Mode = schema.ModeExecutable
	case gitSymlink:
		e.Mode = schema.ModeSymlink
	case gitSubmodule:
		e.Mode = schema.ModeSubmodule
	}
	return e
}

// Read gives the content of an entry.
func (s *commitSource) Read(e schema.Entry, limit int64) ([]byte, error) {
	data, err := s.remote.Blob(s.ctx, e.ID, limit)
	if kindOf(err) == kindRefused { // the only thing that reading a blob can be refused for is its size
		return nil, fmt.Errorf("%s: %w", e.Path, schema.ErrTooLarge)
	}
	if err != nil {
		return nil, &entryError{path: e.Path, err: fmt.Errorf("read %s of %s: %w", oneLine(e.Path), short(s.commit), err)}
	}
	return data, nil
}

// entryError is of one file of the fleet.
type entryError struct {
	path string
	err  error
}

func (e *entryError) Error() string { return e.err.Error() }
func (e *entryError) Unwrap() error { return e.err }

// cause is what an error says of the object itself, in words that are the
// same for every daemon: where its copy of the repository lies is left out.
func cause(err error) string {
	var at *entryError
	prefix := ""
	if errors.As(err, &at) {
		prefix = at.path + ": "
	}
	inner := err
	for e := err; e != nil; e = errors.Unwrap(e) {
		if _, ok := e.(interface{ Kind() string }); ok {
			if inner = e; errors.Unwrap(e) != nil {
				inner = errors.Unwrap(e) // without the operation and the place
			}
		}
	}
	return oneLine(prefix + inner.Error())
}
