package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/schema"
)

const (
	// defaultHeartbeat of reports by git: every report is a push, and hosts
	// recommend at most six a minute and repository.
	defaultHeartbeat = 10 * time.Minute
	// defaultBootTimeout is long enough for a slow board with a file system
	// check.
	defaultBootTimeout = 10 * time.Minute
)

func agentSettings() *settings[schema.AgentSpec] {
	type S = schema.AgentSpec
	command := func(field string, of func(*schema.OSConfig) []string) setting[S] {
		return argv("os."+field, func(s *S) []string {
			if s.OS == nil {
				return nil
			}
			return of(s.OS)
		})
	}
	ofOS := func(field string, of func(*schema.OSConfig) string) setting[S] {
		return setting[S]{field: "os." + field, get: func(s *S) string {
			if s.OS == nil {
				return ""
			}
			return of(s.OS)
		}}
	}
	list := []setting[S]{
		text("device", "id", "device", "", "id of this device in the fleet repository", func(s *S) *string { return &s.Device }),
		text("repo", "url", "repo.url", "", "fleet repository: a local path, or a URL (https, http, ssh)", func(s *S) *string { return &s.Repo.URL }),
		text("repo-from", "file", "repoFrom", "", "file below the root with the repository's URL, read again for each poll", func(s *S) *string { return &s.RepoFrom }),
		text("root", "folder", "root", "/", "folder that the device's paths are relative to", func(s *S) *string { return &s.Root }),
		duration("interval", "interval", defaultInterval, "time between two polls", func(s *S) **schema.Duration { return &s.Interval }),
		duration("heartbeat", "heartbeat", defaultHeartbeat, "time between two reports when nothing changes", func(s *S) **schema.Duration { return &s.Heartbeat }),
		duration("timeout", "timeout", defaultTimeout, "limit of one git operation", func(s *S) **schema.Duration { return &s.Timeout }),
		text("initial-version", "version", "initialVersion", "v0.0.0", "version to report before anything was applied", func(s *S) *string { return &s.InitialVersion }),
		text("reports-repo", "url", "reports.repo.url", "the fleet repository", "repository to report to", func(s *S) *string { return &reportsRepo(&s.Reports).URL }),
		text("device-refs", "prefix", "refs.devices", schema.DefaultDeviceRefs, "prefix of the refs that carry assignments", func(s *S) *string { return &s.Refs.Devices }),
		text("report-refs", "prefix", "refs.reports", schema.DefaultReportRefs, "prefix of the refs that carry reports", func(s *S) *string { return &s.Refs.Reports }),
		argv("busyCheck", func(s *S) []string { return s.BusyCheck }),
		argv("secrets.identities", func(s *S) []string { return s.Secrets.Identities }),
		ofOS("driver", func(o *schema.OSConfig) string { return or(o.Driver, schema.OSCommand) }),
		ofOS("remote", func(o *schema.OSConfig) string { return o.Remote }),
		ofOS("osName", func(o *schema.OSConfig) string { return o.OSName }),
		command("booted", func(o *schema.OSConfig) []string { return o.Booted }),
		command("staged", func(o *schema.OSConfig) []string { return o.Staged }),
		command("stage", func(o *schema.OSConfig) []string { return o.Stage }),
		command("undo", func(o *schema.OSConfig) []string { return o.Undo }),
		command("reboot", func(o *schema.OSConfig) []string { return o.Reboot }),
		ofOS("bootID", func(o *schema.OSConfig) string { return o.BootID }),
		duration("boot-timeout", "boot.timeout", defaultBootTimeout, "time after a reboot until the update must have proved itself", func(s *S) **schema.Duration { return &s.Boot.Timeout }),
		text("socket-group", "group", "socket.group", "", "group that may use gitopsd agent status and the like beside root", func(s *S) *string { return &s.Socket.Group }),
		word("log-format", "logFormat", "format of the log", logFormats, func(s *S) *string { return &s.LogFormat }),
		word("log-level", "logLevel", "least level of the log", logLevels, func(s *S) *string { return &s.LogLevel }),
	}
	list = append(list, credentials("", "repo.credentials", func(s *S) *schema.Credentials { return repoCredentials(&s.Repo) })...)
	list = append(list, credentials("reports-", "reports.repo.credentials", func(s *S) *schema.Credentials { return repoCredentials(reportsRepo(&s.Reports)) })...)
	return &settings[S]{list: list}
}

// agentOptions reads the agent's configuration from its three places.
type agentOptions struct {
	configured[schema.AgentSpec]
}

func bindAgent(cmd *cobra.Command) *agentOptions {
	o := &agentOptions{configured[schema.AgentSpec]{settings: agentSettings(), standard: defaultAgentConfig}}
	o.bind(cmd)
	return o
}

// resolve reads the files, the environment and the flags.
func (o *agentOptions) resolve(cmd *cobra.Command, env environment) (schema.AgentSpec, []resolved, *agentFiles, error) {
	f := agentFilesOf(o.config, env)
	f.judge = func(spec *schema.AgentSpec) []error {
		_, err := o.overlay(cmd, env, f, spec)
		if err != nil {
			return []error{err}
		}
		return agentMistakes(*spec)
	}
	f.root = env[variable("root")]
	if flag := cmd.Flags().Lookup("root"); flag != nil && flag.Changed {
		f.root = flag.Value.String()
	}
	if err := f.load(); err != nil {
		return f.spec, nil, f, err
	}
	spec := f.spec
	list, err := o.overlay(cmd, env, f, &spec)
	return spec, list, f, err
}

// agentFilesOf are the files of a configuration: that of --config, of the
// environment, or the standard one.
func agentFilesOf(config string, env environment) *agentFiles {
	file := or(config, env[variable(flagConfig)])
	return &agentFiles{file: or(file, defaultAgentConfig), asked: file != ""}
}

// overlay lays environment and flags over what the files say.
func (o *agentOptions) overlay(cmd *cobra.Command, env environment, f *agentFiles, spec *schema.AgentSpec) ([]resolved, error) {
	list, err := o.settings.resolve(cmd, env, f.from, spec)
	noCredentials(&spec.Repo)
	noReportsRepo(&spec.Reports)
	if err == nil {
		err = checkRefs(spec.Refs)
	}
	return list, err
}
