package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/demo"
)

func demoCommand(a *app) *cobra.Command {
	var config demo.Config
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch a fleet go through a good and a bad release",
		Long: `Play the life of a small fleet on this machine, with the real daemon and one
real agent for each device: a good release, a bad one that puts itself back and
stops everywhere else, and the one that puts it right. It takes under a minute
and needs neither root nor network nor git; everything is in one temporary
folder.`,
		GroupID: groupLook,
		Args:    args(0, 0, ""),
		Example: `  gitopsd demo
  gitopsd demo --keep                 # leave the folder, to look around in it
  gitopsd demo --keep --dir /tmp/demo`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			look := a.look()
			width, height, terminal := terminalSize(a.out)
			config.Out, config.Err = a.out, a.err
			// A dumb terminal cannot move its cursor, so it gets plain lines.
			config.Terminal, config.Color = terminal && a.env["TERM"] != "dumb", look.Color
			config.Width, config.Height = width, height
			exe, err := os.Executable()
			if err != nil {
				return err
			}
			config.Exe = exe
			return demo.Run(cmd.Context(), config)
		},
	}
	cmd.Flags().BoolVar(&config.Keep, "keep", false, "leave the folder behind")
	cmd.Flags().Var((*nonEmpty)(&config.Dir), "dir", "work in this `folder`, which must be empty (default a new temporary one)")
	completeFlag(cmd, "dir", "folder", nil)
	return cmd
}
