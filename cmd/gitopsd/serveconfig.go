package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/schema"
)

// Defaults of both long-running commands.
const (
	// defaultInterval of sweeps and polls: a change is noticed within a
	// minute, and a thousand idle devices cost a git host 17 small requests a
	// second.
	defaultInterval = time.Minute
	// defaultTimeout of one git operation: a first clone over a slow line
	// must fit, and a server that stalls must not stop a fleet for long.
	defaultTimeout = 2 * time.Minute
)

var (
	logFormats = []string{"text", "json"}
	logLevels  = []string{"info", "debug", "warn", "error"}
)

func serveSettings() *settings[schema.ServeSpec] {
	type S = schema.ServeSpec
	list := []setting[S]{
		text("repo", "url", "repo.url", "", "fleet repository: a local path, or a URL (https, http, ssh)", func(s *S) *string { return &s.Repo.URL }),
		text("branch", "branch", "branch", schema.DefaultBranch, "branch that holds the desired state", func(s *S) *string { return &s.Branch }),
		text("status-branch", "branch", "statusBranch", schema.DefaultStatusBranch, "branch that the daemon writes", func(s *S) *string { return &s.StatusBranch }),
		duration("interval", "interval", defaultInterval, "time between two sweeps", func(s *S) **schema.Duration { return &s.Interval }),
		duration("timeout", "timeout", defaultTimeout, "limit of one git operation", func(s *S) **schema.Duration { return &s.Timeout }),
		text("state", "folder", "state", "$STATE_DIRECTORY, $XDG_STATE_HOME/gitopsd or ~/.local/state/gitopsd", "folder for what the daemon keeps between runs", func(s *S) *string { return &s.State }),
		text("reports-repo", "url", "reports.repo.url", "the fleet repository", "repository that the devices report to", func(s *S) *string { return &reportsRepo(&s.Reports).URL }),
		text("device-refs", "prefix", "refs.devices", schema.DefaultDeviceRefs, "prefix of the refs that carry assignments", func(s *S) *string { return &s.Refs.Devices }),
		text("report-refs", "prefix", "refs.reports", schema.DefaultReportRefs, "prefix of the refs that carry reports", func(s *S) *string { return &s.Refs.Reports }),
		text("author-name", "name", "author.name", "gitopsd", "author of the status commits", func(s *S) *string { return &s.Author.Name }),
		text("author-email", "address", "author.email", "gitopsd@localhost", "the author's address", func(s *S) *string { return &s.Author.Email }),
		word("log-format", "logFormat", "format of the log", logFormats, func(s *S) *string { return &s.LogFormat }),
		word("log-level", "logLevel", "least level of the log", logLevels, func(s *S) *string { return &s.LogLevel }),
	}
	list = append(list, credentials("", "repo.credentials", func(s *S) *schema.Credentials { return repoCredentials(&s.Repo) })...)
	list = append(list, credentials("reports-", "reports.repo.credentials", func(s *S) *schema.Credentials { return repoCredentials(reportsRepo(&s.Reports)) })...)
	return &settings[S]{list: list}
}

func reportsRepo(r *schema.ReportsConfig) *schema.RepoConfig {
	if r.Repo == nil {
		r.Repo = &schema.RepoConfig{}
	}
	return r.Repo
}

// noReportsRepo takes away what only made room for settings.
func noReportsRepo(r *schema.ReportsConfig) {
	if r.Repo == nil {
		return
	}
	noCredentials(r.Repo)
	if r.Repo.URL == "" && r.Repo.Credentials == nil {
		r.Repo = nil
	}
}

// serveOptions reads the daemon's configuration from its three places.
type serveOptions struct {
	settings *settings[schema.ServeSpec]
	config   string
}

func bindServe(cmd *cobra.Command) *serveOptions {
	o := &serveOptions{settings: serveSettings()}
	o.settings.bind(cmd)
	cmd.Flags().StringVar(&o.config, flagConfig, "", "configuration `file` (default "+defaultServeConfig+" if it exists)")
	return o
}

func (o *serveOptions) resolve(cmd *cobra.Command, env environment) (schema.ServeSpec, []resolved, string, error) {
	var doc schema.ServeConfig
	path := o.config
	if path == "" {
		path = env[variable(flagConfig)]
	}
	file, err := readConfig(path, defaultServeConfig, &doc)
	if err != nil {
		return doc.Spec, nil, "", err
	}
	list, err := o.settings.resolve(cmd, env, file, &doc.Spec)
	noCredentials(&doc.Spec.Repo)
	noReportsRepo(&doc.Spec.Reports)
	return doc.Spec, list, file, err
}

// needRepo says what to do when nothing names the repository.
func needRepo(url string) error {
	if url != "" {
		return nil
	}
	return withHint(usagef("no fleet repository is given"), "name it with --repo, %s or repo.url in the configuration file", variable("repo"))
}
