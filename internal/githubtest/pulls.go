package githubtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Pull is a pull request.
type Pull struct {
	Number           int
	Title            string
	Base, BaseSHA    string
	Branch, Head     string
	Fork             string // owner of the fork; "" = none
	Closed, Locked   bool
	ReadOnlyComments bool // commenting is refused, for whoever asks
}

type pull struct {
	Pull
	updated time.Time
}

type comment struct {
	id     int64
	pull   int
	author string
	body   string
}

type status struct {
	State       string `json:"state"`
	Context     string `json:"context"`
	Description string `json:"description"`
	TargetURL   string `json:"target_url,omitempty"`
}

// SetPull opens a pull request, or changes it.
func (s *Server) SetPull(p Pull) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pulls[p.Number] = &pull{p, time.Now()}
}

// AddComment writes a comment as somebody, and gives its number.
func (s *Server) AddComment(pull int, author, body string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	s.comments = append(s.comments, &comment{s.lastID, pull, author, body})
	return s.lastID
}

// EditComment changes a comment as a person may do; an empty text removes it.
func (s *Server) EditComment(id int64, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.comments {
		if c.id != id {
			continue
		}
		if c.body = body; body == "" {
			s.comments = slices.Delete(s.comments, i, i+1)
		}
		return
	}
}

// Comment is a comment of a pull request.
type Comment struct {
	ID     int64
	Author string
	Body   string
}

// Comments are those of a pull request, the oldest first.
func (s *Server) Comments(pull int) []Comment {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Comment
	for _, c := range s.comments {
		if c.pull == pull {
			list = append(list, Comment{c.id, c.author, c.body})
		}
	}
	return list
}

// Status is the newest status of a commit, as "state: description"; "" = there
// is none.
func (s *Server) Status(commit, context string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range slices.Backward(s.statuses[commit]) {
		if st.Context == context {
			return st.State + ": " + st.Description
		}
	}
	return ""
}

func (s *Server) getRepository(*token, *http.Request, []string, []byte) reply {
	return reply{status: 200, body: map[string]any{"id": 1, "name": s.name, "full_name": s.owner + "/" + s.name, "private": true}}
}

func (s *Server) listPulls(_ *token, r *http.Request, _ []string, _ []byte) reply {
	q := r.URL.Query()
	var list []*pull
	for _, p := range s.pulls {
		if (q.Get("base") == "" || q.Get("base") == p.Base) && (q.Get("state") == "all" || !p.Closed) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *pull) int {
		return cmp.Or(b.updated.Compare(a.updated), cmp.Compare(b.Number, a.Number))
	})
	return page(r, list, s.showPull)
}

func (s *Server) showPull(p *pull) any {
	state, owner := "open", s.owner
	if p.Closed {
		state = "closed"
	}
	if p.Fork != "" {
		owner = p.Fork
	}
	return map[string]any{
		"number": p.Number, "state": state, "title": p.Title, "updated_at": p.updated.UTC().Format(time.RFC3339), "locked": p.Locked,
		"base": map[string]any{"ref": p.Base, "sha": p.BaseSHA, "repo": map[string]any{"full_name": s.owner + "/" + s.name}},
		"head": map[string]any{"ref": p.Branch, "sha": p.Head, "repo": map[string]any{"full_name": owner + "/" + s.name}},
	}
}

func (s *Server) pullAt(text string) *pull {
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil
	}
	return s.pulls[n]
}

func (s *Server) getPull(_ *token, _ *http.Request, part []string, _ []byte) reply {
	p := s.pullAt(part[1])
	if p == nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	return reply{status: 200, body: s.showPull(p)}
}

func (s *Server) listComments(_ *token, r *http.Request, part []string, _ []byte) reply {
	p := s.pullAt(part[1])
	if p == nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	var list []*comment
	for _, c := range s.comments {
		if c.pull == p.Number {
			list = append(list, c)
		}
	}
	return page(r, list, func(c *comment) any { return c.show() })
}

func (c *comment) show() any {
	return map[string]any{"id": c.id, "user": map[string]any{"login": c.author}, "body": c.body}
}

// maxComment is what GitHub takes as a comment, in characters.
const maxComment = 65536

// commentText reads the text of a comment that is sent.
func commentText(body []byte) (text string, wrong *reply) {
	var sent struct{ Body string }
	var out reply
	switch {
	case json.Unmarshal(body, &sent) != nil:
		out = refuse(http.StatusBadRequest, "Problems parsing JSON")
	case sent.Body == "":
		out = refuse(http.StatusUnprocessableEntity, "Body can't be blank")
	case utf8.RuneCountInString(sent.Body) > maxComment:
		out = refuse(http.StatusUnprocessableEntity, fmt.Sprintf("Body is too long (maximum is %d characters)", maxComment))
	default:
		return sent.Body, nil
	}
	return "", &out
}

func (s *Server) addComment(t *token, _ *http.Request, part []string, body []byte) reply {
	p := s.pullAt(part[1])
	if p == nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	if p.Locked {
		return refuse(http.StatusForbidden, "Unable to create comment because issue is locked.")
	}
	if p.ReadOnlyComments {
		return refuse(http.StatusForbidden, "Resource not accessible by "+t.kind())
	}
	text, wrong := commentText(body)
	if wrong != nil {
		return *wrong
	}
	s.lastID++
	c := &comment{s.lastID, p.Number, t.login, text}
	s.comments = append(s.comments, c)
	return reply{status: 201, body: c.show()}
}

func (s *Server) editComment(t *token, _ *http.Request, part []string, body []byte) reply {
	for _, c := range s.comments {
		if fmt.Sprint(c.id) != part[2] {
			continue
		}
		if !strings.EqualFold(c.author, t.login) {
			return refuse(http.StatusForbidden, "Must have admin rights to Repository.")
		}
		text, wrong := commentText(body)
		if wrong != nil {
			return *wrong
		}
		c.body = text
		return reply{status: 200, body: c.show()}
	}
	return refuse(http.StatusNotFound, "Not Found")
}

func (s *Server) deleteComment(t *token, _ *http.Request, part []string, _ []byte) reply {
	for i, c := range s.comments {
		if fmt.Sprint(c.id) != part[2] {
			continue
		}
		if !strings.EqualFold(c.author, t.login) {
			return refuse(http.StatusForbidden, "Must have admin rights to Repository.")
		}
		s.comments = slices.Delete(s.comments, i, i+1)
		return reply{status: http.StatusNoContent}
	}
	return refuse(http.StatusNotFound, "Not Found")
}
