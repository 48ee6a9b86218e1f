package schema

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
	"unicode/utf8"
)

// Limits of templates. A template is content of the fleet repository, so it
// may be hostile: it has to end at once, in bounded memory.
const (
	maxTemplate        = 1 << 20 // bytes, of the text and of what it renders to
	maxTemplateActions = 10_000  // each costs a few stack frames while parsing
	maxFunctionResult  = 64 << 10
)

// templateFunctions is all that a template can call. None of them loops over
// anything but its argument, and each result is bounded.
var templateFunctions = template.FuncMap{
	"index":      indexValue,
	"has":        hasValue,
	"default":    defaultValue,
	"quote":      quoteValue,
	"lower":      func(s string) (string, error) { return bounded(strings.ToLower(s)) },
	"upper":      func(s string) (string, error) { return bounded(strings.ToUpper(s)) },
	"trim":       strings.TrimSpace,
	"trimPrefix": func(prefix, s string) string { return strings.TrimPrefix(s, prefix) },
	"trimSuffix": func(suffix, s string) string { return strings.TrimSuffix(s, suffix) },
	"hasPrefix":  func(prefix, s string) bool { return strings.HasPrefix(s, prefix) },
	"hasSuffix":  func(suffix, s string) bool { return strings.HasSuffix(s, suffix) },
	"contains":   func(part, s string) bool { return strings.Contains(s, part) },
}

// Of the functions that text/template brings along only these are allowed;
// print, html and the like can make much of little.
var builtinFunctions = map[string]bool{"eq": true, "ne": true, "lt": true, "le": true, "gt": true, "ge": true,
	"and": true, "or": true, "not": true, "len": true}

