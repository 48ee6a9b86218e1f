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

func (j joined) Error() string {
	var first, below []string
	for _, err := range j {
		line, more, found := strings.Cut(err.Error(), "\n")
		first = append(first, line)
		if found {
			below = append(below, more)
		}
	}
	return strings.Join(append([]string{strings.Join(first, "; ")}, below...), "\n")
}

func (j joined) Unwrap() []error { return j }
