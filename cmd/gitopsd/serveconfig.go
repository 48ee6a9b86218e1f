package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/repo"
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
	list = append(list, endpointSettings()...)
	list = append(list, githubSettings()...)
	list = append(list, credentials("", "repo.credentials", func(s *S) *schema.Credentials { return repoCredentials(&s.Repo) })...)
	list = append(list, credentials("reports-", "reports.repo.credentials", func(s *S) *schema.Credentials { return repoCredentials(reportsRepo(&s.Reports)) })...)
	return &settings[S]{list: list}
}

// endpointSettings are those of what others may tell the daemon.
func endpointSettings() []setting[schema.ServeSpec] {
	type S = schema.ServeSpec
	list := []setting[S]{
		text("listen", "address", "listen", "", "host:port at which webhooks are heard", func(s *S) *string { return &s.Listen }),
		text("webhook-secret-file", "file", "webhook.secretFile", "", "file with the secret of the webhooks; two lines are two secrets", func(s *S) *string { return &s.Webhook.SecretFile }),
		text("webhook-repository", "name", "webhook.repository", "as the URL says", "owner/name of the fleet repository where the webhooks come from", func(s *S) *string { return &s.Webhook.Repository }),
	}
	for i := range list {
		list[i].group = endpointFlags
	}
	return list
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
	configured[schema.ServeSpec]
}

func newServeOptions() *serveOptions {
	return &serveOptions{configured[schema.ServeSpec]{settings: serveSettings(), standard: defaultServeConfig}}
}

func bindServe(cmd *cobra.Command) *serveOptions {
	o := newServeOptions()
	o.bind(cmd)
	return o
}

func (o *serveOptions) resolve(cmd *cobra.Command, env environment) (schema.ServeSpec, []resolved, string, error) {
	var doc schema.ServeConfig
	list, file, err := o.read(cmd, env, &doc, &doc.Spec)
	noCredentials(&doc.Spec.Repo)
	noReportsRepo(&doc.Spec.Reports)
	if err == nil {
		source, status := or(doc.Spec.Branch, schema.DefaultBranch), or(doc.Spec.StatusBranch, schema.DefaultStatusBranch)
		err = checkRefs(doc.Spec.Refs, branchUse{"the source branch", source}, branchUse{"the status branch", status})
	}
	return doc.Spec, list, file, err
}

// branchUse is a branch that no device may write.
type branchUse struct{ what, name string }

// checkRefs refuses names that are none, and those of which one could come to
// stand in the place of another: the ref of a device is a prefix and its id,
// and a device may have any id.
func checkRefs(refs schema.RefNames, branches ...branchUse) error {
	devices, reports := or(refs.Devices, schema.DefaultDeviceRefs), or(refs.Reports, schema.DefaultReportRefs)
	for _, b := range branches {
		if err := repo.CheckRef(branchPrefix + b.name); err != nil {
			return withHint(usagef("%q is no name of a branch", b.name), "git check-ref-format --branch %s says the same", shellWord(b.name))
		}
	}
	for i, b := range branches {
		for _, other := range branches[:i] {
			if strings.HasPrefix(b.name, other.name+"/") || strings.HasPrefix(other.name, b.name+"/") {
				return usagef("%s %q and %s %q cannot be in one repository: git allows no branch below another", other.what, other.name, b.what, b.name)
			}
		}
	}
	for _, p := range []struct{ field, prefix string }{{"refs.devices", devices}, {"refs.reports", reports}} {
		if !strings.HasSuffix(p.prefix, "/") || repo.CheckRef(p.prefix+"id") != nil {
			return withHint(usagef("%s: %q is no prefix of refs", p.field, p.prefix), "it begins with refs/, has another folder in it and ends with a slash, like %s", schema.DefaultDeviceRefs)
		}
		if p.prefix == branchPrefix && len(branches) == 0 {
			return withHint(usagef("%s %q would mix devices with branches", p.field, p.prefix), "name a folder of their own, such as refs/heads/gitopsd/devices/")
		}
		for _, b := range branches {
			if ref := branchPrefix + b.name; strings.HasPrefix(ref, p.prefix) || strings.HasPrefix(p.prefix, ref+"/") {
				return withHint(usagef("%s %q and %s %q get in each other's way: a device's id could make it that branch", p.field, p.prefix, b.what, b.name),
					"name a folder without branches, such as refs/heads/gitopsd/devices/")
			}
		}
	}
	const own = "name a folder for each of the two"
	switch {
	case devices == reports:
		return withHint(usagef("refs.devices and refs.reports are both %q", devices), own)
	case strings.HasPrefix(reports, devices):
		return withHint(usagef("refs.reports %q lies below refs.devices %q", reports, devices), own)
	case strings.HasPrefix(devices, reports):
		return withHint(usagef("refs.devices %q lies below refs.reports %q", devices, reports), own)
	}
	return nil
}

// branchPrefix is where git has the branches.
const branchPrefix = "refs/heads/"

// needRepo says what to do when nothing names the repository.
func needRepo(url string) error {
	if url != "" {
		return nil
	}
	return withHint(usagef("no fleet repository is given"), "name it with --repo, %s or repo.url in the configuration file", variable("repo"))
}
