package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	gh "github.com/google/go-github/v60/github"
)

const (
	// pageSize is the most that the API gives on a page.
	pageSize = 100
	// longPage is smaller: a hundred of the longest comments, or descriptions of
	// pull requests, which anybody may write, would be over what is taken as one
	// answer.
	longPage = 30
	// maxPages bounds a list, so that a server that always has a next page is
	// left at some time.
	maxPages = 100
)

// Pull is a pull request as GitHub has it now.
type Pull struct {
	Number  int
	Open    bool
	BaseRef string // the branch it is to be merged to
	HeadRef string // the branch that it comes from, maybe of a fork
	Head    string // its newest commit
	Fork    bool   // the branch is of another repository
}

// State is what a commit status says.
type State string

// States of a commit status.
const (
	Success State = "success"
	Failure State = "failure"
	Pending State = "pending"
)

// Status is a commit status.
type Status struct {
	Context     string
	State       State
	Description string
	URL         string // "" = none
}

// note is a comment.
type note struct {
	id     int64
	author string
	body   string
}

// checkRun is one run of a check on a commit.
type checkRun struct {
	id      int64
	content string // what it shows, see checkWrite; "" = it is not complete
}

// checkWrite is one request that writes a check run, or a part of one.
type checkWrite struct {
	commit, name, title, summary string
	annotations                  []*gh.CheckRunAnnotation // are added to those that are there
	// last says that the run is complete: only then it has its conclusion, and
	// the content by which it is known again.
	last                bool
	conclusion, content string
}

// forge is what this package needs of GitHub.
type forge interface {
	// self is the name under which comments are written.
	self(ctx context.Context) (string, error)
	// pulls lists the open pull requests of a branch, the newest change first.
	pulls(ctx context.Context, base string) ([]Pull, error)
	pull(ctx context.Context, number int) (Pull, error)
	// statuses are the newest of a commit, by context.
	statuses(ctx context.Context, commit string) (map[string]Status, error)
	setStatus(ctx context.Context, commit string, s Status) error
	// comments are those of a pull request that an author wrote, the oldest
	// first. What others wrote is not kept: it may be thousands.
	comments(ctx context.Context, number int, author string) ([]note, error)
	addComment(ctx context.Context, number int, body string) (note, error)
	editComment(ctx context.Context, id int64, body string) error
	// removeComment is content when it is gone already.
	removeComment(ctx context.Context, id int64) error
	// checks says whether check runs can be written at all.
	checks() bool
	// latestCheck is the newest run of a check of one's own; id 0 = none.
	latestCheck(ctx context.Context, commit, name string) (checkRun, error)
	// writeCheck makes a run where id is 0, or adds to one, and gives its id.
	writeCheck(ctx context.Context, id int64, w checkWrite) (int64, error)
}

// client is the forge behind the API.
type client struct {
	owner, name string
	api         *url.URL
	repo        *gh.Client // authenticates as whoever writes
	app         *gh.Client // as the App itself; nil = there is none
	appID       int64
	from        source
	secrets     *secrets

	mu    sync.Mutex
	login string // see self
}

func newClient(cfg Config) (*client, error) {
	api, err := parseAPI(cfg.URL)
	if err != nil {
		return nil, err
	}
	owner, name, err := parseRepository(cfg.Repository)
	if err != nil {
		return nil, err
	}
	base := cfg.Transport
	if base == nil {
		base = http.DefaultTransport
	}
	c := &client{owner: owner, name: name, api: api, appID: cfg.AppID, secrets: &secrets{}}
	paced := newPacer(whole{base}, cfg.Logger)
	make := func(from source) *gh.Client {
		chain := newCache(&authorized{next: paced, api: api, from: from, secrets: c.secrets})
		made := gh.NewClient(&http.Client{Transport: chain})
		made.BaseURL, made.UserAgent = api, "gitopsd"
		return made
	}
	switch {
	case cfg.TokenFile != "" && cfg.AppID != 0:
		return nil, fmt.Errorf("a token and an App are two ways, and only one can be used")
	case cfg.TokenFile != "":
		c.from = fileSource{cfg.TokenFile}
	case cfg.AppID != 0 && cfg.PrivateKeyFile != "":
		c.app = make(jwtSource{cfg.AppID, cfg.PrivateKeyFile})
		c.from = &installation{app: c.app, owner: owner, name: name, id: cfg.InstallationID, scrub: c.secrets.scrub}
	case cfg.AppID != 0:
		return nil, fmt.Errorf("the private key of the GitHub App is missing")
	default:
		return nil, fmt.Errorf("neither a token nor a GitHub App is given")
	}
	c.repo = make(c.from)
	return c, nil
}

