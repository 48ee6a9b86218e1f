package reconcile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
)

// read fills v from a state file; one that is there and cannot be used is set
// aside with its date. An error means that nothing is known of it: the process
// is short of something, or the disk does not even let a file be renamed.
func (s *store) read(p string, v any, valid func() bool) (ok bool, err error) {
	b, err := s.bytes(p)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if disk.Short(err) {
		return false, &stateError{err}
	}
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(b))
		if err = d.Decode(v); err == nil && valid != nil && !valid() {
			err = errors.New("it is not complete")
		}
	}
	if err == nil {
		return true, nil
	}
	if aside := s.moveAside(p); aside != nil {
		return false, fmt.Errorf("%w, and %w", aside, err)
	}
	s.log.Warn("a state file cannot be read and is set aside", "file", p, "error", err)
	return false, nil
}

// bytes reads a state file. A link is none, wherever it leads: it cannot be
// written, and what it leads to is not the agent's.
func (s *store) bytes(p string) ([]byte, error) {
	if !s.inPlace(p) {
		return nil, fmt.Errorf("%s: %w", p, disk.ErrNotRegular)
	}
	return s.root.ReadState(p, stateLimit)
}

// inPlace says that nothing else than a file stands where a state file belongs.
func (s *store) inPlace(p string) bool {
	info, err := s.root.Lstat(p)
	return err != nil || info.Mode().IsRegular()
}

func (s *store) moveAside(p string) error {
	if _, err := s.root.SetAside(p, s.now()); err != nil {
		return &stateError{err}
	}
	return nil
}

// setAside says whether there was state here that could not be read.
func (s *store) setAside() bool {
	for _, p := range []string{installFile, attemptsFile, currentFile} {
		entries, err := s.root.List(path.Dir(p))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return true // perhaps
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), path.Base(p)+disk.AsideMark) {
				return true
			}
		}
	}
	return false
}

func (s *store) absent(p string) bool {
	_, err := s.root.Lstat(p)
	return errors.Is(err, fs.ErrNotExist)
}

// stateError is that the state could not be written: nothing may go on that
// it should have recorded.
type stateError struct{ err error }

func (e *stateError) Error() string { return e.err.Error() }
func (e *stateError) Unwrap() error { return e.err }

func (s *store) write(p string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return &stateError{fmt.Errorf("encode %s: %w", p, err)}
	}
	if !s.inPlace(p) {
		if err := s.moveAside(p); err != nil {
			return err
		}
		s.log.Warn("what stands in the place of a state file is set aside", "file", p)
	}
	if err := writeState(s.root, p, append(b, '\n')); err != nil {
		s.stale = true
		return &stateError{err}
	}
	s.wrote++
	return nil
}

func (s *store) remove(p string) error {
	if err := s.root.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.stale = true
		return &stateError{err}
	}
	s.wrote++
	return nil
}
