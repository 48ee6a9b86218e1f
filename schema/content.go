package schema

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

func itoa(i int) string { return strconv.Itoa(i) }

// content is what one blob says as a document of one kind. It depends on
// nothing else, so it is worked out once for each content id.
type content struct {
	kind     Kind
	data     []byte
	problems []Problem // without their file
	broken   bool      // one of the problems is an error

	// The one of the kind is set, also when broken, then with what could be
	// made out; none is set where the blob is no readable YAML.
	policy  *Policy
	release *Release
	overlay *Overlay
	device  *Device
	fleet   *FleetDocument
}

func newContent(kind Kind, data []byte) *content {
	doc, problems := readDocument(data)
	return contentOf(kind, data, doc, problems)
}

// contentOf is newContent for what was read already.
func contentOf(kind Kind, data []byte, doc *document, problems []Problem) *content {
	c := &content{kind: kind, data: data, problems: withoutSealed(problems), broken: true}
	if doc == nil {
		return c
	}
	var dst any
	switch kind {
	case KindPolicy:
		c.policy = &Policy{}
		dst = c.policy
	case KindRelease:
		c.release = &Release{}
		dst = c.release
	case KindOverlay:
		c.overlay = &Overlay{}
		dst = c.overlay
	case KindFleet:
		c.fleet = &FleetDocument{}
		dst = c.fleet
	default:
		c.device = &Device{}
		dst = c.device
	}
	into := reflect.ValueOf(dst).Elem()
	c.problems = withoutSealed(decodeDocument(doc, kind, into))
	c.broken = hasErrors(c.problems)
	if c.broken {
		// Not filled where the schema refused it: take what fits.
		into.SetZero()
		var f filler
		f.fill(into, doc.value, "")
	}
	return c
}

// desired is the tree that this document adds to a spec.
func (c *content) desired() map[string]any {
	switch {
	case c.release != nil:
		return c.release.Spec
	case c.overlay != nil:
		return c.overlay.Spec.Desired
	case c.device != nil:
		return c.device.Spec.Desired
	}
	return nil
}

func (c *content) metadata() *Metadata {
	switch {
	case c.policy != nil:
		return &c.policy.Metadata
	case c.release != nil:
		return &c.release.Metadata
	case c.overlay != nil:
		return &c.overlay.Metadata
	case c.device != nil:
		return &c.device.Metadata
	}
	return nil
}

// file is a document at its path: sources are relative to it.
type file struct {
	path    string
	id      string
	place   placed
	content *content
	desired map[string]any // with sources from the root of the repository
	sources []sourceRef
	// problems are those that the path alone decides: names and sources that
	// no tree could satisfy.
	problems []Problem
	broken   bool
	doc      *document // while the file is being made, once a problem needed a position
}

// sourceRef is one payload that a document names.
type sourceRef struct {
	pointer  string
	keys     []string // of what has it, in the spec
	path     string   // from the root; "" where it is not a legal one
	template bool
}

func newFile(p, id string, where placed, c *content) *file {
	f := &file{path: p, id: id, place: where, content: c, broken: c.broken}
	for _, prob := range c.problems {
		prob.File = p
		f.problems = append(f.problems, prob)
	}
	f.checkName()
	f.resolveSources()
	sortProblems(f.problems)
	f.doc = nil
	return f
}

func (f *file) find(found finding) {
	if f.doc == nil {
		f.doc, _ = readDocument(f.content.data)
	}
	if f.doc == nil {
		return
	}
	p := f.doc.place(found)
	p.File = f.path
	f.problems = append(f.problems, p)
	f.broken = f.broken || p.Severity == SeverityError
}

func (f *file) checkName() {
	meta := f.content.metadata()
	if meta == nil {
		return
	}
	if meta.Name != "" && meta.Name != f.place.name {
		f.find(finding{pointer: "/metadata/name", rule: ruleName,
			msg: fmt.Sprintf("the name %s differs from the file name %s", quote(meta.Name), quote(f.place.name)), hint: "make them equal"})
	}
	switch f.place.kind {
	case KindRelease:
		if !isVersion(f.place.name) {
			f.find(finding{pointer: "/metadata/name", rule: ruleVersion, msg: fmt.Sprintf("the file name %s is no version", quote(f.place.name)), hint: versionHint})
		}
		if !idForm.MatchString(f.place.line) {
			f.find(finding{pointer: "/metadata/name", rule: ruleID, msg: fmt.Sprintf("%s is no name for a release line", quote(f.place.line)), hint: idHint})
		}
	default:
		if !idForm.MatchString(f.place.name) {
			f.find(finding{pointer: "/metadata/name", rule: ruleID, msg: fmt.Sprintf("the file name %s is no legal name", quote(f.place.name)), hint: idHint})
		}
	}
}

// policy is the policy under the name of its file, which is the one that
// counts where the two differ.
func (f *file) policy() *Policy {
	p := f.content.policy
	if p.Metadata.Name == f.place.name {
		return p
	}
	named := *p
	named.Metadata.Name = f.place.name
	return &named
}

// specKeys is where the desired tree stands in the document.
func (f *file) specKeys() []string {
	if f.place.kind == KindRelease {
		return []string{"spec"}
	}
	return []string{"spec", "desired"}
}

// resolveSources turns the sources of a document into paths from the root.
func (f *file) resolveSources() {
	f.desired, _ = withContents(f.content.desired(), func(keys []string, entry map[string]any) (map[string]any, error) {
		source, _ := entry["source"].(string)
		if source == "" {
			return entry, nil
		}
		at := joinPointer(append(append(f.specKeys(), keys...), "source")...)
		full, err := sourcePath(path.Dir(f.path), source)
		if err != nil {
			f.find(finding{pointer: at, rule: ruleSourcePath, msg: err.Error(), hint: "write it as files/name, from the root of the repository, or as ./name, beside this document"})
			return entry, nil
		}
		f.sources = append(f.sources, sourceRef{pointer: at, keys: slices.Clone(keys), path: full, template: entry["template"] == true})
		entry = cloneMap(entry)
		entry["source"] = full
		return entry, nil
	})
}

func cloneMap(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// sourcePath gives the path from the root of the repository. It never leaves
// the repository, nor does it need to be cleaned: one file has one spelling.
func sourcePath(dir, source string) (string, error) {
	full := source
	rest, beside := strings.CutPrefix(source, "./")
	if beside {
		full = dir + "/" + rest
	}
	switch {
	case strings.HasPrefix(source, "/"):
		return "", fmt.Errorf("the source %s is absolute", quote(source))
	case len(source) > 1 && source[1] == ':':
		return "", fmt.Errorf("the source %s begins with a drive", quote(source))
	}
	if msg := hostilePath(full); msg != "" {
		return "", errors.New("the source " + quote(source) + ": " + msg)
	}
	return full, nil
}