func (c *client) failed(op string, err error) error { return failed(op, err, c.secrets.scrub) }

func (c *client) self(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.login != "" {
		return c.login, nil
	}
	const op = "ask who the token belongs to"
	if c.app != nil {
		app, _, err := c.app.Apps.Get(ctx, "")
		if err != nil {
			return "", c.failed(op, err)
		}
		c.login = app.GetSlug() + "[bot]"
		return c.login, nil
	}
	user, _, err := c.repo.Users.Get(ctx, "")
	if err != nil {
		return "", c.failed(op, err)
	}
	c.login = user.GetLogin()
	return c.login, nil
}

// pages calls list for one page after the other.
func pages(list func(page int) (*gh.Response, error)) error {
	for page, n := 1, 0; page != 0; n++ {
		if n == maxPages {
			return &apiError{message: fmt.Sprintf("the list has more than %d pages", maxPages), kind: kindRefused}
		}
		r, err := list(page)
		if err != nil {
			return err
		}
		page = r.NextPage
	}
	return nil
}

func (c *client) pulls(ctx context.Context, base string) ([]Pull, error) {
	var out []Pull
	err := pages(func(page int) (*gh.Response, error) {
		list, r, err := c.repo.PullRequests.List(ctx, c.owner, c.name, &gh.PullRequestListOptions{
			State: "open", Base: base, Sort: "updated", Direction: "desc", ListOptions: gh.ListOptions{Page: page, PerPage: longPage},
		})
		for _, p := range list {
			out = append(out, c.pullOf(p))
		}
		return r, err
	})
	return out, c.failed("list the open pull requests", err)
}

func (c *client) pull(ctx context.Context, number int) (Pull, error) {
	p, _, err := c.repo.PullRequests.Get(ctx, c.owner, c.name, number)
	if err != nil {
		return Pull{}, c.failed(fmt.Sprintf("read pull request %d", number), err)
	}
	return c.pullOf(p), nil
}

func (c *client) pullOf(p *gh.PullRequest) Pull {
	return Pull{
		Number: p.GetNumber(), Open: p.GetState() == "open", BaseRef: p.GetBase().GetRef(), HeadRef: p.GetHead().GetRef(), Head: p.GetHead().GetSHA(),
		Fork: !strings.EqualFold(p.GetHead().GetRepo().GetFullName(), c.owner+"/"+c.name),
	}
}

func (c *client) statuses(ctx context.Context, commit string) (map[string]Status, error) {
	out := map[string]Status{}
	err := pages(func(page int) (*gh.Response, error) {
		all, r, err := c.repo.Repositories.GetCombinedStatus(ctx, c.owner, c.name, commit, &gh.ListOptions{Page: page, PerPage: pageSize})
		if err != nil {
			return r, err
		}
		for _, s := range all.Statuses {
			out[s.GetContext()] = Status{Context: s.GetContext(), State: State(s.GetState()), Description: s.GetDescription(), URL: s.GetTargetURL()}
		}
		return r, nil
	})
	return out, c.failed("read the statuses of "+short(commit), err)
}

// errNotMade is for a proxy that answers in place of the API.
var errNotMade = errors.New("the answer is not what was asked to be made")

