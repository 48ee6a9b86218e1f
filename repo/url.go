package repo

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// endpoint is where a repository is.
type endpoint struct {
	scheme   string // "file", "http", "https" or "ssh"
	host     string // with the port, if one was given
	user     string
	password string
	path     string // local: absolute; ssh: as the server's shell gets it; http: escaped
	query    string
}

// String is the endpoint for people: without user info and query, where
// tokens hide.
func (e endpoint) String() string {
	if e.scheme == "file" {
		return e.path
	}
	host, path := e.host+"/", strings.TrimPrefix(e.path, "/")
	if e.scheme == "ssh" {
		path, _, _ = strings.Cut(path, "?")
	}
	// In http://u:1/secret@host a slash may be a part of the password.
	if at := strings.LastIndexByte(path, '@'); at >= 0 && strings.Contains(host, ":") {
		host, path = "…/", path[at+1:]
	}
	return strings.TrimSuffix(e.scheme+"://"+host+path, "/")
}

// parseURL reads the forms that git knows: a local path, file://, http(s)://,
// ssh:// and user@host:path. Its errors never repeat the text, which may hold
// a password.
func parseURL(raw string) (endpoint, error) {
	if raw == "" {
		return endpoint{}, fail(kindNotFound, "no repository is named").hint("give a path or a URL")
	}
	if strings.ContainsAny(raw, "\x00\n\r") {
		return endpoint{}, fail(kindNotFound, "the repository URL holds a line break or a NUL")
	}
	if strings.Contains(raw, "://") {
		return parseSchemeURL(raw)
	}
	if host, path, ok := cutSCP(raw); ok {
		// user:password@host and https:/host would otherwise be taken for the
		// path on a host "user" or "https", and shown.
		switch scheme := strings.ToLower(host); scheme {
		case "http", "https", "ssh", "file", "git":
			return endpoint{}, fail(kindNotFound, "the repository URL lacks a slash behind %s:", scheme)
		}
		if strings.ContainsAny(path, "@?#") {
			return endpoint{}, fail(kindNotFound, "the form user@host:path has no place for a password, nor for any of @?# in the path").
				hint("use https:// with passwordFile, or write ssh://host/path")
		}
		e := endpoint{scheme: "ssh", host: host, path: path}
		if i := strings.LastIndexByte(host, '@'); i >= 0 {
			e.user, e.host = host[:i], host[i+1:]
		}
		return e, e.checkSSH()
	}
	if !clearlyPath(raw) && strings.ContainsAny(raw, "@?#") {
		return endpoint{}, fail(kindNotFound, "there is no such folder, and the name looks like a URL without its scheme").
			hint("write https:// before it, or ./ if it is a folder")
	}
	abs, err := filepath.Abs(raw)
	if err != nil {
		return endpoint{}, fail(kindNotFound, "local path: %w", err)
	}
	return endpoint{scheme: "file", path: abs}, nil
}

// clearlyPath tells a path from what only is no URL because it is mistyped.
func clearlyPath(raw string) bool {
	for _, lead := range []string{"/", "./", "../", "~"} {
		if strings.HasPrefix(raw, lead) {
			return !strings.HasPrefix(raw, "//")
		}
	}
	_, err := os.Lstat(raw)
	return err == nil
}

func parseSchemeURL(raw string) (endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		// Errors of net/url quote the part at fault, which may be a password.
		reason := err.Error()
		if strings.Contains(raw, "@") {
			reason = "it is malformed"
		}
		return endpoint{}, fail(kindNotFound, "the repository URL cannot be read: %s", reason)
	}
	e := endpoint{scheme: strings.ToLower(u.Scheme), host: u.Host, path: u.EscapedPath(), query: u.RawQuery}
	if u.User != nil {
		e.user = u.User.Username()
		e.password, _ = u.User.Password()
	}
	switch e.scheme {
	case "file":
		if u.Host != "" && u.Host != "localhost" {
			return endpoint{}, fail(kindNotFound, "file://%s is not on this machine", u.Host).
				hint("write file:///path, with three slashes")
		}
		e.host, e.path = "", filepath.Clean(u.Path)
		if !filepath.IsAbs(e.path) {
			return endpoint{}, fail(kindNotFound, "a file:// URL needs an absolute path")
		}
	case "http", "https":
		if e.host == "" {
			return endpoint{}, fail(kindNotFound, "the repository URL names no host")
		}
		e.path = strings.TrimRight(e.path, "/")
	case "ssh", "git+ssh", "ssh+git":
		e.scheme, e.path = "ssh", u.Path
		// ssh://host/~user/x means the user's home, as git reads it.
		if strings.HasPrefix(e.path, "/~") {
			e.path = e.path[1:]
		}
		return e, e.checkSSH()
	default:
		return endpoint{}, fail(kindRefused, "repositories over %s:// are not supported", sanitize(e.scheme, 20)).
			hint("use a local path, https://, http:// or ssh://")
	}
	return e, nil
}

func (e endpoint) checkSSH() error {
	switch {
	case e.host == "" || strings.HasPrefix(e.host, "-"):
		return fail(kindNotFound, "the repository URL names no host")
	case e.path == "" || e.path == "/":
		return fail(kindNotFound, "the repository URL names no path on %s", e.host)
	}
	return nil
}

// cutSCP recognises [user@]host:path: a colon before the first slash, unless
// it is a file that exists.
func cutSCP(raw string) (host, path string, ok bool) {
	colon := strings.IndexByte(raw, ':')
	if colon <= 0 || strings.ContainsAny(raw[:colon], "/\\") {
		return "", "", false
	}
	if strings.HasPrefix(raw, "[") {
		end := strings.Index(raw, "]:")
		if end < 0 {
			return "", "", false
		}
		colon = end + 1
	}
	if _, err := os.Lstat(raw); err == nil {
		return "", "", false
	}
	return raw[:colon], raw[colon+1:], true
}
