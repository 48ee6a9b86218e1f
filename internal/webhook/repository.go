package webhook

import (
	"net"
	"net/url"
	"strings"
)

// watched recognises the fleet repository in a delivery: by its name at the
// sender, or by a URL of it.
type watched struct {
	name  string // owner/name as a person gave it; "" = by the path of the URL
	place string // of the URL, see place
	path  string
}

func newWatched(url, name string) watched {
	host, path := place(url)
	return watched{name: strings.Trim(strings.TrimSpace(name), "/"), place: host + "/" + path, path: path}
}

// is says whether a delivery speaks of the watched repository. Hosts and names
// differ in case for people only.
func (w watched) is(r repository) bool {
	full := strings.Trim(r.FullName, "/")
	if w.name != "" {
		return strings.EqualFold(full, w.name)
	}
	if full != "" && strings.EqualFold(full, w.path) {
		return true
	}
	// A server may live below a path of its host: /git/owner/name.
	if strings.Contains(full, "/") && len(w.path) > len(full) && strings.EqualFold(w.path[len(w.path)-len(full)-1:], "/"+full) {
		return true
	}
	for _, u := range []string{r.CloneURL, r.SSHURL, r.GitURL, r.HTMLURL} {
		if host, path := place(u); path != "" && strings.EqualFold(host+"/"+path, w.place) {
			return true
		}
	}
	return false
}

// place is the host and the path of a repository's URL, without all that may
// differ between two URLs of one repository: scheme, user, the port of the
// scheme, .git.
func place(text string) (host, path string) {
	u, err := url.Parse(text)
	switch {
	case err == nil && u.Host != "":
		host, path = u.Host, u.Path
		if name, port, err := net.SplitHostPort(host); err == nil && port == map[string]string{"https": "443", "http": "80", "ssh": "22", "git": "9418"}[u.Scheme] {
			host = name
		}
	case err == nil && u.Scheme == "file":
		path = u.Path
	default:
		before, after, found := strings.Cut(text, ":")
		if found && !strings.Contains(before, "/") { // git@host:owner/name
			_, host, found = strings.Cut(before, "@")
			if !found {
				host = before
			}
			path = after
		} else {
			path = text
		}
	}
	return host, strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}
