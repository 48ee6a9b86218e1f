package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

func schemaCommand(a *app) *cobra.Command {
	var names []string
	for _, k := range schema.Kinds() {
		names = append(names, string(k))
	}
	return &cobra.Command{
		Use:   "schema [KIND]",
		Short: "Print the JSON Schema of a kind of document",
		Long: `Print the JSON Schema (2020-12) of a kind of document, for editors and other
validators. Without a kind, list the kinds and who writes them.`,
		GroupID: groupAuthor,
		Args:    args(0, 1, "[KIND]"),
		Example: `  gitopsd schema
  gitopsd schema Policy > policy.schema.json`,
		ValidArgs: cobraWords(names),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
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
}

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
