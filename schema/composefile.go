package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"sort"
	"strconv"
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
	maxComposeVisits   = 100_000 // nodes that are looked at, whatever merges repeat
	maxComposeDepth    = 16      // merges and aliases one behind the other
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
	volumes     composeMap
	networks    composeMap
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
	return append(own, merged...)
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

// text gives a scalar.
func text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return ""
	}
	return n.Value
}

// isFixed says whether a value has no variables.
func isFixed(s string) bool { return !strings.Contains(s, "$") }

func isRelative(p string) bool { return isFixed(p) && strings.HasPrefix(p, ".") }

func (r *composeReading) document(root *yaml.Node) {
	top := r.mapping(root, 0)
	if root.Kind != yaml.MappingNode {
		r.slip(root, "begin it with services:", "the compose file is no mapping")
		return
	}
	if _, name := top.get("name"); name != nil && text(name) != r.application && isFixed(text(name)) {
		r.slip(name, "remove name", "the project is called as its application, %s, and not %s", quote(r.application), quote(clip(text(name))))
	}
	if key, include := top.get("include"); include != nil {
		r.slip(key, "write it out in this file", "include names compose files that are not on the device")
	}
	for _, field := range []string{"configs", "secrets"} {
		_, declared := top.get(field)
		for _, e := range r.mapping(declared, 0) {
			if _, file := r.mapping(e.value, 0).get("file"); isRelative(text(file)) {
				r.slip(file, absoluteHint, "the file %s is not beside the compose file on the device", quote(clip(file.Value)))
			}
		}
	}
	_, volumes := top.get("volumes")
	_, networks := top.get("networks")
	r.volumes, r.networks = r.mapping(volumes, 0), r.mapping(networks, 0)
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

// absoluteHint is for files that a compose file has beside itself elsewhere.
const absoluteHint = "put it on the device by files, and name its absolute path there"

func (r *composeReading) service(key, value *yaml.Node) {
	name := key.Value
	if !unitStem(name) {
		r.slip(key, "use letters, digits and ._- and begin with a letter or digit", "no container can be called after the service %s", quote(clip(name)))
		return
	}
	fields := r.mapping(value, 0)
	if len(fields) == 0 {
		r.slip(key, "give it an image", "the service %s is empty", quote(name))
		return
	}
	s := ComposeService{Name: name}
	if at, build := fields.get("build"); build != nil {
		r.slip(at, "build the image elsewhere, push it, and name it as image", "the service %s is to be built, and devices do not build", quote(name))
	} else if image := r.image(fields, 0); image != nil {
		s.Image, s.Line = image.Value, image.Line
		if !isImage(s.Image) {
			r.slip(image, "", "%s is no image", quote(clip(s.Image)))
		}
	} else if _, podman := fields.get("x-podman"); len(r.mapping(podman, 0)) == 0 {
		r.slip(key, "give it an image", "the service %s has no image", quote(name))
	}
	r.ending(fields, &s)
	r.dependencies(fields, name)
	r.files(fields, name)
	r.mounts(fields, name)
	_, networks := fields.get("networks")
	attached := r.list(networks)
	for _, e := range r.mapping(networks, 0) {
		attached = append(attached, e.key)
	}
	for _, n := range attached {
		if _, declared := r.networks.get(n.Value); declared == nil && !r.has(r.networks, n.Value) && n.Value != "default" && isFixed(n.Value) {
			r.slip(n, "declare it under networks at the end of the file", "the network %s of the service %s is not declared", quote(clip(n.Value)), quote(name))
		}
	}
	r.file.Services = append(r.file.Services, s)
}

func (r *composeReading) has(m composeMap, name string) bool {
	key, _ := m.get(name)
	return key != nil
}

// image is that of a service, or of the one that it extends.
func (r *composeReading) image(fields composeMap, depth int) *yaml.Node {
	if _, image := fields.get("image"); text(image) != "" {
		return image
	}
	_, extends := fields.get("extends")
	base := text(extends)
	if from := r.mapping(extends, 0); len(from) > 0 {
		if _, file := from.get("file"); text(file) != "" {
			if depth == 0 {
				r.slip(file, "write it out in this file", "the file %s that a service extends is not on the device", quote(clip(file.Value)))
			}
			return file
		}
		_, service := from.get("service")
		base = text(service)
	}
	_, other := r.services.get(base)
	if base == "" || other == nil || depth > maxComposeDepth {
		return nil
	}
	return r.image(r.mapping(other, 0), depth+1)
}

// ending reads how a service ends and comes back.
func (r *composeReading) ending(fields composeMap, s *ComposeService) {
	_, restart := fields.get("restart")
	policy := text(restart)
	if restart != nil && restart.Style == 0 && slices.Contains([]string{"no", "off", "false", "yes", "on", "true"}, strings.ToLower(policy)) {
		r.slip(restart, `quote it: "no"`, "restart is %s, which YAML takes for a truth value", policy)
	}
	s.Restarts = policy != "" && policy != "no"
	s.Ends = strings.HasPrefix(policy, "on-failure")
	_, profiles := fields.get("profiles")
	s.Optional = len(r.list(profiles)) > 0
	_, deploy := fields.get("deploy")
	_, replicas := r.mapping(deploy, 0).get("replicas")
	_, scale := fields.get("scale")
	for _, n := range []*yaml.Node{replicas, scale} {
		if count, err := strconv.Atoi(text(n)); n != nil && (err != nil || count < 1) {
			s.Optional = true
		}
	}
	_, grace := fields.get("stop_grace_period")
	given := text(grace)
	if _, err := strconv.Atoi(given); err == nil {
		given += "s"
	}
	if d, err := time.ParseDuration(given); err == nil && d > 0 {
		s.Grace = min(d, maxComposeGrace)
	}
}

func (r *composeReading) dependencies(fields composeMap, name string) {
	_, on := fields.get("depends_on")
	names := r.list(on)
	for _, e := range r.mapping(on, 0) {
		names = append(names, e.key)
		if _, condition := r.mapping(e.value, 0).get("condition"); text(condition) == "service_completed_successfully" {
			r.ended[e.key.Value] = true
		}
	}
	for _, n := range names {
		if !r.has(r.services, n.Value) && isFixed(n.Value) {
			r.slip(n, "name a service of this file", "the service %s depends on %s, which is none", quote(name), quote(clip(n.Value)))
		}
	}
}

// files reads what a service wants to have beside the compose file.
func (r *composeReading) files(fields composeMap, name string) {
	_, env := fields.get("env_file")
	for _, n := range r.list(env) {
		if entry := r.mapping(n, 0); len(entry) > 0 {
			if _, required := entry.get("required"); text(required) == "false" {
				continue
			}
			_, n = entry.get("path")
		}
		p := text(n)
		switch {
		case p == "" || !isFixed(p) || strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~"):
		case path.Clean(p) == ComposeEnvName:
			r.file.DotEnv = n.Line
		default:
			r.slip(n, absoluteHint, "the env_file %s of the service %s is not beside the compose file on the device", quote(clip(p)), quote(name))
		}
	}
}

// mounts reads where the data of a service is.
func (r *composeReading) mounts(fields composeMap, name string) {
	_, volumes := fields.get("volumes")
	for _, n := range r.list(volumes) {
		source, bind, at := "", false, n
		if entry := r.mapping(n, 0); len(entry) > 0 {
			_, kind := entry.get("type")
			_, at = entry.get("source")
			source, bind = text(at), text(kind) == "bind"
			if !bind && text(kind) != "volume" {
				continue
			}
		} else {
			first, _, both := strings.Cut(text(n), ":")
			if !both {
				continue // a volume without a name
			}
			source, bind = first, strings.HasPrefix(first, ".")
		}
		switch {
		case source == "" || !isFixed(source) || strings.HasPrefix(source, "/") || strings.HasPrefix(source, "~"):
		case bind:
			r.slip(at, "name an absolute path, or a volume for data", "the service %s mounts %s, which is not beside the compose file on the device", quote(name), quote(clip(source)))
		case !r.has(r.volumes, source):
			r.slip(at, "declare it under volumes at the end of the file", "the volume %s of the service %s is not declared", quote(clip(source)), quote(name))
		}
	}
}
