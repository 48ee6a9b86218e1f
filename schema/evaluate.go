package schema

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/template/parse"
)

// What is allowed in templates is evaluated here, over the few types that their
// values have: string, bool, int, float64, complex128, map[string]string and
// map[string]any. Package text/template means the same by all of it, and tests
// compare with it; but it finds methods by their names, for which every
// exported method of every type of a program is linked: a fifth of gitopsd.

// evaluation is one rendering of a template.
type evaluation struct {
	tree *parse.Tree
	root any
	out  io.Writer
	node parse.Node // where something is wrong, should it be
}

// missingKey is the error of a path that leads to nothing.
type missingKey struct{ key string }

func (e *missingKey) Error() string { return fmt.Sprintf("map has no entry for key %q", e.key) }

// piped is what stands before a command in its pipe, if anything does.
type piped struct {
	value any
	given bool
}

// list renders nodes, one after the other.
func (e *evaluation) list(dot any, l *parse.ListNode) error {
	if l == nil {
		return nil
	}
	for _, n := range l.Nodes {
		if err := e.one(dot, n); err != nil {
			return err
		}
	}
	return nil
}

func (e *evaluation) one(dot any, n parse.Node) error {
	e.node = n
	switch n := n.(type) {
	case *parse.TextNode:
		_, err := e.out.Write(n.Text)
		return err
	case *parse.CommentNode:
		return nil
	case *parse.ActionNode:
		value, err := e.pipe(dot, n.Pipe)
		if err != nil {
			return err
		}
		e.node = n
		_, err = fmt.Fprint(e.out, value)
		return err
	case *parse.IfNode:
		return e.branch(dot, &n.BranchNode, false)
	case *parse.WithNode:
		return e.branch(dot, &n.BranchNode, true)
	}
	return fmt.Errorf("%s is not allowed in a template", nodeWord(n))
}

func (e *evaluation) branch(dot any, n *parse.BranchNode, with bool) error {
	value, err := e.pipe(dot, n.Pipe)
	switch {
	case err != nil:
		return err
	case !isTrue(value):
		return e.list(dot, n.ElseList)
	case with:
		return e.list(value, n.List)
	}
	return e.list(dot, n.List)
}

