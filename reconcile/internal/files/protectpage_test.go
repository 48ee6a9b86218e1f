package files

import (
	"os"
	"strings"
	"testing"
)

// The page of what the agent touches names all that is protected.
func TestPageNamesWhatIsProtected(t *testing.T) {
	text, err := os.ReadFile("../../../docs/explanation/what-the-agent-touches.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "## What no spec can touch")
	list, _, _ = strings.Cut(list, "\n## ")
	var paths []string
	for _, tree := range protectedTrees {
		paths = append(paths, tree.path)
	}
	for _, p := range append(paths, "/etc/systemd/system") {
		if !strings.Contains(list, "`"+p+"`") {
			t.Errorf("%s is protected, and the page does not say so", p)
		}
	}
}
