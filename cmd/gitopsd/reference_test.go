package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

var update = flag.Bool("update", false, "write docs/reference again")

// TestReference keeps docs/reference equal to what the code says. With
// -update it writes the pages.
func TestReference(t *testing.T) {
	kinds, err := kindsPage()
	if err != nil {
		t.Fatal(err)
	}
	for name, page := range map[string]string{
		"README.md":   referencePage(),
		"commands.md": commandsPage(),
		"kinds.md":    kinds,
		"codes.md":    codesPage(),
		"rules.md":    rulesPage(),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("..", "..", "docs", "reference", name)
			if *update {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			have, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(have) != page {
				t.Errorf("%s is not what the code says; go test ./cmd/gitopsd -run TestReference -update writes it again", path)
			}
		})
	}
}

// The help is the first documentation that anybody reads.
func TestEveryCommandExplainsItself(t *testing.T) {
	root := newRoot(&app{out: io.Discard, err: io.Discard})
	seen := 0
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if c.Name() == "help" || c.HasParent() && !acts(c) && c.Name() != "show" {
			return
		}
		seen++
		const columns = 80 // of the narrowest terminal that people have
		var usage strings.Builder
		if err := usageText(&usage, c, columns); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{c.Long, usage.String()} {
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > columns {
					t.Errorf("%s: a line of its help has %d columns: %s", c.CommandPath(), n, line)
				}
			}
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: short help %q", c.CommandPath(), c.Short)
		}
		if !strings.Contains(c.Example, "gitopsd "+strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), "gitopsd"), " ")) {
			t.Errorf("%s: no example of itself in %q", c.CommandPath(), c.Example)
		}
		if c.HasParent() && c.Parent() == root && c.GroupID == "" {
			t.Errorf("%s stands in no group of the help", c.CommandPath())
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no help", c.CommandPath(), f.Name)
			}
		})
	}
	walk(root)
	const least = 15
	if seen < least {
		t.Errorf("looked at %d commands, want at least %d", seen, least)
	}
}

func referencePage() string {
	return `# Reference

These pages are made from the code, and a test fails when they differ from it.

- [Commands](commands.md): every subcommand with its flags, and the settings of the daemon and the agent
- [Kinds](kinds.md): every kind of document with its fields
- [Rules](rules.md): the names of the checks that ` + "`gitopsd validate`" + ` makes
- [Codes](codes.md): the verdicts on devices
`
}

func codesPage() string {
	var b strings.Builder
	b.WriteString(`# Codes

Every device always has one verdict with one code: the first check that matches, in this order. The kind says what it asks
of a person: *attention* somebody must do something, *wait* it goes on by itself, *leave* nothing to do, on purpose,
*in flight* it is under way, *go* it is upgraded now.

| code | kind | meaning |
|--|--|--|
`)
	for _, c := range planner.Codes() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.Code, c.Kind, cellText(c.Meaning))
	}
	b.WriteString("\nA device's status file says `" + string(planner.FleetGuard.ForGit()) + "` for `" + string(planner.FleetGuard) +
		"` and `" + string(planner.CodeBudget) + "`, and `" + string(planner.Upgrade.ForGit()) + "` for `" + string(planner.Upgrade) + "`.\n")
	return b.String()
}

func rulesPage() string {
	var b strings.Builder
	b.WriteString("# Rules\n\nEach problem that `gitopsd validate` reports names its rule. The names are stable. A warning does not make a fleet invalid.\n`gitopsd validate --explain RULE` shows one of these in a terminal.\n\n| rule | severity | what holds |\n|--|--|--|\n")
	rules := schema.Rules()
	for _, r := range rules {
		severity := r.Severity
		if severity == "" {
			severity = schema.SeverityError
		}
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s |\n", r.Name, r.Name, severity, cellText(r.Summary))
	}
	for _, r := range rules {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n", r.Name, strings.TrimSuffix(r.Summary, "."))
		if r.Advice {
			b.WriteString("\nOnly `gitopsd validate` looks at it, not the daemon: it depends on today's date or on how many devices there are.\n")
		}
		writeFiles(&b, "Wrong", r.Wrong)
		writeFiles(&b, "Right", r.Right)
	}
	return b.String()
}

// writeFiles shows what a rule refuses or accepts: files, or a description of
// them in angle brackets where they would be too large.
func writeFiles(b *strings.Builder, head, files string) {
	files = strings.TrimSpace(files)
	if files == "" {
		return
	}
	if inner, ok := strings.CutPrefix(files, "<"); ok && strings.HasSuffix(inner, ">") {
		fmt.Fprintf(b, "\n%s: %s.\n", head, strings.TrimSuffix(inner, ">"))
		return
	}
	fmt.Fprintf(b, "\n%s:\n\n```yaml\n%s\n```\n", head, strings.ReplaceAll(files, "```", "` ` `"))
}

// cellText is a text in a cell of a table.
func cellText(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\n", " "), "|", "\\|")
}

func commandsPage() string {
	a := &app{out: io.Discard, err: io.Discard, build: build{Version: "v0.0.0"}}
	root := newRoot(a)
	var b strings.Builder
	b.WriteString("# Commands\n\n" + root.Long + `

Results go to standard output, narration to standard error. JSON documents carry ` + "`apiVersion` and `kind`" + `; their lists
are never null, and fields are only added. Exit codes:

| code | meaning |
|--|--|
`)
	for _, row := range []string{"0 | fine", "1 | it could not be done", "2 | wrong usage: arguments, flags, environment or configuration file",
		"3 | the content has problems, a sweep stopped, a plan is not empty (`plan --exit-code`), or a device differs or needs a look"} {
		fmt.Fprintf(&b, "| %s |\n", row)
	}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.HasParent() && acts(c) && c.Name() != "help" {
			writeCommand(&b, c)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	b.WriteString("\n## Settings of gitopsd serve\n")
	writeSettings(&b, serveSettings().list)
	b.WriteString("\n## Settings of gitopsd agent\n")
	writeSettings(&b, agentSettings().list)
	return b.String()
}

func writeCommand(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n", c.CommandPath())
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	fmt.Fprintf(b, "%s\n\n```text\n%s\n```\n", long, c.UseLine())
	if c.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", unindent(c.Example))
	}
	c.InitDefaultHelpFlag()
	if flags := flagsText(c, 0); flags != "" {
		fmt.Fprintf(b, "\n```text\n%s```\n", strings.TrimPrefix(flags, "\n"))
	}
}

func unindent(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, "  ")
	}
	return strings.Join(lines, "\n")
}

func writeSettings[S any](b *strings.Builder, list []setting[S]) {
	b.WriteString("\nA flag wins over the environment, that over the file, and that over the default.\n\n| flag | environment | file, below `spec` | default |\n|--|--|--|--|\n")
	for _, s := range list {
		name, env := "", ""
		if s.flag != "" {
			name, env = "`--"+s.flag+"`", "`"+variable(s.flag)+"`"
		}
		fmt.Fprintf(b, "| %s | %s | `%s` | %s |\n", name, env, s.field, s.def)
	}
}
