package main

import (
	"fmt"
	"io"
	"slices"
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

// ruleList is the JSON of gitopsd validate --explain.
type ruleList struct {
	schema.TypeMeta
	Rules []schema.Rule `json:"rules"`
}

// explainRule prints what a rule wants, with its examples, or the list of all.
func (a *app) explainRule(name string, asJSON bool) error {
	rules := schema.Rules()
	if name != everyRule {
		rules = slices.DeleteFunc(rules, func(r schema.Rule) bool { return r.Name != name })
	}
	switch {
	case len(rules) == 0:
		err := usagef("there is no rule %q", clean(name))
		if near := nearest(name, ruleNames()); near != "" {
			return withHint(err, "did you mean %s?", near)
		}
		return withHint(err, "gitopsd validate --explain %s names all rules", everyRule)
	case asJSON:
		return writeJSON(a.out, ruleList{schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "RuleList"}, rules})
	case name != everyRule:
		return a.writeRule(rules[0])
	}
	table := view.Table{Head: []string{"RULE", "SEVERITY", "WHAT HOLDS"}}
	for _, r := range rules {
		table.Row(r.Name, string(r.Severity), r.Summary)
	}
	return table.Write(a.out, a.look())
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
