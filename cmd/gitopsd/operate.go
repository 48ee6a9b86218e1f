package main

import (
	"github.com/spf13/cobra"
)

// groupOperate are the verbs of whoever runs a fleet.
const groupOperate = "operate"

// operatorCommands are the verbs that change a fleet.
func operatorCommands(a *app) []*cobra.Command {
	return []*cobra.Command{
		holdCommand(a), unholdCommand(a), pauseCommand(a), resumeCommand(a), retryCommand(a),
		setVersionCommand(a), rollbackCommand(a), releaseCommand(a), brakeCommand(a),
	}
}

// tree is the fleet repository here, for a shell that completes; nil = none.
func (a *app) tree() *workTree {
	t, err := openWorkTree(".", a.build.Version)
	if err != nil {
		return nil
	}
	return t
}

// completePolicy offers the policies of the fleet repository here, and then a
// folder.
func completePolicy(a *app) cobra.CompletionFunc {
	none := false
	return completePolicyOrAll(a, &none)
}

// completePolicyOrAll is completePolicy, unless --all stands for them.
func completePolicyOrAll(a *app, all *bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		at := 1
		if *all {
			at = 0
		}
		t := a.tree()
		if len(args) >= at || t == nil {
			return completeFolder(at)(cmd, args, word)
		}
		return cobraWords(t.policies()), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeHeld offers the devices that are held in their files, and then a
// folder.
func completeHeld(a *app) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		t := a.tree()
		if len(args) > 0 || t == nil {
			return completeFolder(1)(cmd, args, word)
		}
		var ids []cobra.Completion
		for _, m := range t.fleet.Devices {
			if m.Device != nil && m.Device.Spec.Hold != nil {
				ids = append(ids, m.ID)
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

// completePolicyOrDevice offers both.
func completePolicyOrDevice(a *app) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		t := a.tree()
		if len(args) > 0 || t == nil {
			return completeFolder(1)(cmd, args, word)
		}
		names := t.policies()
		for _, m := range t.fleet.Devices {
			names = append(names, m.ID)
		}
		return cobraWords(names), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeVersion offers a policy, then the releases that it can go to, then a
// folder.
func completeVersion(a *app) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return completePolicy(a)(cmd, args, word)
		case 1:
			return offerVersions(a, args)
		}
		return completeFolder(2)(cmd, args, word)
	}
}

// completeLine offers the release lines, and a folder behind the version.
func completeLine(a *app) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if t := a.tree(); len(args) == 0 && t != nil {
			return cobraWords(t.lines()), cobra.ShellCompDirectiveNoFileComp
		}
		return completeFolder(2)(cmd, args, word)
	}
}

// offerVersions offers the releases of a policy's line.
func offerVersions(a *app, args []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	t := a.tree()
	if t == nil || len(args) == 0 || t.fleet.Policy(args[0]) == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return offerReleases(a, []string{lineOf(t.fleet.Policy(args[0]))})
}

// offerReleases offers the releases of a line, newest first.
func offerReleases(a *app, args []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	t := a.tree()
	if t == nil || len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	versions, _ := t.releasesOf(args[0])
	return cobraWords(versions), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
