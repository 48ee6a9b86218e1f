package schema

import (
	"strconv"
	"text/template/parse"
)

// indexOrEmpty is the name of what is asked in place of a value that default is
// given. No template can call it: the parser does not know it.
const indexOrEmpty = "indexOrEmpty"

func lookUp(m map[string]string, key string) string { return m[key] }

// standIn has default see an empty text for a variable or a label that is
// missing. Without that the template would end before default is called.
func (w *walker) standIn(n *parse.PipeNode) {
	for i, c := range n.Cmds {
		if !calls(c, "default") {
			continue
		}
		const value = 2 // its argument
		switch {
		case len(c.Args) > value:
			c.Args[value] = w.optionalArgument(c.Args[value])
		case i > 0: // it is piped
			w.optionalCommand(n.Cmds[i-1])
		}
	}
}

func calls(c *parse.CommandNode, function string) bool {
	f, ok := c.Args[0].(*parse.IdentifierNode)
	return ok && f.Ident == function
}

func (w *walker) optionalArgument(n parse.Node) parse.Node {
	if p, ok := n.(*parse.PipeNode); ok {
		w.optionalCommand(p.Cmds[len(p.Cmds)-1])
		return n
	}
	asked := w.asked(n)
	if asked == nil {
		return n
	}
	c := &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Position(), Args: asked}
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: n.Position(), Cmds: []*parse.CommandNode{c}}
}

func (w *walker) optionalCommand(c *parse.CommandNode) {
	if calls(c, "index") {
		c.Args[0] = parse.NewIdentifier(indexOrEmpty).SetPos(c.Pos)
		return
	}
	if asked := w.asked(c.Args[0]); asked != nil && len(c.Args) == 1 {
		c.Args = asked
	}
}

// asked is the call that gives a variable or a label, or an empty text; nil =
// it is none of them, or it cannot be told.
func (w *walker) asked(n parse.Node) []parse.Node {
	var path []string
	var holder parse.Node
	switch n := n.(type) {
	case *parse.FieldNode:
		if w.with > 0 {
			return nil // the dot is something else
		}
		path = n.Ident
		holder = &parse.FieldNode{NodeType: parse.NodeField, Pos: n.Pos, Ident: path[:len(path)-1]}
	case *parse.VariableNode:
		path = n.Ident[1:]
		holder = &parse.VariableNode{NodeType: parse.NodeVariable, Pos: n.Pos, Ident: n.Ident[:len(n.Ident)-1]}
	}
	if isVariable, isLabel := len(path) == 2 && path[0] == "vars", len(path) == 3; !isVariable && !isLabel {
		return nil
	}
	name := path[len(path)-1]
	return []parse.Node{
		parse.NewIdentifier(indexOrEmpty).SetPos(n.Position()), holder,
		&parse.StringNode{NodeType: parse.NodeString, Pos: n.Position(), Quoted: strconv.Quote(name), Text: name},
	}
}
