// Package failure is the error of the device flow: it says whether trying
// again can help, and which component and element it concerns. It decides
// nothing; package reconcile does. Start with [Permanent], [Retryable] and
// [Deferred]; read with [From]. Values are immutable.
package failure

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/gitopsd/gitopsd/schema"
)

// Error is a failure of one element of a spec.
type Error struct {
	Class     schema.FailureClass
	Component string // files, directories, hooks, requires, resources, os, confirm, state
	Element   string // a path, a hook's name, …
	Output    string // the end of a tool's own output
	Err       error
}

func (e *Error) Error() string {
	if j, ok := e.Err.(joined); ok { //nolint:errorlint // what it wraps deeper has words of its own around it
		return j.Error() // its parts name their elements
	}
	s := e.Component
	if e.Element != "" {
		s += " " + e.Element
	}
	s += ": " + e.Err.Error()
	if e.Output != "" {
		s += ": " + e.Output
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Permanent: the spec cannot work here.
func Permanent(component, element, format string, args ...any) error {
	return &Error{Class: schema.ClassPermanent, Component: component, Element: element, Err: fmt.Errorf(format, args...)}
}

// Retryable: it may work later.
func Retryable(component, element, format string, args ...any) error {
	return &Error{Class: schema.ClassRetryable, Component: component, Element: element, Err: fmt.Errorf(format, args...)}
}

// Deferred: the device is busy or held; nothing has changed.
func Deferred(component, element, format string, args ...any) error {
	return &Error{Class: schema.ClassDeferred, Component: component, Element: element, Err: fmt.Errorf(format, args...)}
}

// From gives the failure in err; an error of another kind is retryable,
// because nothing is known of it. Full disks are always retryable.
func From(err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		return &Error{Class: schema.ClassRetryable, Component: "agent", Err: err}
	}
	if e.Class == schema.ClassPermanent && errors.Is(err, syscall.ENOSPC) {
		c := *e
		c.Class = schema.ClassRetryable
		return &c
	}
	return e
}