func (c *client) setStatus(ctx context.Context, commit string, s Status) error {
	status := &gh.RepoStatus{Context: &s.Context, State: gh.String(string(s.State)), Description: &s.Description}
	if s.URL != "" {
		status.TargetURL = &s.URL
	}
	made, _, err := c.repo.Repositories.CreateStatus(ctx, c.owner, c.name, commit, status)
	if err == nil && made.GetContext() != s.Context {
		err = errNotMade
	}
	return c.failed("write the status "+s.Context+" of "+short(commit), err)
}

func (c *client) comments(ctx context.Context, number int, author string) ([]note, error) {
	var out []note
	err := pages(func(page int) (*gh.Response, error) {
		list, r, err := c.repo.Issues.ListComments(ctx, c.owner, c.name, number, &gh.IssueListCommentsOptions{
			ListOptions: gh.ListOptions{Page: page, PerPage: longPage},
		})
		for _, n := range list {
			if strings.EqualFold(n.GetUser().GetLogin(), author) {
				out = append(out, note{id: n.GetID(), author: n.GetUser().GetLogin(), body: n.GetBody()})
			}
		}
		return r, err
	})
	return out, c.failed(fmt.Sprintf("list the comments of pull request %d", number), err)
}

func (c *client) addComment(ctx context.Context, number int, body string) (note, error) {
	n, _, err := c.repo.Issues.CreateComment(ctx, c.owner, c.name, number, &gh.IssueComment{Body: &body})
	if err == nil && n.GetID() == 0 {
		err = errNotMade
	}
	if err != nil {
		return note{}, c.failed(fmt.Sprintf("comment on pull request %d", number), err)
	}
	return note{id: n.GetID(), author: n.GetUser().GetLogin(), body: n.GetBody()}, nil
}

func (c *client) editComment(ctx context.Context, id int64, body string) error {
	_, _, err := c.repo.Issues.EditComment(ctx, c.owner, c.name, id, &gh.IssueComment{Body: &body})
	return c.failed("edit the comment", err)
}

func (c *client) removeComment(ctx context.Context, id int64) error {
	_, err := c.repo.Issues.DeleteComment(ctx, c.owner, c.name, id)
	if err = c.failed("remove the second comment", err); kindOf(err) == kindNotFound {
		return nil
	}
	return err
}

func (c *client) checks() bool { return c.app != nil }

func (c *client) latestCheck(ctx context.Context, commit, name string) (checkRun, error) {
	list, _, err := c.repo.Checks.ListCheckRunsForRef(ctx, c.owner, c.name, commit, &gh.ListCheckRunsOptions{CheckName: &name, AppID: &c.appID})
	if err != nil {
		return checkRun{}, c.failed("read the check runs of "+short(commit), err)
	}
	var latest checkRun
	for _, run := range list.CheckRuns {
		if run.GetID() > latest.id {
			latest = checkRun{run.GetID(), run.GetExternalID()}
		}
	}
	return latest, nil
}

func (c *client) writeCheck(ctx context.Context, id int64, w checkWrite) (int64, error) {
	state, conclusion, content := gh.String("in_progress"), (*string)(nil), (*string)(nil)
	if w.last {
		state, conclusion, content = gh.String("completed"), &w.conclusion, &w.content
	}
	out := &gh.CheckRunOutput{Title: &w.title, Summary: &w.summary, Annotations: w.annotations}
	var run *gh.CheckRun
	var err error
	if id == 0 {
		run, _, err = c.repo.Checks.CreateCheckRun(ctx, c.owner, c.name, gh.CreateCheckRunOptions{
			Name: w.name, HeadSHA: w.commit, ExternalID: content, Status: state, Conclusion: conclusion, Output: out,
		})
	} else {
		run, _, err = c.repo.Checks.UpdateCheckRun(ctx, c.owner, c.name, id, gh.UpdateCheckRunOptions{
			Name: w.name, ExternalID: content, Status: state, Conclusion: conclusion, Output: out,
		})
	}
	return run.GetID(), c.failed("write the check run of "+short(w.commit), err)
}

// short abbreviates a commit as git does.
func short(commit string) string {
	const digits = 7
	return commit[:min(len(commit), digits)]
}
