// Package gitopsd_test holds the tree to its rules: which package may import
// which and why, what the planner and the simulation may not touch, and that
// everything exported is documented.
//
// It tests no behaviour: each package does that for itself, and tests of
// cmd/gitopsd for all of them together.
//
// A new package gets its place in layers; a rule that is broken names its
// reason. Files are read, nothing is built.
package gitopsd_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/gitopsd/gitopsd"

// layer says what of this module a folder may import, itself and what lies
// below it included, and why not more.
type layer struct {
	folder string
	may    []string
	reason string
}

// layers are looked through from the top; the first whose folder holds a
// package decides. Tests may import more: they prefer the real thing.
var layers = []layer{
	{"schema", nil, "the daemon, the agent and the validator share the kinds, so the kinds know none of them"},
	{"planner", nil, "a plan is values in and values out: whoever reads it needs no other package"},
	{"repo", nil, "it moves bytes, paths and revisions, and must not care what they mean"},
	{"agentsync", []string{"schema"}, "what only the daemon needs must not cost a device memory"},
	{"reconcile", []string{"schema"}, "what only the daemon needs must not cost a device memory"},
	{"internal/sweep", []string{"schema", "planner"}, "the daemon declares the repository that it needs as an interface, so that its tests can fail every call"},
	{"internal/preview", []string{"schema", "planner"}, "a preview is made of fleets and plans, whoever loaded them"},
	{"internal/simulate", []string{"schema", "planner"}, "a simulation is the planner in a world of values: it needs no fleet repository"},
	{"internal/view", []string{"schema", "planner", "internal/preview", "internal/simulate"}, "a view is made of documents, not of a repository"},
	{"internal/gitserver", nil, "a test's server must not share mistakes with the client that it tests"},
	{"internal/githubtest", nil, "a test's server must not share mistakes with the client that it tests"},
	{"examples", nil, "an example is data"},
	{"internal", []string{"schema", "planner", "repo", "agentsync", "reconcile", "internal", "examples"}, "the command joins the packages, nothing imports the command"},
	{"cmd", []string{"schema", "planner", "repo", "agentsync", "reconcile", "internal", "examples"}, "a command is imported by nothing"},
}

// impure are imports that the planner, and the simulation of its future, must
// do without, and why.
var impure = map[string]string{
	"context":       "nothing in it waits",
	"crypto/rand":   "the same input must give the same plan",
	"io":            "it reads and writes nothing",
	"io/fs":         "it reads and writes nothing",
	"log":           "reasons are values in the result",
	"log/slog":      "reasons are values in the result",
	"math/rand":     "the same input must give the same plan",
	"math/rand/v2":  "the same input must give the same plan",
	"net":           "it talks to nobody",
	"net/http":      "it talks to nobody",
	"os":            "it depends on nothing but its input",
	"os/exec":       "it depends on nothing but its input",
	"path/filepath": "it knows no files",
	"runtime":       "it depends on nothing but its input",
	"sync":          "it has no goroutines",
	"sync/atomic":   "it has no goroutines",
	"syscall":       "it depends on nothing but its input",
	"unsafe":        "it depends on nothing but its input",
}

// clocks are the functions of package time that look at a clock.
var clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// outside are imports of other modules that belong to one place.
var outside = []struct{ prefix, reason string }{
	{"github.com/go-git/go-git", "git is the business of package repo alone: its pitfalls are known there"},
	{"github.com/spf13/cobra", "command lines are the business of cmd/gitopsd alone"},
	{"github.com/google/go-github", "the API is the business of internal/github alone: its limits are kept there"},
}

var outsideAllowed = map[string]string{
	"github.com/go-git/go-git": "repo",
	"github.com/spf13/cobra":   "cmd/gitopsd",

	"github.com/google/go-github": "internal/github",
}

type file struct {
	folder string // slash-separated, "." for the root
	name   string
	test   bool
	tree   *ast.File
}

// goFiles parses every Go file of the module.
func goFiles(t *testing.T) []file {
	t.Helper()
	var files []file
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"testdata", "bin", "vendor"}, d.Name())) {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(p) != ".go" {
			return nil
		}
		tree, err := parser.ParseFile(fset, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		slash := filepath.ToSlash(p)
		files = append(files, file{path.Dir(slash), slash, strings.HasSuffix(p, "_test.go"), tree})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("found only %d Go files: the walk looks at the wrong place", len(files))
	}
	return files
}

func imports(f file) []string {
	var list []string
	for _, i := range f.tree.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err == nil {
			list = append(list, p)
		}
	}
	return list
}

