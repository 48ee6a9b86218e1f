package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	gh "github.com/google/go-github/v60/github"
)

// Kinds of trouble: whether a person, time or nothing helps.
const (
	KindCredentials = "auth"        // the token or the key is not accepted, or cannot be read
	KindPermission  = "permission"  // the token is accepted, and may not do this
	KindNotFound    = "not-found"   // no such thing, or none that the token may see
	KindRefused     = "refused"     // the request itself is not wanted; asking again does not help
	KindLimited     = "limited"     // too many requests; later
	KindUnavailable = "unavailable" // no answer, half an answer, an answer that is none; later
)

// Error is what could not be done at the API.
type Error struct {
	Op      string // what was attempted: "write the status gitopsd/plan"
	Status  int    // of HTTP; 0 = there was no answer
	Message string // what the server said, or what became of the connection
	Needs   string // the permissions that would do, as the server names them; "" = it does not

	kind string
	err  error
}

// Kind is one of the kinds of this package.
func (e *Error) Kind() string { return e.kind }

func (e *Error) Error() string {
	text := "cannot " + e.Op + ": "
	if e.Status != 0 {
		text += fmt.Sprintf("%d: ", e.Status)
	}
	text += e.Message
	if e.Needs != "" {
		text += " (it needs " + e.Needs + ")"
	}
	return text
}

// Unwrap is what happened below.
func (e *Error) Unwrap() error { return e.err }

// kindOf is the kind of an error; "" = it is not of this package.
func kindOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.kind
	}
	return ""
}

// failed turns what go-github gives into an error of this package. secrets are
// taken out of whatever the server says: it may repeat a header.
func failed(op string, err error, secrets func(string) string) error {
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		if own.Op == "" {
			own.Op = op
		}
		return own
	}
	e := &Error{Op: op, kind: KindUnavailable, err: errors.New("the request failed")}
	var answer *gh.ErrorResponse
	var primary *gh.RateLimitError
	var secondary *gh.AbuseRateLimitError
	var response *http.Response
	switch {
	case errors.Is(err, context.Canceled):
		e.err, e.Message = context.Canceled, "given up"
		return e
	case errors.As(err, &answer):
		response, e.Message = answer.Response, answer.Message
		for _, detail := range answer.Errors {
			// The API names fields, and puts words into some of them.
			e.Message += strings.TrimRight("; "+strings.TrimSpace(detail.Field+" "+detail.Code+" "+detail.Message), "; ")
		}
	case errors.As(err, &primary):
		response, e.Message = primary.Response, primary.Message
	case errors.As(err, &secondary):
		response, e.Message = secondary.Response, secondary.Message
	default:
		e.Message = clean(secrets(err.Error()))
		return e
	}
	e.kind = KindLimited
	if response != nil {
		e.Status = response.StatusCode
		e.Needs = clean(response.Header.Get("X-Accepted-GitHub-Permissions"))
		e.kind = kindOfStatus(response)
	}
	if e.Message = clean(secrets(e.Message)); e.Message == "" {
		e.Message = http.StatusText(e.Status)
	}
	return e
}

func kindOfStatus(r *http.Response) string {
	switch {
	case r.Header.Get(headerLimited) != "":
		return KindLimited
	case r.StatusCode == http.StatusUnauthorized:
		return KindCredentials
	case r.StatusCode == http.StatusForbidden:
		return KindPermission
	case r.StatusCode == http.StatusNotFound, r.StatusCode == http.StatusGone:
		return KindNotFound
	case r.StatusCode == http.StatusConflict, r.StatusCode == http.StatusRequestTimeout, r.StatusCode >= http.StatusInternalServerError:
		return KindUnavailable
	}
	return KindRefused
}

// maxMessage bounds what is repeated of a server's words, in bytes.
const maxMessage = 300

// clean makes text of a server fit for one line of a log.
func clean(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Cf, r)
	}), " ")
	return clip(s, maxMessage)
}

// clip cuts text to so many bytes, between two characters.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const dots = "…"
	cut := limit - len(dots)
	for cut > 0 && s[cut]&0xc0 == 0x80 {
		cut--
	}
	return s[:cut] + dots
}
