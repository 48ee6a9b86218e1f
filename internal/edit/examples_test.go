package edit

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gitopsd/gitopsd/schema"
)

// documents are the policies and devices of the examples and of the starter,
// each with both line ends, with and without the last one.
func documents(t *testing.T) map[string][]byte {
	t.Helper()
	docs := map[string][]byte{}
	for _, root := range []string{"../../examples/fleet-repo", "../../cmd/gitopsd/starter"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			text, err := os.ReadFile(path)
			crlf := bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
			docs[path], docs[path+" crlf"] = text, crlf
			docs[path+" open"], docs[path+" crlf open"] = bytes.TrimSuffix(text, []byte("\n")), bytes.TrimSuffix(crlf, []byte("\r\n"))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return docs
}

func decode(t *testing.T, name string, doc []byte, v any) {
	t.Helper()
	for _, p := range schema.Decode(name, doc, v) {
		if p.Severity == schema.SeverityError {
			t.Fatalf("%s: %s\n%s", name, p.Message, doc)
		}
	}
}

// set sets a value, and wants it to be undone to the byte.
func set(t *testing.T, form Form, name string, doc []byte, at string, value any) []byte {
	t.Helper()
	edited, err := form.Set(doc, path(at), value)
	if err != nil {
		t.Fatalf("%s: set %s: %v", name, at, err)
	}
	back, err := form.Remove(edited, path(at)[:2])
	if err != nil || !bytes.Equal(back, doc) {
		t.Errorf("%s: set and removed %s: %v\n%s", name, at, err, Diff(name, doc, back))
	}
	return edited
}

// TestExamples: what the commands do to the documents of the project is what
// the kinds then say, and nothing else.
func TestExamples(t *testing.T) {
	now := time.Date(2026, 11, 29, 10, 2, 0, 0, time.UTC)
	seen := map[string]int{}
	for name, doc := range documents(t) {
		switch {
		case strings.Contains(name, "/policies/"):
			seen["policy"]++
			var before, after schema.Policy
			decode(t, name, doc, &before)
			edited := set(t, policyForm(t), name, doc, "spec.paused.reason", "trade fair: #7")
			decode(t, name, edited, &after)
			before.Spec.Paused = &schema.Reason{Reason: "trade fair: #7"}
			if d := cmp.Diff(before, after); d != "" {
				t.Errorf("%s: paused: %s", name, d)
			}
			edited, err := policyForm(t).Append(doc, path("spec.rollbackFrom"), "v9.0.0")
			if err != nil {
				t.Fatal(err)
			}
			decode(t, name, doc, &before)
			decode(t, name, edited, &after)
			before.Spec.RollbackFrom = append(before.Spec.RollbackFrom, "v9.0.0")
			if d := cmp.Diff(before, after); d != "" {
				t.Errorf("%s: rollbackFrom: %s", name, d)
			}
		case strings.Contains(name, "/devices/"):
			seen["device"]++
			var before, after schema.Device
			decode(t, name, doc, &before)
			edited := doc
			if before.Spec.Hold == nil {
				edited = set(t, deviceForm(t), name, doc, "spec.hold.reason", "mine")
			}
			edited = set(t, deviceForm(t), name, edited, "spec.forgetFailuresBefore", now)
			decode(t, name, edited, &after)
			if before.Spec.Hold == nil {
				before.Spec.Hold = &schema.Reason{Reason: "mine"}
			}
			before.Spec.ForgetFailuresBefore = &now
			if d := cmp.Diff(before, after); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
	}
	if seen["policy"] < 8 || seen["device"] < 8 {
		t.Errorf("the examples were not found: %v", seen)
	}
}
