package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

// diagnosis is the JSON of gitopsd doctor.
type diagnosis struct {
	schema.TypeMeta
	Healthy bool       `json:"healthy"`
	Checks  []checkRow `json:"checks"`
}

// Results of a check.
const (
	resultOK      = "ok"
	resultFailed  = "failed"
	resultSkipped = "skipped" // it does not apply, or cannot be tried
)

// checkRow is one thing that was looked at.
type checkRow struct {
	Name   string `json:"name"`
	Result string `json:"result"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"` // of what failed
}

func doctorCommand(a *app) *cobra.Command {
	format := newOutput("table", "json")
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Try all that the daemon needs before it needs it",
		Long: `Try all that the daemon needs, with its configuration: the configuration and
the state folder, that no other user can read its secrets, the repositories and
the fleet in them, whether refs of each kind may be pushed and removed, and,
where GitHub is configured, each permission there.

Of each kind of ref one that is no real one is pushed and removed again; a
running daemon is not disturbed. Nothing else is written, and no secret is ever
shown. Run it as the user, and with the environment, that the daemon has.

Exit codes: 0 all is well, 1 something failed, each with what to do about it.`,
		GroupID: groupOther,
		Args:    args(0, 0, ""),
		Example: `  gitopsd doctor
  gitopsd doctor --config ./serve.yaml
  gitopsd doctor --repo https://git.example/fleet.git --token-file /run/token
  gitopsd doctor -o json | jq -r '.checks[] | select(.result == "failed")'`,
	}
	options := bindServe(cmd)
	format.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d := &doctor{app: a}
		d.all(cmd, options)
		doc := diagnosis{
			TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "Diagnosis"},
			Healthy:  true, Checks: d.rows,
		}
		for _, row := range d.rows {
			doc.Healthy = doc.Healthy && row.Result != resultFailed
		}
		if err := a.printDiagnosis(&doc, format.value); err != nil {
			return err
		}
		if !doc.Healthy {
			return &exitError{code: exitCannot}
		}
		return nil
	}
	return cmd
}

func (a *app) printDiagnosis(doc *diagnosis, format string) error {
	if format == "json" {
		return writeJSON(a.out, doc)
	}
	t := view.Table{Head: []string{"CHECK", "RESULT", "DETAIL"}}
	for _, row := range doc.Checks {
		t.Row(row.Name, row.Result, or(row.Detail, "-"))
	}
	if err := t.Write(a.out, a.look()); err != nil {
		return err
	}
	for _, row := range doc.Checks {
		if row.Result != resultFailed {
			continue
		}
		if _, err := fmt.Fprintf(a.out, "\n%s: %s\n  remedy: %s\n", row.Name, row.Detail, row.Remedy); err != nil {
			return err
		}
	}
	return nil
}
