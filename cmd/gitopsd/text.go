package main

import (
	"encoding/json"
	"io"
	"net/url"
	"regexp"
	"strings"

	"github.com/gitopsd/gitopsd/internal/view"
)

// clean makes text that came from a repository or a device safe to print.
func clean(s string) string { return view.Clean(s) }

// userInfo finds what stands before the host in a URL, also inside a longer
// text. It ends at the last @ before the path, as URL parsers read it.
var userInfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s"'?#]*@`)

// query finds what follows the path of a URL, where access tokens are passed
// too.
var query = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'?#]*)\?[^\s"']*`)

// redact removes credentials from the URLs in a text.
func redact(s string) string {
	if !strings.Contains(s, "://") {
		return s
	}
	return query.ReplaceAllString(userInfo.ReplaceAllString(s, "${1}"), "${1}")
}

// redactingWriter is the last thing between the program and standard error:
// whatever a library puts into an error or a log line, no user info of a URL
// goes further. One Write is one message, as slog and fmt make them.
type redactingWriter struct{ w io.Writer }

func (r *redactingWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(r.w, redact(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// hasPassword says whether a URL carries a password or a token.
func hasPassword(repo string) bool {
	u, err := url.Parse(repo)
	if err != nil {
		return redact(repo) != repo
	}
	if u.Host != "" && u.RawQuery != "" {
		return true
	}
	if u.User == nil {
		return false
	}
	if _, has := u.User.Password(); has {
		return true
	}
	// A lone user name over http is how access tokens are passed.
	return u.Scheme == "http" || u.Scheme == "https"
}

// writeJSON writes one document with a newline at its end.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
