package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

// brakeStatus is the JSON of gitopsd brake.
type brakeStatus struct {
	schema.TypeMeta
	On         bool         `json:"on"`         // something is stopped
	Changed    bool         `json:"changed"`    // by this command
	Commit     string       `json:"commit"`     // that says so; "" = there is no brake yet
	Unreadable string       `json:"unreadable"` // why everything is stopped; "" = it can be read
	Entries    []brakeEntry `json:"entries"`
	Notes      []string     `json:"notes"` // what a person should know
}

// brakeEntry is one thing that is stopped.
type brakeEntry struct {
	Scope  string `json:"scope"` // all, policy or device
	Name   string `json:"name"`  // "" for all
	Reason string `json:"reason"`
	// Since and By are of the commit that it first stands in; only gitopsd
	// brake status reads the history.
	Since  *time.Time `json:"since,omitempty"`
	By     string     `json:"by,omitempty"`
	Commit string     `json:"commit,omitempty"`
}

func brakeCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "brake",
		Short: "Stop a policy, a device or everything at once, without a review",
		Long: `Stop a policy, a device or everything at once. The brake is the file brake.yaml
on the branch gitopsd/brake of the fleet repository, which these commands push
to. It can only hold back: nobody new starts, and what has not started is taken
back. What has started goes on, and ends well or puts its device back. It lasts
until it is taken off.`,
		GroupID: groupOperate,
		Args:    noCommand,
		Example: `  gitopsd brake on gateways --reason "they lose their uplink" --repo https://git.example/fleet.git
  gitopsd brake status --repo https://git.example/fleet.git
  gitopsd brake off gateways --repo https://git.example/fleet.git`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(brakeOnCommand(a), brakeOffCommand(a), brakeStatusCommand(a))
	return cmd
}

func brakeOnCommand(a *app) *cobra.Command {
	var target brakeTarget
	var reason string
	cmd := &cobra.Command{
		Use:   "on {POLICY | --all | --device ID} --reason TEXT",
		Short: "Stop a policy, a device or everything at once",
		Long: `Stop a policy, a device or everything, with a commit that is pushed at once to
the branch gitopsd/brake. The policy or device has to be on the source branch,
so that a typing mistake does not pass for a stop. What is stopped already gets
the new reason.

The commit is yours: the name and address of git config, of GIT_AUTHOR_NAME and
GIT_AUTHOR_EMAIL, or of the flags.`,
		DisableFlagsInUseLine: true,
		Args:                  args(0, 1, "{POLICY | --all | --device ID}"),
		ValidArgsFunction:     completePolicy(a),
		Example: `  gitopsd brake on gateways --reason "they lose their uplink"
  gitopsd brake on --all --reason "the registry serves a wrong image"
  gitopsd brake on --device gw-berlin-01 --reason "I am looking at it"`,
	}
	options := bindBrake(a, cmd, &target)
	bindReason(cmd, &reason)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := target.check(cmd, args); err != nil {
			return err
		}
		if err := checkReason(cmd, &reason); err != nil {
			return err
		}
		return a.moveBrake(cmd, options, target, reason)
	}
	return cmd
}

func brakeOffCommand(a *app) *cobra.Command {
	var target brakeTarget
	cmd := &cobra.Command{
		Use:   "off {POLICY | --all | --device ID}",
		Short: "Let a policy, a device or everything go on",
		Long: `Take one stop away again, with a commit that is pushed at once to the branch
gitopsd/brake. Each is taken away by the name that it was put on with: --all
ends the stop of everything, and leaves those of single policies and devices,
which are listed.`,
		DisableFlagsInUseLine: true,
		Args:                  args(0, 1, "{POLICY | --all | --device ID}"),
		ValidArgsFunction:     completePolicy(a),
		Example: `  gitopsd brake off gateways --repo /srv/git/fleet.git
  gitopsd brake off --all`,
	}
	options := bindBrake(a, cmd, &target)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := target.check(cmd, args); err != nil {
			return err
		}
		return a.moveBrake(cmd, options, target, "")
	}
	return cmd
}

// brakeOptions are the flags of the commands that push.
type brakeOptions struct {
	*readerOptions
	format        *output
	name, address string
}

