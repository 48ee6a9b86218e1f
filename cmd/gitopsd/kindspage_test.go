package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/gitopsd/gitopsd/schema"
)

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
