package main

import (
	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/edit"
	"github.com/gitopsd/gitopsd/schema"
)

func pauseCommand(a *app) *cobra.Command {
	var reason string
	var all bool
	cmd := &cobra.Command{
		Use:   "pause {POLICY | --all} [DIR] --reason TEXT",
		Short: "Stop upgrades in the file of a policy, or of the fleet",
		Long: `Write a pause into the file of a policy, in the fleet repository in DIR
(default: here), or with --all into fleet.yaml, which is made if there is none:
nobody new starts, what has not started is taken back, and what has started goes
on, until gitopsd resume. Everything else in the file stays as it is. The change
is printed; the commit is yours.

Where there is no time for a commit and its review: gitopsd brake on.

Exit codes: 0 done, or nothing to do; 1 it could not be done; 2 wrong usage;
3 the fleet would have more errors than now, and nothing was written.`,
		GroupID:               groupOperate,
		DisableFlagsInUseLine: true,
		Args:                  policyOrAll(&all),
		ValidArgsFunction:     completePolicyOrAll(a, &all),
		Example: `  gitopsd pause gateways --reason "the modem supplier is looking at it"
  gitopsd pause --all --reason "trade fair" --dry-run`,
	}
	options := bindEdit(cmd)
	bindReason(cmd, &reason)
	cmd.Flags().BoolVar(&all, "all", false, "pause every policy, in fleet.yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkReason(cmd, &reason); err != nil {
			return err
		}
		name, dir := nameAndFolder(args, all)
		return a.change(cmd.Context(), dir, options, func(t *workTree) (edited, error) { return t.pause(name, reason) })
	}
	return cmd
}

func resumeCommand(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "resume {POLICY | --all} [DIR]",
		Short: "Let upgrades go on: take a pause out of its file",
		Long: `Take the pause out of the file of a policy, in the fleet repository in DIR
(default: here), or with --all out of fleet.yaml, with the comments that belong
to it. A pause of the fleet does not stand in the policies, nor theirs in it.
The change is printed; the commit is yours.`,
		GroupID:               groupOperate,
		DisableFlagsInUseLine: true,
		Args:                  policyOrAll(&all),
		ValidArgsFunction:     completePolicyOrAll(a, &all),
		Example: `  gitopsd resume gateways
  gitopsd resume --all`,
	}
	options := bindEdit(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "end the pause of the fleet, in fleet.yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, dir := nameAndFolder(args, all)
		return a.change(cmd.Context(), dir, options, func(t *workTree) (edited, error) { return t.pause(name, "") })
	}
	return cmd
}

// policyOrAll wants a policy, or --all without one, and perhaps a folder.
func policyOrAll(all *bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, got []string) error {
		if *all {
			return args(0, 1, "--all [DIR]")(cmd, got)
		}
		if len(got) == 0 {
			return withHint(usagef("an argument is missing: %s POLICY, or --all", cmd.CommandPath()), "%s --help has examples", cmd.CommandPath())
		}
		return args(1, 2, "POLICY [DIR]")(cmd, got)
	}
}

// nameAndFolder takes the arguments apart; the name is "" for the whole fleet.
func nameAndFolder(args []string, all bool) (name, dir string) {
	if all {
		return "", folder(args, 0)
	}
	return args[0], folder(args, 1)
}

// fleetFile is the document of the whole fleet.
const fleetFile = "fleet.yaml"

// newFleetFile is what it begins as.
const newFleetFile = "apiVersion: " + schema.APIVersion + "\nkind: Fleet\n"

// pause sets the pause of a policy, or of the whole fleet where name is "";
// without a reason it goes.
func (t *workTree) pause(name, reason string) (edited, error) {
	file, called := fleetFile, "the fleet"
	form, err := edit.FormOf(schema.KindFleet, schema.FleetDocument{})
	if name != "" {
		called = name
		if file, err = t.policyFile(name); err != nil {
			return edited{}, err
		}
		form, err = edit.FormOf(schema.KindPolicy, schema.Policy{})
	}
	if err != nil {
		return edited{}, err
	}
	s := step{path: []string{"spec", "paused", "reason"}, value: reason}
	e := edited{message: subject("%s: pause, %s", called, reason), already: called + " is paused already, with this reason"}
	if reason == "" {
		s = step{path: []string{"spec", "paused"}}
		e = edited{message: subject("%s: resume", called), already: file + " has no pause"}
	}
	if name == "" && t.entry(fleetFile) == nil {
		c := fileChange{path: fleetFile}
		if reason == "" {
			c.before, c.after = []byte{}, []byte{}
			e.already = "there is no " + fleetFile
		} else if c.after, err = form.Set([]byte(newFleetFile), s.path, s.value); err != nil {
			return edited{}, err
		}
		e.changes = []fileChange{c}
		return e, nil
	}
	c, err := t.edit(file, form, s)
	e.changes = []fileChange{c}
	if err == nil && reason == "" && !c.same() {
		e.notes = t.stillStopped(name)
	}
	return e, err
}

// stillStopped says what else keeps the devices of a policy where they are.
func (t *workTree) stillStopped(name string) []string {
	if name == "" {
		var paused []string
		for _, p := range t.fleet.Policies {
			if p.Spec.Paused != nil {
				paused = append(paused, p.Metadata.Name)
			}
		}
		if len(paused) > 0 {
			return []string{"paused by their own files: " + some(paused)}
		}
		return nil
	}
	if d := t.fleet.Document; d != nil && d.Spec.Paused != nil {
		return []string{"the whole fleet is paused in " + fleetFile + ": " + d.Spec.Paused.Reason}
	}
	if p := t.fleet.Policy(name); p != nil && !p.Spec.Enabled {
		return []string{name + " is not enabled, so nothing will move"}
	}
	return nil
}
