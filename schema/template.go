package schema

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

// Limits of templates. A template is content of the fleet repository, so it
// may be hostile: it has to end at once, in bounded memory.
const (
	maxTemplate        = 1 << 20 // bytes, of the text and of what it renders to
	maxTemplateActions = 10_000  // each costs a few stack frames while parsing
	maxFunctionResult  = 64 << 10
)

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
// access, conditions, comparisons and the functions that are allowed.
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
