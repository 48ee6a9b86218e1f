package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Limits of one document. They are far above what a person writes and far
// below what costs a daemon its memory: a node of the parser takes about 200
// bytes.
const (
	maxDocument = 1 << 20 // bytes
	maxNesting  = 64      // levels; the deepest kind has 9
	maxNodes    = 100_000 // scalars, sequences and mappings
	maxPathKey  = 4096    // bytes, of a key that is a path
	maxPlainKey = 320     // bytes, of any other; the longest is a label with its prefix
	maxExactInt = 1<<53 - 1
)

// document is one strictly read YAML document: the JSON instance that schema,
// decoder and renderer share, and the node tree that knows the positions. It
// is not safe for concurrent use.
type document struct {
	value any // map[string]any, []any, string, bool, int64, float64 or nil
	data  []byte
	root  *yaml.Node // nil until a position is asked for, where nobody needed it before: see nodes
	odd   []oddNumber
	index map[*yaml.Node]map[string]int // see member; nil = nothing looked for yet
	maps  *scratch                      // for what is made of the value
}

// oddNumber is an unquoted number whose value depends on the reader, such as
// 0644: a problem unless another one already stands at the same place.
type oddNumber struct {
	node *yaml.Node
	at   *trail
}

// trail is the way to a node. Pointers are only written out for problems:
// writing one for every node would multiply long keys with many nodes.
type trail struct {
	up  *trail
	key string
}

func (t *trail) pointer() string {
	var keys []string
	for ; t != nil; t = t.up {
		keys = append(keys, t.key)
	}
	slices.Reverse(keys)
	return joinPointer(keys...)
}

// reading collects the problems of one document while it is converted.
type reading struct {
	doc      *document
	problems []Problem
	more     int // problems beyond maxProblems
	nodes    int
}

// readDocument reads YAML 1.2 core. The document is nil where an error keeps
// it from having one value that everybody agrees on.
func readDocument(data []byte) (doc *document, problems []Problem) {
	if len(data) > maxDocument {
		return nil, []Problem{{Line: 1, Rule: ruleTooLarge, Severity: SeverityError,
			Message: fmt.Sprintf("the document has %d bytes, more than the %d that are read", len(data), maxDocument),
			Hint:    "put large content into a file of its own and name it as source"}}
	}
	if value, plain := tryPlain(data, nil); plain {
		return &document{value: value, data: data}, nil
	}
	if p, bad := notUTF8(data); bad {
		return nil, []Problem{p}
	}
	if weight(data) > maxWeight {
		return nil, []Problem{{Line: 1, Rule: ruleTooLarge, Severity: SeverityError,
			Message: fmt.Sprintf("the document has more commas, colons, brackets and line ends than could belong to %d values", maxNodes),
			Hint:    "split it, or put large content into a file of its own and name it as source"}}
	}
	return parseDocument(data)
}

// tryPlain is readPlain for hostile input: should that panic, the parser decides.
func tryPlain(data []byte, maps *scratch) (value any, ok bool) {
	defer func() {
		if recover() != nil {
			value, ok = nil, false
		}
	}()
	return readPlain(data, maps)
}

// nodes is the node tree of a document.
func (d *document) nodes() *yaml.Node {
	if d.root != nil {
		return d.root
	}
	d.root = &yaml.Node{Line: 1, Column: 1}
	if parsed, _ := parseDocument(d.data); parsed != nil {
		d.root = parsed.root
	}
	return d.root
}

