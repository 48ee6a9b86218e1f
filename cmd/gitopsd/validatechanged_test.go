package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/internal/gitserver"
)

// committedFleet is a fleet in a repository: a policy, a release with a
// template, an overlay with its variable, and two devices, of which one has
// been wrong for long.
func committedFleet(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	const head = "apiVersion: gitopsd.dev/v1alpha1\n"
	putFiles(t, dir, map[string]string{
		"fleet/policies/edge.yaml":        head + "kind: Policy\nmetadata: {name: edge}\nspec:\n  enabled: true\n  selector: {matchLabels: {role: edge}}\n  targetVersion: v1.0.0\n",
		"fleet/releases/edge/v1.0.0.yaml": head + "kind: Release\nmetadata: {name: v1.0.0}\nspec: {files: {/etc/x: {source: files/x.conf, template: true}}}\n",
		"fleet/files/x.conf":              "dns={{ .vars.dns }}\n",
		"fleet/overlays/all.yaml":         head + "kind: Overlay\nmetadata: {name: all}\nspec:\n  selector: {}\n  vars: {dns: 192.0.2.1}\n",
		"fleet/devices/d-1.yaml":          head + "kind: Device\nmetadata: {name: d-1, labels: {role: edge}}\n",
		"fleet/devices/old.yaml":          head + "kind: Device\nmetadata: {name: old, labels: {role: edge}}\nspec: {hld: {}}\n",
		"elsewhere/devices/x.yaml":        "not: a fleet\n",
	})
	gitserver.Git(t, dir, "init", "-q", "-b", "main")
	commitAll(t, dir)
	return dir
}

func commitAll(t *testing.T, dir string) {
	t.Helper()
	gitserver.Git(t, dir, "add", "-A")
	gitserver.Git(t, dir, "commit", "-q", "-m", "change")
}

func replaceIn(t *testing.T, file, old, with string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(data), old) {
		t.Fatalf("%s has no %q: %v", file, old, err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(data), old, with, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

const before = "; there already at main: 1 error\n"

// What is shown is what the change can have caused, in its own files and in
// those that depend on them.
func TestChangedSince(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, fleet string)
		want   []string // begins of lines
		code   int
		said   string // at the end of standard error
	}{
		{"nothing", func(*testing.T, string) {}, nil, exitOK, "no new error in 5 documents, 2 devices" + before},
		{"the file itself", func(t *testing.T, fleet string) { replaceIn(t, fleet+"/policies/edge.yaml", "enabled", "enbled") },
			[]string{"policies/edge.yaml:5:3: unknown field"}, exitContent, "1 error in 5 documents, 2 devices; more may follow once these are mended" + before},
		{"a file that was wrong is touched", func(t *testing.T, fleet string) { replaceIn(t, fleet+"/devices/old.yaml", "labels:", "labels: ") },
			[]string{"devices/old.yaml:4:8: unknown field"}, exitContent, "1 error in 5 documents, 2 devices; more may follow once these are mended\n"},
		{"a variable that a template needs", func(t *testing.T, fleet string) { replaceIn(t, fleet+"/overlays/all.yaml", "dns:", "dnss:") },
			[]string{"files/x.conf:1: template: .vars.dns has no value (d-1"}, exitContent, before},
		{"a policy that lets a device go", func(t *testing.T, fleet string) {
			replaceIn(t, fleet+"/policies/edge.yaml", "role: edge", "role: gateway")
		},
			[]string{"devices/d-1.yaml: warning: no policy"}, exitOK, before},
		{"a release that is gone", func(t *testing.T, fleet string) {
			if err := os.Remove(fleet + "/releases/edge/v1.0.0.yaml"); err != nil {
				t.Fatal(err)
			}
		}, []string{"policies/edge.yaml:7:18: "}, exitContent, before},
		{"a payload that is gone", func(t *testing.T, fleet string) {
			if err := os.Remove(fleet + "/files/x.conf"); err != nil {
				t.Fatal(err)
			}
		}, []string{"releases/edge/v1.0.0.yaml:4:33: the source"}, exitContent, before},
		{"a device that moves", func(t *testing.T, fleet string) {
			if err := os.Mkdir(fleet+"/devices/site", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(fleet+"/devices/old.yaml", fleet+"/devices/site/old.yaml"); err != nil {
				t.Fatal(err)
			}
		}, []string{"devices/site/old.yaml:4:8: unknown field"}, exitContent, "1 error in 5 documents, 2 devices; more may follow once these are mended\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fleet := filepath.Join(committedFleet(t), "fleet")
			c.change(t, fleet)
			got := runs(nil, "validate", fleet, "--changed-since", "main")
			lines := strings.Split(strings.TrimSuffix(got.stdout, "\n"), "\n")
			if got.stdout == "" {
				lines = nil
			}
			ok := len(lines) == len(c.want) && got.code == c.code && strings.HasSuffix(got.stderr, c.said)
			for i := range min(len(lines), len(c.want)) {
				ok = ok && strings.HasPrefix(lines[i], c.want[i])
			}
			if !ok {
				t.Errorf("exit code %d\n%s%s\nwant %d, %q and %q", got.code, got.stdout, got.stderr, c.code, c.want, c.said)
			}
		})
	}
}

