package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gitopsd/gitopsd/schema"
)

func validateCommand(a *app) *cobra.Command {
	var (
		outputs validateOutputs
		since   string
		rule    string
		strict  bool
	)
	cmd := &cobra.Command{
		Use:   "validate [DIR]",
		Short: "Report every problem of a fleet repository, with its place",
		Long: `Report every problem of the fleet repository in DIR (default: here), each with
file, line, column, rule and, where it can, a hint. The same checks run in the
daemon before anything is assigned, but for advice that takes today's date or
the number of devices, such as a freeze that is over. Warnings do not make a
fleet invalid, unless --strict says so.

Several -o give several reports of one run, each into a file of its own with
-o FORMAT=FILE. A file is replaced whole, or stays as it is:

  text    a line for each problem; on a terminal with the line of the source
  github  annotations of GitHub Actions, and a summary of the step in the file
          that GITHUB_STEP_SUMMARY names
  junit   for the test reports of most pipelines
  sarif   for code scanning
  json    a document of the kind ValidationReport

Where none goes to standard output, the fitting one does: github in a step of
GitHub Actions, else text.

With --changed-since, what is shown is what changed since REVISION: problems in
files that differ from it, and problems anywhere that were not there yet, such
as a device whose variable an overlay no longer sets. Where this branch and
REVISION have parted, the commit at which they did is compared with. All of the
fleet is checked all the same; problems that were there already are counted.

Exit codes: 0 valid, 3 there are errors, or with --strict warnings, among what
is shown, 1 it could not be read or a report could not be written, 2 wrong
usage.`,
		GroupID:           groupAuthor,
		Args:              args(0, 1, "[DIR]"),
		ValidArgsFunction: completeFolder(0),
		Example: `  gitopsd validate
  gitopsd validate examples/fleet-repo
  gitopsd validate --strict
  gitopsd validate --changed-since origin/main
  gitopsd validate -o junit=validate.xml -o sarif=validate.sarif
  gitopsd validate -o json | jq -r '.problems[].message'
  gitopsd validate --explain unknown-field
  gitopsd validate --explain list -o json | jq -r '.rules[].name'`,
	}
	outputs.bind(cmd)
	flags := cmd.Flags()
	flags.Var((*nonEmpty)(&since), "changed-since", "show only what changed since `revision`")
	flags.Var((*nonEmpty)(&rule), "explain", "show a `rule` with a wrong and a right example; list names all")
	flags.BoolVar(&strict, "strict", false, "end with 3 where there are only warnings, too")
	// The errors are for flags that do not exist.
	_ = cmd.RegisterFlagCompletionFunc("changed-since", offerNothing)
	_ = cmd.RegisterFlagCompletionFunc("explain", completeRule)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if rule != "" {
			if err := explainsAlone(cmd, args, &outputs); err != nil {
				return err
			}
			return a.explainRule(rule, outputs.isJSON())
		}
		dir := folder(args, 0)
		if err := outputs.check(dir); err != nil {
			return err
		}
		result, err := a.validation(cmd.Context(), dir, since)
		if err != nil {
			return err
		}
		result.Strict = strict
		if err := outputs.write(a, result); err != nil {
			return err
		}
		a.sayln("%s: %s", clean(dir), result.Verdict())
		if result.Fails() {
			return contentProblems()
		}
		return nil
	}
	return cmd
}

// explainsAlone refuses what would be left out beside --explain.
func explainsAlone(cmd *cobra.Command, args []string, outputs *validateOutputs) error {
	var err error
	if len(args) > 0 {
		err = usagef("--explain is of a rule, and looks at no folder")
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case f.Name == "explain":
		case f.Name == "output" && (outputs.isJSON() || outputs.String() == formText):
		case f.Name == "output":
			err = errors.Join(err, usagef("--explain goes with -o text or -o json, to standard output"))
		default:
			err = errors.Join(err, usagef("--explain goes without --%s", f.Name))
		}
	})
	return err
}

// invalid prints the errors of a fleet to standard error, for commands that
// need a valid one, and ends with 3.
func (a *app) invalid(dir string, fleet *schema.Fleet) error {
	return withHint(a.notValid(dir, fleet), "correct what stands above; gitopsd validate %s checks it again", shellWord(dir))
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
