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
	kindCredentials = "auth"        // the token or the key is not accepted, or cannot be read
	kindPermission  = "permission"  // the token is accepted, and may not do this
	kindNotFound    = "not-found"   // no such thing, or none that the token may see
	kindRefused     = "refused"     // the request itself is not wanted; asking again does not help
	kindLimited     = "limited"     // too many requests; later
	kindUnavailable = "unavailable" // no answer, half an answer, an answer that is none; later
)

// apiError is what could not be done at the API.
type apiError struct {
	op      string // what was attempted: "write the status gitopsd/plan"
	status  int    // of HTTP; 0 = there was no answer
	message string // what the server said, or what became of the connection
	needs   string // the permissions that would do, as the server names them; "" = it does not
	kind    string
	err     error
}

func (e *apiError) Error() string {
	text := "cannot " + e.op + ": "
	if e.status != 0 {
		text += fmt.Sprintf("%d: ", e.status)
	}
	text += e.message
	if e.needs != "" {
		text += " (it needs " + e.needs + ")"
	}
	return text
}

// Unwrap is what happened below.
func (e *apiError) Unwrap() error { return e.err }

// kindOf is the kind of an error; "" = it is not of this package.
func kindOf(err error) string {
	var e *apiError
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
	var own *apiError
	if errors.As(err, &own) {
		if own.op == "" {
			own.op = op
		}
		return own
	}
	e := &apiError{op: op, kind: kindUnavailable, err: errors.New("the request failed")}
	var answer *gh.ErrorResponse
	var primary *gh.RateLimitError
	var secondary *gh.AbuseRateLimitError
	var response *http.Response
	switch {
	case errors.Is(err, context.Canceled):
		e.err, e.message = context.Canceled, "given up"
		return e
	case errors.As(err, &answer):
		response, e.message = answer.Response, answer.Message
		for _, detail := range answer.Errors {
			// The API names fields, and puts words into some of them.
			e.message += strings.TrimRight("; "+strings.TrimSpace(detail.Field+" "+detail.Code+" "+detail.Message), "; ")
		}
	case errors.As(err, &primary):
		response, e.message = primary.Response, primary.Message
	case errors.As(err, &secondary):
		response, e.message = secondary.Response, secondary.Message
	default:
		e.message = clean(secrets(err.Error()))
		return e
	}
	e.kind = kindLimited
	if response != nil {
		e.status = response.StatusCode
		e.needs = clean(response.Header.Get("X-Accepted-GitHub-Permissions"))
		e.kind = kindOfStatus(response)
	}
	if e.message = clean(secrets(e.message)); e.message == "" {
		e.message = http.StatusText(e.status)
	}
	return e
}

func kindOfStatus(r *http.Response) string {
	switch {
	case r.Header.Get(headerLimited) != "":
		return kindLimited
	case r.StatusCode == http.StatusUnauthorized:
		return kindCredentials
	case r.StatusCode == http.StatusForbidden:
		return kindPermission
	case r.StatusCode == http.StatusNotFound, r.StatusCode == http.StatusGone:
		return kindNotFound
	case r.StatusCode == http.StatusConflict, r.StatusCode == http.StatusRequestTimeout, r.StatusCode >= http.StatusInternalServerError:
		return kindUnavailable
	}
	return kindRefused
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
