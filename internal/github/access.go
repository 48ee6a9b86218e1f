package github

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	gh "github.com/google/go-github/v60/github"
)

// Finding is one thing that was looked at.
type Finding struct {
	Name   string
	OK     bool
	Detail string // what was found
	Remedy string // what a person does about it; "" where it is OK
}

// Names of the permissions, as GitHub's pages show them.
const (
	permissionPulls    = "Pull requests: read and write"
	permissionStatuses = "Commit statuses: read and write"
	permissionChecks   = "Checks: read and write"
)

// noCommit is no commit of any repository.
const noCommit = "0000000000000000000000000000000000000000"

// checkLimit is how long somebody who asks may have to wait.
const checkLimit = time.Minute

// Check finds out whether the configured token or App can do all that a
// [Service] does, and names each permission that is missing. It writes nothing.
func Check(ctx context.Context, cfg Config) ([]Finding, error) {
	cfg.Look = func(context.Context, Pull) (Review, error) { return Review{}, nil }
	s, err := New(cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	a := &access{client: s.client}
	if !a.identity(ctx) || !a.repository(ctx) {
		return a.list, nil
	}
	if a.client.app != nil {
		err = a.ofApp(ctx)
	} else {
		a.ofToken(ctx)
	}
	return a.list, err
}

// access is what was found out so far.
type access struct {
	client *client
	list   []Finding
	scopes []string // of a classic token; nil = it is none
}

func (a *access) found(name, detail string) {
	a.list = append(a.list, Finding{Name: name, OK: true, Detail: detail})
}

func (a *access) wrong(name, detail, remedy string) {
	a.list = append(a.list, Finding{Name: name, Detail: detail, Remedy: remedy})
}

// failed is wrong, unless it is about something else altogether.
func (a *access) failed(name string, err error, remedy string) {
	switch kindOf(err) {
	case kindUnavailable:
		remedy = "check github.apiURL and the way there, with its proxy; a daemon tries again by itself"
	case kindLimited:
		remedy = "try it later; a daemon waits by itself"
	}
	a.wrong(name, err.Error(), remedy)
}

// identity asks who the token belongs to.
func (a *access) identity(ctx context.Context) bool {
	login, err := a.client.self(ctx)
	if err != nil {
		a.failed("credentials", err, remedy(err))
		return false
	}
	a.found("credentials", "comments are written as "+clean(login))
	return true
}

// repository asks for the repository itself.
func (a *access) repository(ctx context.Context) bool {
	c := a.client
	name := c.owner + "/" + c.name
	_, r, err := c.repo.Repositories.Get(ctx, c.owner, c.name)
	if err != nil {
		a.failed("repository", c.failed("read the repository "+name, err), "install the App in "+name+", or give the token access to it, and check the name")
		return false
	}
	if list := r.Header.Values("X-OAuth-Scopes"); len(list) > 0 {
		a.scopes = strings.FieldsFunc(list[0], func(r rune) bool { return r == ',' || r == ' ' })
	}
	a.found("repository", name)
	return true
}

// ofApp compares what the installation was granted.
func (a *access) ofApp(ctx context.Context) error {
	c := a.client
	at, _, err := c.app.Apps.FindRepositoryInstallation(ctx, c.owner, c.name)
	if err != nil {
		return c.failed("read the installation of the GitHub App", err)
	}
	granted := at.Permissions
	if granted == nil {
		granted = &gh.InstallationPermissions{}
	}
	remedy := "grant it in the settings of the App, Permissions & events, and let the owner accept that for the installation"
	for _, p := range []struct {
		name, why string
		level     string
	}{
		{permissionPulls, "finds pull requests, comments", granted.GetPullRequests()},
		{permissionStatuses, "gitopsd/validate, gitopsd/plan, gitopsd/fleet", granted.GetStatuses()},
		{permissionChecks, "annotations at lines", granted.GetChecks()},
	} {
		if p.level == "write" {
			a.found(p.name, p.why)
		} else {
			a.wrong(p.name, fmt.Sprintf("the App has %s; it is needed for: %s", or(clean(p.level), "none"), p.why), remedy)
		}
	}
	return nil
}

// ofToken tries what nothing says about a token: to change what is not there.
// Who may is told that it is not there, who may not is told that first.
func (a *access) ofToken(ctx context.Context) {
	c := a.client
	if a.scopes != nil {
		if slices.Contains(a.scopes, "repo") {
			a.found(permissionPulls, "scope repo")
			a.found(permissionStatuses, "scope repo")
		} else {
			remedy := "make a fine-grained token with these permissions, or give this one the scope repo"
			a.wrong(permissionPulls, "the token has the scopes: "+or(clean(strings.Join(a.scopes, ", ")), "none"), remedy)
			a.wrong(permissionStatuses, "the token has the scopes: "+or(clean(strings.Join(a.scopes, ", ")), "none"), remedy)
		}
		a.noChecks()
		return
	}
	_, _, err := c.repo.PullRequests.List(ctx, c.owner, c.name, &gh.PullRequestListOptions{ListOptions: gh.ListOptions{PerPage: 1}})
	if err = c.failed("list the pull requests", err); err == nil {
		const noComment = 1 // of the very first repository there was
		if err = c.editComment(ctx, noComment, "gitopsd doctor asks whether it may"); kindOf(err) == kindNotFound {
			err = nil
		}
	}
	a.tried(permissionPulls, "finds pull requests, comments", err)
	err = c.setStatus(ctx, noCommit, Status{Context: contextValidate, State: Success})
	if k := kindOf(err); k == kindRefused || k == kindNotFound {
		err = nil
	}
	a.tried(permissionStatuses, "gitopsd/validate, gitopsd/plan, gitopsd/fleet", err)
	a.noChecks()
}

func (a *access) tried(name, why string, err error) {
	if err == nil {
		a.found(name, why)
		return
	}
	a.failed(name, err, "give the token this permission for "+a.client.owner+"/"+a.client.name+"; it is needed for: "+why)
}

// noChecks says what only an App can do; that is no fault.
func (a *access) noChecks() {
	a.found(permissionChecks, "not with a token: only an App writes annotations")
}
