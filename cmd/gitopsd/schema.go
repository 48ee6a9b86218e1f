package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

func schemaCommand(a *app) *cobra.Command {
	var names []string
	for _, k := range schema.Kinds() {
		names = append(names, string(k))
	}
	all := ""
	cmd := &cobra.Command{
		Use:   "schema [KIND]",
		Short: "Print the JSON Schema of a kind of document",
		Long: `Print the JSON Schema (2020-12) of a kind of document, for editors and other
validators. Without a kind, list the kinds and who writes them. With --all,
write the schema of each kind into a folder, as policy.json and so on; what is
there by these names is replaced.

An editor with yaml-language-server checks a document against such a file,
without a network, where the document begins with
  # yaml-language-server: $schema=../.gitopsd/schemas/policy.json`,
		GroupID: groupAuthor,
		Args:    args(0, 1, "[KIND]"),
		Example: `  gitopsd schema
  gitopsd schema Policy > policy.schema.json
  gitopsd schema --all .gitopsd/schemas`,
		ValidArgs: cobraWords(names),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.Flags().Changed("all") && len(args) > 0:
				return usagef("--all writes every kind, so %s is one too many", args[0])
			case cmd.Flags().Changed("all"):
				return writeSchemas(all, schema.Kinds())
			case len(args) == 0:
				t := view.Table{Head: []string{"KIND", "WRITTEN BY"}}
				for _, name := range names {
					t.Row(name, writtenBy(schema.Kind(name)))
				}
				return t.Write(a.out, a.look())
			}
			for _, name := range names {
				if !strings.EqualFold(name, args[0]) {
					continue
				}
				data, err := schema.JSONSchema(schema.Kind(name))
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(a.out, strings.TrimSpace(string(data)))
				return err
			}
			err := usagef("there is no kind %q", args[0])
			if near := nearest(args[0], names); near != "" {
				return withHint(err, "did you mean %s?", near)
			}
			return withHint(err, "gitopsd schema lists the kinds")
		},
	}
	cmd.Flags().Var((*nonEmpty)(&all), "all", "write the schema of each kind into this folder")
	return cmd
}

// writeSchemas writes the schemas of some kinds into a folder, each under the
// name that its $id ends in. What is in the folder already stays, but for files
// of these names; a symlink by such a name is replaced, and not followed.
func writeSchemas(dir string, kinds []schema.Kind) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot write the schemas: %w", err)
	}
	for _, k := range kinds {
		data, err := schema.JSONSchema(k)
		if err != nil {
			return err
		}
		if err := renameio.WriteFile(filepath.Join(dir, schemaFile(k)), data, 0o644); err != nil {
			return fmt.Errorf("cannot write the schema of %s: %w", k, err)
		}
	}
	return nil
}

// schemaFile is the name of the file that holds the schema of a kind.
func schemaFile(k schema.Kind) string { return strings.ToLower(string(k)) + ".json" }

// writtenBy says who writes documents of a kind, and where.
func writtenBy(k schema.Kind) string {
	switch k {
	case schema.KindPolicy:
		return "you, in the fleet repository: policies/NAME.yaml"
	case schema.KindRelease:
		return "you, in the fleet repository: releases/LINE/VERSION.yaml"
	case schema.KindOverlay:
		return "you, in the fleet repository: overlays/**/NAME.yaml"
	case schema.KindDevice:
		return "you, in the fleet repository: devices/**/ID.yaml"
	case schema.KindFleet:
		return "you, in the fleet repository: fleet.yaml"
	case schema.KindBrake:
		return "you, on the branch gitopsd/brake: brake.yaml"
	case schema.KindServeConfig:
		return "you, on the daemon's host: " + defaultServeConfig
	case schema.KindAgentConfig:
		return "you, on each device: " + defaultAgentConfig
	case schema.KindReport:
		return "the agent"
	}
	return "the daemon"
}