// parseDocument is readDocument by way of the parser.
func parseDocument(data []byte) (doc *document, problems []Problem) {
	// The parser is written for cooperative input; its panics must not take
	// the daemon down with one bad file.
	defer func() {
		if r := recover(); r != nil {
			doc, problems = nil, []Problem{{Line: 1, Rule: ruleSyntax, Severity: SeverityError,
				Message: fmt.Sprintf("the YAML parser gave up: %v", r)}}
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var root yaml.Node
	switch err := dec.Decode(&root); {
	case errors.Is(err, io.EOF):
		return nil, []Problem{emptyDocument(1)}
	case err != nil:
		return nil, []Problem{syntaxProblem(err, data, 0)}
	}
	r := &reading{doc: &document{data: data, root: &root}}
	if len(root.Content) != 1 || isEmptyNode(root.Content[0]) {
		r.problems = append(r.problems, emptyDocument(max(root.Line, 1)))
	} else {
		r.doc.root = root.Content[0]
		r.doc.value = r.convert(root.Content[0], nil, 0)
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		r.problems = append(r.problems, syntaxProblem(err, data, 1))
	default:
		r.problems = append(r.problems, Problem{Line: max(second.Line, 1), Column: second.Column, Rule: ruleMultiple, Severity: SeverityError,
			Message: "a second document begins here; a file holds exactly one",
			Hint:    "move it to a file of its own"})
	}
	if r.more > 0 {
		r.problems = append(r.problems, unlisted(r.more))
	}
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	return r.doc, nil
}

// What is said of anchors, aliases and tags names none: a password that begins
// with one of these characters reads as the name of one, in whatever field.
const (
	noAnchor   = "there is no anchor for this alias"
	anchorHint = "write the value out where it is needed, or quote a text that begins with &"
	aliasHint  = "write the value out where it is needed, or quote a text that begins with *"
	tagHint    = "quote what is to be a string"
)

func emptyDocument(line int) Problem {
	return Problem{Line: line, Rule: ruleEmpty, Severity: SeverityError,
		Message: "the document is empty", Hint: "fill it in, or delete the file"}
}

func isEmptyNode(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Style == 0 && n.Value == "" && n.Anchor == ""
}

func (r *reading) problem(n *yaml.Node, at *trail, rule, msg, hint string) {
	if len(r.problems) >= maxProblems {
		r.more++
		return
	}
	r.problems = append(r.problems, Problem{Line: n.Line, Column: n.Column, Pointer: at.pointer(),
		Rule: rule, Severity: SeverityError, Message: msg, Hint: hint})
}

// convert gives the JSON value of a node. After the node budget is used up it
// stops at once, so that its cost is bounded by the budget.
func (r *reading) convert(n *yaml.Node, at *trail, depth int) any {
	r.nodes++
	if r.nodes > maxNodes {
		if r.nodes == maxNodes+1 {
			r.problem(n, nil, ruleTooLarge, fmt.Sprintf("the document has more than %d values", maxNodes), "split it")
		}
		return nil
	}
	if depth > maxNesting {
		r.problem(n, at, ruleTooDeep, fmt.Sprintf("nested deeper than %d levels", maxNesting), "")
		return nil
	}
	if n.Anchor != "" && n.Kind != yaml.AliasNode {
		r.problem(n, at, ruleAlias, "anchors are not allowed", anchorHint)
	}
	if n.Style&yaml.TaggedStyle != 0 {
		r.problem(n, at, ruleTag, "tags are not allowed", tagHint)
	}
	switch n.Kind {
	case yaml.MappingNode:
		return r.mapping(n, at, depth)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			list[i] = r.convert(c, &trail{at, strconv.Itoa(i)}, depth+1)
		}
		return list
	case yaml.AliasNode:
		r.problem(n, at, ruleAlias, "aliases are not allowed", aliasHint)
		return nil
	default:
		return r.scalar(n, at)
	}
}

func (r *reading) mapping(n *yaml.Node, at *trail, depth int) any {
	m := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if r.nodes > maxNodes {
			return m
		}
		k, v := n.Content[i], n.Content[i+1]
		key, ok := r.key(k, at)
		if !ok {
			continue
		}
		below := &trail{at, key}
		if _, dup := m[key]; dup {
			first := k.Line
			if len(r.problems) < maxProblems {
				first = firstKeyLine(n, key)
			}
			r.problem(k, below, ruleDuplicate, fmt.Sprintf("the key %s is here in line %d and before in line %d",
				quote(key), k.Line, first), "keep one of the two")
			continue
		}
		m[key] = r.convert(v, below, depth+1)
	}
	return m
}

func firstKeyLine(n *yaml.Node, key string) int {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i].Line
		}
	}
	return 0
}

