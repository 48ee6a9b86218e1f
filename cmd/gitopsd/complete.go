package main

import (
	"slices"

	"github.com/spf13/cobra"
)

// What the shell offers for an argument or a flag.
var (
	offerNothing = cobra.NoFileCompletions
	offerFolders = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
)

// completeFlag sets what the shell offers for a flag of this kind; file names
// are what it offers by itself.
func completeFlag(cmd *cobra.Command, flag, kind string, words []string) {
	offer := offerNothing
	switch {
	case len(words) > 0:
		offer = cobra.FixedCompletions(cobraWords(words), cobra.ShellCompDirectiveNoFileComp)
	case kind == "folder":
		offer = offerFolders
	case kind == "file" || kind == "url":
		return // a repository may be a path
	}
	// The error is for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc(flag, offer)
}

// completeFolder offers folders for the argument at this place.
func completeFolder(at int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) != at {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offerFolders(cmd, args, word)
	}
}

// completeDevice offers the devices of the fleet repository here, and then a
// folder.
func completeDevice(a *app) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return completeFolder(1)(cmd, args, word)
		}
		fleet, err := loadFleet(".", a.build.Version)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var ids []cobra.Completion
		for _, m := range fleet.Devices {
			ids = append(ids, m.ID)
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeReported offers the devices of a status branch that is at hand: a
// person who presses a key does not want to wait for a server.
func completeReported(a *app, options *readerOptions) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (ids []cobra.Completion, _ cobra.ShellCompDirective) {
		const none = cobra.ShellCompDirectiveNoFileComp
		spec, _, _, err := options.resolve(cmd, a.env)
		if err != nil || len(args) > 0 || !isFolder(spec.Repo.URL) {
			return nil, none
		}
		r, err := openReader(spec)
		if err != nil {
			return nil, none
		}
		defer func() { _ = r.close() }()
		status, err := r.readStatus(cmd.Context())
		if err != nil {
			return nil, none
		}
		for id := range status.Devices {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		return ids, none
	}
}
