package repo

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// connectionError leaves out the URL that net/http puts into its errors.
func (h *httpRemote) connectionError(ctx context.Context, err error) error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	if ctx.Err() != nil {
		return timedOut(ctx, err)
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	if strings.Contains(err.Error(), "x509:") || strings.Contains(err.Error(), "tls:") {
		return fail(kindAuth, "%w", err).hint("the certificate is not accepted: check the host name, or set caFile for a private authority")
	}
	return fail(kindOf(err), "%w", err)
}

// check turns an answer that is not git's into an error that says what it is.
func (h *httpRemote) check(resp *http.Response, r request) error {
	want := "application/x-" + r.service + "-result"
	if r.body == nil {
		want = "application/x-" + r.service + "-advertisement"
	}
	got, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	got = strings.TrimSpace(got)
	code := resp.StatusCode
	if code == http.StatusOK && got == want {
		return nil
	}
	text := ""
	if got == "text/plain" && resp.Body != nil {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorText))
		if text = sanitize(string(b), 200); text != "" {
			text = ": " + text
		}
	}
	switch {
	case code == http.StatusOK && r.body == nil && (got == "text/plain" || got == "application/octet-stream"):
		return fail(kindNotFound, "the server only serves files (dumb http)").
			hint("it has to run git http-backend or a hosting service's equal")
	case code == http.StatusOK:
		return fail(kindNotFound, "the answer is not git's but of type %q", sanitize(got, 60)).
			hint("check the URL; a web page or a login portal answers there")
	case code == http.StatusUnauthorized && !h.creds.given(h.at):
		return fail(kindAuth, "the server wants credentials (401)").
			hint("set passwordFile or tokenFile (--password-file, --token-file); a private repository may also be hidden behind this answer")
	case code == http.StatusUnauthorized:
		return fail(kindAuth, "the server rejects the credentials (401), also after they were read again").
			hint("check that the file holds a token that is still valid%s", h.creds.kept())
	case code == http.StatusForbidden && r.service == servicePush:
		return fail(kindAuth, "the server forbids pushing (403)%s", text).
			hint("the credentials lack the right to write, or the server has http.receivepack off")
	case code == http.StatusForbidden:
		return fail(kindAuth, "the server forbids it (403)%s", text).hint("the credentials lack the right to read")
	case code == http.StatusNotFound || code == http.StatusGone:
		return fail(kindNotFound, "the server knows no such repository (%d)%s", code, text).
			hint("check the URL; hosting services also say this when the credentials may not see it")
	case code == http.StatusTooManyRequests:
		e := fail(kindNetwork, "the server asks to slow down (429)%s", text)
		if after := retryAfter(resp.Header.Get("Retry-After")); after != "" {
			return e.hint("it says: again after %s", after)
		}
		return e.hint("use a longer interval")
	case code >= 300 && code < 400:
		return fail(kindNetwork, "the server redirects (%d)", code)
	case code >= 500:
		return fail(kindNetwork, "the server has trouble of its own (%d)%s", code, text).hint("it is tried again")
	}
	return fail(kindRefused, "the server answers %d%s", code, text)
}
