package reconcile

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// stateName is how this package and its controllers name what is in the state
// folder.
var stateName = regexp.MustCompile(`(?:\bstateDir \+ "/|\.[sS]tate, "|\blockName\s+= ")([a-z][a-zA-Z.-]*)"`)

// The page of what the agent touches names what the code keeps in the state
// folder, and nothing else.
func TestPageNamesTheState(t *testing.T) {
	told := namesOnPage(t)
	var kept []string
	err := filepath.WalkDir(".", func(p string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(p) != ".go" || strings.HasSuffix(p, "_test.go") {
			return err
		}
		text, err := os.ReadFile(p)
		for _, m := range stateName.FindAllStringSubmatch(string(text), -1) {
			kept = append(kept, m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(kept)
	if kept = slices.Compact(kept); !slices.Equal(told, kept) {
		t.Errorf("the page names\n%v\nand the code\n%v", told, kept)
	}

	entries, err := os.ReadDir(onV1(t).host(stateDir))
	if err != nil || len(entries) == 0 {
		t.Fatal("no state after an update", err)
	}
	for _, e := range entries {
		if name := strings.TrimRight(e.Name(), ".0123456789"); !slices.Contains(told, name) {
			t.Errorf("an update leaves %s, and the page does not name it", e.Name())
		}
	}
}

// namesOnPage are the first cells of the page's table of the state, sorted.
func namesOnPage(t *testing.T) []string {
	t.Helper()
	const page = "../docs/explanation/what-the-agent-touches.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Its own state")
	table, _, _ = strings.Cut(table, "\n## ")
	var names []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for i, word := range strings.Split(cells[1], "`") {
			if i%2 == 1 {
				names = append(names, strings.TrimSuffix(strings.TrimSuffix(word, "/"), ".N"))
			}
		}
	}
	slices.Sort(names)
	return names
}
