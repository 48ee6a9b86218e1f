// Package failure is the error of the device flow: it says whether trying
// again can help, and which component and element it concerns. It decides
// nothing; package reconcile does. Start with [Permanent], [Retryable] and
// [Deferred]; read with [From]. Values are immutable.
package failure

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"

	"github.com/gitopsd/gitopsd/schema"
)

// Error is a failure of one element of a spec.
type Error struct {
	Class     schema.FailureClass
	Component string // agent, files, directories, hooks, applications, requires, resources, os, confirm, state
	Element   string // a path, a hook's name, …
	Output    string // the end of a tool's own output
	// Beside: what the tool wrote may have to do with it or not, and Err tells
	// the cause better than a line that does not look like one.
	Beside bool
	Err    error
}

// Error has on its first line what a program said of the cause, then what
// happened, because whoever shows it cuts its end; the program's output is below.
func (e *Error) Error() string { return e.told(asItIs) }

func asItIs(text string) string { return text }

// told is the message, with what strike takes out of it gone before anything of
// a program's output is cut: a part of a secret is not recognised as one.
func (e *Error) told(strike func(string) string) string {
	if j, ok := e.Err.(joined); ok { //nolint:errorlint // what it wraps deeper has words of its own around it
		return j.told(strike) // its parts name their elements
	}
	s := e.Component
	if e.Element != "" {
		s += " " + shortElement(e.Element)
	}
	s += ": "
	happened, said := strike(Words(e.Err)), strings.TrimSpace(WithoutSecrets(strike(e.Output)))
	if said == "" {
		return s + happened
	}
	cause := Cause(said)
	first := shortCause(cause) + " (" + happened + ")"
	if e.Beside && !causal.MatchString(cause) {
		first = happened + ": " + shortCause(cause)
	}
	if s += first; said == shortCause(cause) {
		return s
	}
	return s + "\n" + said
}

// longElement is what a message shows of an element, in characters; the whole
// one stands in a field of its own.
const longElement = 80

// shortElement keeps the beginning and the end, where a path differs from its
// neighbours.
func shortElement(s string) string {
	s = longHex.ReplaceAllString(s, "$1…")
	if r := []rune(s); len(r) > longElement {
		return string(r[:longElement/4]) + "…" + string(r[len(r)-longElement*3/4:])
	}
	return s
}

// longHex is the sum of a payload; twelve digits tell it from any other.
var longHex = regexp.MustCompile(`\b([0-9a-f]{12})[0-9a-f]{52}\b`)

// Words are those of an error, with what the operating system said put first:
// what it happened to may be long, and whoever shows a message cuts its end.
func Words(err error) string {
	text := longHex.ReplaceAllString(err.Error(), "$1…")
	var errno syscall.Errno
	if errors.As(err, &errno) {
		if before, found := strings.CutSuffix(text, ": "+errno.Error()); found {
			return errno.Error() + " (" + before + ")"
		}
	}
	return text
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
// because nothing is known of it. What a disk does is always retryable.
func From(err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		return &Error{Class: schema.ClassRetryable, Component: "agent", Err: err}
	}
	if e.Class == schema.ClassPermanent && OfDisk(err) {
		c := *e
		c.Class = schema.ClassRetryable
		return &c
	}
	return e
}

// OfDisk says that the disk is full, fails or can only be read: that proves
// nothing of a spec, and may be over before the next try.
func OfDisk(err error) bool {
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