// TemplateFunctions lists what templates can call, sorted.
func TemplateFunctions() []string {
	var names []string
	for name := range templateFunctions {
		names = append(names, name)
	}
	for name := range builtinFunctions {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// indexValue is for names that are no identifiers, such as labels with dots.
// Unlike the built-in one it does not make up a value for a key that is
// missing.
func indexValue(m map[string]string, key string) (string, error) {
	v, ok := m[key]
	if !ok {
		return "", fmt.Errorf("there is no %s", quote(key))
	}
	return v, nil
}

func hasValue(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}

func defaultValue(fallback, value string) string {
	if value == "" {
		return fallback
	}
	return value
}

func quoteValue(s string) (string, error) { return bounded(strconv.Quote(s)) }

var errResultTooLong = fmt.Errorf("the result of a function has more than %d bytes", maxFunctionResult)

func bounded(s string) (string, error) {
	if len(s) > maxFunctionResult {
		return "", errResultTooLong
	}
	return s, nil
}

// templateError is what is wrong with a template, with its line in the text.
type templateError struct {
	rule string
	line int
	msg  string
	hint string
}

func (e *templateError) Error() string {
	if e.line > 0 {
		return fmt.Sprintf("template line %d: %s", e.line, e.msg)
	}
	return "template: " + e.msg
}

// compiledTemplate is a template that is known to be harmless.
type compiledTemplate struct {
	tmpl *template.Template
	text string // set instead of tmpl where there is nothing to fill in
}

const templateName = "t"

// compileTemplate parses a template and refuses whatever is more than field
// access, conditions, comparisons and the functions above.
func compileTemplate(text string) (*compiledTemplate, *templateError) {
	if len(text) > maxTemplate {
		return nil, &templateError{rule: ruleTemplateSize, msg: fmt.Sprintf("it has %d bytes, more than the %d allowed", len(text), maxTemplate)}
	}
	actions := strings.Count(text, "{{")
	if actions == 0 {
		return &compiledTemplate{text: text}, nil
	}
	if actions > maxTemplateActions {
		return nil, &templateError{rule: ruleTemplateSize, msg: fmt.Sprintf("it has more than %d actions", maxTemplateActions)}
	}
	funcs := map[string]any{}
	for name, f := range templateFunctions {
		funcs[name] = f
	}
	for name := range builtinFunctions {
		funcs[name] = true
	}
	trees, err := parse.Parse(templateName, text, "", "", funcs)
	if err != nil {
		failure := parseFailure(err)
		if slip := templateSlip(text, failure.msg == endOfText); slip != nil && slip.line <= failure.line {
			return nil, slip
		}
		return nil, failure
	}
	w := walker{text: text}
	for name := range trees {
		if name != templateName {
			w.refuse(nil, "define and block are not allowed", "")
		}
	}
	tree := trees[templateName]
	if tree == nil || tree.Root == nil {
		return &compiledTemplate{}, w.err
	}
	w.walk(tree.Root)
	if w.err != nil {
		return nil, w.err
	}
	tmpl, err := template.New(templateName).Option("missingkey=error").Funcs(templateFunctions).Funcs(template.FuncMap{indexOrEmpty: lookUp}).AddParseTree(templateName, tree)
	if err != nil {
		return nil, parseFailure(err)
	}
	return &compiledTemplate{tmpl: tmpl}, nil
}

var parseErrorForm = regexp.MustCompile(`^template: ` + templateName + `:(\d+)(?::\d+)?: `)

func parseFailure(err error) *templateError {
	e := &templateError{rule: ruleTemplateSyntax, msg: err.Error()}
	if m := parseErrorForm.FindStringSubmatch(e.msg); m != nil {
		e.line, _ = strconv.Atoi(m[1])
		e.msg = e.msg[len(m[0]):]
	}
	e.msg = clip(e.msg)
	if name, ok := strings.CutPrefix(e.msg, "function "); ok {
		e.rule = ruleTemplateForbidden
		e.hint = "the functions are " + strings.Join(TemplateFunctions(), ", ")
		if near := Nearest(strings.Trim(strings.TrimSuffix(name, " not defined"), `"`), TemplateFunctions()); near != "" {
			e.hint = fmt.Sprintf("did you mean %s?", near)
		}
	}
	return e
}

// walker looks at every node of a parse tree for what is not allowed.
type walker struct {
	text string
	err  *templateError
	with int // depth of with blocks, where the dot is something else
}

func (w *walker) refuse(n parse.Node, msg, hint string) {
	if w.err != nil {
		return
	}
	line := 0
	if n != nil {
		if pos := int(n.Position()); pos <= len(w.text) {
			line = 1 + strings.Count(w.text[:pos], "\n")
		}
	}
	w.err = &templateError{rule: ruleTemplateForbidden, line: line, msg: msg, hint: hint}
}

func (w *walker) walk(n parse.Node) {
	if w.err != nil {
		return
	}
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, c := range n.Nodes {
			w.walk(c)
		}
	case *parse.TextNode, *parse.CommentNode, *parse.StringNode, *parse.NumberNode, *parse.BoolNode:
	case *parse.ActionNode:
		w.walk(n.Pipe)
	case *parse.IfNode:
		w.branch(&n.BranchNode)
	case *parse.WithNode:
		w.with++
		w.branch(&n.BranchNode)
		w.with--
	case *parse.PipeNode:
		w.pipe(n)
	case *parse.CommandNode:
		for _, a := range n.Args {
			w.walk(a)
		}
	case *parse.FieldNode:
		w.field(n, n.Ident)
	case *parse.VariableNode:
		if n.Ident[0] != "$" {
			w.refuse(n, "variables are not allowed", "")
		} else if len(n.Ident) > 1 {
			w.root(n, n.Ident[1:])
		}
	case *parse.DotNode:
		if w.with == 0 {
			w.refuse(n, "the dot alone is not allowed here", rootHint)
		}
	case *parse.IdentifierNode:
		if _, ok := templateFunctions[n.Ident]; !ok && !builtinFunctions[n.Ident] {
			w.refuse(n, fmt.Sprintf("the function %s is not allowed", clip(n.Ident)), "the functions are "+strings.Join(TemplateFunctions(), ", "))
		}
	default:
		w.refuse(n, fmt.Sprintf("%s is not allowed in a template", nodeWord(n)), "a template fills in values and decides with if, else and with")
	}
}

const rootHint = "values are .device.name, .device.labels.<label> and .vars.<name>"

// field looks at the first names of a path where the dot is known.
func (w *walker) field(n parse.Node, path []string) {
	if w.with == 0 {
		w.root(n, path)
	}
}

func (w *walker) root(n parse.Node, path []string) {
	var ok bool
	switch path[0] {
	case "vars":
		ok = len(path) <= 2
	case "device":
		switch {
		case len(path) == 2:
			ok = path[1] == "name" || path[1] == "labels"
		case len(path) == 3:
			ok = path[1] == "labels"
		}
	}
	if !ok {
		w.refuse(n, fmt.Sprintf("there is no .%s", clip(strings.Join(path, "."))), rootHint)
	}
}

func (w *walker) branch(n *parse.BranchNode) {
	// The condition of a with sees the dot of outside.
	if inside := n.NodeType == parse.NodeWith; inside {
		w.with--
		w.walk(n.Pipe)
		w.with++
	} else {
		w.walk(n.Pipe)
	}
	w.walk(n.List)
	if n.ElseList != nil {
		w.walk(n.ElseList)
	}
}

func (w *walker) pipe(n *parse.PipeNode) {
	if n == nil {
		return
	}
	if len(n.Decl) > 0 || n.IsAssign {
		w.refuse(n, "variables are not allowed", "")
		return
	}
	for _, c := range n.Cmds {
		w.walk(c)
	}
	if w.err == nil {
		w.standIn(n)
	}
}

func nodeWord(n parse.Node) string {
	switch n.Type() {
	case parse.NodeRange, parse.NodeBreak, parse.NodeContinue:
		return "range"
	case parse.NodeTemplate:
		return "template"
	case parse.NodeNil:
		return "nil"
	case parse.NodeChain:
		return "a field of an expression"
	}
	return "this"
}

// templateData is what templates see of one device.
type templateData map[string]any

func newTemplateData(name string, labels, vars map[string]string, lent *scratch) templateData {
	if labels == nil {
		labels = map[string]string{}
	}
	if vars == nil {
		vars = map[string]string{}
	}
	device, data := lent.tree(), lent.tree()
	device["name"], device["labels"] = name, labels
	data["device"], data["vars"] = device, vars
	return data
}

// render fills a template in. The error says what was missing and where.
func (t *compiledTemplate) render(data templateData) (string, *templateError) {
	if t.tmpl == nil {
		return t.text, nil
	}
	out := &boundedBuffer{}
	if err := t.tmpl.Execute(out, map[string]any(data)); err != nil {
		if out.full {
			return "", &templateError{rule: ruleTemplateSize, msg: fmt.Sprintf("it renders to more than %d bytes", maxTemplate)}
		}
		return "", renderFailure(err)
	}
	return out.String(), nil
}

var (
	execErrorForm  = regexp.MustCompile(`^template: ` + templateName + `:(\d+):\d+: executing "` + templateName + `" at <(.*?)>: `)
	missingKeyForm = regexp.MustCompile(`map has no entry for key "(.*)"$`)
)

func renderFailure(err error) *templateError {
	e := &templateError{rule: ruleTemplateRender, msg: err.Error()}
	at := ""
	if m := execErrorForm.FindStringSubmatch(e.msg); m != nil {
		e.line, _ = strconv.Atoi(m[1])
		at, e.msg = m[2], e.msg[len(m[0]):]
	}
	if m := missingKeyForm.FindStringSubmatch(e.msg); m != nil {
		e.msg = fmt.Sprintf("%s has no value", clip(at))
		holder := strings.TrimSuffix(strings.TrimSuffix(at, m[1]), ".")
		if holder == "" {
			holder = "." // what a with made it
		}
		e.hint = fmt.Sprintf("set %s, or guard it with {{ if has %s %s }}", clip(m[1]), clip(holder), quote(m[1]))
		return e
	}
	if at != "" {
		e.msg = fmt.Sprintf("at %s: %s", clip(at), e.msg)
	}
	e.msg = clip(e.msg)
	return e
}

// boundedBuffer ends an execution whose output grows too large.
type boundedBuffer struct {
	bytes.Buffer
	full bool
}

var errOutputFull = errors.New("output too large")

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxTemplate {
		b.full = true
		return 0, errOutputFull
	}
	return b.Buffer.Write(p)
}

// renderText is render for what stands in a document, which must stay text.
func (t *compiledTemplate) renderText(data templateData) (string, *templateError) {
	s, err := t.render(data)
	if err == nil && !utf8.ValidString(s) {
		return "", &templateError{rule: ruleTemplateRender, msg: "the result is not UTF-8", hint: "move it to a file named as source"}
	}
	return s, err
}
