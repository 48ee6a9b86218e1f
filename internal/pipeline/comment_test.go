//go:build system

package pipeline

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// forge plays the part of GitHub's REST API that the action may use: the pull
// request, its comments in pages, and who the token is.
type forge struct {
	t    *testing.T
	head string // of the pull request
	// refuse is the status that writing is answered with; 0 = it is done.
	refuse int
	// author is who the token belongs to; "" = the runner's own App. mute is a
	// server that does not tell.
	author string
	mute   bool

	mu       sync.Mutex
	comments []note
	writes   []string // method and path
}

type note struct {
	ID   int    `json:"id"`
	Body string `json:"body"`
	User struct {
		Login string `json:"login"`
	} `json:"user"`
}

const (
	token  = "a-token-of-the-job"
	bot    = "github-actions[bot]"
	noteOf = "/repos/ops/fleet/issues/comments/"
	notes  = "/repos/ops/fleet/issues/7/comments"
)

func (f *forge) add(login, body string) {
	n := note{ID: 1000 + len(f.comments), Body: body}
	n.User.Login = login
	f.comments = append(f.comments, n)
}

func (f *forge) me() string {
	if f.author != "" {
		return f.author
	}
	return bot
}

func (f *forge) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answer := func(status int, body any) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
	if req.Header.Get("Authorization") != "Bearer "+token {
		answer(http.StatusUnauthorized, map[string]string{"message": "Bad credentials"})
		return
	}
	if req.URL.Path == "/graphql" { // the one way in which the token of an App can ask who it is
		var asked struct{ Query string }
		if err := json.NewDecoder(req.Body).Decode(&asked); err != nil || asked.Query != "{viewer{login}}" || f.mute {
			answer(http.StatusBadGateway, nil)
			return
		}
		answer(http.StatusOK, map[string]any{"data": map[string]any{"viewer": map[string]string{"login": f.me()}}})
		return
	}
	var sent struct {
		Body string `json:"body"`
	}
	if req.Method != http.MethodGet {
		f.writes = append(f.writes, req.Method+" "+req.URL.Path)
		if err := json.NewDecoder(req.Body).Decode(&sent); err != nil || sent.Body == "" {
			f.t.Errorf("%s %s: no body: %v", req.Method, req.URL.Path, err)
		}
		if f.refuse != 0 {
			answer(f.refuse, map[string]string{"message": "Resource not accessible by integration"})
			return
		}
	}
	switch id, isOne := strings.CutPrefix(req.URL.Path, noteOf); {
	case req.Method == http.MethodGet && req.URL.Path == "/repos/ops/fleet/pulls/7":
		answer(http.StatusOK, map[string]any{"number": 7, "head": map[string]string{"sha": f.head}})
	case req.Method == http.MethodGet && req.URL.Path == notes:
		size, _ := strconv.Atoi(req.URL.Query().Get("per_page"))
		page, _ := strconv.Atoi(req.URL.Query().Get("page"))
		from := min((page-1)*size, len(f.comments))
		answer(http.StatusOK, append([]note{}, f.comments[from:min(from+size, len(f.comments))]...))
	case req.Method == http.MethodPost && req.URL.Path == notes:
		f.add(f.me(), sent.Body)
		answer(http.StatusCreated, f.comments[len(f.comments)-1])
	case req.Method == http.MethodPatch && isOne:
		for i := range f.comments {
			if fmt.Sprint(f.comments[i].ID) == id && f.comments[i].User.Login == f.me() {
				f.comments[i].Body = strings.ReplaceAll(sent.Body, "\n", "\r\n")
				answer(http.StatusOK, f.comments[i])
				return
			}
		}
		answer(http.StatusNotFound, nil)
	default:
		f.t.Errorf("nobody documented %s %s", req.Method, req.URL)
		answer(http.StatusNotFound, nil)
	}
}

// commenting runs the action with a token, on a pull request of a forge.
func commenting(t *testing.T, p *pull, f *forge) result {
	t.Helper()
	need(t, "curl", "curl")
	need(t, "jq", "jq")
	server := httptest.NewServer(f)
	defer server.Close()
	r := newRunner(t, p.checkout(p.merge, 2), p.event())
	r.env = append(r.env, "GITHUB_API_URL="+server.URL, "GITHUB_GRAPHQL_URL="+server.URL+"/graphql")
	r.inputs["token"] = token
	res := r.run()
	if strings.Contains(res.log+res.summary, token) {
		t.Errorf("the token is in the log:\n%s", res.log)
	}
	return res
}

