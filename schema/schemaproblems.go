package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sort"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"go.yaml.in/yaml/v3"
)

// refuseURL keeps a $ref from ever opening a file or a connection.
func refuseURL(s string) (io.ReadCloser, error) {
	return nil, fmt.Errorf("schema %s is not embedded", s)
}

// maxProblems bounds what one document may answer with: a hostile one could
// have a hundred thousand wrong values. The rest is counted in the last one.
const maxProblems = 200

// schemaProblems turns the library's error tree into problems: the innermost
// failure only, at the place that has to change, in words about the document
// and not about the schema.
//
// It also says how many there are beyond those that it gives: looking up the
// place of each of a hundred thousand would take its time.
func (c *compiledKind) schemaProblems(err error, doc *document) (problems []Problem, more int) {
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return []Problem{{Line: 1, Rule: ruleType, Severity: SeverityError, Message: oneLine(err.Error())}}, 0
	}
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			if len(problems) >= maxProblems {
				more++
				return
			}
			found, unlisted := c.leaf(e, doc)
			problems = append(problems, found...)
			more += unlisted
			return
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(ve)
	return problems, more
}

// leaf gives the problems of one failed keyword.
func (c *compiledKind) leaf(e *jsonschema.ValidationError, doc *document) (problems []Problem, more int) {
	keys := instanceKeys(e.InstanceLocation)
	node, keyword := c.schemaNode(e.AbsoluteKeywordLocation)
	value := valueAt(doc.value, keys)
	switch keyword {
	case "additionalProperties":
		return c.unknownFields(keys, node, value, doc)
	case "required":
		return missingFields(keys, node, value, doc), 0
	}
	key, at, _ := doc.locate(keys)
	if strings.Contains(e.KeywordLocation, "/propertyNames") && key != nil {
		at = key
	}
	p := Problem{Line: at.Line, Column: at.Column, Pointer: joinPointer(keys...), Severity: SeverityError}
	describe(&p, keyword, node, value, at, lastKey(keys))
	if at == key && keyword == "pattern" {
		p.Hint = nameHint(node, key.Value)
	}
	return []Problem{p}, 0
}

func lastKey(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return keys[len(keys)-1]
}

// instanceKeys undoes what the library does to the keys of a location.
func instanceKeys(location string) []string {
	keys := splitPointer(location)
	for i, k := range keys {
		if plain, err := url.PathUnescape(k); err == nil {
			keys[i] = plain
		}
	}
	return keys
}

// schemaNode finds the schema that a keyword location belongs to.
func (c *compiledKind) schemaNode(location string) (node map[string]any, keyword string) {
	_, fragment, _ := strings.Cut(location, "#")
	keys := splitPointer(fragment)
	if len(keys) == 0 {
		return nil, ""
	}
	var at any = c.raw
	for _, k := range keys[:len(keys)-1] {
		if plain, err := url.PathUnescape(k); err == nil {
			k = plain
		}
		switch n := at.(type) {
		case map[string]any:
			at = n[k]
		case []any:
			i, err := strconv.Atoi(k)
			if err != nil || i < 0 || i >= len(n) {
				return nil, keys[len(keys)-1]
			}
			at = n[i]
		}
	}
	node, _ = at.(map[string]any)
	return node, keys[len(keys)-1]
}

func valueAt(v any, keys []string) any {
	for _, k := range keys {
		switch n := v.(type) {
		case map[string]any:
			v = n[k]
		case []any:
			i, err := strconv.Atoi(k)
			if err != nil || i < 0 || i >= len(n) {
				return nil
			}
			v = n[i]
		default:
			return nil
		}
	}
	return v
}

func (c *compiledKind) unknownFields(keys []string, node map[string]any, value any, doc *document) (problems []Problem, more int) {
	m, _ := value.(map[string]any)
	props, _ := node["properties"].(map[string]any)
	var known, unknown []string
	for k := range props {
		known = append(known, k)
	}
	for k := range m {
		if _, ok := props[k]; !ok {
			unknown = append(unknown, k)
		}
	}
	sort.Strings(known)
	sort.Strings(unknown)
	if len(unknown) > maxProblems {
		unknown, more = unknown[:maxProblems], len(unknown)-maxProblems
	}
	for _, k := range unknown {
		path := append(append([]string{}, keys...), k)
		key, at, _ := doc.locate(path)
		if key != nil {
			at = key
		}
		problems = append(problems, Problem{Line: at.Line, Column: at.Column, Pointer: joinPointer(path...),
			Rule: ruleUnknownField, Severity: SeverityError,
			Message: fmt.Sprintf("unknown field %s", quote(k)), Hint: c.fieldHint(k, known, props)})
	}
	return problems, more
}

func (c *compiledKind) fieldHint(k string, known []string, props map[string]any) string {
	if near := Nearest(k, known); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	for _, name := range known {
		if c.hasField(props[name], k) {
			return fmt.Sprintf("put it into %s", name)
		}
	}
	if len(known) == 0 {
		return ""
	}
	return "the fields here are " + strings.Join(known, ", ")
}

