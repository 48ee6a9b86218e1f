package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/gitopsd/gitopsd/internal/view"
)

// clean makes text that came from a repository or a device safe to print.
func clean(s string) string { return view.Clean(s) }

// Where credentials stand in a text: before the host of a URL, up to the last
// @ in front of the path, as URL parsers read it; behind the colon of a URL
// that no parser reads, because the password has a slash or the scheme lacks
// one; behind a question mark, where access tokens are passed too; and before
// the @ of user:password@host.
var (
	userInfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s"'?#]*@`)
	broken   = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*:/+)[^/\s"'@]*:[0-9]*[^0-9/\s"'][^\s"']*@`)
	query    = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'?#]*)[?#][^\s"']*`)
	pair     = regexp.MustCompile(`[^\s"'/=:]+:[^\s"'/]*@`)
)

// redactText removes credentials from the addresses in a text.
func redactText(s string) string {
	if strings.Contains(s, "@") {
		s = userInfo.ReplaceAllString(s, "${1}")
		s = broken.ReplaceAllString(s, "${1}")
		s = pair.ReplaceAllString(s, "")
	}
	if strings.Contains(s, "://") {
		s = query.ReplaceAllString(s, "${1}")
	}
	return s
}

// redact is the address of a repository for people. Of what is not clearly a
// path, nothing before an @ and nothing behind a ? or # is shown, also where
// it is mistyped and the text could mean several things. Only the user name of
// user@host:path stays.
func redact(repo string) string {
	if isLocalPath(repo) || scpForm.MatchString(repo) {
		return repo
	}
	if u := parseAddress(repo); u != nil {
		scheme, _, _ := strings.Cut(repo, "://")
		return scheme + "://" + u.Host + u.EscapedPath()
	}
	at, cut := strings.LastIndexByte(repo, '@'), strings.IndexAny(repo, "?#")
	lead := schemeLead.FindString(repo)
	switch {
	case at >= 0 && cut >= 0 && cut < at:
		return lead + "…" // either of the two may begin inside of a secret
	case cut >= 0:
		repo = repo[:cut]
	}
	if at >= 0 {
		repo = lead + repo[at+1:]
	}
	return repo
}

var (
	// scpForm is user@host:path or host:path, with nothing that could be a
	// password.
	scpForm = regexp.MustCompile(`^([^@:/\s]+@)?([^@:/\s\[\]]+|\[[0-9a-fA-F:.%]+\]):[^@?#]*$`)
	// schemeLead is how a URL begins, if only nearly.
	schemeLead = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*:/+`)
)

// isLocalPath says whether the name of a repository is clearly a path.
func isLocalPath(repo string) bool {
	if strings.Contains(repo, "://") {
		return false
	}
	for _, lead := range []string{"/", "./", "../", "~"} {
		if strings.HasPrefix(repo, lead) {
			return !strings.HasPrefix(repo, "//")
		}
	}
	_, err := os.Lstat(repo)
	return err == nil
}

// parseAddress reads a URL that can mean only one thing; nil = it is none. In
// http://u:1/secret@host the password has a slash, or the host is u.
func parseAddress(repo string) *url.URL {
	u, err := url.Parse(repo)
	if err != nil || !strings.Contains(repo, "://") {
		return nil
	}
	_, behind, _ := strings.Cut(repo, u.Host)
	switch {
	case u.Scheme == "file" && u.Host == "" && !strings.Contains(u.Path, ":"):
		return u
	case u.Scheme == "" || u.Host == "" || strings.HasSuffix(u.Host, ":"):
		return nil
	case u.Port() != "" && strings.Contains(behind, "@"):
		return nil
	}
	return u
}

// redactingWriter is the last thing between the program and standard error:
// whatever a library puts into an error or a log line, no user info of a URL
// goes further. One Write is one message, as slog and fmt make them.
type redactingWriter struct{ w io.Writer }

func (r *redactingWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(r.w, redactText(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// tokenLength is from how many bytes on a lone user name of a URL is taken for
// an access token: those of the git hosts have 20 and more.
const tokenLength = 20

// hasPassword says whether the address of a repository carries a password or
// a token, or might: what is mistyped is not given the benefit of the doubt.
func hasPassword(repo string) bool {
	if isLocalPath(repo) || scpForm.MatchString(repo) {
		return false
	}
	u := parseAddress(repo)
	if u == nil {
		return redact(repo) != repo
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return true
	}
	_, has := u.User.Password()
	return has || len(u.User.Username()) >= tokenLength
}

// writeJSON writes one document with a newline at its end, which a terminal
// only draws, too.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(view.CleanJSON(b.Bytes()))
	return err
}
