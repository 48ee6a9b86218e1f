package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/agentsync"
	"github.com/gitopsd/gitopsd/internal/agentsocket"
	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

func agentCommand(a *app) *cobra.Command {
	var once, check bool
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run the agent of one device",
		Long: `Run the agent: read what was assigned to this device, bring the device there, or
put it back, and report. It needs no git program for a local repository. The
commands below it are for whoever stands at the device, without a network too.

With --root every path that is read or written lies below that folder, and
programs run with it as their working folder.

Every value may also come from the environment (--repo-from is
GITOPSD_REPO_FROM) or from the configuration file; a flag wins over the
environment, and that over the file. "gitopsd config show agent" prints what
holds.

Exit codes of --once: 0 done, nothing to do, or deferred; 1 it failed, was
rolled back, or a retry is due.`,
		GroupID: groupRun,
		Args:    noCommand,
		Example: `  gitopsd agent --repo https://git.example/fleet.git --device gw-berlin-01
  gitopsd agent --config /etc/gitopsd/agent.yaml
  gitopsd agent --repo /srv/git/fleet.git --device gw-1 --root /tmp/gw-1 --once
  gitopsd agent status`,
	}
	cmd.AddCommand(agentStatusCommand(a), agentExplainCommand(a), agentDiffCommand(a), agentHoldCommand(a), agentUnholdCommand(a),
		agentSnoozeCommand(a), agentRunNowCommand(a), agentResetCommand(a), agentImportCommand(a))
	options := bindAgent(cmd)
	cmd.Flags().BoolVar(&once, "once", false, "poll once, do the work that is due, report and end")
	cmd.Flags().BoolVar(&check, flagCheck, false, "only say whether it could run")
	_ = cmd.Flags().MarkHidden(flagCheck) // it is there
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		in := a.rootAsked(cmd)
		var l launched
		if !check {
			l = a.launch(in, slog.New(slog.NewTextHandler(a.err, nil)))
		}
		spec, _, files, err := options.resolve(cmd, a.env)
		if err != nil {
			return err
		}
		if err := checkAgent(spec); err != nil {
			return err
		}
		logger, err := newLogger(a.err, spec.LogFormat, spec.LogLevel)
		if err != nil {
			return err
		}
		hearLibraries(logger)
		root := or(spec.Root, "/")
		if check {
			return checkState(reconcile.Config{Device: spec.Device, Root: root, OS: spec.OS})
		}
		run := agentRun{program: a.program(l, in, root, logger), packaged: l.Package, once: once}
		err = a.agent(cmd.Context(), spec, files, run, logger)
		switch {
		case !errors.Is(err, reconcile.ErrHandOver):
			return err
		case cmd.Context().Err() != nil:
			return nil // it was told to end; the next start is the other program's
		}
		return a.handOver(l)
	}
	return cmd
}

// deviceID is a lower-case DNS label, which is also fit for a git ref.
var deviceID = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// checkAgent gives the first thing that is wrong with a configuration.
func checkAgent(spec schema.AgentSpec) error {
	for _, err := range agentMistakes(spec) {
		return err
	}
	return nil
}

// agentMistakes are all that keeps an agent from starting.
func agentMistakes(spec schema.AgentSpec) (list []error) {
	if spec.Device == "" {
		list = append(list, withHint(usagef("no device is given"), "name it with --device, %s or device in the configuration file", variable("device")))
	} else if !deviceID.MatchString(spec.Device) {
		list = append(list, withHint(usagef("%q is no device id", spec.Device), "an id has at most 63 lower-case letters, digits and dashes inside"))
	}
	if spec.Repo.URL == "" && spec.RepoFrom == "" {
		list = append(list, withHint(usagef("no fleet repository is given"), "name it with --repo, %s or repo.url in the configuration file, or a file that holds it with --repo-from", variable("repo")))
	}
	if spec.Repo.URL != "" && spec.RepoFrom != "" {
		list = append(list, withHint(usagef("both --repo and --repo-from say where the fleet repository is"), "leave one of repo and repoFrom away"))
	}
	if spec.OS != nil {
		if err := checkOS(spec.OS, or(spec.Root, "/")); err != nil {
			list = append(list, err)
		}
	}
	return list
}

