package githubtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"unicode/utf8"
)

// Limits of what is written on a commit.
const (
	maxDescription = 140  // characters of a status
	maxStatuses    = 1000 // of a commit and a context
	maxAnnotations = 50   // in one request
	maxOutput      = 65535
)

type check struct {
	id                                              int64
	commit, name, status, conclusion, external, who string
	title, summary                                  string
	annotations                                     []Annotation
}

// Annotation is one of a check run.
type Annotation struct {
	Path      string `json:"path"`
	StartLine int    `json:"start_line"`
	Level     string `json:"annotation_level"`
	Message   string `json:"message"`
	Title     string `json:"title"`
}

// Check is a check run.
type Check struct {
	Name, Status, Conclusion, Title, Summary string
	Annotations                              []Annotation
}

// Checks are the check runs of a commit, the oldest first.
func (s *Server) Checks(commit string) []Check {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Check
	for _, c := range s.checks {
		if c.commit == commit {
			list = append(list, Check{c.name, c.status, c.conclusion, c.title, c.summary, slices.Clone(c.annotations)})
		}
	}
	return list
}

func (s *Server) getStatus(_ *token, r *http.Request, part []string, _ []byte) reply {
	if !s.commits(part[1]) {
		return refuse(http.StatusUnprocessableEntity, "No commit found for SHA: "+part[1])
	}
	newest := []status{}
	for _, st := range slices.Backward(s.statuses[part[1]]) {
		if !slices.ContainsFunc(newest, func(o status) bool { return o.Context == st.Context }) {
			newest = append(newest, st)
		}
	}
	out := page(r, newest, func(st status) any { return st })
	out.body = map[string]any{"sha": part[1], "total_count": len(newest), "statuses": out.body}
	return out
}

func (s *Server) addStatus(_ *token, _ *http.Request, part []string, body []byte) reply {
	var sent status
	if json.Unmarshal(body, &sent) != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	same := 0
	for _, st := range s.statuses[part[1]] {
		if st.Context == sent.Context {
			same++
		}
	}
	switch {
	case !s.commits(part[1]):
		return refuse(http.StatusUnprocessableEntity, "No commit found for SHA: "+part[1])
	case !slices.Contains([]string{"error", "failure", "pending", "success"}, sent.State):
		return refuse(http.StatusUnprocessableEntity, "Validation Failed: state")
	case utf8.RuneCountInString(sent.Description) > maxDescription:
		return refuse(http.StatusUnprocessableEntity, "Validation Failed: description is too long (maximum is 140 characters)")
	case same >= maxStatuses:
		return refuse(http.StatusUnprocessableEntity, "Validation Failed: This SHA and context has reached the maximum number of statuses.")
	}
	s.statuses[part[1]] = append(s.statuses[part[1]], sent)
	return reply{status: 201, body: sent}
}

// checkSent is what a client sends of a check run.
type checkSent struct {
	Name       string  `json:"name"`
	HeadSHA    string  `json:"head_sha"`
	ExternalID *string `json:"external_id"`
	Status     string  `json:"status"`
	Conclusion string  `json:"conclusion"`
	Output     *struct {
		Title, Summary string
		Annotations    []Annotation
	} `json:"output"`
}

// take puts what was sent into a run.
func (c *check) take(sent checkSent) *reply {
	var out reply
	switch {
	case sent.Output != nil && len(sent.Output.Annotations) > maxAnnotations:
		out = refuse(http.StatusUnprocessableEntity, fmt.Sprintf("Invalid request.\n\nNo more than %d items are allowed; %d were supplied.", maxAnnotations, len(sent.Output.Annotations)))
		return &out
	case sent.Output != nil && len(sent.Output.Summary) > maxOutput:
		out = refuse(http.StatusUnprocessableEntity, "Invalid request.\n\nOnly 65535 characters are allowed in summary.")
		return &out
	case (sent.Status == "completed") != (sent.Conclusion != ""):
		out = refuse(http.StatusUnprocessableEntity, "Invalid request.\n\nA conclusion goes with the status completed.")
		return &out
	}
	if sent.Output != nil {
		for _, a := range sent.Output.Annotations {
			if a.Path == "" || a.StartLine < 1 || a.Message == "" || !slices.Contains([]string{"notice", "warning", "failure"}, a.Level) {
				out = refuse(http.StatusUnprocessableEntity, "Invalid request.\n\nAn annotation is not complete.")
				return &out
			}
		}
		c.title, c.summary = sent.Output.Title, sent.Output.Summary
		c.annotations = append(c.annotations, sent.Output.Annotations...)
	}
	c.status, c.conclusion = sent.Status, sent.Conclusion
	if sent.ExternalID != nil {
		c.external = *sent.ExternalID
	}
	return nil
}

func (c *check) show() any {
	return map[string]any{"id": c.id, "head_sha": c.commit, "name": c.name, "status": c.status, "conclusion": c.conclusion, "external_id": c.external}
}

func (s *Server) listChecks(_ *token, r *http.Request, part []string, _ []byte) reply {
	list := []any{}
	for _, c := range slices.Backward(s.checks) {
		if c.commit == part[1] && (r.URL.Query().Get("check_name") == "" || r.URL.Query().Get("check_name") == c.name) {
			list = append(list, c.show())
			break // filter=latest: one of each name
		}
	}
	return reply{status: 200, body: map[string]any{"total_count": len(list), "check_runs": list}}
}

func (s *Server) addCheck(t *token, _ *http.Request, _ []string, body []byte) reply {
	if !t.install {
		return refuse(http.StatusForbidden, "You must authenticate via a GitHub App.")
	}
	var sent checkSent
	switch {
	case json.Unmarshal(body, &sent) != nil:
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	case sent.Name == "" || !s.commits(sent.HeadSHA):
		return refuse(http.StatusUnprocessableEntity, "No commit found for SHA: "+sent.HeadSHA)
	}
	s.lastID++
	c := &check{id: s.lastID, commit: sent.HeadSHA, name: sent.Name, who: t.login}
	if wrong := c.take(sent); wrong != nil {
		return *wrong
	}
	s.checks = append(s.checks, c)
	return reply{status: 201, body: c.show()}
}

func (s *Server) editCheck(t *token, _ *http.Request, part []string, body []byte) reply {
	var sent checkSent
	if json.Unmarshal(body, &sent) != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	for _, c := range s.checks {
		if fmt.Sprint(c.id) == part[1] && c.who == t.login {
			if wrong := c.take(sent); wrong != nil {
				return *wrong
			}
			return reply{status: 200, body: c.show()}
		}
	}
	return refuse(http.StatusNotFound, "Not Found")
}
