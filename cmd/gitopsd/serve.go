package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/internal/webhook"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

// serveActs are what a person asks of one run; they have no place in an
// environment or a file, where they would act again at every start.
type serveActs struct {
	once   bool
	accept sweep.Accept
}

func serveCommand(a *app) *cobra.Command {
	var acts serveActs
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon that sweeps a fleet repository",
		Long: `Run the daemon: fetch the fleet repository, validate it, decide which devices
may have their new desired spec now, and commit verdicts and assignments to the
status branch. It needs no git program for a local repository.

With --listen it hears of pushes at once: webhooks of GitHub, Gitea and Forgejo
at /v1/webhooks/github, and signed requests of any script at /v1/sweep. Without
a secret it listens to nobody, and with --once not at all.

With a token or an App of GitHub it looks at the pull requests of the branch:
each gets commit statuses, a check with annotations and one comment that says
what a merge would do, and the commit that was swept a status of the fleet.

Every value may also come from the environment (--status-branch is
GITOPSD_STATUS_BRANCH) or from the configuration file; a flag wins over the
environment, and that over the file. "gitopsd config show serve" prints what
holds.

Exit codes of --once: 0 the sweep was done, 1 it could not be, 3 it stopped and
says what a person must do.`,
		GroupID: groupRun,
		Args:    args(0, 0, ""),
		Example: `  gitopsd serve --repo /srv/git/fleet.git
  gitopsd serve --repo https://git.example/fleet.git --token-file /run/token
  gitopsd serve --repo /srv/git/fleet.git --once
  gitopsd serve --repo /srv/git/fleet.git --once --accept-rewrite 4f2c91a
  gitopsd serve --listen 127.0.0.1:8484 --webhook-secret-file /run/webhook`,
	}
	options := bindServe(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&acts.once, "once", false, "do one sweep and end")
	flags.Var((*nonEmpty)(&acts.accept.Rewrite), "accept-rewrite", "go on with the rewritten source branch whose head is this `commit`")
	flags.Var((*nonEmpty)(&acts.accept.StatusLoss), "accept-status-loss", "rebuild the lost status branch, as of this source `commit`")
	completeFlag(cmd, "accept-rewrite", "commit", nil)
	completeFlag(cmd, "accept-status-loss", "commit", nil)
	flags.BoolVar(&acts.accept.Clock, "accept-clock", false, "the clock is right as it is now; for the first sweep only")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		spec, _, file, err := options.resolve(cmd, a.env)
		if err != nil {
			return err
		}
		if acts.once { // it ends before anybody could be heard or shown anything
			spec.Listen, spec.GitHub = "", schema.GitHubConfig{}
		}
		if err := checkServe(spec); err != nil {
			return err
		}
		logger, err := newLogger(a.err, spec.LogFormat, spec.LogLevel)
		if err != nil {
			return err
		}
		hearLibraries(logger)
		if file != "" {
			logger.Debug("read the configuration file", "file", file)
		}
		return a.serve(cmd.Context(), spec, acts, logger)
	}
	return cmd
}