// checkOS wants the fields of its driver, and no others: one that is ignored
// is a mistake.
func checkOS(c *schema.OSConfig, root string) error {
	driver := or(c.Driver, schema.OSCommand)
	if driver == schema.OSBootc && root != "/" {
		return withHint(usagef("os.driver is %s, which changes the running system, and the root is %s", driver, root), "leave os out where the root is another one")
	}
	for _, f := range []struct {
		name    string
		written bool
		of      string // driver
		needed  bool
	}{
		{"remote", c.Remote != "", schema.OSTree, true},
		{"osName", c.OSName != "", schema.OSTree, false},
		{"booted", len(c.Booted) > 0, schema.OSCommand, true},
		{"staged", len(c.Staged) > 0, schema.OSCommand, true},
		{"stage", len(c.Stage) > 0, schema.OSCommand, true},
		{"undo", len(c.Undo) > 0, schema.OSCommand, true},
		{"reboot", len(c.Reboot) > 0, schema.OSCommand, true},
		{"bootID", c.BootID != "", schema.OSCommand, false},
	} {
		switch {
		case f.of == driver && f.needed && !f.written:
			return withHint(usagef("os.%s is missing, which the driver %s needs", f.name, driver), "gitopsd schema AgentConfig says what it is; os.driver says which driver it is, %s where it is absent", schema.OSCommand)
		case f.of != driver && f.written:
			return withHint(usagef("os.%s is for the driver %s, and os.driver is %s", f.name, f.of, driver), "leave it out, or change os.driver")
		}
	}
	if c.BootID != "" && !path.IsAbs(c.BootID) {
		return withHint(usagef("os.bootID %q is no absolute path", c.BootID), "write it as the device sees it, for example /run/boot-id; with --root it lies below that folder")
	}
	return nil
}

// agentRun is how an agent runs.
type agentRun struct {
	program  *reconcile.Program
	packaged string // path of the program of the package
	once     bool
}

// agent joins repository, control and agent, and runs them until ctx ends.
func (a *app) agent(ctx context.Context, spec schema.AgentSpec, files *agentFiles, run agentRun, logger *slog.Logger) (err error) {
	root := or(spec.Root, "/")
	if run.once {
		logger = quietLog(logger, spec.LogFormat, noAnswer, notAsked)
	}
	for _, w := range files.warnings {
		logger.Error("the configuration is not as it was written", "because", w)
	}
	warnOfReadable(logger, agentSecrets(spec))
	way, err := newControl(spec, root, logger)
	if err != nil {
		return err
	}
	defer way.Close()
	control := &remembering{Control: way}
	watched := &supervisor{log: logger}
	agent, err := reconcile.New(reconcile.Config{
		Device: spec.Device, Root: root, AgentVersion: a.build.Version, InitialVersion: spec.InitialVersion, Control: control,
		Interval: spec.Interval.D(defaultInterval), Heartbeat: spec.Heartbeat.D(defaultHeartbeat),
		BusyCheck: spec.BusyCheck, OS: spec.OS, BootTimeout: spec.Boot.Timeout.D(defaultBootTimeout),
		Protected: protectedPaths(root, files.file, spec, run.packaged), Identities: spec.Secrets.Identities,
		Warnings: files.now, Logger: logger,
		Program: run.program,
		// One question to control may ask two servers.
		Progress: func(within time.Duration) { watched.working(within + 2*spec.Timeout.D(defaultTimeout)) },
	})
	if errors.Is(err, reconcile.ErrLocked) {
		return withHint(fmt.Errorf("cannot start the agent of %s below %s: %w", spec.Device, root, err), "one agent for each root: end the other one first")
	}
	if err != nil {
		return withHint(fmt.Errorf("cannot start the agent of %s below %s: %w", spec.Device, root, err), "check --root: the folder must exist and be writable")
	}
	defer func() { err = errors.Join(err, agent.Close()) }()
	if err := keepConfig(agent, files); err != nil {
		logger.Warn("the configuration could not be kept for a day on which its files are bad", "error", err)
	}
	if run.once {
		err := a.agentOnce(ctx, agent, control)
		if s := agent.Standing(); err == nil && s.Report.Generation == 0 && s.Report.Assigned != "" && s.Last == nil {
			a.sayln("hint: devices/%s.yaml in the fleet repository makes this device one of the fleet; gitopsd explain %s, at a desk, says what it waits for", spec.Device, spec.Device)
		}
		return err
	}
	logger.Info("agent started", "device", spec.Device, "version", a.build.Version)
	defer answerPeople(ctx, agent, spec, root, logger)()
	stop := watched.ready(ctx)
	err = agent.Run(ctx)
	stop(errors.Is(err, reconcile.ErrHandOver))
	switch {
	case errors.Is(err, reconcile.ErrHandOver):
		return err
	case errors.Is(err, reconcile.ErrRebooting):
		logger.Info("a reboot was started; the work goes on after it")
		return nil
	case err != nil && !interrupted(ctx, err):
		return err
	}
	logger.Info("agent stopped")
	return nil
}