// isTrue says whether a value is neither empty nor zero.
func isTrue(value any) bool {
	switch v := value.(type) {
	case string:
		return v != ""
	case bool:
		return v
	case int:
		return v != 0
	case float64:
		return v != 0
	case complex128:
		return v != 0
	case map[string]string:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return false
}

func (e *evaluation) pipe(dot any, n *parse.PipeNode) (any, error) {
	e.node = n
	var last piped
	for _, cmd := range n.Cmds {
		value, err := e.command(dot, cmd, last)
		if err != nil {
			return nil, err
		}
		last = piped{value, true}
	}
	return last.value, nil
}

func (e *evaluation) command(dot any, cmd *parse.CommandNode, last piped) (any, error) {
	first := cmd.Args[0]
	full := len(cmd.Args) > 1 || last.given // it is called with something
	switch n := first.(type) {
	case *parse.FieldNode:
		return e.path(dot, n, n.Ident, full)
	case *parse.VariableNode:
		return e.variable(n, full)
	case *parse.IdentifierNode:
		return e.call(dot, n, cmd, cmd.Args[1:], last)
	case *parse.PipeNode:
		if full {
			return nil, notAFunction(first)
		}
		return e.pipe(dot, n)
	}
	e.node = first
	if full {
		return nil, notAFunction(first)
	}
	return e.literal(dot, first)
}

func notAFunction(n parse.Node) error {
	return fmt.Errorf("can't give argument to non-function %s", n)
}

// literal is the value of what stands for itself, and of the dot.
func (e *evaluation) literal(dot any, n parse.Node) (any, error) {
	e.node = n
	switch n := n.(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.StringNode:
		return n.Text, nil
	case *parse.BoolNode:
		return n.True, nil
	case *parse.NumberNode:
		return number64(n)
	}
	return nil, fmt.Errorf("%s is not allowed in a template", nodeWord(n))
}

// number64 is the value of a number, whose type its form decides as in Go.
func number64(n *parse.NumberNode) (any, error) {
	hex := len(n.Text) > 2 && (strings.HasPrefix(n.Text, "0x") || strings.HasPrefix(n.Text, "0X")) && !strings.ContainsAny(n.Text, "pP")
	switch {
	case n.IsComplex:
		return n.Complex128, nil
	case n.IsFloat && !hex && n.Text[0] != '\'' && strings.ContainsAny(n.Text, ".eEpP"):
		return n.Float64, nil
	case n.IsInt:
		return int(n.Int64), nil
	}
	return nil, fmt.Errorf("%s overflows int", n.Text)
}

func (e *evaluation) variable(n *parse.VariableNode, full bool) (any, error) {
	e.node = n
	if len(n.Ident) > 1 {
		return e.path(e.root, n, n.Ident[1:], full)
	}
	if full {
		return nil, notAFunction(n)
	}
	return e.root, nil
}

// path follows names from a value; full is said of one that has arguments.
func (e *evaluation) path(value any, n parse.Node, names []string, full bool) (any, error) {
	e.node = n
	for i, name := range names {
		_, texts := value.(map[string]string)
		_, tree := value.(map[string]any)
		if (texts || tree) && full && i == len(names)-1 {
			return nil, fmt.Errorf("%s is not a method but has arguments", name)
		}
		known := false
		switch m := value.(type) {
		case map[string]string:
			value, known = m[name]
		case map[string]any:
			value, known = m[name]
		default:
			return nil, fmt.Errorf("can't evaluate field %s in type %T", name, value)
		}
		if !known {
			return nil, &missingKey{name}
		}
	}
	return value, nil
}

// call calls a function with what stands behind its name and, as the last
// argument, with what was piped into it. An error of the function is at node.
func (e *evaluation) call(dot any, name *parse.IdentifierNode, node parse.Node, args []parse.Node, last piped) (any, error) {
	e.node = name
	f := templateFunctions[name.Ident]
	given := len(args)
	if last.given {
		given++
	}
	switch {
	case f.rest && given < len(f.takes)-1:
		return nil, fmt.Errorf("wrong number of args for %s: want at least %d got %d", name.Ident, len(f.takes)-1, len(args))
	case !f.rest && given != len(f.takes):
		return nil, fmt.Errorf("wrong number of args for %s: want %d got %d", name.Ident, len(f.takes), given)
	}
	values := make([]any, 0, given)
	for i, arg := range args {
		value, err := e.argument(dot, f.takes[min(i, len(f.takes)-1)], arg)
		if err != nil {
			return nil, err
		}
		if f.decides != nil && f.decides(value) {
			return value, nil
		}
		values = append(values, value)
	}
	if last.given {
		if err := f.takes[min(given, len(f.takes))-1].check(last.value); err != nil {
			return nil, err
		}
		values = append(values, last.value)
	}
	if f.decides != nil {
		return values[len(values)-1], nil
	}
	value, err := f.call(values)
	if err != nil {
		e.node = node
		return nil, fmt.Errorf("error calling %s: %w", name.Ident, err)
	}
	return value, nil
}

// argument is the value of an argument that has to be of a type.
func (e *evaluation) argument(dot any, want takes, n parse.Node) (value any, err error) {
	e.node = n
	switch n := n.(type) {
	case *parse.DotNode:
		value = dot
	case *parse.FieldNode:
		value, err = e.path(dot, n, n.Ident, false)
	case *parse.VariableNode:
		value, err = e.variable(n, false)
	case *parse.PipeNode:
		value, err = e.pipe(dot, n)
	case *parse.IdentifierNode:
		value, err = e.call(dot, n, n, nil, piped{})
	default:
		if _, isText := n.(*parse.StringNode); want == takesText && !isText {
			return nil, fmt.Errorf("expected string; found %s", n)
		}
		if want == takesTexts {
			return nil, fmt.Errorf("can't handle %s for arg of type %s", n, want)
		}
		return e.literal(dot, n)
	}
	if err != nil {
		return nil, err
	}
	return value, want.check(value)
}

// takes is what a function takes as one of its arguments.
type takes string

const (
	takesAny   takes = "any"
	takesText  takes = "string"
	takesTexts takes = "map[string]string"
)

func (t takes) check(value any) error {
	if got := fmt.Sprintf("%T", value); t != takesAny && got != string(t) {
		return fmt.Errorf("wrong type for value; expected %s; got %s", t, got)
	}
	return nil
}

var (
	errNothingToCompare = errors.New("missing argument for comparison")
	errNoOrder          = errors.New("invalid type for comparison")
)

// equal says whether the first value is equal to one of the others.
func equal(values []any) (bool, error) {
	if len(values) == 1 {
		return false, errNothingToCompare
	}
	first := values[0]
	for _, v := range values[1:] {
		if isMap(first) && isMap(v) {
			return false, fmt.Errorf("non-comparable type %s: %T", v, v)
		}
		if err := sameType(first, v); err != nil {
			return false, err
		}
		if first == v {
			return true, nil
		}
	}
	return false, nil
}

func isMap(v any) bool {
	switch v.(type) {
	case map[string]string, map[string]any:
		return true
	}
	return false
}

func sameType(a, b any) error {
	if ta, tb := fmt.Sprintf("%T", a), fmt.Sprintf("%T", b); ta != tb {
		return fmt.Errorf("incompatible types for comparison: %s and %s", ta, tb)
	}
	return nil
}

// less says whether the first of two values comes before the second.
func less(values []any) (bool, error) {
	a, b := values[0], values[1]
	if isMap(a) || isMap(b) {
		return false, errNoOrder
	}
	if err := sameType(a, b); err != nil {
		return false, err
	}
	switch a := a.(type) {
	case string:
		return a < b.(string), nil //nolint:forcetypeassert // of one type
	case int:
		return a < b.(int), nil //nolint:forcetypeassert // of one type
	case float64:
		return a < b.(float64), nil //nolint:forcetypeassert // of one type
	}
	return false, errNoOrder
}

func lessOrEqual(values []any) (bool, error) {
	if before, err := less(values); before || err != nil {
		return before, err
	}
	return equal(values)
}

func opposite(is bool, err error) (bool, error) { return !is, err }

func lengthOf(values []any) (any, error) {
	switch v := values[0].(type) {
	case string:
		return len(v), nil
	case map[string]string:
		return len(v), nil
	case map[string]any:
		return len(v), nil
	}
	return nil, fmt.Errorf("len of type %T", values[0])
}

// failure says what went wrong in an evaluation, and where.
func (e *evaluation) failure(err error) *templateError {
	place, at := e.tree.ErrorContext(e.node)
	failed := &templateError{rule: ruleTemplateRender}
	if parts := strings.Split(place, ":"); len(parts) > 1 { // name:line:column
		failed.line, _ = strconv.Atoi(parts[1])
	}
	if key := (*missingKey)(nil); errors.As(err, &key) {
		failed.msg = fmt.Sprintf("%s has no value", clip(at))
		holder := strings.TrimSuffix(strings.TrimSuffix(at, key.key), ".")
		if holder == "" {
			holder = "." // what a with made it
		}
		failed.hint = fmt.Sprintf("set %s, or guard it with {{ if has %s %s }}", clip(key.key), clip(holder), quote(key.key))
		return failed
	}
	failed.msg = clip(fmt.Sprintf("at %s: %s", clip(at), err))
	return failed
}