// serve joins repository, state and daemon, and runs them until ctx ends.
func (a *app) serve(ctx context.Context, spec schema.ServeSpec, acts serveActs, logger *slog.Logger) (err error) {
	base, err := stateBase(spec.State, a.env)
	if err != nil {
		return err
	}
	state, err := openState(base, spec.Repo.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, state.close()) }()
	if state.temporary {
		logger.Warn("another daemon has the state folder of this repository; this one starts without what was kept there",
			"folder", filepath.Join(base, folderName(spec.Repo.URL)), "instead", state.path)
	}

	warnOfReadable(logger, serveSecrets(spec))
	if acts.once {
		logger = quietLog(logger, spec.LogFormat, "stopped: ")
	}
	if isWorkTree(spec.Repo.URL) {
		logger.Warn("the repository is a working tree: the status branch is written into it, and what is committed there counts as merged without a push",
			"repo", spec.Repo.URL, "remedy", "name the repository that it is pushed to")
	}
	config := repo.Config{
		URL: spec.Repo.URL, Credentials: credentialsOf(spec.Repo), Store: filepath.Join(state.path, "fleet.git"),
		Timeout: spec.Timeout.D(defaultTimeout), Author: repo.Author(spec.Author), Logger: logger,
	}
	fleet, err := repo.Open(config)
	if err != nil {
		return openError("the fleet repository", spec.Repo.URL, err)
	}
	defer func() { err = errors.Join(err, fleet.Close()) }()
	reports := fleet
	if where, own := reportsOf(spec.Repo, spec.Reports); own {
		config.URL, config.Credentials, config.Store = where.URL, credentialsOf(where), filepath.Join(state.path, "reports.git")
		if reports, err = repo.Open(config); err != nil {
			return openError("the repository of the reports", where.URL, err)
		}
		defer func() { err = errors.Join(err, reports.Close()) }()
	}
	shown, err := a.openGitHub(spec, fleet, reports, state.path, logger)
	if err != nil {
		return err
	}
	settings := sweep.Config{
		Remote: fleet, Reports: reports,
		Branch: or(spec.Branch, schema.DefaultBranch), StatusBranch: spec.StatusBranch,
		DeviceRefs: spec.Refs.Devices, ReportRefs: spec.Refs.Reports,
		State: filepath.Join(state.path, "sweep"), OwnVersion: a.build.Version,
		Interval: spec.Interval.D(defaultInterval), WatchPath: fleet.Path(), Accept: acts.accept, Logger: logger,
	}
	watched := &supervisor{log: logger}
	settings.Progress = watched.working
	if shown != nil {
		settings.Swept = shown.swept
	}
	daemon, err := sweep.New(settings)
	if err != nil {
		return err
	}
	if acts.once {
		return a.sweepOnce(ctx, daemon, spec)
	}
	runs := []func(context.Context) error{daemon.Run}
	var pullRequest func(webhook.PullRequest)
	if shown != nil {
		runs, pullRequest = append(runs, shown.run), shown.pullRequest
	}
	if spec.Listen != "" {
		server, err := openEndpoint(ctx, spec, daemon, pullRequest, logger)
		if err != nil {
			return err
		}
		runs = append(runs, server.Run)
	}
	logger.Info("serving", "repo", redact(spec.Repo.URL), "version", a.build.Version)
	stop := watched.ready(ctx)
	defer stop(false)
	if err := together(ctx, runs...); err != nil && !interrupted(ctx, err) {
		return repoHint(err, spec.Repo.URL)
	}
	logger.Info("stopped")
	return nil
}

// sweepOnce does one sweep and says what it did.
func (a *app) sweepOnce(ctx context.Context, daemon *sweep.Daemon, spec schema.ServeSpec) error {
	pass, err := daemon.Once(ctx)
	if err != nil {
		return repoHint(fmt.Errorf("cannot sweep %s: %w", redact(spec.Repo.URL), err), spec.Repo.URL)
	}
	if len(pass.Stops) == 0 {
		a.sayln("%s", passText(or(spec.Branch, schema.DefaultBranch), pass))
		return nil
	}
	if spec.LogFormat == "json" {
		return &exitError{code: exitContent} // the log has them
	}
	for _, c := range pass.Stops {
		a.sayln("stopped: %s", clean(c.Message))
		if c.Remedy != "" {
			a.sayln("remedy: %s", clean(c.Remedy))
		}
	}
	return &exitError{code: exitContent}
}

// passText says on one line what a sweep did.
func passText(branch string, pass sweep.Pass) string {
	text := "swept " + branch + " " + view.Short(pass.SourceCommit) + ": "
	if !pass.Committed {
		return text + "nothing has changed"
	}
	return text + fmt.Sprintf("%d assigned, %d ended, %d recalled; status %s", len(pass.Assigned), len(pass.Ended), len(pass.Recalled), view.Short(pass.StatusCommit))
}
