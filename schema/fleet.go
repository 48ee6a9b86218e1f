package schema

import (
	"slices"
	"sort"
	"sync"
	"time"
)

// Fleet is one revision, as far as it could be read.
type Fleet struct {
	Problems []Problem // sorted by file, line, column, rule
	Files    int       // documents read
	// Policies are those whose file could be read, sorted by name. One whose
	// file has problems holds what could be made out, so that what only
	// restricts (paused, enabled: false) is known of a broken revision too.
	Policies []*Policy
	// Devices are those whose file could be read, sorted by path; a hold is
	// known of a device whose file has other problems.
	Devices []*Member
	// Document is fleet.yaml, what holds over all policies; nil = there is
	// none, or it is no readable YAML. Like a policy it holds what could be
	// made out where it has problems.
	Document *FleetDocument

	index    sync.Once
	byID     map[string]*Member
	byPolicy map[string]*Policy
	states   map[*Member]*deviceState
	releases map[releaseKey]string
	zones    map[string]*time.Location
	files    map[string]*file   // of policies and of the fleet's document, by path
	writers  []*file            // releases and overlays
	sources  map[string]Payload // by path
}

// ReleaseDigest identifies the content of a release with its payloads,
// "sha256:<hex>"; "" where there is none or it has problems. It is known for
// what some policy or device is to go to. Unlike a rollout digest it does not
// depend on which overlays select somebody now.
func (f *Fleet) ReleaseDigest(line, version string) string {
	return f.releases[releaseKey{line, version}]
}

// Valid says whether no problem is an error.
func (f *Fleet) Valid() bool { return !hasErrors(f.Problems) }

// Advised adds what somebody else found to the problems of the fleet, in
// order. The place of each is found by its pointer, in the file of a policy or
// in the document of the fleet.
func (f *Fleet) Advised(found []Problem) []Problem {
	positions := map[string]*document{}
	all := append([]Problem{}, f.Problems...)
	for _, prob := range found {
		doc, read := positions[prob.File]
		if file := f.files[prob.File]; file != nil && !read {
			doc, _ = readDocument(file.content.data)
			positions[prob.File] = doc
		}
		if doc != nil {
			_, at, _ := doc.locate(splitPointer(prob.Pointer))
			prob.Line, prob.Column = at.Line, at.Column
		}
		all = append(all, prob)
	}
	sortProblems(all)
	return all
}

// Unbroken says whether the file at a path, of a policy or of the fleet's
// document, has no problem that is an error.
func (f *Fleet) Unbroken(path string) bool {
	file := f.files[path]
	return file != nil && !file.broken
}

func (f *Fleet) indexed() {
	f.index.Do(func() {
		f.byID = make(map[string]*Member, len(f.Devices))
		for _, m := range f.Devices {
			if _, taken := f.byID[m.ID]; !taken {
				f.byID[m.ID] = m
			}
		}
		f.byPolicy = make(map[string]*Policy, len(f.Policies))
		for _, p := range f.Policies {
			if _, taken := f.byPolicy[p.Metadata.Name]; !taken {
				f.byPolicy[p.Metadata.Name] = p
			}
		}
	})
}

// Member finds a device by id; nil when there is none. Where an invalid fleet
// has two of one id, it is the first by path.
func (f *Fleet) Member(id string) *Member {
	f.indexed()
	return f.byID[id]
}

// Policy finds a policy by name; nil when there is none.
func (f *Fleet) Policy(name string) *Policy {
	f.indexed()
	return f.byPolicy[name]
}

// Member is one device of a fleet with all that was worked out about it.
type Member struct {
	ID       string
	Path     string // devices/berlin/gw-berlin-01.yaml
	Device   *Device
	Policy   string // that selects it; "" = none
	Wave     string // of its policy; "" = the rest
	Line     string // release line
	Version  string // the version it should be on: the pin, or the policy's target, or the own build; "" = there is none
	NoTarget string // why there is no target to go to; "" = there is one
	Pinned   bool
	Rollout  string    // rollout digest, "sha256:<hex>"; "" where NoTarget is set
	Rendered *Rendered // nil where NoTarget is set or the fleet is invalid for it
}

// Labels are what selectors and budgets go by.
func (m *Member) Labels() map[string]string {
	if m.Device == nil {
		return nil
	}
	return m.Device.Metadata.Labels
}

// Rendered is a desired spec as it would be assigned.
type Rendered struct {
	Spec     map[string]any     // sources replaced by payload digests, templates rendered, nulls dropped
	Digest   string             // of Spec, "sha256:<hex>"
	Payloads map[string]Payload // by "sha256:<hex>"
	Needs    []string           // capabilities that an agent must offer, sorted
}

// Payload is the content of a file that a spec names by digest: the very blob
// of the source branch (ID) or rendered bytes (Data).
type Payload struct {
	ID   string // content id in the source; "" = Data
	Data []byte
	Size int64
}

// Origin says where a value of a rendered spec was written.
type Origin struct {
	Pointer string `json:"pointer"`
	File    string `json:"file"`
	Line    int    `json:"line"`
}

// Origins gives for each leaf of the rendered spec of a device its document
// and line, sorted by pointer; nil where there is no rendered spec.
func (f *Fleet) Origins(id string) []Origin {
	m := f.Member(id)
	if m == nil || m.Rendered == nil {
		return nil
	}
	state := f.states[m]
	if state == nil {
		return nil
	}
	layers := state.layers()
	positions := make([]*document, len(layers))
	for i, l := range layers {
		positions[i], _ = readDocument(l.content.data)
	}
	var origins []Origin
	leaves(m.Rendered.Spec, nil, func(keys []string) {
		for i, l := range layers {
			at := append(append([]string{}, l.specKeys()...), asWritten(keys, l.desired)...)
			if positions[i] == nil || !isSet(l.desired, asWritten(keys, l.desired)) {
				continue
			}
			_, node, _ := positions[i].locate(at)
			origins = append(origins, Origin{Pointer: joinPointer(keys...), File: l.path, Line: node.Line})
			return
		}
	})
	sort.Slice(origins, func(i, j int) bool { return origins[i].Pointer < origins[j].Pointer })
	return origins
}

// asWritten is the pointer in a document of a pointer in a rendered spec: a
// payload stands there as source.
func asWritten(keys []string, desired map[string]any) []string {
	if entry, field, ok := contentAt(keys); ok && field == "payload" {
		return append(slices.Clone(entry), "source")
	}
	return keys
}

func isSet(tree map[string]any, keys []string) bool {
	return valueAt(tree, keys) != nil
}

// leaves calls f with the path of every scalar and every empty collection.
func leaves(v any, at []string, f func(keys []string)) {
	switch n := v.(type) {
	case map[string]any:
		for k, c := range n {
			leaves(c, append(at, k), f)
		}
		if len(n) > 0 {
			return
		}
	case []any:
		for i, c := range n {
			leaves(c, append(at, itoa(i)), f)
		}
		if len(n) > 0 {
			return
		}
	}
	f(append([]string{}, at...))
}
