package main

import (
	"github.com/spf13/cobra"
)

func completionCommand(a *app) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Print the completion script for bash, zsh, fish or powershell",
		GroupID:   groupOther,
		Args:      args(1, 1, "SHELL"),
		ValidArgs: cobraWords(shells),
		Example: `  gitopsd completion bash > /etc/bash_completion.d/gitopsd
  gitopsd completion zsh > "${fpath[1]}/_gitopsd"
  gitopsd completion fish > ~/.config/fish/completions/gitopsd.fish`,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.out)
			}
			return withHint(usagef("there is no completion for the shell %q", args[0]), "there is one for bash, zsh, fish and powershell")
		},
	}
}