func bindBrake(a *app, cmd *cobra.Command, target *brakeTarget) *brakeOptions {
	o := &brakeOptions{readerOptions: bindReader(cmd), format: newOutput("table", "json")}
	o.format.bind(cmd)
	cmd.Flags().BoolVar(&target.all, "all", false, "everything")
	cmd.Flags().Var((*nonEmpty)(&target.device), "device", "the device with this `id`")
	cmd.Flags().Var((*nonEmpty)(&o.name), "author-name", "`name` of who commits (default that of git)")
	cmd.Flags().Var((*nonEmpty)(&o.address), "author-email", "`address` of who commits (default that of git)")
	// The errors are for flags that do not exist.
	_ = cmd.RegisterFlagCompletionFunc("device", func(cmd *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return completeDevice(a)(cmd, nil, word)
	})
	_ = cmd.RegisterFlagCompletionFunc("author-name", offerNothing)
	_ = cmd.RegisterFlagCompletionFunc("author-email", offerNothing)
	return o
}

// swept refuses a clone that only people work in: a stop there stops nothing.
func (b *brake) swept(ctx context.Context) error {
	branch := or(b.spec.StatusBranch, schema.DefaultStatusBranch)
	if !isWorkTree(b.spec.Repo.URL) {
		return nil
	}
	ref := "refs/heads/" + branch
	refs, err := b.repo.Refs(ctx, ref)
	if err != nil || refs[ref] != "" {
		return err
	}
	return onlyAClone(b.spec, b.repo, branch)
}

// moveBrake puts a brake on, or without a reason takes it off.
func (a *app) moveBrake(cmd *cobra.Command, o *brakeOptions, target brakeTarget, reason string) (err error) {
	spec, err := o.named(cmd, a)
	if err != nil {
		return err
	}
	author, err := a.author(cmd.Context(), o.name, o.address)
	if err != nil {
		return err
	}
	b, err := openBrake(spec, author)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	ctx := cmd.Context()
	if err := b.swept(ctx); err != nil {
		return err
	}
	var notes []string
	if reason != "" {
		if notes, err = b.known(ctx, target); err != nil {
			return err
		}
	}
	state, changed, err := b.move(ctx, target, reason, time.Now())
	if err != nil {
		return repoHint(err, spec.Repo.URL)
	}
	doc := brakeStatusOf(state)
	doc.Changed, doc.Notes = changed, append(doc.Notes, notes...)
	if state.mended != "" {
		doc.Notes = append(doc.Notes, "warning: "+brakeFile+" could not be read ("+state.mended+") and was written anew; the commit before has what it was")
	}
	switch {
	case changed:
		a.sayln("pushed %s to %s of %s: it applies with the next sweep", view.Short(state.commit), schema.BrakeBranch, redact(spec.Repo.URL))
		if isWorkTree(spec.Repo.URL) {
			doc.Notes = append(doc.Notes, "warning: that is a clone, and only a daemon that sweeps it will see this; --repo names the fleet repository itself")
		}
	case reason != "":
		a.sayln("%s is stopped already, with this reason; there is nothing to do", clean(target.String()))
	default:
		if near := target.meant(&state.reading.Brake); near != "" {
			return withHint(fmt.Errorf("the brake has no stop of %s, and nothing was changed", target), "did you mean %s?", near)
		}
		a.sayln("the brake has no stop of %s; there is nothing to do", clean(target.String()))
	}
	return a.writeBrake(doc, o.format)
}

// knownLimit is how long the source branch may take to say which names there
// are: whoever pulls a brake cannot wait for a slow line.
const knownLimit = 15 * time.Second

// known wants what is to be stopped to exist: a name that nobody has would
// stop nothing.
func (b *brake) known(ctx context.Context, target brakeTarget) (notes []string, err error) {
	if target.all {
		return nil, nil
	}
	limited, cancel := context.WithTimeout(ctx, knownLimit)
	defer cancel()
	policies, devices, err := b.names(limited)
	if err != nil {
		// To stop must not need more than the branch of the brake.
		return []string{"warning: the source branch could not be read, so nobody knows whether there is " + target.String() + ": " + err.Error()}, nil
	}
	name, names, kind := target.policy, policies, "policy"
	if target.device != "" {
		name, names, kind = target.device, devices, "device"
	}
	if slices.Contains(names, name) {
		return nil, nil
	}
	err = fmt.Errorf("the fleet has no %s %q, so nothing was stopped", kind, name)
	switch near := nearest(name, names); {
	case near != "":
		return nil, withHint(err, "did you mean %s?", near)
	case kind == "policy" && slices.Contains(devices, name):
		return nil, withHint(err, "it is a device: --device %s", name)
	case kind == "device" && slices.Contains(policies, name):
		return nil, withHint(err, "it is a policy: give it without --device")
	}
	return nil, withHint(err, "--all stops everything; it has %s", or(some(names), "none"))
}
