package schema

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Limits of a compose file. It is YAML of its own: other than in documents of
// the fleet, anchors, merges and fields that nobody here knows are its right.
const (
	maxCompose         = 256 << 10 // bytes
	maxComposeWeight   = 50_000    // as of [weight]
	maxComposeServices = 100
	maxComposeVisits   = maxUnfolded // nodes that are looked at, whatever merges repeat
	maxComposeDepth    = 16          // merges and aliases one behind the other
	maxComposeSlips    = 20
	maxComposeGrace    = 10 * time.Minute
)

// composeReading is one compose file while it is read.
type composeReading struct {
	application string
	file        ComposeFile
	slips       []ComposeSlip
	visits      int
	services    composeMap
	volumes     map[string]bool // that are declared
	networks    map[string]bool
	ended       map[string]bool // services that others wait for to end well
}

// composeEntry is one field of a mapping; composeMap are all of one, those
// that come by a merge included.
type (
	composeEntry struct{ key, value *yaml.Node }
	composeMap   []composeEntry
)

func (m composeMap) get(name string) (key, value *yaml.Node) {
	for _, e := range m {
		if e.key.Value == name {
			return e.key, e.value
		}
	}
	return nil, nil
}

func (m composeMap) has(name string) bool {
	key, _ := m.get(name)
	return key != nil
}

func (m composeMap) names() map[string]bool {
	names := make(map[string]bool, len(m))
	for _, e := range m {
		names[e.key.Value] = true
	}
	return names
}

// ReadCompose reads the compose file of an application. It looks for what
// could not work on any device, and leaves all else to the tool that runs it.
// With slips, the file holds what could be made out.
func ReadCompose(application string, text []byte) (file *ComposeFile, slips []ComposeSlip) {
	r := &composeReading{application: application, ended: map[string]bool{}}
	defer func() {
		if p := recover(); p != nil { // the parser is written for friends
			file, slips = &r.file, append(r.slips, ComposeSlip{Line: 1, Message: fmt.Sprintf("the YAML parser gave up: %v", p)})
		}
	}()
	root := r.parse(text)
	if root != nil {
		r.document(root)
	}
	sort.SliceStable(r.slips, func(i, j int) bool { return r.slips[i].Line < r.slips[j].Line })
	return &r.file, r.slips[:min(len(r.slips), maxComposeSlips)]
}

func (r *composeReading) slip(n *yaml.Node, hint, format string, args ...any) {
	s := ComposeSlip{Line: 1, Message: fmt.Sprintf(format, args...), Hint: hint}
	if n != nil {
		s.Line, s.Column = n.Line, n.Column
	}
	r.slips = append(r.slips, s)
}

func (r *composeReading) parse(text []byte) *yaml.Node {
	if len(text) > maxCompose || weight(text) > maxComposeWeight {
		r.slip(nil, "divide it into several applications", "the compose file is larger than the %d KiB that are read", maxCompose>>10)
		return nil
	}
	if p, bad := notUTF8(text); bad {
		r.slips = append(r.slips, ComposeSlip{Line: p.Line, Column: p.Column, Message: p.Message, Hint: "save the file as UTF-8"})
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var root, second yaml.Node
	err := dec.Decode(&root)
	switch {
	case errors.Is(err, io.EOF), err == nil && (len(root.Content) == 0 || isEmptyNode(root.Content[0])):
		r.slip(nil, "", "the compose file is empty")
		return nil
	case err != nil:
		r.noYAML(err, text, 0)
		return nil
	}
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		r.noYAML(err, text, 1)
	default:
		r.slip(&second, "a compose file is one document", "a second document begins here")
	}
	if unfolded(&root, map[*yaml.Node]int{}) > maxUnfolded { // podman-compose would have all of them in memory
		r.slip(nil, "write out what they stand for", "the aliases of the compose file stand for more than the %d values that it may have", maxUnfolded)
		return nil
	}
	return root.Content[0]
}

func (r *composeReading) noYAML(err error, text []byte, documents int) {
	p := syntaxProblem(err, text, documents)
	r.slips = append(r.slips, ComposeSlip{Line: p.Line, Column: p.Column, Message: "the compose file is no YAML: " + p.Message, Hint: p.Hint})
}

// resolved follows aliases.
func (r *composeReading) resolved(n *yaml.Node) *yaml.Node {
	for range maxComposeDepth {
		if n == nil || n.Kind != yaml.AliasNode {
			return n
		}
		n = n.Alias
	}
	return nil
}

