package githubtest

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// at is a path of the repository.
func (s *Server) at(rest string) string { return "/repos/" + s.owner + "/" + s.name + rest }

// answer is what the API does with a request. The lock is held.
func (s *Server) answer(r *http.Request, body []byte) reply {
	var out reply
	if s.count(&out) {
		return out
	}
	header := out.header
	path := r.URL.Path
	if path == "/app" || strings.HasPrefix(path, "/app/") || path == s.at("/installation") {
		out = s.apps(r, body)
	} else if t := s.bearer(r); t == nil {
		out = refuse(http.StatusUnauthorized, "Bad credentials")
	} else {
		if t.scopes != "" {
			header["X-OAuth-Scopes"] = t.scopes
		}
		out = s.route(t, r, body)
	}
	for name, value := range out.header {
		header[name] = value
	}
	out.header = header
	return out
}

// route answers who has a token.
func (s *Server) route(t *token, r *http.Request, body []byte) reply {
	if r.URL.Path == "/user" {
		if t.install {
			return refuse(http.StatusForbidden, "Resource not accessible by integration")
		}
		return reply{status: 200, body: map[string]any{"login": t.login, "type": "User"}}
	}
	rest, ours := strings.CutPrefix(r.URL.Path, s.at(""))
	if !ours {
		return refuse(http.StatusNotFound, "Not Found")
	}
	part := strings.Split(strings.Trim(rest, "/"), "/")
	handle, needs := s.handler(r.Method, part)
	if handle == nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	if !t.has(needs...) {
		out := refuse(http.StatusForbidden, "Resource not accessible by "+t.kind())
		out.header = map[string]string{"X-Accepted-GitHub-Permissions": strings.Join(needs, "; ")}
		if t.scopes != "" {
			out = refuse(http.StatusNotFound, "Not Found")
		}
		return out
	}
	return handle(t, r, part, body)
}

func (t *token) kind() string {
	if t.install {
		return "integration"
	}
	return "personal access token"
}

// has says whether a token has one of several permissions.
func (t *token) has(any ...string) bool {
	if len(any) == 0 {
		return true
	}
	return slices.ContainsFunc(any, func(needs string) bool {
		name, level, _ := strings.Cut(needs, "=")
		return t.may[name] == "write" || t.may[name] == level
	})
}

// identifier is the number of a thing, or a commit.
var identifier = regexp.MustCompile(`^([0-9]+|[0-9a-f]{40})$`)

type handler func(t *token, r *http.Request, part []string, body []byte) reply

// handler finds who answers, and the permissions of which one is needed.
func (s *Server) handler(method string, part []string) (handler, []string) {
	shape := method + " " + part[0]
	for _, p := range part[1:] {
		if identifier.MatchString(p) {
			p = "*"
		}
		shape += "/" + p
	}
	switch shape {
	case "GET ":
		return s.getRepository, []string{"metadata=read"}
	case "GET pulls":
		return s.listPulls, []string{"pull_requests=read"}
	case "GET pulls/*":
		return s.getPull, []string{"pull_requests=read"}
	case "GET issues/*/comments":
		return s.listComments, []string{"issues=read", "pull_requests=read"}
	case "POST issues/*/comments":
		return s.addComment, []string{"issues=write", "pull_requests=write"}
	case "PATCH issues/comments/*":
		return s.editComment, []string{"issues=write", "pull_requests=write"}
	case "DELETE issues/comments/*":
		return s.deleteComment, []string{"issues=write", "pull_requests=write"}
	case "GET commits/*/status":
		return s.getStatus, []string{"statuses=read"}
	case "POST statuses/*":
		return s.addStatus, []string{"statuses=write"}
	case "GET commits/*/check-runs":
		return s.listChecks, []string{"checks=read"}
	case "POST check-runs":
		return s.addCheck, []string{"checks=write"}
	case "PATCH check-runs/*":
		return s.editCheck, []string{"checks=write"}
	}
	return nil, nil
}

// page cuts what a request asks for out of a list.
func page[T any](r *http.Request, list []T, show func(T) any) reply {
	const standard, most = 30, 100
	q := r.URL.Query()
	number, size := 1, standard
	if n, err := strconv.Atoi(q.Get("page")); err == nil && n > 0 {
		number = n
	}
	if n, err := strconv.Atoi(q.Get("per_page")); err == nil && n > 0 {
		size = min(n, most)
	}
	from := min((number-1)*size, len(list))
	to := min(from+size, len(list))
	out := reply{status: 200}
	shown := []any{}
	for _, one := range list[from:to] {
		shown = append(shown, show(one))
	}
	out.body = shown
	if to < len(list) {
		out.next, out.last = number+1, (len(list)+size-1)/size
	}
	return out
}
