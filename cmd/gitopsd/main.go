package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(runMain())
}

// runMain lets the signal handler be removed before the process ends.
func runMain() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once: whoever asks twice is not
	// waiting for a clean end.
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ())
}

// app is what every subcommand works with.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      environment
	args     []string // of the command line
	build    build
}

// run executes one command line and gives the exit code of the process.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	out := &results{Writer: stdout}
	a := &app{in: stdin, out: out, err: &redactingWriter{w: stderr}, env: newEnvironment(env), args: args, build: readBuild()}
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(a.err)
	cmd, err := root.ExecuteContextC(ctx)
	if out.failed != nil && (err == nil || saysNothing(err)) {
		err = fmt.Errorf("cannot write the output: %w", out.failed)
	}
	if err == nil {
		return exitOK
	}
	return a.report(cmd, err)
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "gitopsd",
		Short: "Run a fleet of Linux devices from a git repository",
		Long: `gitopsd runs a fleet of Linux devices from a git repository.

People change the fleet by pull request. The daemon (gitopsd serve) decides
which devices may have their new desired spec now and commits why; an agent on
each device (gitopsd agent) brings it there, or puts it back.`,
		Example: `  gitopsd init fleet                          # a starter fleet repository
  gitopsd validate fleet                      # every problem, with its place
  gitopsd plan fleet                          # what a sweep would do
  gitopsd serve --repo /srv/git/fleet.git     # the daemon
  gitopsd agent --repo https://git.example/fleet.git --device gw-1`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return cmd.Help()
		},
		Args: noCommand,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		width, _, _ := terminalSize(a.out)
		return usageText(cmd.OutOrStdout(), cmd, width)
	})
	root.Version = a.build.Version
	root.SetVersionTemplate(a.build.text())
	root.AddGroup(
		&cobra.Group{ID: groupRun, Title: "Run a fleet:"},
		&cobra.Group{ID: groupAuthor, Title: "Write a fleet repository:"},
		&cobra.Group{ID: groupLook, Title: "See what happens:"},
		&cobra.Group{ID: groupOperate, Title: "Act on a fleet:"},
		&cobra.Group{ID: groupOther, Title: "Other:"},
	)
	for _, cmd := range append(commands(a), operatorCommands(a)...) {
		if cmd.ValidArgsFunction == nil && cmd.ValidArgs == nil {
			cmd.ValidArgsFunction = offerNothing
		}
		root.AddCommand(cmd)
	}
	root.SetHelpCommandGroupID(groupOther)
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.Args = helpTopic
		}
	}
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		if cmd.Flags().Lookup(flagConfig) != nil {
			a.warnOfUnknownVariables()
		}
	}
	return root
}

// Groups of the help.
const (
	groupRun    = "run"
	groupAuthor = "author"
	groupLook   = "look"
	groupOther  = "other"
)

// noCommand is the argument check of a command that only has subcommands.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := usagef("%s has no command %q", cmd.CommandPath(), args[0])
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	if near := nearest(args[0], names); near != "" {
		return withHint(err, "did you mean %s %s?", cmd.CommandPath(), near)
	}
	return withHint(err, "%s --help lists the commands", cmd.CommandPath())
}

// helpTopic is the argument check of the help: it is of a command.
func helpTopic(cmd *cobra.Command, args []string) error {
	of := cmd.Root()
	for _, word := range args {
		i := slices.IndexFunc(of.Commands(), func(c *cobra.Command) bool { return c.Name() == word || c.HasAlias(word) })
		if i < 0 {
			return noCommand(of, []string{word})
		}
		of = of.Commands()[i]
	}
	return nil
}

// interrupted tells an end that was asked for from a failure.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Canceled)
}
