package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"sigs.k8s.io/yaml"

	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/schema"
)

// maxDropIns bounds the files of a drop-in folder that are looked at.
const maxDropIns = 100

// dropInFolder is where the drop-ins of a configuration file lie: agent.d
// beside agent.yaml.
func dropInFolder(file string) string {
	return strings.TrimSuffix(file, filepath.Ext(file)) + ".d"
}

// configPart is one file of a configuration.
type configPart struct {
	file string
	text string
	spec map[string]any
}

// agentFiles reads the agent's configuration from its files: one, and the
// drop-ins beside it, in the order of their names, merged over it as JSON merge
// patches of spec. A device must not lose its agent to a bad file: instead of
// one, its last good text counts, or it is left out, and warnings say so.
type agentFiles struct {
	file  string                          // "" = there is none
	asked bool                            // it was named
	judge func(*schema.AgentSpec) []error // what is wrong with a whole configuration
	root  string                          // of the device, "" = as configured

	spec     schema.AgentSpec
	warnings []string
	used     []configPart // in their order
	kept     map[string]string
	keptRead bool
}

// load fills spec, used and warnings. The error is for a file that cannot be
// read and never could.
func (f *agentFiles) load() error {
	base, err := f.base()
	if err != nil {
		return err
	}
	if base != nil {
		f.used = append(f.used, *base)
	} else {
		f.file = ""
	}
	why := f.whole(f.used)
	for _, file := range f.dropIns() {
		part, err := readPart(file)
		if err == nil {
			err = brought(why, f.whole(append(slices.Clone(f.used), *part)))
		}
		if err != nil {
			if part = f.lastGood(file, err); part == nil {
				continue
			}
		}
		f.used = append(f.used, *part)
		why = f.whole(f.used)
	}
	if len(why) > 0 {
		f.allKept(why[0])
	}
	return f.fill(&f.spec, f.used)
}

// now is what is bad of the files still, of those that were bad: a person may
// have mended them, which the running agent sees only with its next start.
func (f *agentFiles) now() []string {
	if len(f.warnings) == 0 {
		return nil
	}
	again := &agentFiles{file: or(f.file, defaultAgentConfig), asked: f.asked, judge: f.judge, root: f.root}
	switch err := again.load(); {
	case err != nil || slices.Equal(again.warnings, f.warnings):
		return f.warnings
	case !maps.Equal(again.texts(), f.texts()):
		again.warn("what was bad of the configuration was mended since the agent started: its next start reads it")
	}
	return again.warnings
}

// base reads the file itself; nil = there is none, and none was asked for.
func (f *agentFiles) base() (*configPart, error) {
	part, err := readPart(f.file)
	switch {
	case err == nil:
		return part, nil
	case errors.Is(err, fs.ErrNotExist) && !f.asked:
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, withHint(usagef("cannot read the configuration file: %w", err), "check --config; without it %s is read if it exists", defaultAgentConfig)
	}
	if part := f.lastGood(f.file, err); part != nil {
		return part, nil
	}
	var wrong *exitError
	if errors.As(err, &wrong) {
		return nil, err
	}
	return nil, usagef("cannot read the configuration file: %w", err)
}

// dropIns lists the drop-ins in their order.
func (f *agentFiles) dropIns() []string {
	file := f.file
	if file == "" {
		file = defaultAgentConfig
	}
	found, err := filepath.Glob(filepath.Join(quoteGlob(dropInFolder(file)), "*.yaml"))
	if err != nil {
		return nil
	}
	slices.Sort(found)
	if n := len(found); n > maxDropIns {
		f.warn("%s has %d files; those after %s are left out", dropInFolder(file), n, found[maxDropIns-1])
		found = found[:maxDropIns]
	}
	return found
}

// quoteGlob takes a path literally.
func quoteGlob(p string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(p)
}

// readPart reads one file and says what is wrong with it by itself. A pipe would
// keep the agent waiting.
func readPart(file string) (*configPart, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", file)
	}
	data, err := readAll(f, file, configLimit)
	if err != nil {
		return nil, err
	}
	return parsePart(file, data)
}

func parsePart(file string, data []byte) (*configPart, error) {
	var tree map[string]any
	parsed := yaml.Unmarshal(data, &tree)
	var doc schema.AgentConfig
	var wrong []error
	for _, p := range schema.Decode(file, data, &doc) {
		// A merge patch takes a field away with null.
		if p.Severity == schema.SeverityError && !(parsed == nil && isNull(tree, p.Pointer)) {
			wrong = append(wrong, errors.New(problemText(p)))
		}
	}
	if len(wrong) == 0 && parsed != nil {
		wrong = []error{parsed}
	}
	if len(wrong) > 0 {
		return nil, withHint(usagef("the configuration file has mistakes:\n%w", errors.Join(wrong...)), "gitopsd schema %s prints every field that it may have", schema.KindAgentConfig)
	}
	spec, _ := tree["spec"].(map[string]any)
	return &configPart{file: file, text: string(data), spec: spec}, nil
}

