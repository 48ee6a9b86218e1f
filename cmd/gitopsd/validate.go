package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/advice"
	"github.com/gitopsd/gitopsd/schema"
)

// validationReport is the JSON of gitopsd validate.
type validationReport struct {
	schema.TypeMeta
	Problems []schema.Problem `json:"problems"`
	Files    int              `json:"files"` // documents read
	Valid    bool             `json:"valid"`
}

func validateCommand(a *app) *cobra.Command {
	format := newOutput("text", "json")
	strict := false
	cmd := &cobra.Command{
		Use:   "validate [DIR]",
		Short: "Report every problem of a fleet repository, with its place",
		Long: `Report every problem of the fleet repository in DIR (default: here), each with
file, line, column, rule and, where it can, a hint. The same checks run in the
daemon before anything is assigned, but for advice that takes today's date or
the number of devices, such as a freeze that is over. Warnings do not make a
fleet invalid, unless --strict says so.

Exit codes: 0 valid, 3 there are errors, or with --strict warnings, 1 it could
not be read.`,
		GroupID:           groupAuthor,
		Args:              args(0, 1, "[DIR]"),
		ValidArgsFunction: completeFolder(0),
		Example: `  gitopsd validate
  gitopsd validate examples/fleet-repo
  gitopsd validate --strict
  gitopsd validate -o json | jq -r '.problems[].message'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := folder(args, 0)
			fleet, err := loadFleet(dir, a.build.Version)
			if err != nil {
				return err
			}
			problems := advice.Check(fleet, time.Now())
			if format.value == "json" {
				err = writeJSON(a.out, validationReport{
					TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "ValidationReport"},
					Problems: problems, Files: fleet.Files, Valid: fleet.Valid(),
				})
			} else {
				err = a.writeProblems(dir, fleet, problems)
			}
			if err != nil {
				return err
			}
			if !fleet.Valid() || strict && len(problems) > 0 {
				return contentProblems()
			}
			return nil
		},
	}
	format.bind(cmd)
	cmd.Flags().BoolVar(&strict, "strict", false, "end with 3 where there are only warnings, too")
	return cmd
}

func (a *app) writeProblems(dir string, fleet *schema.Fleet, problems []schema.Problem) error {
	for _, p := range problems {
		if _, err := fmt.Fprintln(a.out, problemText(p)); err != nil {
			return err
		}
	}
	wrong, warnings := tally(problems)
	verdict := "valid"
	if wrong > 0 {
		verdict = plural(wrong, "error")
	}
	if warnings > 0 {
		verdict += ", " + plural(warnings, "warning")
	}
	a.sayln("%s: %s in %s, %s", dir, verdict, plural(fleet.Files, "document"), plural(len(fleet.Devices), "device"))
	return nil
}

// invalid prints the errors of a fleet to standard error, for commands that
// need a valid one, and ends with 3.
func (a *app) invalid(dir string, fleet *schema.Fleet) error {
	return withHint(a.notValid(dir, fleet), "correct what stands above; gitopsd validate %s checks it again", dir)
}

// notValid is invalid without a word on what to do next.
func (a *app) notValid(name string, fleet *schema.Fleet) error {
	for _, p := range fleet.Problems {
		if p.Severity == schema.SeverityError {
			a.sayln("%s", problemText(p))
		}
	}
	wrong, _ := tally(fleet.Problems)
	return &exitError{code: exitContent, err: fmt.Errorf("%s is not valid: %s", name, plural(wrong, "error"))}
}
