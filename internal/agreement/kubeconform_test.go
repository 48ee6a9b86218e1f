//go:build system

package agreement

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/gitopsd/gitopsd/schema"
)

// corpusSize is how many documents are compared.
const corpusSize = 2000

// schemaRules are the rules that a schema can say. What breaks none of them
// and is refused all the same breaks a rule that is beyond it.
var schemaRules = []string{"unknown-field", "missing-field", "wrong-type", "wrong-value", "out-of-range", "wrong-form", "wrong-size"}

// timeFields are the fields of a schema that are times. Kubeconform takes a
// format for a remark, so that any text of the right length passes there.
func timeFields(node any, into map[string]bool) {
	switch n := node.(type) {
	case map[string]any:
		for name, field := range asMap(n["properties"]) {
			if asMap(field)["$ref"] == "#/$defs/time" {
				into[name] = true
			}
		}
		for _, child := range n {
			timeFields(child, into)
		}
	case []any:
		for _, child := range n {
			timeFields(child, into)
		}
	}
}

// TestSystemKubeconformAgrees: of documents of every kind, kubeconform with
// our schemas refuses those that validate refuses for what a schema can say.
func TestSystemKubeconformAgrees(t *testing.T) {
	program := kubeconform(t)
	dir := t.TempDir()
	schemas := writeSchemas(t, dir)
	rng := rand.New(rand.NewPCG(5, 2000)) //nolint:gosec // a corpus that repeats itself
	type document struct {
		kind     schema.Kind
		text     []byte
		problems []schema.Problem
	}
	documents, times := map[string]document{}, map[string]bool{}
	kinds := schema.Kinds()
	for i := range corpusSize {
		k := kinds[i%len(kinds)]
		raw := schemaOf(t, k)
		timeFields(raw, times)
		c := &corpus{rng: rng, defs: asMap(raw["$defs"])}
		tree := c.value(raw, 0)
		if i%2 == 1 {
			tree = c.broken(tree)
		}
		// Without these, kubeconform does not know which schema is meant.
		asMap(tree)["apiVersion"], asMap(tree)["kind"] = schema.APIVersion, string(k)
		text, err := yaml.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, "documents", fmt.Sprintf("%04d-%s.yaml", i, strings.ToLower(string(k))))
		writeFile(t, name, text)
		documents[name] = document{k, text, schema.Decode(filepath.Base(name), text, blank(t, k))}
	}
	valid := verdicts(t, program, schemas, filepath.Join(dir, "documents"))
	if len(valid) != corpusSize {
		t.Fatalf("kubeconform speaks of %d documents", len(valid))
	}
	accepted, refused := 0, 0
	beyond := map[string]int{}
	for name, d := range documents {
		sayable, other := "", ""
		for _, p := range d.problems {
			if p.Severity != schema.SeverityError {
				continue
			}
			if p.Rule == "wrong-form" && times[p.Pointer[strings.LastIndexByte(p.Pointer, '/')+1:]] {
				other = "wrong-form of a time"
			} else if slices.Contains(schemaRules, p.Rule) {
				sayable += "\n" + p.Rule + ": " + p.Pointer + ": " + p.Message
			} else {
				other = p.Rule
			}
		}
		switch {
		case valid[name] && sayable == "" && other == "":
			accepted++
		case valid[name] && sayable == "":
			beyond[other]++
		case !valid[name] && sayable != "":
			refused++
		default:
			t.Errorf("kubeconform: valid %t; validate:%s %s\n%.1500s", valid[name], sayable, other, d.text)
		}
	}
	t.Logf("of %d documents both accept %d and refuse %d; validate alone refuses %v", corpusSize, accepted, refused, beyond)
	if accepted < corpusSize/5 || refused < corpusSize/5 {
		t.Errorf("of %d documents both accept %d and refuse %d: that shows little", corpusSize, accepted, refused)
	}
}

// verdicts gives what kubeconform says of each file below a folder.
func verdicts(t *testing.T, program, schemas, dir string) map[string]bool {
	t.Helper()
	cmd := exec.Command(program, "-strict", "-verbose", "-output", "json", "-schema-location", filepath.Join(schemas, "{{.ResourceKind}}.json"), dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var report struct {
		Resources []struct{ Filename, Status, Msg string }
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v\n%.1000s", err, out)
	}
	valid := map[string]bool{}
	for _, r := range report.Resources {
		switch r.Status {
		case "statusValid":
			valid[r.Filename] = true
		case "statusInvalid", "statusError": // the name is read before the schema is
			valid[r.Filename] = false
		default:
			t.Errorf("%s: %s: %s", r.Filename, r.Status, r.Msg)
		}
	}
	return valid
}
