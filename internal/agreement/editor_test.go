//go:build system

package agreement

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/gitopsd/gitopsd/schema"
)

// variant is one document of a fleet repository.
type variant struct {
	name string // for messages
	file string // in the repository
	text string
}

// kindAt is the kind of the documents at a path; "" = none is read there.
func kindAt(file string) schema.Kind {
	if path.Ext(file) != ".yaml" {
		return ""
	}
	switch top, rest, below := strings.Cut(file, "/"); {
	case file == "fleet.yaml":
		return schema.KindFleet
	case below && top == "policies":
		return schema.KindPolicy
	case below && top == "releases" && strings.Contains(rest, "/"):
		return schema.KindRelease
	case below && top == "overlays":
		return schema.KindOverlay
	case below && top == "devices":
		return schema.KindDevice
	}
	return ""
}

// variants are the documents of the wrong and right examples of every rule.
func variants() []variant {
	var all []variant
	for _, r := range schema.Rules() {
		for name, text := range map[string]string{"wrong": r.Wrong, "right": r.Right} {
			for _, part := range strings.Split("\n"+text, "\n-- ")[1:] {
				file, content, _ := strings.Cut(part, " --\n")
				if kindAt(file) != "" {
					all = append(all, variant{r.Name + ", " + name, file, strings.TrimSuffix(content, "\n") + "\n"})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b variant) int { return strings.Compare(a.name+a.file, b.name+b.file) })
	return all
}

// What an editor does not say, by rule: it reads what our reader refuses,
// because readers differ in it.
var strictReader = []string{"yaml-alias", "yaml-empty", "yaml-key", "yaml-multiple-documents", "yaml-number", "yaml-tag"}

// brokenExamples is how many documents of the example are changed in one place.
const brokenExamples = 150

// exampleVariants are the documents of the example repository, whole and with
// one thing changed.
func exampleVariants(t *testing.T) []variant {
	t.Helper()
	var all []variant
	const root = "../../examples/fleet-repo"
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file, _ := filepath.Rel(root, p)
		if file = filepath.ToSlash(file); kindAt(file) == "" {
			return nil
		}
		text, err := os.ReadFile(p)
		all = append(all, variant{"the example", file, string(text)})
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatal(err, len(all))
	}
	whole := all
	c := &corpus{rng: rand.New(rand.NewPCG(5, 150))} //nolint:gosec // variants that repeat themselves
	for i := range brokenExamples {
		v := whole[i%len(whole)]
		var tree any
		if err := yaml.Unmarshal([]byte(v.text), &tree); err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(c.broken(tree))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, variant{fmt.Sprintf("the example, broken %d", i), v.file, string(text)})
	}
	return all
}

// TestSystemEditorsSayTheSame: where a document breaks what a schema can say,
// yaml-language-server marks the lines that validate names, and no others. It
// finds the schema by a relative modeline, as a file.
func TestSystemEditorsSayTheSame(t *testing.T) {
	dir := t.TempDir()
	writeSchemas(t, dir)
	e := openEditor(t)
	all := append(variants(), exampleVariants(t)...)
	texts := map[string]string{}
	at := func(i int) string { return filepath.Join(dir, fmt.Sprint(i), all[i].file) }
	for i, v := range all {
		up := strings.Repeat("../", strings.Count(v.file, "/")+1)
		texts[at(i)] = fmt.Sprintf("# yaml-language-server: $schema=%s.gitopsd/schemas/%s.json\n%s", up, strings.ToLower(string(kindAt(v.file))), v.text)
	}
	said := e.look(texts)
	wrong, right := 0, 0
	for i, v := range all {
		kind, text := kindAt(v.file), texts[at(i)]
		ours, beyond, otherKind := map[int]string{}, []string{}, 0
		for _, p := range schema.Decode(v.file, []byte(text), blank(t, kind)) {
			switch {
			case p.Severity != schema.SeverityError:
			case p.Rule == "out-of-range" && p.Pointer == "/spec/maxInFlight": // 0 may stand in other fields of its form
				beyond = append(beyond, p.Rule)
			case p.Rule == "wrong-kind":
				otherKind = p.Line
			case slices.Contains(schemaRules, p.Rule), strings.HasPrefix(p.Rule, "yaml-") && !slices.Contains(strictReader, p.Rule):
				ours[p.Line] += p.Rule + ": " + p.Message + "; "
			default:
				beyond = append(beyond, p.Rule)
			}
		}
		theirs := map[int]string{}
		for _, d := range said[at(i)] {
			theirs[d.Range.Start.Line+1] += d.Message + "; "
		}
		if otherKind > 0 {
			// Of a document of another kind nothing more is said.
			if wrong++; theirs[otherKind] == "" {
				t.Errorf("%s, %s: the editor does not mark the kind in line %d: %v", v.name, v.file, otherKind, theirs)
			}
			continue
		}
		if len(ours) == 0 {
			right++
		} else {
			wrong++
		}
		if strings.HasPrefix(v.name, "yaml-syntax") && len(ours) == len(theirs) {
			continue // each parser notices in another line what is missing
		}
		if !slices.Equal(slices.Sorted(maps.Keys(ours)), slices.Sorted(maps.Keys(theirs))) {
			t.Errorf("%s, %s:\nvalidate: %v, and beyond a schema %v\nthe editor: %v\n%s", v.name, v.file, ours, beyond, theirs, text)
		}
	}
	t.Logf("%d wrong documents and %d right ones", wrong, right)
	if wrong < brokenExamples/2 || right < brokenExamples/2 {
		t.Errorf("%d wrong documents and %d right ones: that shows little", wrong, right)
	}
}
