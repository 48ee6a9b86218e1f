package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"sort"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Encode writes a document as YAML, deterministic byte for byte: fields in
// the order of their Go type (apiVersion, kind and metadata first), maps
// sorted, times in UTC with seconds. Every string that a YAML 1.1 or 1.2
// reader could take for something else is quoted, so [Decode] gives back what
// was encoded; a document that Decode would refuse is an error here. The spec
// of an assignment is only looked at as [DecodeStatus] does: it was checked
// when it was rendered, which may have been under other rules.
//
// It goes through the node writer of yaml/v3, because that leaves the order
// and the quoting to us; writers on top of YAML 1.1 leave "0o17" unquoted.
func Encode(v any) ([]byte, error) {
	root, err := yamlNode(reflect.ValueOf(v))
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	if err := readable(reflect.TypeOf(v), root, out.Bytes()); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return out.Bytes(), nil
}

// readable says why a document could not be read back. What was written and
// cannot be read would be lost, or keep its reader from going on, long after
// whoever wrote it could have done something else. The tree is checked and not
// the text: parsing is most of the cost, and gives the same tree.
func readable(t reflect.Type, root *yaml.Node, text []byte) error {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct || compiledKinds[kindOf(t)] == nil {
		return nil // no document
	}
	if len(text) > maxDocument {
		return fmt.Errorf("it has %d bytes, more than the %d that are read", len(text), maxDocument)
	}
	if 2*len(text) > maxWeight && weight(text) > maxWeight { // no byte weighs more than 2
		return fmt.Errorf("it holds more values, or more of what divides them, than are read")
	}
	r := &reading{doc: &document{root: root}}
	r.doc.value = r.convert(root, nil, 0)
	problems := r.problems
	if len(problems) == 0 {
		problems = decodePassedOn(r.doc, kindOf(t), reflect.New(t).Elem())
	}
	for i := range problems {
		if p := &problems[i]; p.Severity == SeverityError {
			return fmt.Errorf("it could not be read back: %s: %s", clip(p.Pointer), p.Message)
		}
	}
	return nil
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	timeType      = reflect.TypeFor[time.Time]()
	numberType    = reflect.TypeFor[json.Number]()
)

func yamlNode(v reflect.Value) (*yaml.Node, error) {
	if !v.IsValid() {
		return plainNode("null"), nil
	}
	t := v.Type()
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		if v.IsNil() {
			return plainNode("null"), nil
		}
		return yamlNode(v.Elem())
	}
	switch {
	case t == timeType:
		at, _ := v.Interface().(time.Time)
		return yamlString(at.UTC().Format(time.RFC3339)), nil
	case t == numberType:
		return plainNode(yamlNumber(v.String())), nil
	case t.Implements(jsonMarshaler):
		return marshaledNode(v)
	}
	switch t.Kind() {
	case reflect.String:
		return yamlString(v.String()), nil
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return plainNode(fmt.Sprint(v.Interface())), nil
	case reflect.Float64:
		b, err := json.Marshal(v.Float())
		return plainNode(yamlNumber(string(b))), err
	case reflect.Struct:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		if err := addFields(n, v); err != nil {
			return nil, err
		}
		return flowIfEmpty(n), nil
	case reflect.Map:
		return mapNode(v)
	case reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for i := range v.Len() {
			c, err := yamlNode(v.Index(i))
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, c)
		}
		return flowIfEmpty(n), nil
	}
	return nil, fmt.Errorf("no YAML form for %s", t)
}

// marshaledNode is for the types that write themselves as a scalar or a small
// mapping ([Duration], [IntOrPercent], [Confirm]).
func marshaledNode(v reflect.Value) (*yaml.Node, error) {
	b, err := json.Marshal(v.Interface())
	if err != nil {
		return nil, err
	}
	var plain any
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&plain); err != nil {
		return nil, err
	}
	return yamlNode(reflect.ValueOf(plain))
}

func addFields(n *yaml.Node, v reflect.Value) error {
	all := fieldsOf(v.Type())
	for i := range all {
		f := &all[i]
		value := v.Field(f.index)
		if f.embedded {
			if err := addFields(n, value); err != nil {
				return err
			}
			continue
		}
		if f.name == "" || f.leftOut(value) {
			continue
		}
		c, err := yamlNode(value)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		n.Content = append(n.Content, f.key, c)
	}
	return nil
}

func mapNode(v reflect.Value) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	keys := v.MapKeys()
	sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
	for _, k := range keys {
		c, err := yamlNode(v.MapIndex(k))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", clip(k.String()), err)
		}
		n.Content = append(n.Content, yamlString(k.String()), c)
	}
	return flowIfEmpty(n), nil
}

// flowIfEmpty writes empty collections as {} and []; a list of the contract
// is never null, so a nil one is [] too.
func flowIfEmpty(n *yaml.Node) *yaml.Node {
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	return n
}

// yamlNumber makes sure that a float stays one: JSON writes 1e+21, which
// YAML 1.1 readers take for a string.
func yamlNumber(s string) string {
	if i := strings.IndexAny(s, "eE"); i >= 0 && !strings.Contains(s, ".") {
		return s[:i] + ".0" + s[i:]
	}
	return s
}

func plainNode(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

func yamlString(s string) *yaml.Node {
	// encoding/json would write the same replacement into a digest.
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: strings.ToValidUTF8(s, "\uFFFD")}
	switch {
	case plainIsSafe(n.Value):
	case literalIsSafe(n.Value):
		n.Style = yaml.LiteralStyle
	default:
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

var (
	plainForm = regexp.MustCompile(`^[A-Za-z/_][A-Za-z0-9_./@+,=:()*%-]*( [A-Za-z0-9_./@+,=:()*%-]+)*$`)
	// What YAML 1.1 readers take for booleans and null, whatever the case.
	reservedWords = map[string]bool{"y": true, "n": true, "yes": true, "no": true, "on": true, "off": true,
		"true": true, "false": true, "null": true}
)

// plainIsSafe is narrower than YAML: what it lets through no reader of any
// version takes for anything but this string.
func plainIsSafe(s string) bool {
	return plainForm.MatchString(s) && !strings.Contains(s, ": ") && !strings.HasSuffix(s, ":") &&
		!reservedWords[strings.ToLower(s)]
}

// literalIsSafe says whether a block scalar gives the text back and reads
// better than quotes.
func literalIsSafe(s string) bool {
	if !strings.Contains(s, "\n") || s[0] == '\n' || s[0] == ' ' || strings.HasSuffix(s, "\n\n") {
		return false
	}
	for line := range strings.SplitSeq(s, "\n") {
		if strings.HasPrefix(line, "\t") || strings.HasSuffix(line, " ") || strings.HasSuffix(line, "\t") {
			return false
		}
	}
	for _, c := range s {
		if c != '\n' && c != '\t' && !unicode.IsPrint(c) {
			return false
		}
	}
	return true
}
