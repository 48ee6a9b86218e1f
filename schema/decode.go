package schema

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
)

// Decode reads one strict YAML document of the kind of v (a pointer to one of
// the kinds), checks it against its JSON Schema, and fills v. v is untouched
// when a problem is an error. The same values go to schema and decoder. It
// panics where v is no pointer to a kind.
func Decode(file string, data []byte, v any) []Problem {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() || target.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("schema.Decode: a pointer to a kind is wanted, not %T", v))
	}
	kind := kindOf(target.Elem().Type())
	doc, problems := readDocument(data)
	if doc != nil {
		fresh := reflect.New(target.Elem().Type())
		problems = decodeDocument(doc, kind, fresh.Elem())
		if !hasErrors(problems) {
			target.Elem().Set(fresh.Elem())
		}
	}
	return inFile(file, problems)
}

// inFile sorts problems and gives them their file.
func inFile(file string, problems []Problem) []Problem {
	for i := range problems {
		problems[i].File = file
	}
	sortProblems(problems)
	return problems
}

// decodeDocument checks a document that was read against the schema of its
// kind and fills dst.
func decodeDocument(doc *document, kind Kind, dst reflect.Value) []Problem {
	c, err := compiled(kind)
	if err != nil {
		panic("schema: " + err.Error()) // the type of the caller is no kind: a programming mistake
	}
	if p, wrong := wrongKind(doc, kind); wrong {
		return []Problem{p}
	}
	problems, formed := checkedFill(doc, c, dst)
	if !formed {
		return append(problems, unformedFindings(doc, kind, problems)...)
	}
	return append(problems, documentChecks(doc, dst)...)
}

// checkedFill fills dst with a document; formed says that it has the form that
// the schema asks for.
func checkedFill(doc *document, c *compiledKind, dst reflect.Value) (problems []Problem, formed bool) {
	more := 0
	if err := c.validate(doc.value); err != nil {
		problems, more = c.schemaProblems(err, doc)
	}
	problems, unlistedOdd := doc.withOdd(problems)
	more += unlistedOdd
	if len(problems) > maxProblems {
		problems, more = problems[:maxProblems], more+len(problems)-maxProblems
	}
	if more > 0 {
		problems = append(problems, unlisted(more))
	}
	if len(problems) > 0 {
		return problems, false
	}
	f := filler{maps: doc.maps}
	f.fill(dst, doc.value, "")
	for _, fp := range f.problems {
		problems = append(problems, doc.problem(fp.pointer, cmp.Or(fp.rule, ruleForm), fp.err.Error(), fp.hint))
	}
	return problems, true
}

// wrongKind looks at apiVersion and kind first: checked against the schema of
// another kind a document would answer with noise only.
func wrongKind(doc *document, kind Kind) (Problem, bool) {
	m, ok := doc.value.(map[string]any)
	if !ok {
		return Problem{Line: doc.nodes().Line, Column: doc.nodes().Column, Rule: ruleType, Severity: SeverityError,
			Message: fmt.Sprintf("a mapping is wanted, not %s", typeName(doc.value)),
			Hint:    "begin with apiVersion: " + APIVersion}, true
	}
	got, _ := m["kind"].(string)
	if got == "" || Kind(got) == kind {
		return Problem{}, false
	}
	hint := homeOf(Kind(got))
	if near := Nearest(got, []string{string(kind)}); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return doc.problem("/kind", ruleKind, fmt.Sprintf("kind %s is wanted here, not %s", kind, quote(got)), hint), true
}

// problem is an error at the value of a pointer, or at the nearest value
// around it.
func (d *document) problem(pointer, rule, msg, hint string) Problem {
	_, at, _ := d.locate(splitPointer(pointer))
	return Problem{Line: at.Line, Column: at.Column, Pointer: pointer, Rule: rule, Severity: SeverityError,
		Message: oneLine(msg), Hint: hint}
}

// keyProblem is an error at the key of a pointer.
func (d *document) keyProblem(pointer, rule, msg, hint string) Problem {
	p := d.problem(pointer, rule, msg, hint)
	if key, _, exact := d.locate(splitPointer(pointer)); exact && key != nil {
		p.Line, p.Column = key.Line, key.Column
	}
	return p
}

// withOdd adds the problems of odd numbers. Where a string is wanted it is
// enough to say that; any other problem at their place speaks of the stand-in
// that the schema saw, and goes.
func (d *document) withOdd(problems []Problem) (all []Problem, more int) {
	for _, o := range d.odd {
		if len(problems) > maxProblems {
			more++
			continue
		}
		at := func(p Problem) bool { return p.Line == o.node.Line && p.Column == o.node.Column }
		if slices.ContainsFunc(problems, func(p Problem) bool { return at(p) && p.Rule == ruleType }) {
			continue
		}
		problems = append(slices.DeleteFunc(problems, at), Problem{Line: o.node.Line, Column: o.node.Column,
			Pointer: o.at.pointer(), Rule: ruleNumber, Severity: SeverityError,
			Message: fmt.Sprintf("the number %s means different things to different readers", clip(o.node.Value)),
			Hint:    "write it as a plain decimal, or quote it"})
	}
	return problems, more
}

func unlisted(n int) Problem {
	return Problem{Line: 1, Rule: ruleTooMany, Severity: SeverityError,
		Message: count(n, "more problem") + " in this document"}
}

// DecodeSpec turns the tree of an assignment into a [Spec]; unknown fields
// are an error that names them.
func DecodeSpec(tree map[string]any) (*Spec, error) {
	var spec Spec
	var f filler
	f.fill(reflect.ValueOf(&spec).Elem(), tree, "")
	if len(f.problems) == 0 {
		return &spec, nil
	}
	sort.Slice(f.problems, func(i, j int) bool { return f.problems[i].pointer < f.problems[j].pointer })
	var all []string
	for _, p := range f.problems {
		if p.unknown {
			all = append(all, "unknown field "+clip(p.pointer))
			continue
		}
		all = append(all, clip(p.pointer)+": "+p.err.Error())
	}
	return nil, errors.New("spec: " + strings.Join(all, "; "))
}

func hasErrors(problems []Problem) bool {
	for i := range problems {
		if problems[i].Severity == SeverityError {
			return true
		}
	}
	return false
}

// sortProblems orders by file, line, column, rule, and then by all that is
// left, so that the order never depends on a map.
func sortProblems(problems []Problem) {
	sort.Slice(problems, func(i, j int) bool {
		a, b := &problems[i], &problems[j]
		switch {
		case a.File != b.File:
			return a.File < b.File
		case a.Line != b.Line:
			return a.Line < b.Line
		case a.Column != b.Column:
			return a.Column < b.Column
		case a.Rule != b.Rule:
			return a.Rule < b.Rule
		case a.Pointer != b.Pointer:
			return a.Pointer < b.Pointer
		}
		return a.Message < b.Message
	})
}