// What others merged after this branch began is no change of it.
func TestChangedSinceABranchThatWentOn(t *testing.T) {
	root := committedFleet(t)
	fleet := filepath.Join(root, "fleet")
	gitserver.Git(t, root, "checkout", "-q", "-b", "topic")
	replaceIn(t, fleet+"/policies/edge.yaml", "enabled: true", "enabled: false")
	commitAll(t, root)
	gitserver.Git(t, root, "checkout", "-q", "main")
	replaceIn(t, fleet+"/devices/old.yaml", "hld: {}", "")
	commitAll(t, root)
	gitserver.Git(t, root, "checkout", "-q", "topic")
	got := runs(nil, "validate", fleet, "--changed-since", "main", "-o", "json")
	var doc struct {
		Valid    bool
		Problems []any
		Since    struct {
			Revision, Commit string
			Errors, Warnings int
		} `json:"changedSince"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &doc); err != nil {
		t.Fatal(err)
	}
	parted := gitserver.Git(t, root, "merge-base", "main", "topic")
	if got.code != exitOK || doc.Valid || doc.Problems == nil || len(doc.Problems) > 0 || doc.Since.Revision != "main" || doc.Since.Commit != parted || doc.Since.Errors != 1 {
		t.Errorf("exit code %d, %+v, want the commit %s\n%s", got.code, doc, parted, got.stderr)
	}
}

func TestChangedSinceWhatIsNotThere(t *testing.T) {
	root := committedFleet(t)
	bare := t.TempDir()
	putFiles(t, bare, map[string]string{"policies/p.yaml": "apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: p}\nspec: {}\n"})
	replaceIn(t, root+"/fleet/policies/edge.yaml", "enabled", "enabled ")
	commitAll(t, root)
	cut := filepath.Join(t.TempDir(), "cut")
	gitserver.Git(t, "/", "clone", "-q", "--depth", "1", "file://"+root, cut)
	for _, c := range []struct {
		dir, revision string
		want          []string
	}{
		{root + "/fleet", "nope", []string{`cannot look at the revision "nope"`, "no such branch, tag or commit", "hint: `git log"}},
		{root + "/fleet", "\x1b[31m", []string{"cannot look at the revision", "hint: "}},
		{bare, "main", []string{"belongs to no git repository", "hint: name a clone"}},
		{cut + "/fleet", "HEAD~1", []string{"cannot look at the revision", "hint: ", "shallow"}},
	} {
		got := runs(nil, "validate", c.dir, "--changed-since", c.revision)
		for _, want := range c.want {
			if got.code != exitCannot || got.stdout != "" || !strings.Contains(got.stderr, want) || strings.Contains(got.stderr, "\x1b") {
				t.Errorf("%s: %+v, want %q", c.revision, got, want)
			}
		}
	}
	// Histories that have nothing in common are compared all the same, aloud.
	gitserver.Git(t, root, "branch", "alone", gitserver.Git(t, root, "commit-tree", "-m", "alone", "HEAD^{tree}"))
	if got := runs(nil, "validate", root+"/fleet", "--changed-since", "alone"); got.code != exitOK || !strings.Contains(got.stderr, "compared with alone itself") {
		t.Errorf("%+v", got)
	}
	// A revision without a fleet knew no problem.
	gitserver.Git(t, root, "checkout", "-q", "--orphan", "empty")
	gitserver.Git(t, root, "rm", "-rfq", "--cached", ".")
	gitserver.Git(t, root, "commit", "-q", "--allow-empty", "-m", "empty")
	if got := runs(nil, "validate", root+"/fleet", "--changed-since", "HEAD"); got.code != exitContent || !strings.Contains(got.stdout, "devices/old.yaml") {
		t.Errorf("%+v", got)
	}
}