// mapping gives the entries of a mapping; nothing where it is none.
func (r *composeReading) mapping(n *yaml.Node, depth int) composeMap {
	n = r.resolved(n)
	if n == nil || n.Kind != yaml.MappingNode || depth > maxComposeDepth {
		return nil
	}
	var own, merged composeMap
	for i := 0; i+1 < len(n.Content); i += 2 {
		if r.visits++; r.visits > maxComposeVisits {
			return own
		}
		key, value := r.resolved(n.Content[i]), n.Content[i+1]
		if key == nil || key.Kind != yaml.ScalarNode {
			continue
		}
		if key.Value == "<<" && key.Style == 0 {
			from := []*yaml.Node{value}
			if list := r.resolved(value); list != nil && list.Kind == yaml.SequenceNode {
				from = list.Content
			}
			for _, m := range from {
				merged = append(merged, r.mapping(m, depth+1)...)
			}
			continue
		}
		own = append(own, composeEntry{key, r.resolved(value)})
	}
	slices.Reverse(own) // the last of two counts
	seen := map[string]bool{}
	return slices.DeleteFunc(append(own, merged...), func(e composeEntry) bool {
		again := seen[e.key.Value]
		seen[e.key.Value] = true
		return again
	})
}

// share takes in networks or volumes, and gives the names that the file has for
// them. Older files say the name of an external one within that field.
func (r *composeReading) share(all composeMap) map[string]bool {
	for _, e := range all {
		field := r.mapping(e.value, 0)
		_, external := field.get("external")
		_, name := field.get("name")
		_, older := r.mapping(external, 0).get("name")
		s := composeShared{name: r.application + "_" + e.key.Value}
		if older != nil || !slices.Contains([]string{"", "false", "no", "off"}, strings.ToLower(scalarText(external))) {
			s = composeShared{e.key.Value, true}
		}
		s.name = cmp.Or(scalarText(older), scalarText(name), s.name)
		r.file.shared = append(r.file.shared, s)
	}
	return all.names()
}

// list gives what stands in a list, or a scalar as the only one.
func (r *composeReading) list(n *yaml.Node) []*yaml.Node {
	switch n = r.resolved(n); {
	case n == nil:
	case n.Kind == yaml.ScalarNode:
		return []*yaml.Node{n}
	case n.Kind == yaml.SequenceNode:
		var all []*yaml.Node
		for _, c := range n.Content {
			if r.visits++; r.visits > maxComposeVisits {
				break
			}
			if c = r.resolved(c); c != nil {
				all = append(all, c)
			}
		}
		return all
	}
	return nil
}

// scalarText gives a scalar.
func scalarText(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return ""
	}
	return n.Value
}

// isFixed says whether a value has no variables.
func isFixed(s string) bool { return !strings.Contains(s, "$") }

// isRelative says whether a path leads from where the compose file is.
func isRelative(p string) bool {
	return p != "" && isFixed(p) && !strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "~")
}

func (r *composeReading) document(root *yaml.Node) {
	top := r.mapping(root, 0)
	if root.Kind != yaml.MappingNode {
		r.slip(root, "begin it with services:", "the compose file is no mapping")
		return
	}
	if _, name := top.get("name"); name != nil && scalarText(name) != r.application && isFixed(scalarText(name)) {
		r.slip(name, "remove name", "the project is called as its application, %s, and not %s", quote(r.application), quote(clip(scalarText(name))))
	}
	if key, include := top.get("include"); include != nil {
		r.slip(key, "write it out in this file", "include names compose files that are not on the device")
	}
	for _, field := range []string{"configs", "secrets"} {
		_, declared := top.get(field)
		for _, e := range r.mapping(declared, 0) {
			if _, file := r.mapping(e.value, 0).get("file"); isRelative(scalarText(file)) {
				r.slip(file, absoluteHint, "the file %s is not beside the compose file on the device", quote(clip(file.Value)))
			}
		}
	}
	_, volumes := top.get("volumes")
	_, networks := top.get("networks")
	r.volumes, r.networks = r.share(r.mapping(volumes, 0)), r.share(r.mapping(networks, 0))
	if !r.networks["default"] { // which services have that name none
		r.file.shared = append(r.file.shared, composeShared{name: r.application + "_default"})
	}
	key, services := top.get("services")
	r.services = r.mapping(services, 0)
	if len(r.services) == 0 {
		if key == nil {
			key = root
		}
		r.slip(key, "name what is to run under services", "the compose file has no services")
		return
	}
	if len(r.services) > maxComposeServices {
		r.slip(key, "divide it into several applications", "the compose file has more than %d services", maxComposeServices)
		return
	}
	for _, e := range r.services {
		r.service(e.key, e.value)
	}
	sort.Slice(r.file.Services, func(i, j int) bool { return r.file.Services[i].Name < r.file.Services[j].Name })
	for i := range r.file.Services {
		s := &r.file.Services[i]
		s.Ends = s.Ends || r.ended[s.Name]
	}
}