// isNull says whether a document has null at a JSON pointer.
func isNull(tree any, pointer string) bool {
	for _, key := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		m, ok := tree.(map[string]any)
		if !ok {
			return false
		}
		value, there := m[strings.NewReplacer("~1", "/", "~0", "~").Replace(key)]
		if !there {
			return false
		}
		tree = value
	}
	return tree == nil
}

// fill reads the parts as one configuration.
func (f *agentFiles) fill(spec *schema.AgentSpec, parts []configPart) error {
	merged := []byte("{}")
	for _, p := range parts {
		patch, err := json.Marshal(p.spec)
		if err == nil {
			merged, err = jsonpatch.MergePatch(merged, patch)
		}
		if err != nil {
			return fmt.Errorf("merge %s: %w", p.file, err)
		}
	}
	doc := schema.AgentConfig{TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindAgentConfig}}
	text, err := json.Marshal(map[string]any{"apiVersion": doc.APIVersion, "kind": doc.Kind, "spec": json.RawMessage(merged)})
	if err != nil {
		return err
	}
	for _, p := range schema.Decode("the merged configuration", text, &doc) {
		if p.Severity == schema.SeverityError {
			return usagef("%s", problemText(p))
		}
	}
	*spec = doc.Spec
	return nil
}

// whole is what is wrong with the parts together.
func (f *agentFiles) whole(parts []configPart) []error {
	var spec schema.AgentSpec
	if err := f.fill(&spec, parts); err != nil {
		return []error{err}
	}
	return f.judge(&spec)
}

// brought is what one more file has brought that is wrong; nil = nothing.
func brought(before, after []error) error {
	for _, err := range after {
		if !slices.ContainsFunc(before, func(b error) bool { return b.Error() == err.Error() }) {
			return err
		}
	}
	return nil
}

// lastGood is the text of a file when it was good last, where it still fits
// what is used before it; nil = it is left out.
func (f *agentFiles) lastGood(file string, err error) *configPart {
	what := oneProblem(err)
	if text, ok := f.keptTexts()[file]; ok {
		if part, err := parsePart(file, []byte(text)); err == nil && brought(f.whole(f.used), f.whole(append(slices.Clone(f.used), *part))) == nil {
			f.warn("%s is bad, and its last good text holds: %s", file, what)
			return part
		}
	}
	f.warn("%s is bad, and left out: %s", file, what)
	return nil
}

// allKept goes back to the files that were good together, where those of now
// are not.
func (f *agentFiles) allKept(why error) {
	var parts []configPart
	for file, text := range f.keptTexts() {
		part, err := parsePart(file, []byte(text))
		if err != nil {
			return
		}
		parts = append(parts, *part)
	}
	slices.SortFunc(parts, func(a, b configPart) int {
		if (a.file == f.file) != (b.file == f.file) {
			if a.file == f.file {
				return -1
			}
			return 1
		}
		return strings.Compare(a.file, b.file)
	})
	if len(parts) == 0 || len(f.whole(parts)) > 0 {
		return
	}
	f.warn("the configuration does not work, and the last good one holds: %s", oneProblem(why))
	f.used = parts
}

// keptTexts are those of the last start that had a good configuration. A
// configuration elsewhere knows nothing of them.
func (f *agentFiles) keptTexts() map[string]string {
	if f.keptRead {
		return f.kept
	}
	f.keptRead = true
	if f.file == "" {
		return nil // what was there was taken away
	}
	root := f.root
	if root == "" {
		var spec schema.AgentSpec
		_ = f.fill(&spec, f.used) // as far as it is known
		root = spec.Root
	}
	n, err := reconcile.OpenNotes(root)
	if err != nil {
		return nil
	}
	defer n.Close()
	kept, err := n.Config()
	if err != nil {
		return nil
	}
	if _, same := kept[f.file]; !same {
		return nil
	}
	f.kept = kept
	return kept
}

func (f *agentFiles) warn(format string, args ...any) {
	f.warnings = append(f.warnings, fmt.Sprintf(format, args...))
}

// oneProblem is an error in one line.
func oneProblem(err error) string {
	text := strings.TrimPrefix(err.Error(), "the configuration file has mistakes:\n")
	return clean(redactText(strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ")))
}

// texts are those that are used, by file, to be kept for a worse day.
func (f *agentFiles) texts() map[string]string {
	all := map[string]string{}
	for _, p := range f.used {
		all[p.file] = p.text
	}
	return all
}

// from is the file that says a field last, such as "repo.url".
func (f *agentFiles) from(field string) string {
	file := ""
	for _, p := range f.used {
		var at any = p.spec
		for _, key := range strings.Split(field, ".") {
			m, _ := at.(map[string]any)
			at = m[key]
		}
		if at != nil {
			file = p.file
		}
	}
	return file
}
