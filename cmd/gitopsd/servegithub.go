package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/gitopsd/gitopsd/internal/github"
	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/internal/webhook"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

// githubSettings are those of what is shown at GitHub.
func githubSettings() []setting[schema.ServeSpec] {
	type S = schema.ServeSpec
	poll := duration("github-poll-interval", "github.pollInterval", github.DefaultInterval, "time between two looks at all pull requests", func(s *S) **schema.Duration { return &s.GitHub.PollInterval })
	poll.def += ", with --listen " + schema.Duration(github.DefaultSafetyInterval).String()
	list := []setting[S]{
		text("github-token-file", "file", "github.tokenFile", "", "file with a token of GitHub, in place of an App", func(s *S) *string { return &s.GitHub.TokenFile }),
		wholeNumber("github-app-id", "github.app.id", "", "id of the GitHub App", func(s *S) *int64 { return &s.GitHub.App.ID }),
		wholeNumber("github-installation-id", "github.app.installationID", "the one that the repository is in", "where the App is installed", func(s *S) *int64 { return &s.GitHub.App.InstallationID }),
		text("github-private-key-file", "file", "github.app.privateKeyFile", "", "file with the private key of the App", func(s *S) *string { return &s.GitHub.App.PrivateKeyFile }),
		text("github-repository", "name", "github.repository", "as the URL says", "owner/name of the fleet repository at GitHub", func(s *S) *string { return &s.GitHub.Repository }),
		text("github-api-url", urlKind, "github.apiURL", github.DefaultURL, "address of the API, for GitHub Enterprise", func(s *S) *string { return &s.GitHub.APIURL }),
		poll,
	}
	for i := range list {
		list[i].group = githubFlags
	}
	return list
}

// wholeNumber is a setting that is a whole number above zero.
func wholeNumber[S any](flag, field, def, usage string, at func(*S) *int64) setting[S] {
	return setting[S]{
		flag: flag, kind: "number", field: field, def: def, usage: usage,
		get: func(s *S) string {
			if n := *at(s); n != 0 {
				return strconv.FormatInt(n, 10)
			}
			return ""
		},
		set: func(s *S, v string) error {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n <= 0 {
				return fmt.Errorf("%q is no number above zero", v)
			}
			*at(s) = n
			return nil
		},
	}
}

// githubConfig is the configuration of what is shown at GitHub; wanted is false
// where nothing is configured.
func githubConfig(spec schema.ServeSpec) (cfg github.Config, wanted bool, err error) {
	g := spec.GitHub
	if g == (schema.GitHubConfig{}) {
		return cfg, false, nil
	}
	cfg = github.Config{
		URL: g.APIURL, Repository: or(g.Repository, github.RepositoryOf(spec.Repo.URL, g.APIURL)), Branch: or(spec.Branch, schema.DefaultBranch),
		TokenFile: g.TokenFile, AppID: g.App.ID, InstallationID: g.App.InstallationID, PrivateKeyFile: g.App.PrivateKeyFile,
	}
	every := github.DefaultInterval
	if spec.Listen != "" {
		every = github.DefaultSafetyInterval
	}
	cfg.Interval = g.PollInterval.D(every)
	if cfg.Repository == "" {
		return cfg, true, withHint(usagef("github: %s does not say which repository it is at GitHub", redact(spec.Repo.URL)),
			"name it like owner/name with --github-repository, %s or github.repository", variable("github-repository"))
	}
	cfg.Look = func(context.Context, github.Pull) (github.Review, error) {
		return github.Review{}, errors.New("nobody looks")
	}
	if _, err := github.New(cfg); err != nil {
		return cfg, true, withHint(usagef("github: %w", err), "a token is named with github.tokenFile, an App with github.app.id and github.app.privateKeyFile")
	}
	return cfg, true, nil
}

// checkServe refuses a configuration that no daemon can run with.
func checkServe(spec schema.ServeSpec) error {
	if err := needRepo(spec.Repo.URL); err != nil {
		return err
	}
	branch, statusBranch := or(spec.Branch, schema.DefaultBranch), or(spec.StatusBranch, schema.DefaultStatusBranch)
	if branch == statusBranch {
		return withHint(usagef("branch and status branch are both %q", branch), "the daemon writes the status branch, people write the other one: name two")
	}
	if err := checkListen(spec); err != nil {
		return err
	}
	_, _, err := githubConfig(spec)
	return err
}

