package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroup is the annotation of a flag that stands under a heading of its
// own in the help; what a command is mostly used with has none.
const flagGroup = "gitopsd_group"

// Headings of flags, in the order of the help.
const (
	assumptionFlags = "Assumptions"
	connectionFlags = "Where and how to read"
	endpointFlags   = "Sweeping at once"
	githubFlags     = "Pull requests at GitHub"
	credentialFlags = "Credentials"
	reportsFlags    = "Credentials of the repository of the reports"
)

// usageText is the usage of a command, for a terminal of this width; 0 wraps
// nothing.
func usageText(w io.Writer, cmd *cobra.Command, width int) error {
	var b strings.Builder
	line := cmd.UseLine()
	switch {
	case cmd.HasAvailableSubCommands() && acts(cmd):
		line += "\n  " + cmd.CommandPath() + " COMMAND"
	case cmd.HasAvailableSubCommands():
		line = cmd.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(&b, "Usage:\n  %s\n", line)
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	list := func(title, group string) {
		head := "\n" + title + "\n"
		for _, sub := range cmd.Commands() {
			if sub.GroupID == group && (sub.IsAvailableCommand() || sub.Name() == "help") {
				fmt.Fprintf(&b, "%s  %-*s %s\n", head, sub.NamePadding(), sub.Name(), sub.Short)
				head = ""
			}
		}
	}
	for _, g := range cmd.Groups() {
		list(g.Title, g.ID)
	}
	list("Commands:", "")
	b.WriteString(flagsText(cmd, width))
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n\"%s COMMAND --help\" says more about a command.\n", cmd.CommandPath())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// acts says whether a command does something by itself: one that only has
// others below it takes no flags.
func acts(cmd *cobra.Command) bool {
	own := !cmd.HasSubCommands()
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) { own = own || f.Name != "help" && f.Name != "version" })
	return own && cmd.Runnable()
}

// flagsText lists the flags under their headings, those of every day first.
func flagsText(cmd *cobra.Command, width int) string {
	var b strings.Builder
	for _, group := range []string{"", assumptionFlags, connectionFlags, endpointFlags, githubFlags, credentialFlags, reportsFlags} {
		flags := pflag.NewFlagSet(group, pflag.ContinueOnError)
		cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if headingOf(f) == group {
				flags.AddFlag(f)
			}
		})
		if text := flags.FlagUsagesWrapped(width); text != "" {
			heading := group
			if heading == "" {
				heading = "Flags"
			}
			fmt.Fprintf(&b, "\n%s:\n%s", heading, text)
		}
	}
	return b.String()
}

func headingOf(f *pflag.Flag) string {
	if a := f.Annotations[flagGroup]; len(a) > 0 {
		return a[0]
	}
	return ""
}

// under puts a flag under a heading.
func under(f *pflag.Flag, heading string) {
	if heading != "" {
		f.Annotations = map[string][]string{flagGroup: {heading}}
	}
}
