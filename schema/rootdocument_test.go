package schema

import (
	"fmt"
	"strings"
	"testing"
)

// A document at the root has no effect, and whoever put it there thinks that
// it has.
func TestDocumentsAtTheRootAreTold(t *testing.T) {
	const device = "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-1}\n"
	const hint = "documents of the kind Device lie below devices/"
	for _, c := range []struct{ name, path, text, msg, hint string }{
		{"a device", "gw-1.yaml", device, "nothing is read from the root but fleet.yaml", hint},
		{"a device with comments", "gw-1.yml", "# one\n---\n" + device, "nothing is read from the root but fleet.yaml", hint},
		{"quoted", "gw-1.yaml", strings.ReplaceAll(strings.ReplaceAll(device, "Device", `"Device"`), "gitopsd.dev/v1alpha1", "'gitopsd.dev/v1alpha1'"), "nothing is read from the root but fleet.yaml", hint},
		{"as Windows ends lines", "gw-1.yaml", strings.ReplaceAll(device, "\n", "\r\n"), "nothing is read from the root but fleet.yaml", hint},
		{"the fleet by another name", "limits.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Fleet\nspec: {}\n", "nothing is read from the root but fleet.yaml", "the document of the kind Fleet is fleet.yaml"},
		{"the configuration of a daemon", "serve.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: ServeConfig\nspec: {}\n", "", ""},
		{"of another program", "compose.yaml", "kind: Device\nservices: {}\n", "", ""},
		{"of another version of another program", "x.yaml", "apiVersion: v1\nkind: Policy\n", "", ""},
		{"a text that speaks of one", "x.yaml", "example: |\n  apiVersion: gitopsd.dev/v1alpha1\n  kind: Device\n", "", ""},
		{"no document by its name", "x.txt", device, "", ""},
		{"hidden", ".x.yaml", device, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := repoOf("-- devices/gw-2.yaml --\n"+strings.Replace(device, "gw-1", "gw-2", 1)).with(c.path, c.text)
			var got []string
			for _, p := range load(t, src).Problems {
				if p.File == c.path {
					got = append(got, fmt.Sprintf("%s %s: %s (%s)", p.Severity, p.Rule, p.Message, p.Hint))
				}
			}
			want := []string{fmt.Sprintf("error misplaced-document: %s (%s)", c.msg, c.hint)}
			if c.msg == "" {
				want = nil
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

// Each load reads them anew, so there is an end to it.
func TestRootDocumentsAreReadInBounds(t *testing.T) {
	src := repoOf("-- devices/gw-2.yaml --\nx\n")
	for i := range 10 * maxRootDocuments {
		src.files[fmt.Sprintf("x%d.yaml", i)] = "a: b\n"
	}
	if _, err := new(Loader).Load(src); err != nil {
		t.Fatal(err)
	}
	if n := src.reads.Load(); n > maxRootDocuments+10 {
		t.Errorf("%d reads", n)
	}
}
