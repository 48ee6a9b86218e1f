package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/listing"
	"github.com/gitopsd/gitopsd/internal/view"
)

// The forms in which problems are written.
const (
	formText   = "text"
	formGitHub = "github"
	formJUnit  = "junit"
	formSARIF  = "sarif"
	formJSON   = "json"
)

var validateForms = []string{formText, formGitHub, formJUnit, formSARIF, formJSON}

// validateOutputs is the repeatable -o FORMAT[=FILE].
type validateOutputs struct{ list []validateOutput }

type validateOutput struct {
	form string
	file string // "" = standard output
}

func (o *validateOutputs) bind(cmd *cobra.Command) {
	cmd.Flags().VarP(o, "output", "o", "report to write, again for more: text, github, junit, sarif or json")
	// The error is for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(cobraWords(validateForms), cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp))
}

// String is the flag as it was given.
func (o *validateOutputs) String() string {
	words := make([]string, len(o.list))
	for i, one := range o.list {
		words[i] = one.form
		if one.file != "" {
			words[i] += "=" + one.file
		}
	}
	return strings.Join(words, " ")
}

// isJSON says that one JSON to standard output is all that is asked for.
func (o *validateOutputs) isJSON() bool { return o.String() == formJSON }

// Type names the value in the help.
func (o *validateOutputs) Type() string { return "format[=file]" }

// Set adds a report.
func (o *validateOutputs) Set(s string) error {
	form, file, named := strings.Cut(s, "=")
	switch {
	case !slices.Contains(validateForms, form):
		if near := nearest(form, validateForms); near != "" {
			return fmt.Errorf("did you mean %s?", near)
		}
		return errors.New("want text, github, junit, sarif or json, and =FILE for a file")
	case named && file == "":
		return fmt.Errorf("no file behind the =; write %s=FILE, or %s for standard output", form, form)
	case file == "-":
		file = ""
	}
	o.list = append(o.list, validateOutput{form, file})
	return nil
}

// check refuses reports that could not be written, or would destroy another
// one or the fleet, before anything is read.
func (o *validateOutputs) check(dir string) error {
	var onStdout []string
	documents := 0
	taken := map[string]string{}
	for _, one := range o.list {
		if one.file == "" {
			if slices.Contains(onStdout, one.form) {
				return usagef("-o %s is there twice", one.form)
			}
			onStdout = append(onStdout, one.form)
			if one.form != formText && one.form != formGitHub {
				documents++
			}
			continue
		}
		real, err := reportPath(one.file)
		if err != nil {
			return fmt.Errorf("cannot write the %s report to %s: %w", one.form, one.file, err)
		}
		if before, is := taken[real]; is {
			return usagef("-o %s and -o %s name the same file: %s", before, one.form, one.file)
		}
		taken[real] = one.form
		if isYAML(real) && within(dir, real) {
			return withHint(usagef("-o %s=%s: a YAML file there would be a part of the fleet", one.form, one.file), "give the report another ending, such as .%s", one.form)
		}
	}
	if documents > 0 && len(onStdout) > 1 {
		return withHint(usagef("one report at a time can go to standard output, and not %s", strings.Join(onStdout, " and ")),
			"name files: -o %s=FILE", onStdout[len(onStdout)-1])
	}
	return nil
}

// within says whether a file, named from the root, lies below a folder.
func within(dir, file string) bool {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	rel, err := filepath.Rel(abs, file)
	return err == nil && filepath.IsLocal(rel)
}

// write writes all reports. One that cannot be written keeps none of the
// others from being.
func (o *validateOutputs) write(a *app, r *listing.Result) error {
	list := o.list
	if !slices.ContainsFunc(list, func(one validateOutput) bool { return one.file == "" }) {
		list = append([]validateOutput{{form: a.fittingForm()}}, list...)
	}
	var wrong error
	for _, one := range list {
		var err error
		if one.file == "" {
			err = a.writeForm(a.out, one.form, r, a.look())
		} else {
			err = a.writeFile(one, r)
		}
		if err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("cannot write the %s report%s: %w", one.form, optional(" to ", one.file), err))
		}
	}
	if name := a.env["GITHUB_STEP_SUMMARY"]; name != "" && slices.ContainsFunc(list, func(one validateOutput) bool { return one.form == formGitHub }) {
		if err := appendSummary(name, r); err != nil {
			// What it would say stands in the log, too.
			a.sayln("warning: no summary of the step: %v", err)
		}
	}
	return wrong
}

func optional(lead, s string) string {
	if s == "" {
		return ""
	}
	return lead + s
}

// fittingForm is what is written where nobody asked for anything.
func (a *app) fittingForm() string {
	if _, _, terminal := terminalSize(a.out); !terminal && a.env["GITHUB_ACTIONS"] == "true" {
		return formGitHub
	}
	return formText
}

func (a *app) writeForm(w io.Writer, form string, r *listing.Result, look view.Look) error {
	switch form {
	case formGitHub:
		return listing.WriteGitHub(w, r)
	case formJUnit:
		return listing.WriteJUnit(w, r)
	case formSARIF:
		return listing.WriteSARIF(w, r)
	case formJSON:
		return listing.WriteJSON(w, r)
	}
	return listing.WriteText(w, r, look)
}

// writeFile writes a report into its file.
func (a *app) writeFile(one validateOutput, r *listing.Result) error {
	var b bytes.Buffer
	if err := a.writeForm(&b, one.form, r, view.Look{}); err != nil {
		return err
	}
	return replaceFile(one.file, b.Bytes())
}

// appendSummary adds to the summary of a step, which other commands of the
// step may have begun. What cannot be written whole is taken back.
func appendSummary(name string, r *listing.Result) (err error) {
	// Nobody may read from a pipe, and opening it would wait for that.
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no file", name)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, reportMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := listing.WriteSummary(&b, r, listing.SummaryLimit-int(min(info.Size(), listing.SummaryLimit))); err != nil {
		return err
	}
	if _, err := f.Write(b.Bytes()); err != nil {
		return errors.Join(err, f.Truncate(info.Size()))
	}
	return nil
}
