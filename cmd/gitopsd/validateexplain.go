package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/listing"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

// everyRule is what --explain takes for the list of them.
const everyRule = "list"

func ruleNames() []string {
	names := []string{everyRule}
	for _, r := range schema.Rules() {
		names = append(names, r.Name)
	}
	return names
}

// completeRule offers the rules. They are read when they are asked for: the
// commands are made at each start of the program.
func completeRule(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return ruleNames(), cobra.ShellCompDirectiveNoFileComp
}

// explainRule prints what a rule wants, with its examples, or the list of all.
func (a *app) explainRule(name string) error {
	if name == everyRule {
		table := view.Table{Head: []string{"RULE", "SEVERITY", "WHAT HOLDS"}}
		for _, r := range schema.Rules() {
			table.Row(r.Name, string(r.Severity), r.Summary)
		}
		return table.Write(a.out, a.look())
	}
	for _, r := range schema.Rules() {
		if r.Name == name {
			return a.writeRule(r)
		}
	}
	err := usagef("there is no rule %q", clean(name))
	if near := nearest(name, ruleNames()); near != "" {
		return withHint(err, "did you mean %s?", near)
	}
	return withHint(err, "gitopsd validate --explain %s names all rules", everyRule)
}

func (a *app) writeRule(r schema.Rule) error {
	var b strings.Builder
	width := a.look().Width
	fmt.Fprintf(&b, "%s (%s)\n\n", r.Name, r.Severity)
	paragraph := func(text string) {
		b.WriteString(strings.Join(view.Wrap(text, width), "\n") + "\n")
	}
	paragraph(r.Summary)
	if r.Advice {
		paragraph("Only gitopsd validate looks at it, not the daemon: it depends on today's date or on how many devices there are.")
	}
	for _, example := range []struct{ head, files string }{{"Wrong", r.Wrong}, {"Right", r.Right}} {
		files := strings.TrimSpace(example.files)
		if inner, described := strings.CutPrefix(files, "<"); described {
			b.WriteString("\n")
			paragraph(example.head + ": " + strings.TrimSuffix(inner, ">"))
			continue
		}
		fmt.Fprintf(&b, "\n%s:\n", example.head)
		for line := range strings.SplitSeq(files, "\n") {
			b.WriteString(strings.TrimRight("  "+line, " ") + "\n")
		}
	}
	fmt.Fprintf(&b, "\n%s\n", listing.RuleURL(r.Name))
	_, err := io.WriteString(a.out, b.String())
	return err
}
