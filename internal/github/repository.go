package github

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

// DefaultURL is the API of github.com.
const DefaultURL = "https://api.github.com"

// maxName bounds the name of an owner or a repository; GitHub's are shorter.
const maxName = 100

// isName says whether a part of a repository's name can stand in a path.
func isName(s string) bool {
	return s != "" && len(s) <= maxName && s != "." && s != ".." && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
	})
}

// parseRepository takes owner and name apart.
func parseRepository(s string) (owner, name string, err error) {
	owner, name, _ = strings.Cut(s, "/")
	if !isName(owner) || !isName(name) {
		return "", "", fmt.Errorf("%q is no repository of GitHub; write it like owner/name", clip(s, maxMessage))
	}
	return owner, name, nil
}

// RepositoryOf finds owner/name in the address that git uses, where that is on
// the host that the API belongs to; "" = it is not.
func RepositoryOf(gitURL, apiURL string) string {
	api, err := url.Parse(or(apiURL, DefaultURL))
	if err != nil {
		return ""
	}
	host, path := "", ""
	if u, err := url.Parse(gitURL); err == nil && u.Host != "" {
		host, path = u.Hostname(), u.Path
	} else if before, after, found := strings.Cut(gitURL, ":"); found && !strings.Contains(before, "/") {
		host, path = before[strings.LastIndex(before, "@")+1:], after
	}
	if !strings.EqualFold(host, webHost(api)) {
		return ""
	}
	name := strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	if _, _, err := parseRepository(name); err != nil {
		return ""
	}
	return name
}

// webHost is the host that people and git use, without its port.
func webHost(api *url.URL) string {
	host := api.Hostname()
	// github.com and GitHub Enterprise Cloud with data residency have the API
	// on a host of its own.
	return strings.TrimPrefix(host, "api.")
}

// webURL is where people look at the repository.
func webURL(api *url.URL, owner, name string) string {
	at := url.URL{Scheme: api.Scheme, Host: strings.TrimPrefix(api.Host, "api."), Path: "/" + owner + "/" + name}
	return at.String()
}

// parseAPI checks the address of the API. A token is not sent in the clear,
// but on this machine itself.
func parseAPI(s string) (*url.URL, error) {
	u, err := url.Parse(or(s, DefaultURL))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the address of the API is no URL")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("the address of the API has more than host and path")
	case u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return nil, fmt.Errorf("the address of the API %s does not begin with https://", u.Redacted())
	}
	u.Path = strings.TrimRight(u.Path, "/") + "/"
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
