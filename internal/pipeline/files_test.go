package pipeline

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// root is the project's folder as seen from this package's.
const root = "../.."

// action is what of action.yml a runner reads; a field that is not here is a
// mistake, or one that the played runner would pass over.
type action struct {
	Name        string            `yaml:"name"`
	Description string            `yaml:"description"`
	Author      string            `yaml:"author"`
	Branding    map[string]string `yaml:"branding"`
	Inputs      map[string]struct {
		Description string  `yaml:"description"`
		Default     *string `yaml:"default"`
	} `yaml:"inputs"`
	Outputs map[string]struct {
		Description string `yaml:"description"`
		Value       string `yaml:"value"`
	} `yaml:"outputs"`
	Runs struct {
		Using string `yaml:"using"`
		Steps []step `yaml:"steps"`
	} `yaml:"runs"`
}

type step struct {
	ID    string            `yaml:"id"`
	Shell string            `yaml:"shell"`
	Run   string            `yaml:"run"`
	Env   map[string]string `yaml:"env"`
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// What comes from a pull request must never be part of a script, where it would
// be run; and a composite action must name the shell of each step.
func TestActionPutsNothingIntoItsScripts(t *testing.T) {
	var a action
	readYAML(t, "action.yml", &a)
	if a.Runs.Using != "composite" || len(a.Runs.Steps) == 0 {
		t.Fatalf("it is no composite action with steps: %+v", a.Runs)
	}
	for _, s := range a.Runs.Steps {
		if strings.Contains(s.Run, "${{") || s.Shell != "bash" {
			t.Errorf("step %s runs %q in %q", s.ID, s.Run, s.Shell)
		}
	}
	for name, in := range a.Inputs {
		if in.Description == "" || in.Default == nil {
			t.Errorf("input %s has no description or no default", name)
		}
	}
	// Only numbers and digests of the event are needed, no text of anybody's.
	text, err := os.ReadFile(filepath.Join(root, "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`github\.event\.[a-z_.]*`).FindAllString(string(text), -1) {
		if !strings.HasSuffix(m, ".sha") && !strings.HasSuffix(m, ".number") {
			t.Errorf("the action takes %s of the event", m)
		}
	}
}

// Each variable that a step is given is one that its script reads, and the
// other way round: a name that differs is empty, and nobody notices.
func TestActionGivesItsScriptsWhatTheyRead(t *testing.T) {
	var a action
	readYAML(t, "action.yml", &a)
	given := map[string]map[string]string{}
	for _, s := range a.Runs.Steps {
		given[s.ID] = s.Env
	}
	scripts := map[string][]string{"program": {"program.sh"}, "check": {"check.sh", "comment.sh"}}
	for id, files := range scripts {
		all := ""
		for _, f := range files {
			data, err := os.ReadFile(filepath.Join(root, "ci/github", f))
			if err != nil {
				t.Fatal(err)
			}
			all += string(data)
		}
		for name := range given[id] {
			if !regexp.MustCompile(`\$\{?` + name + `\b`).MatchString(all) {
				t.Errorf("step %s: %s is never read", id, name)
			}
		}
		for _, m := range regexp.MustCompile(`\$\{?([A-Z][A-Z_]+)\b`).FindAllStringSubmatch(all, -1) {
			name := m[1]
			if given[id][name] == "" && !strings.HasPrefix(name, "GITHUB_") && name != "RUNNER_TEMP" && name != "BASH_SOURCE" {
				t.Errorf("step %s: nobody gives it %s", id, name)
			}
		}
	}
}