// One comment, however often the action runs, found over all pages; those of
// others stay, whatever they hold.
func TestSystemActionB116OneComment(t *testing.T) {
	t.Parallel()
	p := newPull(t, "", upgrade(t))
	f := &forge{t: t, head: p.head}
	for range 150 {
		f.add("somebody", "a word")
	}
	res := commenting(t, p, f)
	if res.code != 0 || len(res.annotations) > 0 || len(f.comments) != 151 {
		t.Fatalf("code %d, annotations %+v, %d comments:\n%s", res.code, res.annotations, len(f.comments), res.log)
	}
	want := read(t, res.outputs["comment-file"])
	if got := f.comments[150].Body; got != want {
		t.Errorf("the comment is\n%s\nwant\n%s", got, want)
	}

	// Others copy the mark, and this run comes after those.
	f.comments[3].Body = want
	// Equal content is not written again, whatever became of its line ends.
	f.comments[150].Body = strings.ReplaceAll(strings.TrimSuffix(want, "\n"), "\n", "\r\n")
	f.writes = nil
	if commenting(t, p, f); len(f.writes) > 0 {
		t.Errorf("equal content was written again: %v", f.writes)
	}
	f.comments[150].Body = strings.SplitAfter(want, "\n")[0] + "an older preview\n"
	res = commenting(t, p, f)
	if len(f.comments) != 151 || strings.ReplaceAll(f.comments[150].Body, "\r", "") != want || f.comments[3].Body != want {
		t.Errorf("%d comments, the last\n%s\nlog:\n%s", len(f.comments), f.comments[150].Body, res.log)
	}
	if len(f.writes) != 1 || f.writes[0] != "PATCH "+noteOf+"1150" {
		t.Errorf("written: %v", f.writes)
	}

	// The same comment says so when the next push is wrong.
	wrong := newPull(t, "", func(dir string) {
		edit(t, filepath.Join(dir, "policies/gateways.yaml"), "targetVersion: v1.2.1", "targetVersion: v9.9.9", "v9.9.9")
	})
	f.head = wrong.head
	if res = commenting(t, wrong, f); res.code != 3 || len(f.comments) != 151 || !strings.Contains(f.comments[150].Body, "v9.9.9") {
		t.Errorf("code %d, the comment of a wrong push:\n%s", res.code, f.comments[150].Body)
	}

	// A run that a newer push has overtaken writes nothing.
	f.head, f.writes = strings.Repeat("1", 40), nil
	f.comments[150].Body = "<!-- something newer -->"
	if res = commenting(t, p, f); len(f.writes) > 0 || res.code != 0 || len(res.annotations) > 0 {
		t.Errorf("an overtaken run wrote %v, annotations %+v", f.writes, res.annotations)
	}
}

// The token of an App that a job made for itself has another author, and a
// server that does not say who it is leaves the runner's own.
func TestSystemActionB116OneCommentOfAnApp(t *testing.T) {
	t.Parallel()
	p := newPull(t, "", upgrade(t))
	for _, f := range []*forge{{author: "fleet-preview[bot]"}, {mute: true}} {
		f.t, f.head = t, p.head
		commenting(t, p, f)
		if res := commenting(t, p, f); len(f.comments) != 1 || len(f.writes) != 1 {
			t.Errorf("two runs as %q: %d comments, written %v\n%s", f.me(), len(f.comments), f.writes, res.log)
		}
	}
}

// A token that only reads, as that of a fork's pull request, and any other
// trouble with the comment: the verdict stands, the preview is in the summary,
// and there is one warning.
func TestSystemActionB115NoRightToComment(t *testing.T) {
	t.Parallel()
	valid := newPull(t, "", upgrade(t))
	invalid := newPull(t, "", func(dir string) {
		edit(t, filepath.Join(dir, "policies/gateways.yaml"), "targetVersion: v1.2.1", "targetVersion: v9.9.9", "v9.9.9")
	})
	for _, c := range []struct {
		name   string
		pull   *pull
		status int
		code   int
		want   string
	}{
		{"a fork", valid, http.StatusForbidden, 0, "pull-requests: write"},
		{"a fork that is not valid", invalid, http.StatusForbidden, 3, "pull-requests: write"},
		{"locked or hidden", valid, http.StatusNotFound, 0, "(404)"},
		{"too often", valid, http.StatusTooManyRequests, 0, "pause"},
		{"out of order", valid, http.StatusBadGateway, 0, "502"},
		{"refused", valid, http.StatusUnprocessableEntity, 0, "422"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &forge{t: t, head: c.pull.head, refuse: c.status}
			res := commenting(t, c.pull, f)
			w := res.of("warning")
			if res.code != c.code || len(w) != 1 || !strings.Contains(w[0].Message, c.want) || len(f.writes) != 1 {
				t.Errorf("code %d, want %d; warnings %+v, want one of %q; written %v\n%s", res.code, c.code, w, c.want, f.writes, res.log)
			}
			if res.summary == "" || len(f.comments) > 0 {
				t.Errorf("summary %q, comments %+v", res.summary, f.comments)
			}
			if c.code == 0 && !strings.Contains(res.summary, read(t, res.outputs["comment-file"])) {
				t.Errorf("the preview is not in the summary:\n%s", res.summary)
			}
		})
	}
}
