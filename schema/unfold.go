package schema

import "go.yaml.in/yaml/v3"

// maxUnfolded is how many nodes a document may have that a tool reads which
// makes a copy for each alias. A person writes a tenth of them.
const maxUnfolded = 100_000

// unfolded counts the nodes of a document in which each alias is what it stands
// for, and gives up above [maxUnfolded]: so much is one that stands for itself.
// known are the aliases that are counted already.
func unfolded(n *yaml.Node, known map[*yaml.Node]int) int {
	if n.Kind == yaml.AliasNode {
		size, ok := known[n.Alias]
		if !ok {
			known[n.Alias] = maxUnfolded + 1 // until it is known: within itself
			size = unfolded(n.Alias, known)
			known[n.Alias] = size
		}
		return size
	}
	size := 1
	for _, child := range n.Content {
		if size += unfolded(child, known); size > maxUnfolded {
			return maxUnfolded + 1
		}
	}
	return size
}

// behindAlias is a node, or what it is an alias of.
func behindAlias(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias // which is none itself
	}
	return n
}
