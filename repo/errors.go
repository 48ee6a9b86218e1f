package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
)

// The kinds of trouble that callers tell apart: whether to try again now
// (race), later (network, timeout, locked), or to call a person (the rest).
const (
	kindAuth     = "auth"      // credentials refused, unreadable or lacking a right
	kindNotFound = "not-found" // no such repository, ref or object
	kindNetwork  = "network"   // no connection, or an answer that is not one
	kindTimeout  = "timeout"   // the deadline passed, or the caller gave up
	kindRefused  = "refused"   // the other side, or this package, will not do it
	kindRace     = "race"      // somebody else was faster
	kindLocked   = "locked"    // the lock of somebody else, who may be gone, stands in the way
	kindHostKey  = "host-key"  // the ssh server is not the one that is known
	kindCorrupt  = "corrupt"   // what is there cannot be read
)

// Error says what could not be done on which repository.
type Error struct {
	Op   string // what was attempted: "fetch", "publish", …
	URL  string // the repository, without user info
	Ref  string // the ref, commit or path concerned; may be ""
	Err  error
	Hint string // what a person can do about it; may be ""

	kind    string
	misread bool // the answer could not be understood, see httpRemote.upload
}

// Kind is one of auth, not-found, network, timeout, refused, race, locked,
// host-key and corrupt.
func (e *Error) Kind() string { return e.kind }

func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op)
		if e.Ref != "" {
			b.WriteString(" " + e.Ref)
		}
		if e.URL != "" {
			b.WriteString(" of " + e.URL)
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Err.Error())
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// fail makes an error of a kind; the operation is filled in by wrap.
func fail(kind, format string, args ...any) *Error {
	return &Error{kind: kind, Err: fmt.Errorf(format, args...)}
}

func (e *Error) hint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// wrap names the operation, once, and gives every error a kind.
func wrap(op, url, ref string, err error) error {
	if err == nil {
		return nil
	}
	var inner *Error
	e := &Error{kind: kindOf(err), Err: err}
	if errors.As(err, &inner) {
		if inner.Op != "" {
			return err
		}
		e.kind = inner.kind
		if direct, ok := err.(*Error); ok { //nolint:errorlint // one inside another error is left to its text
			*e = *direct
		}
	}
	e.Op, e.URL, e.Ref = op, url, ref
	if e.Hint == "" {
		e.Hint = ownerHint(err)
	}
	return e
}

func kindOf(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, os.ErrDeadlineExceeded):
		return kindTimeout
	case errors.As(err, &timeout) && timeout.Timeout():
		return kindTimeout
	case errors.Is(err, fs.ErrNotExist):
		return kindNotFound
	case errors.Is(err, fs.ErrPermission):
		return kindAuth
	case isDiskError(err):
		return kindRefused
	}
	return kindNetwork
}

// isDiskError tells a failing file system from a failing network.
func isDiskError(err error) bool {
	var p *fs.PathError
	var l *os.LinkError
	return errors.As(err, &p) || errors.As(err, &l)
}

// hasKind tells whether err is an Error of that kind.
func hasKind(err error, kind string) bool {
	var e *Error
	return errors.As(err, &e) && e.kind == kind
}

// timedOut turns whatever a connection says when it is closed at the deadline
// into what it means.
func timedOut(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if cause := ctx.Err(); cause != nil {
		if errors.Is(cause, context.DeadlineExceeded) {
			return fail(kindTimeout, "no complete answer before the deadline: %w", cause).
				hint("the server or the network stalls; it is tried again")
		}
		return fail(kindTimeout, "%w", cause)
	}
	return err
}

// sanitize makes text of a server fit for one line of a log: printable, no
// control sequences, bounded.
func sanitize(s string, limit int) string {
	var b strings.Builder
	space := false
	for _, r := range strings.TrimSpace(s) {
		if r < 0x20 || r == 0x7f || r == 0xfffd || (r >= 0x80 && r < 0xa0) {
			r = ' '
		}
		if r == ' ' {
			if !space {
				b.WriteByte(' ')
			}
			space = true
			continue
		}
		space = false
		b.WriteRune(r)
		if b.Len() >= limit {
			b.WriteString("…")
			break
		}
	}
	return strings.TrimSpace(b.String())
}
