package main

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/internal/edit"
	"github.com/gitopsd/gitopsd/schema"
)

// workTree is a fleet repository in a folder, whose files a verb changes. The
// commit is left to the person.
type workTree struct {
	dir     string
	source  schema.Source
	entries []schema.Entry
	loader  *schema.Loader
	fleet   *schema.Fleet
}

func openWorkTree(dir, ownVersion string) (*workTree, error) {
	source, err := dirSource(dir)
	if err != nil {
		return nil, err
	}
	t := &workTree{dir: dir, source: source, loader: &schema.Loader{OwnVersion: ownVersion}}
	if t.fleet, err = t.loader.Load(source); err != nil {
		return nil, fmt.Errorf("%s in %s: %w", cannotReadFleet, dir, err)
	}
	if !looksLikeFleet(source, t.fleet) {
		return nil, noFleet(dir)
	}
	if t.entries, err = source.Entries(); err != nil {
		return nil, fmt.Errorf("%s in %s: %w", cannotReadFleet, dir, err)
	}
	return t, nil
}

// entry finds a path; nil = it is not there.
func (t *workTree) entry(path string) *schema.Entry {
	i, ok := slices.BinarySearchFunc(t.entries, path, func(e schema.Entry, p string) int { return strings.Compare(e.Path, p) })
	if !ok {
		return nil
	}
	return &t.entries[i]
}

// documentLimit is the size of a document that is changed, in bytes; no larger
// one validates.
const documentLimit = 1 << 20

// read reads a document as it stands there now.
func (t *workTree) read(path string) ([]byte, error) {
	e := t.entry(path)
	switch {
	case e == nil:
		return nil, fmt.Errorf("there is no %s", path)
	case e.Mode == schema.ModeSymlink:
		return nil, withHint(fmt.Errorf("cannot change %s: it is a symlink, which is not followed", path), "put the document itself there")
	case e.Mode == schema.ModeSubmodule:
		return nil, fmt.Errorf("cannot change %s: it is a repository of its own", path)
	}
	data, err := t.source.Read(*e, documentLimit)
	if err != nil {
		return nil, fmt.Errorf("cannot change %s: %w", path, err)
	}
	return data, nil
}

// policyFile finds the file of a policy, readable or not.
func (t *workTree) policyFile(name string) (string, error) {
	file := "policies/" + name + ".yaml"
	if !strings.Contains(name, "/") && t.entry(file) != nil {
		return file, nil
	}
	names := t.policies()
	err := fmt.Errorf("the fleet has no policy %q", name)
	if near := nearest(name, names); near != "" {
		return "", withHint(err, "did you mean %s?", near)
	}
	if m := t.fleet.Member(name); m != nil {
		return "", withHint(err, "%s is a device; its policy is %s", name, or(m.Policy, "none"))
	}
	return "", withHint(err, "it has %s; a policy's name is that of its file below policies/", or(some(names), "none"))
}

// policy finds a policy and its file.
func (t *workTree) policy(name string) (*schema.Policy, string, error) {
	file, err := t.policyFile(name)
	if err != nil {
		return nil, "", err
	}
	p := t.fleet.Policy(name)
	if p == nil {
		return nil, "", t.unreadable(file)
	}
	return p, file, nil
}

func (t *workTree) policies() []string {
	var names []string
	for _, p := range t.fleet.Policies {
		names = append(names, p.Metadata.Name)
	}
	return names
}

// deviceFile finds the file of a device, readable or not.
func (t *workTree) deviceFile(id string) (string, error) {
	var files []string
	for _, e := range t.entries {
		if strings.HasPrefix(e.Path, "devices/") && path.Base(e.Path) == id+".yaml" && !strings.Contains(e.Path, "/files/") {
			files = append(files, e.Path)
		}
	}
	switch {
	case len(files) > 1:
		return "", withHint(fmt.Errorf("there are several devices %q: %s", id, strings.Join(files, ", ")), "an id is unique in the whole repository: keep one of them")
	case len(files) == 1:
		return files[0], nil
	}
	_, err := findMember(t.fleet, id)
	if err == nil {
		err = fmt.Errorf("the file of the device %q was not found", id) // one that has another name
	}
	if t.fleet.Policy(id) != nil {
		return "", withHint(err, "%s is a policy", id)
	}
	return "", err
}

// unreadable says what keeps a document from being read at all.
func (t *workTree) unreadable(file string) error {
	var wrong []string
	for _, p := range t.fleet.Problems {
		if p.File == file && p.Severity == schema.SeverityError {
			wrong = append(wrong, problemText(p))
		}
	}
	return withHint(&exitError{code: exitContent, err: fmt.Errorf("cannot change %s, because it cannot be read:\n%s", file, strings.Join(wrong, "\n"))},
		"correct it first, or make the change by hand")
}

// fileChange is what a verb does to one file.
type fileChange struct {
	path   string
	before []byte        // nil = a new file
	after  []byte        // of a document
	copyOf *schema.Entry // a payload that is copied as it is; after is nil
}

// same says whether a change is none.
func (c fileChange) same() bool {
	return c.before != nil && string(c.before) == string(c.after)
}

// step is one edit of a document.
type step struct {
	path  []string
	value any  // nil = it goes
	more  bool // value is a string that a list gets
}

// edit applies steps to a document. What cannot be edited is an error that
// says what to write by hand.
func (t *workTree) edit(file string, form edit.Form, steps ...step) (fileChange, error) {
	before, err := t.read(file)
	if err != nil {
		return fileChange{}, err
	}
	after := before
	for _, s := range steps {
		switch {
		case s.value == nil:
			after, err = form.Remove(after, s.path)
		case s.more:
			after, err = form.Append(after, s.path, s.value.(string))
		default:
			after, err = form.Set(after, s.path, s.value)
		}
		if err != nil {
			return fileChange{}, byHand(file, steps, err)
		}
	}
	return fileChange{path: file, before: before, after: after}, nil
}

// byHand says what a person has to write where a document cannot be edited.
func byHand(file string, steps []step, err error) error {
	var hints []string
	for _, s := range steps {
		field := strings.Join(s.path, ".")
		switch {
		case s.value == nil:
			hints = append(hints, "remove "+field)
		case s.more:
			hints = append(hints, fmt.Sprintf("add %s to %s", s.value, field))
		default:
			written, setErr := edit.Form{}.Set([]byte(s.path[0]+": {}"), s.path, s.value)
			if setErr != nil {
				written = []byte(field)
			}
			hints = append(hints, "write "+string(written))
		}
	}
	text := err.Error()
	var refused *edit.RefusedError
	if errors.As(err, &refused) && refused.Line > 0 {
		return withHint(fmt.Errorf("cannot edit %s:%d: %s", file, refused.Line, refused.Why), "by hand: %s", strings.Join(hints, "; "))
	}
	return withHint(fmt.Errorf("cannot edit %s: %s", file, text), "by hand: %s", strings.Join(hints, "; "))
}

// some writes the first few of a list.
func some(list []string) string {
	const shown = 8 // a line of a terminal
	if len(list) > shown {
		return strings.Join(list[:shown], ", ") + fmt.Sprintf(" and %d more", len(list)-shown)
	}
	return strings.Join(list, ", ")
}