// hasField says whether the schema of a mapping has a field.
func (c *compiledKind) hasField(schema any, k string) bool {
	node, _ := schema.(map[string]any)
	if ref, ok := node["$ref"].(string); ok {
		defs, _ := c.raw["$defs"].(map[string]any)
		node, _ = defs[strings.TrimPrefix(ref, defsPrefix)].(map[string]any)
	}
	props, _ := node["properties"].(map[string]any)
	_, ok := props[k]
	return ok
}

func missingFields(keys []string, node map[string]any, value any, doc *document) []Problem {
	m, _ := value.(map[string]any)
	required, _ := node["required"].([]any)
	key, at, _ := doc.locate(keys)
	if key != nil {
		at = key
	}
	var problems []Problem
	for _, r := range required {
		name, _ := r.(string)
		if _, ok := m[name]; ok {
			continue
		}
		problems = append(problems, Problem{Line: at.Line, Column: at.Column, Pointer: joinPointer(keys...),
			Rule: ruleMissingField, Severity: SeverityError,
			Message: fmt.Sprintf("the field %s is missing", name), Hint: exampleHint(node, name)})
	}
	return problems
}

func exampleHint(node map[string]any, name string) string {
	props, _ := node["properties"].(map[string]any)
	field, _ := props[name].(map[string]any)
	examples, _ := field["examples"].([]any)
	if len(examples) == 0 {
		return ""
	}
	b, err := json.Marshal(examples[0])
	if err != nil || len(b) > maxQuoted {
		return ""
	}
	return fmt.Sprintf("for example %s: %s", name, b)
}

// describe fills in rule, message and hint for a value that failed a keyword.
func describe(p *Problem, keyword string, node map[string]any, value any, at *yaml.Node, name string) {
	switch keyword {
	case "type":
		p.Rule = ruleType
		p.Message = fmt.Sprintf("%s is wanted, not %s", wantedTypes(node), typeName(value))
		p.Hint = typeHint(node, value, at, name)
	case "const", "enum":
		p.Rule = ruleValue
		allowed := allowedValues(node)
		p.Message = fmt.Sprintf("%s is not allowed here; %s is", shown(value), strings.Join(allowed, " or "))
		if s, ok := value.(string); ok {
			if near := Nearest(s, allowed); near != "" {
				p.Hint = fmt.Sprintf("did you mean %s?", near)
			} else if len(allowed) == 1 {
				p.Hint = "write " + allowed[0]
			}
		}
	case "minimum", "maximum":
		p.Rule = ruleRange
		p.Message = fmt.Sprintf("%s is out of range; the %s is %s", shown(value), keyword, plain(node[keyword]))
		if keyword == "minimum" {
			p.Hint = noneHint(name)
		}
	case "pattern", "format":
		p.Rule = ruleForm
		p.Message = fmt.Sprintf("%s does not have the right form", shown(value))
		p.Hint = formHint(node, value, name)
		if at.Kind == yaml.ScalarNode && node["examples"] == nil {
			p.Message = fmt.Sprintf("%s does not have the right form", quote(at.Value))
		}
	case "minLength", "minItems", "minProperties":
		p.Rule = ruleSize
		p.Message = fmt.Sprintf("%s is too short; at least %s is wanted", shown(value), plain(node[keyword]))
		p.Hint = cmp.Or(noneHint(name), exampleOf(node, name))
	case "maxLength", "maxItems", "maxProperties":
		p.Rule = ruleSize
		p.Message = fmt.Sprintf("%s is too long; at most %s is allowed", shown(value), plain(node[keyword]))
	default:
		p.Rule = ruleValue
		p.Message = fmt.Sprintf("%s is not allowed here", shown(value))
	}
}

func shown(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case map[string]any, []any, nil:
		return typeName(v)
	default:
		return clip(plain(v))
	}
}

// plain is a value as people write it: 1000000, and not 1e+06.
func plain(v any) string {
	const most = 1e15 // above it, nobody counts digits
	if f, ok := v.(float64); ok && f > -most && f < most {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

func allowedValues(node map[string]any) []string {
	values, _ := node["enum"].([]any)
	if c, ok := node["const"]; ok {
		values = []any{c}
	}
	var out []string
	for _, v := range values {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

var typeWords = map[string]string{"string": "a string", "integer": "a whole number", "number": "a number",
	"boolean": "true or false", "object": "a mapping", "array": "a list", "null": "null"}

func nodeTypes(node map[string]any) []string {
	switch t := node["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var out []string
		for _, v := range t {
			if s, _ := v.(string); s != "null" {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}

func wantedTypes(node map[string]any) string {
	var words []string
	for _, t := range nodeTypes(node) {
		words = append(words, typeWords[t])
	}
	return strings.Join(words, " or ")
}
