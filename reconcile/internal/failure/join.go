package failure

import (
	"errors"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// Join makes one failure of several, so that none hides another: permanent if
// one of them is, else retryable, else deferred; component and element are
// those of the first of that class, the message has all of them. It is nil
// where there are none, and the very failure where there is one.
func Join(errs ...error) error {
	var all []error
	for _, err := range errs {
		if err != nil {
			all = append(all, err)
		}
	}
	if len(all) < 2 {
		return errors.Join(all...)
	}
	for _, class := range []schema.FailureClass{schema.ClassPermanent, schema.ClassRetryable, schema.ClassDeferred} {
		for _, err := range all {
			if f := From(err); f.Class == class {
				return &Error{Class: class, Component: f.Component, Element: f.Element, Err: joined(all)}
			}
		}
	}
	return errors.Join(all...)
}

// joined keeps the parts for errors.Is. Their first lines are one line, with
// what programs said below.
type joined []error

func (j joined) Error() string { return j.told(asItIs) }

func (j joined) told(strike func(string) string) string {
	var first, below []string
	for _, err := range j {
		line, more, found := strings.Cut(Told(err, strike), "\n")
		first = append(first, line)
		if found {
			below = append(below, more)
		}
	}
	return strings.Join(append([]string{strings.Join(first, "; ")}, below...), "\n")
}

func (j joined) Unwrap() []error { return j }

// Told is the message of an error without what strike takes out of texts.
func Told(err error, strike func(string) string) string {
	var parts []error
	switch e := err.(type) { //nolint:errorlint // what wraps a failure is told around it
	case *Error:
		return e.told(strike)
	case joined:
		return e.told(strike)
	case interface{ Unwrap() error }:
		parts = []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		parts = e.Unwrap()
	}
	text := err.Error()
	for _, part := range parts {
		if part != nil {
			text = strings.Replace(text, part.Error(), Told(part, strike), 1)
		}
	}
	return strike(text)
}