func within(folder, parent string) bool {
	return folder == parent || strings.HasPrefix(folder, parent+"/")
}

// breach says which rule an import breaks; "" is none.
func breach(folder, imported string) string {
	for _, o := range outside {
		if strings.HasPrefix(imported, o.prefix) && !within(folder, outsideAllowed[o.prefix]) {
			return o.reason
		}
	}
	ours, found := strings.CutPrefix(imported, module+"/")
	if !found {
		return ""
	}
	for _, l := range layers {
		if !within(folder, l.folder) {
			continue
		}
		if within(ours, l.folder) || slices.ContainsFunc(l.may, func(m string) bool { return within(ours, m) }) {
			return ""
		}
		return l.reason
	}
	return "no layer of this test names the folder " + folder
}

func TestArrows(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		for _, imported := range imports(f) {
			if reason := breach(f.folder, imported); reason != "" {
				t.Errorf("%s imports %s, but %s", f.name, imported, reason)
			}
		}
	}
}

func TestArrowsAreHeld(t *testing.T) {
	for _, c := range []struct {
		folder, imported string
		want             bool // allowed
	}{
		{"schema", module + "/planner", false},
		{"planner", module + "/schema", false},
		{"repo", module + "/schema", false},
		{"agentsync", module + "/schema", true},
		{"agentsync", module + "/repo", false},
		{"reconcile/internal/files", module + "/reconcile/internal/disk", true},
		{"reconcile", module + "/planner", false},
		{"internal/sweep", module + "/repo", false},
		{"internal/sweep", module + "/planner", true},
		{"internal/demo", module + "/repo", true},
		{"cmd/gitopsd", module + "/internal/sweep", true},
		{"internal/demo", module + "/cmd/gitopsd", false},
		{"elsewhere", module + "/schema", false},
		{"internal/sweep", "github.com/go-git/go-git/v5", false},
		{"repo", "github.com/go-git/go-git/v5/plumbing", true},
		{"schema", "strings", true},
	} {
		if got := breach(c.folder, c.imported) == ""; got != c.want {
			t.Errorf("%s may import %s: got %v, want %v", c.folder, c.imported, got, c.want)
		}
	}
}

func TestPlannerIsPure(t *testing.T) {
	seen := 0
	for _, f := range goFiles(t) {
		if f.test || !within(f.folder, "planner") && !within(f.folder, "internal/simulate") {
			continue
		}
		seen++
		for _, imported := range imports(f) {
			if imported == "context" && within(f.folder, "internal/simulate") {
				continue // years are simulated for minutes, and a person may have enough of it
			}
			if reason, is := impure[imported]; is {
				t.Errorf("%s imports %s, but %s", f.name, imported, reason)
			}
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clocks, s.Sel.Name) {
					t.Errorf("%s uses time.%s, but now is a field of its input", f.name, s.Sel.Name)
				}
			}
			if g, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s starts a goroutine at offset %d, but a plan is one function", f.name, g.Pos())
			}
			return true
		})
	}
	if seen == 0 {
		t.Fatal("found no file of the planner")
	}
}

func TestEveryPackageHasAComment(t *testing.T) {
	has := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		has[f.folder] = has[f.folder] || f.tree.Doc != nil && strings.TrimSpace(f.tree.Doc.Text()) != ""
	}
	for folder, ok := range has {
		if !ok {
			t.Errorf("package %s has no package comment", folder)
		}
	}
}

func TestExportedIdentifiersAreDocumented(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		for _, d := range f.tree.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%s: exported %s has no doc comment", f.name, name)
			}
		}
	}
}

// undocumented lists what a declaration exports without a doc comment. A
// comment on a group of constants or variables counts for all of them.
func undocumented(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) && !implements(d) {
			return []string{d.Name.Name}
		}
	case *ast.GenDecl:
		if d.Doc != nil {
			return nil
		}
		var names []string
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Doc == nil && s.Name.IsExported() {
					names = append(names, s.Name.Name)
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() && s.Doc == nil && s.Comment == nil {
						names = append(names, n.Name)
					}
				}
			}
		}
		return names
	}
	return nil
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if index, ok := of.(*ast.IndexExpr); ok {
		of = index.X
	}
	name, ok := of.(*ast.Ident)
	return ok && name.IsExported()
}

// implements leaves out methods whose contract stands at an interface that
// every reader of Go knows.
func implements(d *ast.FuncDecl) bool {
	known := []string{"Error", "String", "Unwrap", "Is", "Len", "Less", "Swap", "Read", "Write", "Close"}
	return d.Recv != nil && slices.Contains(known, d.Name.Name)
}
