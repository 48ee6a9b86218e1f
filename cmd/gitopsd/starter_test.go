package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/examples"
	"github.com/gitopsd/gitopsd/schema"
)

// commentedField is a field of the starter that a reader may switch on: other
// comments have a space behind the #.
var commentedField = regexp.MustCompile(`(?m)^( *)#([a-zA-Z]+:)`)

// Each field that the starter shows as a comment is valid when nothing but the
// # is taken away, alone and with the others.
func TestStarterCanBeUncommented(t *testing.T) {
	dir := t.TempDir()
	paths, err := writeStarter(dir, starterParts()...)
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
		if partOf(p) != partFleet || !strings.HasSuffix(p, ".yaml") {
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

// writeStarter writes parts of the starter below dir, and lists them.
func writeStarter(dir string, parts ...string) ([]string, error) {
	return (&starter{dir: dir, parts: parts}).write()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Every document of the starter and of the example has a schema in the settings
// for VS Code, and in its modeline where it has one: that of its kind, which is
// a file that init writes.
func TestEditorsFindTheSchemas(t *testing.T) {
	dir := t.TempDir()
	if _, err := writeStarter(dir, starterParts()...); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, ".vscode/settings.json"))
	if err != nil {
		t.Fatal(err)
	}
	var settings struct {
		Schemas map[string][]string `json:"yaml.schemas"`
	}
	if err := json.Unmarshal(data, &settings); err != nil {
		t.Fatal(err)
	}
	if len(settings.Schemas) != len(fleetKinds()) {
		t.Errorf("%d schemas for %d kinds", len(settings.Schemas), len(fleetKinds()))
	}
	bySettings := func(p string) string {
		found := ""
		for file, globs := range settings.Schemas {
			for _, g := range globs {
				form := strings.NewReplacer(".", `\.`, "**/", "(.*/)?", "*", "[^/]*").Replace(g)
				if regexp.MustCompile("^" + form + "$").MatchString(p) {
					found += file
				}
			}
		}
		return found
	}
	looked := 0
	for name, source := range map[string]fs.FS{"starter": os.DirFS(dir), "example": examples.FleetRepo()} {
		err := fs.WalkDir(source, ".", func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || partOf(p) != partFleet || !strings.HasSuffix(p, ".yaml") {
				return err
			}
			looked++
			text, err := fs.ReadFile(source, p)
			if err != nil {
				return err
			}
			kind := regexp.MustCompile(`(?m)^kind: (.*)$`).FindSubmatch(text)
			want := schemaFolder + "/" + schemaFile(schema.Kind(kind[1]))
			if _, err := os.Stat(filepath.Join(dir, want)); err != nil {
				return err
			}
			if got := bySettings(p); got != "./"+want {
				t.Errorf("%s: the settings name %q, want %q", p, got, want)
			}
			if line, ok := strings.CutPrefix(string(text), modeline+" $schema="); ok {
				named, _, _ := strings.Cut(line, "\n")
				if got := filepath.Join(filepath.Dir(p), named); got != want {
					t.Errorf("%s: the modeline names %q, want %q", p, got, want)
				}
			} else if name == "starter" {
				t.Errorf("%s has no modeline", p)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if looked < 10 {
		t.Errorf("only %d documents were looked at", looked)
	}
}

// Pipelines name the tag that this program was built from, or the branch.
func TestStarterNamesWhatIsPublished(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "v1.2.3", "devel": "main", "": "main", "v1.2.3-4-gabcdef0-dirty": "main",
		"v0.0.0-20261129235707-b41b10c00000": "main", "v1.2.3+dirty": "main",
	} {
		files, err := (&starter{dir: ".", parts: []string{partGitHub, partGitLab}, version: version, prefix: `a "b"/c`}).files()
		if err != nil {
			t.Fatal(err)
		}
		for path, lines := range map[string][]string{
			"../../.github/workflows/fleet.yaml": {"      - uses: gitopsd/gitopsd@" + want + "\n", `          directory: "a \"b\"/c"` + "\n"},
			"../../.gitlab-ci.yml": {"/gitopsd/gitopsd/" + want + "/ci/gitlab.yml\n", `  FLEET_GITOPSD_VERSION: "` + want + "\"\n",
				`  FLEET_DIRECTORY: "a \"b\"/c"` + "\n"},
		} {
			i := slices.IndexFunc(files, func(f starterFile) bool { return f.path == path })
			if i < 0 {
				t.Fatalf("no %s in %+v", path, files)
			}
			for _, line := range lines {
				if !strings.Contains(string(files[i].data), line) {
					t.Errorf("%q: %s has no line %q:\n%s", version, path, line, files[i].data)
				}
			}
		}
	}
}