func (r *reading) key(k *yaml.Node, at *trail) (string, bool) {
	r.nodes++
	switch {
	case k.Kind == yaml.AliasNode || k.Anchor != "":
		r.problem(k, at, ruleAlias, "anchors and aliases are not allowed", "write the key out")
	case k.Kind != yaml.ScalarNode:
		r.problem(k, at, ruleKey, "a key must be a string, not a list or a mapping", "quote it where the braces or brackets are meant literally")
	case k.Style&yaml.TaggedStyle != 0:
		r.problem(k, at, ruleTag, "tags are not allowed", tagHint)
	case k.Style == 0 && k.Value == "<<":
		r.problem(k, at, ruleAlias, "merge keys are not allowed", "write the fields out")
	case k.Style == 0 && !plainIsString(k.Value):
		r.problem(k, at, ruleKey, fmt.Sprintf("the key %s is not a string", clip(k.Value)), "quote it: "+quote(k.Value))
	case len(k.Value) > maxPathKey, len(k.Value) > maxPlainKey && k.Value[0] != '/':
		r.problem(k, at, ruleTooLarge, fmt.Sprintf("a key has %d bytes; a path may have %d, any other %d", len(k.Value), maxPathKey, maxPlainKey), "")
	default:
		return k.Value, true
	}
	return "", false
}

// The forms of YAML 1.2's core schema (yaml.org/spec/1.2.2, 10.3.2).
var (
	coreInt   = regexp.MustCompile(`^[-+]?[0-9]+$`)
	coreOctal = regexp.MustCompile(`^0o[0-7]+$`)
	coreHex   = regexp.MustCompile(`^0x[0-9a-fA-F]+$`)
	coreFloat = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	coreInf   = regexp.MustCompile(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

func isCoreNull(s string) bool {
	return s == "" || s == "~" || s == "null" || s == "Null" || s == "NULL"
}

func coreBool(s string) (value, ok bool) {
	switch s {
	case "true", "True", "TRUE":
		return true, true
	case "false", "False", "FALSE":
		return false, true
	}
	return false, false
}

func looksNumeric(s string) bool {
	if s == "" {
		return false
	}
	if c := s[0]; c != '-' && c != '+' && c != '.' && (c < '0' || c > '9') {
		return false
	}
	return coreInt.MatchString(s) || coreOctal.MatchString(s) || coreHex.MatchString(s) || coreFloat.MatchString(s) || coreInf.MatchString(s)
}

// plainIsString says whether an unquoted scalar is a string.
func plainIsString(s string) bool {
	_, b := coreBool(s)
	return !b && !isCoreNull(s) && !looksNumeric(s)
}

func (r *reading) scalar(n *yaml.Node, at *trail) any {
	s := n.Value
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return s
	}
	if isCoreNull(s) {
		return nil
	}
	if b, ok := coreBool(s); ok {
		return b
	}
	if !looksNumeric(s) {
		return s
	}
	if coreInf.MatchString(s) {
		r.problem(n, at, ruleNumber, fmt.Sprintf("%s is no number that every reader has", clip(s)), "quote it: "+quote(s))
		return int64(0)
	}
	if !coreFloat.MatchString(s) || hasLeadingZero(s) { // octal, hexadecimal, 0644
		r.doc.odd = append(r.doc.odd, oddNumber{n, at})
		return int64(0)
	}
	if coreInt.MatchString(s) {
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || v > maxExactInt || v < -maxExactInt {
			r.problem(n, at, ruleNumber, fmt.Sprintf("the number %s is too large to be exact everywhere", clip(s)), "quote it: "+quote(clip(s)))
			return int64(0)
		}
		return v
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(v, 0) {
		r.problem(n, at, ruleNumber, fmt.Sprintf("the number %s is too large", clip(s)), "quote it: "+quote(clip(s)))
		return int64(0)
	}
	return v
}

func hasLeadingZero(s string) bool {
	s = strings.TrimLeft(s, "+-")
	return len(s) > 1 && s[0] == '0' && s[1] >= '0' && s[1] <= '9'
}
