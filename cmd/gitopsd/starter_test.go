package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// commentedField is a field of the starter that a reader may switch on: other
// comments have a space behind the #.
var commentedField = regexp.MustCompile(`(?m)^( *)#([a-zA-Z]+:)`)

// Each field that the starter shows as a comment is valid when nothing but the
// # is taken away, alone and with the others.
func TestStarterCanBeUncommented(t *testing.T) {
	dir := t.TempDir()
	paths, err := writeStarter(dir)
	if err != nil {
		t.Fatal(err)
	}
	valid := func(what string) {
		t.Helper()
		source, err := schema.DirSource(dir)
		if err != nil {
			t.Fatal(err)
		}
		fleet, err := (&schema.Loader{}).Load(source)
		if err != nil {
			t.Fatal(err)
		}
		if len(fleet.Problems) > 0 || len(fleet.Devices) != 1 || fleet.Devices[0].Rendered == nil {
			t.Errorf("%s: %+v", what, fleet.Problems)
		}
	}
	valid("as it is")
	found := map[string]bool{}
	for _, p := range paths {
		if !strings.HasSuffix(p, ".yaml") {
			continue
		}
		full := filepath.Join(dir, p)
		before, err := os.ReadFile(full)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range commentedField.FindAllSubmatchIndex(before, -1) {
			field := strings.TrimSuffix(string(before[at[4]:at[5]]), ":")
			found[field] = true
			write(t, full, string(before[:at[3]])+string(before[at[4]:]))
			valid(p + " with " + field)
		}
		write(t, full, commentedField.ReplaceAllString(string(before), "$1$2"))
		valid(p + " with everything")
	}
	for _, want := range []string{"hold", "pin", "desired", "paused"} {
		if !found[want] {
			t.Errorf("the starter shows no %s", want)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
