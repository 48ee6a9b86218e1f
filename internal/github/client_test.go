package github

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// Whoever may open pull requests, or comment on one, writes as much as GitHub
// lets them: the lists are read all the same.
func TestListsOfTheLongestTexts(t *testing.T) {
	const most = 65_536 // characters of a description or a comment
	long := strings.Repeat("\U0001f600", most)
	w := newWorld(t)
	cfg := w.config()
	cfg.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		n, err := strconv.Atoi(r.URL.Query().Get("per_page"))
		if err != nil {
			t.Fatalf("%s: %v", r.URL, err)
		}
		list := make([]map[string]any, n)
		for i := range list {
			list[i] = map[string]any{"number": i + 1, "id": i + 1, "state": "open", "body": long, "user": map[string]any{"login": []string{testLogin, "stranger"}[i%2]}}
		}
		data, err := json.Marshal(list)
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(data))), Request: r}, err
	})
	c, err := newClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := c.pulls(t.Context(), "main"); err != nil || len(list) == 0 {
		t.Errorf("%d pull requests: %v", len(list), err)
	}
	own, err := c.comments(t.Context(), 1, testLogin)
	if err != nil || len(own) == 0 {
		t.Errorf("%d comments: %v", len(own), err)
	}
	for _, n := range own {
		if n.author != testLogin {
			t.Errorf("a comment of %s is kept", n.author)
		}
	}
}