// atGitHub is the part of the daemon that shows things at GitHub; a nil one
// shows nothing.
type atGitHub struct {
	service *github.Service
	look    *pullLook
	fleet   *repo.Repo
	log     *slog.Logger
	last    sweep.Pass // told of last, as far as it matters
}

// openGitHub gives nil where GitHub is not configured.
func (a *app) openGitHub(spec schema.ServeSpec, fleet, reports *repo.Repo, state string, logger *slog.Logger) (*atGitHub, error) {
	cfg, wanted, err := githubConfig(spec)
	if err != nil || !wanted {
		return nil, err
	}
	look := newPullLook(spec, a.build.Version, fleet, reports, state, logger)
	cfg.Look, cfg.Logger = look.look, logger
	service, err := github.New(cfg)
	if err != nil {
		return nil, err
	}
	return &atGitHub{service: service, look: look, fleet: fleet, log: logger}, nil
}

func (g *atGitHub) run(ctx context.Context) error {
	return errors.Join(g.service.Run(ctx), g.look.close())
}

// pullRequest hands on what a webhook told.
func (g *atGitHub) pullRequest(p webhook.PullRequest) {
	err := g.service.PullRequest(github.Event{Number: p.Number, Action: p.Action, Head: p.Head})
	if err != nil {
		g.log.Warn("a pull request is not looked at now", "pull", p.Number, "error", err.Error())
	}
}

// swept hands on what a sweep came to. It reads what is here already.
func (g *atGitHub) swept(pass sweep.Pass) {
	if pass.StatusCommit == "" && len(pass.Stops) == 0 {
		return // nothing was ever written
	}
	same := pass.Head == g.last.Head && pass.StatusCommit == g.last.StatusCommit && stopsText(pass) == stopsText(g.last)
	if same {
		return
	}
	state := github.FleetState{Commit: pass.SourceCommit}
	if text := stopsText(pass); text != "" {
		state = github.FleetState{Commit: pass.Head, State: github.Failure, Words: text}
	} else {
		status, err := fleetDocument(context.Background(), g.fleet, pass.StatusCommit)
		if err != nil {
			g.log.Warn("the fleet's state is not shown at GitHub", "error", err.Error())
			return
		}
		state.State, state.Words = fleetWords(status)
	}
	g.last = pass
	g.service.Swept(state)
}

// stopsText is why nothing new is assigned; "" where it is.
func stopsText(pass sweep.Pass) string {
	var list []string
	for _, c := range pass.Stops {
		list = append(list, c.Message)
	}
	if len(list) == 0 {
		return ""
	}
	return "stopped: " + strings.Join(list, "; ")
}

// fleetLimit bounds fleet.yaml, in bytes; its lists are bounded where it is
// written.
const fleetLimit = 16 << 20

// fleetDocument reads fleet.yaml of a status commit.
func fleetDocument(ctx context.Context, r *repo.Repo, commit string) (*schema.FleetStatus, error) {
	const name = "fleet.yaml"
	blob, err := r.FileAt(ctx, commit, name)
	if err != nil {
		return nil, err
	}
	data, err := r.Blob(ctx, blob, fleetLimit)
	if err != nil {
		return nil, err
	}
	status := &schema.FleetStatus{}
	if wrong, _ := tally(schema.DecodeStatus(name, data, status)); wrong > 0 {
		return nil, fmt.Errorf("%s of the status branch cannot be read", name)
	}
	return status, nil
}

// fleetWords is how the fleet is, in a few words.
func fleetWords(f *schema.FleetStatus) (github.State, string) {
	var total, done, moving, waiting, attention int
	var halted []string
	for _, r := range f.Rollouts {
		total, done, moving, waiting, attention = total+r.Total, done+r.Done, moving+r.Moving, waiting+r.Waiting, attention+r.Attention
		if r.State == "halted" {
			halted = append(halted, r.Policy+" "+r.Version)
		}
	}
	words := fmt.Sprintf("%d of %d done", done, total)
	if moving > 0 {
		words += fmt.Sprintf(", %d moving", moving)
	}
	if waiting > 0 {
		words += fmt.Sprintf(", %d waiting", waiting)
	}
	if attention > 0 {
		words += fmt.Sprintf(", %d in need of attention", attention)
	}
	switch {
	case len(halted) > 0:
		return github.Failure, "halted: " + strings.Join(halted, ", ") + "; " + words
	case moving+waiting > 0:
		return github.Pending, words
	}
	return github.Success, words
}
