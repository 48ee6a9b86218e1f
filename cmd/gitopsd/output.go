package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// results is standard output. It keeps the error of what could not be written,
// whether or not who printed has looked: half an answer is none.
type results struct {
	io.Writer
	failed error
}

// Write writes some of the results.
func (r *results) Write(p []byte) (int, error) {
	n, err := r.Writer.Write(p)
	if err != nil {
		r.failed = err
	}
	return n, err
}

// output is the -o flag: one of a few words.
type output struct {
	value string
	known []string
}

// newOutput takes the words that a command knows, the default first.
func newOutput(known ...string) *output {
	return &output{value: known[0], known: known}
}

func (o *output) bind(cmd *cobra.Command) {
	cmd.Flags().VarP(o, "output", "o", "output format: "+strings.Join(o.known, " or "))
	// The error is for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(cobraWords(o.known), cobra.ShellCompDirectiveNoFileComp))
}

func cobraWords(words []string) []cobra.Completion { return words }

// String is the present value.
func (o *output) String() string { return o.value }

// Type names the value in the help.
func (o *output) Type() string { return "format" }

// Set takes one of the known words.
func (o *output) Set(s string) error {
	if !slices.Contains(o.known, s) {
		return fmt.Errorf("want %s", strings.Join(o.known, " or "))
	}
	o.value = s
	return nil
}
