package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

// Exit codes. They are a contract with scripts.
const (
	exitOK      = 0
	exitCannot  = 1 // it could not be done
	exitUsage   = 2 // wrong usage: arguments, flags, environment, configuration file
	exitContent = 3 // the content has problems, a sweep stopped, a plan is not empty, or a device differs or needs a look
)

// exitError ends the program with a code. err is nil where the output said
// everything already.
type exitError struct {
	code int
	err  error
	hint string
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usagef says what is wrong with the command line or the configuration.
func usagef(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// contentProblems ends with 3 after the problems themselves were printed.
func contentProblems() error { return &exitError{code: exitContent} }

// withHint adds what to do next to an error, and keeps its exit code.
func withHint(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &exitError{code: exitCode(err), err: err, hint: fmt.Sprintf(format, args...)}
}

func exitCode(err error) int {
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	return exitCannot
}

// saysNothing is for an error that is only a code: the output says the rest.
func saysNothing(err error) bool {
	var e *exitError
	return errors.As(err, &e) && e.err == nil
}

// report prints an error with all its hints and gives the exit code.
func (a *app) report(cmd *cobra.Command, err error) int {
	code := exitCode(err)
	if saysNothing(err) {
		return code
	}
	// Package repo writes its hint in brackets, for a log; here it gets its line.
	text, list := err.Error(), []string{}
	for _, hint := range hints(err) {
		if !slices.Contains(list, hint) {
			list = append(list, hint)
		}
	}
	var where *repo.Error
	if errors.As(err, &where) && where.Hint != "" {
		text = strings.ReplaceAll(text, " ("+where.Hint+")", "")
		if !slices.Contains(list, where.Hint) {
			list = append(list, where.Hint)
		}
	}
	fmt.Fprintf(a.err, "%s: %s\n", cmd.CommandPath(), view.CleanLines(text))
	for _, hint := range list {
		fmt.Fprintf(a.err, "hint: %s\n", view.CleanLines(hint))
	}
	return code
}

// hints lists what errors along the chain say about what to do next.
func hints(err error) []string {
	switch e := err.(type) { //nolint:errorlint // it walks the chain itself, every link of it
	case *exitError:
		list := hints(e.err)
		if e.hint != "" {
			list = append([]string{e.hint}, list...)
		}
		return list
	case interface{ Unwrap() error }:
		return hints(e.Unwrap())
	case interface{ Unwrap() []error }:
		var list []string
		for _, one := range e.Unwrap() {
			list = append(list, hints(one)...)
		}
		return list
	}
	return nil
}

var (
	unknownFlag = regexp.MustCompile(`^unknown flag: --(\S+)`)
	// goParsing is how Go introduces why a number is none: what was given
	// stands before it already.
	goParsing = regexp.MustCompile(`: strconv\.\w+: parsing ".*": `)
)

// flagError makes wrong usage of what the flag parser refuses, with the flag
// that was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	wrong := usagef("%w", err)
	if goParsing.MatchString(err.Error()) {
		wrong = usagef("%s", goParsing.ReplaceAllString(err.Error(), ": "))
	}
	if m := unknownFlag.FindStringSubmatch(err.Error()); m != nil {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		name, _, _ := strings.Cut(m[1], "=")
		if near := nearest(name, names); near != "" {
			return withHint(wrong, "did you mean --%s?", near)
		}
	}
	return withHint(wrong, "%s --help lists the flags", cmd.CommandPath())
}

// args checks the number of arguments and names them in its message.
func args(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, got []string) error {
		if len(got) >= least && len(got) <= most {
			return nil
		}
		usage := strings.TrimSpace(cmd.CommandPath() + " " + names)
		if len(got) < least {
			return withHint(usagef("an argument is missing: %s", usage), "%s --help has examples", cmd.CommandPath())
		}
		return withHint(usagef("unexpected argument %q: the usage is %s", got[most], usage), "%s --help has examples", cmd.CommandPath())
	}
}

// nearest is the candidate that a mistyped word probably meant; "" when none
// is near.
func nearest(word string, candidates []string) string { return schema.Nearest(word, candidates) }
