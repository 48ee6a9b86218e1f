package schema

import (
	"fmt"
	"strings"
	"text/template/parse"
)

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
