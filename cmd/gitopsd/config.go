package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

// effectiveConfig is the JSON of gitopsd config show.
type effectiveConfig struct {
	schema.TypeMeta
	Command  string     `json:"command"`
	File     string     `json:"file"` // that was read; "" = none
	Settings []resolved `json:"settings"`
}

func configCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Look at the configuration",
		GroupID: groupOther,
		Args:    noCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	show := &cobra.Command{
		Use:   "show",
		Short: "Print the effective configuration and where each value comes from",
		Long: `Print the effective configuration of the daemon or the agent, and where each
value comes from: a flag, the environment, the configuration file or a default.
Secrets are never values, only names of files, so nothing here is secret.`,
		Example: `  gitopsd config show serve
  GITOPSD_INTERVAL=30s gitopsd config show agent --device gw-1
  gitopsd config show serve --config ./serve.yaml -o json`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withHint(usagef("of which command: serve or agent?"), "gitopsd config show serve")
		},
	}
	show.AddCommand(configShowServe(a), configShowAgent(a))
	cmd.AddCommand(show)
	return cmd
}

func configShowServe(a *app) *cobra.Command {
	format := newOutput("table", "json")
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Print the effective configuration of gitopsd serve",
		Example: `  gitopsd config show serve --config ./serve.yaml`,
		Args:    args(0, 0, ""),
	}
	options := bindServe(cmd)
	format.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		spec, list, file, err := options.resolve(cmd, a.env)
		if err != nil {
			return err
		}
		effectiveState(list, spec, a.env)
		return a.showConfig("serve", file, list, format)
	}
	return cmd
}

// effectiveState puts the folder that serve would use in the place of the
// rule that it is found by. Without a repository it is the one above.
func effectiveState(list []resolved, spec schema.ServeSpec, env environment) {
	base, err := stateBase(spec.State, env)
	if err != nil {
		return // serve says so
	}
	if spec.Repo.URL != "" {
		base = filepath.Join(base, folderName(spec.Repo.URL))
	}
	for i := range list {
		if list[i].Name == "state" {
			list[i].Value = base
		}
	}
}

func configShowAgent(a *app) *cobra.Command {
	format := newOutput("table", "json")
	cmd := &cobra.Command{
		Use:     "agent",
		Short:   "Print the effective configuration of gitopsd agent",
		Example: `  gitopsd config show agent --device gw-1`,
		Args:    args(0, 0, ""),
	}
	options := bindAgent(cmd)
	format.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		_, list, files, err := options.resolve(cmd, a.env)
		if err != nil {
			return err
		}
		for _, w := range files.warnings {
			a.sayln("warning: %s", w)
		}
		return a.showConfig("agent", files.file, list, format)
	}
	return cmd
}

func (a *app) showConfig(command, file string, list []resolved, format *output) error {
	if format.value == "json" {
		return writeJSON(a.out, effectiveConfig{
			TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "EffectiveConfig"},
			Command:  command, File: file, Settings: list,
		})
	}
	if file == "" {
		fmt.Fprintln(a.err, "no configuration file was read")
	}
	t := view.Table{Head: []string{"SETTING", "VALUE", "FROM"}}
	for _, r := range list {
		from := r.Source
		if r.Origin != "" {
			from += " " + r.Origin
		}
		value := r.Value
		if value == "" {
			value = "-"
		}
		t.Row(r.Name, value, from)
	}
	return t.Write(a.out, a.look())
}
