package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

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
		"` and `" + string(planner.Upgrade.ForGit()) + "` for `" + string(planner.Upgrade) + "`.\n")
	return b.String()
}

func rulesPage() string {
	var b strings.Builder
	b.WriteString("# Rules\n\nEach problem that `gitopsd validate` reports names its rule. The names are stable. A warning does not make a fleet invalid.\n\n| rule | severity | what holds |\n|--|--|--|\n")
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
		"3 | the content has problems, a sweep stopped, or a plan is not empty (`plan --exit-code`)"} {
		fmt.Fprintf(&b, "| %s |\n", row)
	}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Runnable() && c.HasParent() && !c.HasSubCommands() && c.Name() != "help" {
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
	if usages := c.NonInheritedFlags().FlagUsages(); usages != "" {
		fmt.Fprintf(b, "\n```text\n%s```\n", usages)
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

// kindDocs writes the page of the kinds.
type kindDocs struct {
	b      strings.Builder
	orders [][]string // of the properties of every object, as they are written
	defs   map[string]any
}

// kindsPage documents every field from the published schemas.
func kindsPage() (string, error) {
	d := &kindDocs{}
	files, err := filepath.Glob(filepath.Join("..", "..", "schema", "schemas", "*.json"))
	if err != nil {
		return "", err
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		if err := d.learnOrder(json.NewDecoder(bytes.NewReader(data)), ""); err != nil {
			return "", fmt.Errorf("%s: %w", f, err)
		}
	}
	d.b.WriteString("# Kinds\n\nEvery document has `apiVersion: " + schema.APIVersion + "` and a `kind`. Unknown fields are refused. `gitopsd schema KIND` prints\nthe JSON Schema that this page is made from.\n\n")
	for _, k := range schema.Kinds() {
		fmt.Fprintf(&d.b, "- [%s](#%s)\n", k, strings.ToLower(string(k)))
	}
	d.b.WriteString("- [the desired spec](#the-desired-spec)\n")
	var spec map[string]any
	for _, k := range schema.Kinds() {
		tree, err := published(k)
		if err != nil {
			return "", err
		}
		d.defs, _ = tree["$defs"].(map[string]any)
		if s, ok := d.defs["spec"].(map[string]any); ok && spec == nil {
			spec = map[string]any{"def": s, "defs": d.defs}
		}
		fmt.Fprintf(&d.b, "\n## %s\n\n", k)
		d.head(tree)
		d.table(tree)
	}
	d.b.WriteString("\n## The desired spec\n\n")
	if spec == nil {
		return "", fmt.Errorf("no kind has a definition named spec")
	}
	d.defs, _ = spec["defs"].(map[string]any)
	def, _ := spec["def"].(map[string]any)
	d.head(def)
	d.table(def)
	return d.b.String(), nil
}

func published(k schema.Kind) (map[string]any, error) {
	data, err := schema.JSONSchema(k)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	return tree, json.Unmarshal(data, &tree)
}

// learnOrder notes in which order the properties of each object are written,
// which a map forgets.
func (d *kindDocs) learnOrder(dec *json.Decoder, key string) error {
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	var names []string
	for dec.More() {
		child := ""
		if delim == '{' {
			name, err := dec.Token()
			if err != nil {
				return err
			}
			child, _ = name.(string)
			names = append(names, child)
		}
		if err := d.learnOrder(dec, child); err != nil {
			return err
		}
	}
	if key == "properties" {
		d.orders = append(d.orders, names)
	}
	_, err = dec.Token() // the closing one
	return err
}

// ordered gives the names of properties in the order of the document that
// has all of them.
func (d *kindDocs) ordered(properties map[string]any) []string {
	for _, order := range d.orders {
		var names []string
		for _, name := range order {
			if _, ok := properties[name]; ok {
				names = append(names, name)
			}
		}
		if len(names) == len(properties) {
			return names
		}
	}
	var names []string
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (d *kindDocs) head(node map[string]any) {
	fmt.Fprintf(&d.b, "%v\n", node["description"])
	if examples, _ := node["examples"].([]any); len(examples) > 0 {
		if data, err := yaml.Marshal(examples[0]); err == nil {
			fmt.Fprintf(&d.b, "\n```yaml\n%s```\n", data)
		}
	}
}

func (d *kindDocs) table(node map[string]any) {
	d.b.WriteString("\n| field | type | meaning | example |\n|--|--|--|--|\n")
	d.rows("", node, 0)
}

// deepest is far below any nesting of the schemas; it ends a definition that
// came to contain itself.
const deepest = 12

func (d *kindDocs) rows(prefix string, node map[string]any, depth int) {
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	for _, name := range d.ordered(properties) {
		child, _ := properties[name].(map[string]any)
		path := prefix + name
		if prefix == "" && (name == "apiVersion" || name == "kind") && depth == 0 {
			continue
		}
		target := d.resolve(child)
		kind := typeText(target)
		if slices.Contains(required, any(name)) {
			kind += ", required"
		}
		meaning := fmt.Sprint(child["description"])
		link := d.specLink(child)
		if link != "" {
			kind = link
		}
		fmt.Fprintf(&d.b, "| `%s` | %s | %s | %s |\n", path, kind, cellText(meaning), example(child))
		if link == "" && depth < deepest {
			d.below(path, target, depth+1)
		}
	}
}

// below writes the rows of what an object, a list or a map holds.
func (d *kindDocs) below(path string, node map[string]any, depth int) {
	if _, ok := node["properties"]; ok {
		d.rows(path+".", node, depth)
	}
	if items, ok := node["items"].(map[string]any); ok {
		if items = d.resolve(items); items["properties"] != nil {
			d.rows(path+"[].", items, depth)
		}
	}
	if values, ok := node["additionalProperties"].(map[string]any); ok {
		if values = d.resolve(values); values["properties"] != nil {
			d.rows(path+".<name>.", values, depth)
		}
	}
	for _, way := range []string{"oneOf", "anyOf"} {
		options, _ := node[way].([]any)
		for _, o := range options {
			if option, ok := o.(map[string]any); ok {
				d.below(path, d.resolve(option), depth)
			}
		}
	}
}

func (d *kindDocs) resolve(node map[string]any) map[string]any {
	ref, ok := node["$ref"].(string)
	if !ok {
		return node
	}
	target, _ := d.defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	return target
}

// specLink is a link where a field holds a desired spec or a part of one.
func (d *kindDocs) specLink(node map[string]any) string {
	ref, _ := node["$ref"].(string)
	switch strings.TrimPrefix(ref, "#/$defs/") {
	case "spec":
		return "[a desired spec](#the-desired-spec)"
	case "partialSpec":
		return "[a part of a desired spec](#the-desired-spec)"
	case "assignedSpec":
		return "[a desired spec](#the-desired-spec) with `payload` in place of `source`"
	}
	return ""
}

func typeText(node map[string]any) string {
	for _, way := range []string{"oneOf", "anyOf"} {
		if options, ok := node[way].([]any); ok {
			var names []string
			for _, o := range options {
				option, _ := o.(map[string]any)
				if name := typeText(option); name != "" && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
			return strings.Join(names, " or ")
		}
	}
	if words, ok := node["enum"].([]any); ok {
		var names []string
		for _, w := range words {
			if w != nil {
				names = append(names, fmt.Sprintf("`%v`", w))
			}
		}
		return strings.Join(names, ", ")
	}
	if word, ok := node["const"]; ok {
		return fmt.Sprintf("`%v`", word)
	}
	switch t := node["type"].(type) {
	case string:
		switch {
		case t == "array":
			return "list"
		case t == "object" && node["properties"] == nil:
			return "map"
		}
		return t
	case []any:
		var names []string
		for _, n := range t {
			if n != "null" {
				names = append(names, fmt.Sprint(n))
			}
		}
		return strings.Join(names, " or ")
	}
	return ""
}

// example is the first example on one line.
func example(node map[string]any) string {
	examples, _ := node["examples"].([]any)
	if len(examples) == 0 {
		return ""
	}
	data, err := json.Marshal(examples[0])
	if err != nil {
		return ""
	}
	const longest = 60 // a longer one makes the table unreadable; the kind's own example shows it
	if len(data) > longest {
		return ""
	}
	return "`" + cellText(string(data)) + "`"
}