// keepConfig keeps the texts that work, so that a bad file keeps no later start
// down.
func keepConfig(agent *reconcile.Agent, files *agentFiles) error {
	if files.file == "" {
		return nil
	}
	n, err := agent.Notes()
	if err != nil {
		return err
	}
	defer n.Close()
	return n.KeepConfig(files.texts())
}

// answerPeople lets people at the device speak to the agent until it ends. That
// it cannot be had keeps no agent down.
func answerPeople(ctx context.Context, agent *reconcile.Agent, spec schema.AgentSpec, root string, logger *slog.Logger) (stop func()) {
	server, err := agentsocket.Listen(agentsocket.Config{Agent: agent, Root: root, Group: spec.Socket.Group, Logger: logger})
	if err != nil {
		logger.Warn("people at the device are not answered; gitopsd agent status reads the disk", "error", err)
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { server.Serve(ctx) })
	return func() {
		cancel()
		wg.Wait()
	}
}

// agentOnce makes one pass and says what came of it.
func (a *app) agentOnce(ctx context.Context, agent *reconcile.Agent, control *remembering) error {
	result, err := agent.Once(ctx)
	if err != nil {
		return err
	}
	if result.HandOver {
		return reconcile.ErrHandOver
	}
	if result.Exit != 0 && control.err != nil {
		return control.ended(result.Summary)
	}
	if result.Summary != "" {
		a.sayln("%s", clean(result.Summary))
	}
	if result.Exit != 0 {
		return &exitError{code: exitCannot}
	}
	return nil
}

// newControl finds the repositories of a device.
func newControl(spec schema.AgentSpec, root string, logger *slog.Logger) (*agentsync.Control, error) {
	timeout := spec.Timeout.D(defaultTimeout)
	open := func(where schema.RepoConfig) func(context.Context, string) (agentsync.Remote, error) {
		return func(_ context.Context, url string) (agentsync.Remote, error) {
			one, err := repo.OpenDevice(repo.Config{URL: url, Credentials: credentialsOf(where), Timeout: timeout, Logger: logger})
			if err != nil {
				return nil, err
			}
			return one, nil
		}
	}
	fixed := func(url string) func() (string, error) {
		return func() (string, error) { return url, nil }
	}
	config := agentsync.Config{
		Remote: agentsync.Target{URL: fixed(spec.Repo.URL), Open: open(spec.Repo)},
		Device: spec.Device, DeviceRefs: spec.Refs.Devices, ReportRefs: spec.Refs.Reports, Timeout: timeout, Logger: logger,
		Kept: func() []string { return reconcile.KeptPayloads(root) },
	}
	if spec.RepoFrom != "" {
		config.Remote.URL = agentsync.URLFile(root, spec.RepoFrom)
	}
	if where, own := reportsOf(spec.Repo, spec.Reports); own {
		config.Reports = &agentsync.Target{URL: fixed(where.URL), Open: open(where)}
	}
	control, err := agentsync.New(config)
	if err != nil {
		return nil, fmt.Errorf("cannot set up the way to control: %w", err)
	}
	return control, nil
}

// protectedPaths are the paths below the root that no spec may touch, because
// the agent could not come back without them: its configuration, its
// credentials and the programs that start it.
func protectedPaths(root, file string, spec schema.AgentSpec, programs ...string) []string {
	paths := []string{"/etc/gitopsd"}
	outer := append(programs, file, dropInFolder(or(file, defaultAgentConfig)))
	outer = append(outer, agentSecrets(spec)...)
	for _, r := range []*schema.RepoConfig{&spec.Repo, spec.Reports.Repo} {
		if r != nil && r.Credentials != nil {
			outer = append(outer, r.Credentials.KnownHostsFile, r.Credentials.CAFile, r.Credentials.ClientCertFile)
		}
	}
	if exe, err := os.Executable(); err == nil {
		outer = append(outer, exe)
	}
	base, err := filepath.Abs(root)
	if err != nil {
		return paths
	}
	for _, p := range outer {
		if p == "" {
			continue
		}
		abs, err := filepath.Abs(p)
		if err != nil {
			continue
		}
		rel, err := filepath.Rel(base, abs)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			paths = append(paths, "/"+filepath.ToSlash(rel))
		}
	}
	return paths
}
