package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/internal/listing"
)

// The report that fits is chosen where none is asked for on standard output.
func TestTheFittingReport(t *testing.T) {
	dir := exampleWith(t, wrongVariants+"/field-misspelled")
	t.Chdir(dir)
	summary := filepath.Join(t.TempDir(), "summary.md")
	actions := []string{"GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY=" + summary}
	const text = "policies/gateways.yaml:19:3: unknown field \"maxInflight\" [unknown-field] (did you mean maxInFlight?)\n"
	annotation := "::error file=policies/gateways.yaml,line=19,col=3,title=gitopsd unknown-field::unknown field \"maxInflight\"%0Adid you mean maxInFlight?\n"
	file := filepath.Join(t.TempDir(), "report")
	for _, c := range []struct {
		env  []string
		args []string
		want string
	}{
		{nil, nil, text},
		{actions, nil, annotation},
		{actions, []string{"-o", "text"}, text},
		{nil, []string{"-o", "github"}, annotation},
		{nil, []string{"-o", "text", "-o", "github"}, text + annotation},
		{nil, []string{"-o", "junit=" + file}, text},
		{actions, []string{"-o", "sarif=" + file, "-o", "json=" + file + ".json"}, annotation},
		{nil, []string{"-o", "text=" + file, "-o", "github=-"}, annotation},
		{[]string{"GITHUB_ACTIONS=false"}, nil, text},
	} {
		if got := runs(c.env, append([]string{"validate"}, c.args...)...); got.stdout != c.want || got.code != exitContent {
			t.Errorf("%v %v: exit code %d\n%s%s\nwant\n%s", c.env, c.args, got.code, got.stdout, got.stderr, c.want)
		}
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != text {
		t.Errorf("the text in a file: %q, %v", data, err)
	}
	// Two of the runs were steps that said github, and each adds to the summary.
	data, err := os.ReadFile(summary)
	if err != nil || strings.Count(string(data), "### gitopsd validate: 1 error in ") != 2 || !strings.Contains(string(data), "<code>policies/gateways.yaml&#58;19&#58;3</code>") {
		t.Errorf("the summary: %v\n%s", err, data)
	}
}

// All five in one run, into files and to standard output.
func TestSeveralReports(t *testing.T) {
	dir := exampleWith(t, wrongVariants+"/type-of-a-value")
	out := t.TempDir()
	in := func(name string) string { return filepath.Join(out, name) }
	putFiles(t, out, map[string]string{"v.xml": strings.Repeat("an older and longer report", 1000)})
	got := runs(nil, "validate", dir, "-o", "text="+in("v.txt"), "-o", "github="+in("v.log"), "-o", "junit="+in("v.xml"), "-o", "sarif="+in("v.sarif"), "-o", "json")
	if got.code != exitContent || !strings.HasPrefix(got.stdout, "{\n") {
		t.Fatalf("%+v", got)
	}
	for name, want := range map[string]string{
		"v.txt": "release.yaml:20:13: ", "v.log": ",line=20,col=13,", "v.xml": `tests="2" failures="2"`, "v.sarif": `"startColumn": 13`,
	} {
		data, err := os.ReadFile(in(name))
		if err != nil || !strings.Contains(string(data), want) || strings.Contains(string(data), "older") {
			t.Errorf("%s lacks %q: %v\n%s", name, want, err, data)
		}
	}
	left, err := os.ReadDir(out)
	if err != nil || len(left) != 4 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// A report that cannot be written is an error that says so, before anything
// was read where that can be known, and never half a file.
func TestReportsThatCannotBe(t *testing.T) {
	dir := exampleWith(t, wrongVariants+"/field-misspelled")
	t.Chdir(filepath.Dir(dir))
	putFiles(t, ".", map[string]string{"old.json": "old", "folder/x": ""})
	if err := os.Symlink("old.json", "link.json"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"-o junit=", exitUsage, "no file behind the =; write junit=FILE"},
		{"-o xml", exitUsage, "want text, github, junit, sarif or json"},
		{"-o serif", exitUsage, "did you mean sarif?"},
		{"-o json -o sarif", exitUsage, "one report at a time can go to standard output, and not json and sarif"},
		{"-o text -o json", exitUsage, "hint: name files: -o json=FILE"},
		{"-o text -o text", exitUsage, "-o text is there twice"},
		{"-o json=a -o sarif=./a", exitUsage, "-o json and -o sarif name the same file: ./a"},
		{"-o json=old.json -o sarif=link.json", exitUsage, "name the same file"},
		{"-o json=folder", exitCannot, "cannot write the json report to folder: it is a folder"},
		{"-o json=none/x/y.json", exitCannot, "hint: mkdir -p none/x makes it"},
		{"-o json=old.json/y.json", exitCannot, "cannot write the json report to old.json/y.json"},
		{"-o json=fleet/policies/gateways.yaml", exitUsage, "would be a part of the fleet"},
		{"-o json=/dev/full", exitCannot, "cannot write the json report to /dev/full: write /dev/full: no space left on device"},
		{"-o json=/dev/full -o sarif=v.sarif", exitCannot, "no space left"},
		{"--explain unknown-field --strict", exitUsage, "--explain goes without --strict"},
		{"--explain unknown-field -o sarif", exitUsage, "--explain goes with -o text or -o json"},
		{"--explain unknown-field -o json=rule.json", exitUsage, "--explain goes with -o text or -o json"},
		{"--changed-since=", exitUsage, "it is empty"},
	} {
		got := runs(nil, append([]string{"validate", "fleet"}, strings.Fields(c.args)...)...)
		if got.code != c.code || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%s: exit code %d, %s\nwant %d, %s", c.args, got.code, got.stderr, c.code, c.want)
		}
	}
	if data, err := os.ReadFile("old.json"); err != nil || string(data) != "old" {
		t.Errorf("a file of before has %q, %v", data, err)
	}
	if info, err := os.Stat("v.sarif"); err != nil || info.Size() == 0 {
		t.Errorf("one report that cannot be written kept another from being: %v", err)
	}
	// A link is written through, and a device is not replaced.
	if got := runs(nil, "validate", "fleet", "-o", "json=link.json", "-o", "sarif=/dev/null"); got.code != exitContent {
		t.Errorf("%+v", got)
	}
	if info, err := os.Lstat("link.json"); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is replaced: %v", err)
	}
	if data, err := os.ReadFile("old.json"); err != nil || !json.Valid(data) {
		t.Errorf("what the link names has %q, %v", data, err)
	}
	if info, err := os.Stat("/dev/null"); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Fatalf("/dev/null is replaced: %v", err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	var stderr bytes.Buffer
	if code := run(context.Background(), []string{"validate", "fleet"}, nil, full, &stderr, nil); code != exitCannot || !strings.Contains(stderr.String(), "cannot write the text report: ") {
		t.Errorf("standard output on a full disk: exit code %d, %s", code, stderr.String())
	}
}

// The summary of a step is a courtesy: where it cannot be written, the check
// goes on; and what other commands wrote stays, up to what GitHub shows.
func TestSummaryOfAStep(t *testing.T) {
	dir := exampleWith(t, wrongVariants+"/field-misspelled")
	out := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(out, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := strings.Repeat("x", listing.SummaryLimit-200) + "\n"
	putFiles(t, out, map[string]string{"nearly-full": before, "begun": "# mine\n"})
	for _, c := range []struct{ file, warns string }{
		{"nearly-full", ""}, {"begun", ""}, {"none/summary", "warning: no summary of the step: "}, {"", "warning: no summary of the step: "}, {"/dev/full", "is no file"}, {"pipe", "is no file"},
	} {
		file := c.file
		if !filepath.IsAbs(file) {
			file = filepath.Join(out, file)
		}
		got := runs([]string{"GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY=" + file}, "validate", dir)
		if got.code != exitContent || !strings.Contains(got.stderr, c.warns) || c.warns == "" && strings.Contains(got.stderr, "warning") {
			t.Errorf("%s: %+v", c.file, got)
		}
	}
	if data, err := os.ReadFile(filepath.Join(out, "nearly-full")); err != nil || !strings.HasPrefix(string(data), before) || len(data) > listing.SummaryLimit {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if data, err := os.ReadFile(filepath.Join(out, "begun")); err != nil || !strings.HasPrefix(string(data), "# mine\n### gitopsd validate: 1 error") {
		t.Errorf("%q, %v", data, err)
	}
}

// A pull request may bring a symlink where a pipeline writes its reports.
func TestReportsFollowNoLinkOfARepository(t *testing.T) {
	dir := exampleWith(t, wrongVariants+"/field-misspelled")
	elsewhere := t.TempDir()
	victim := filepath.Join(elsewhere, "victim")
	putFiles(t, elsewhere, map[string]string{"victim": "precious"})
	gitserver.Git(t, dir, "init", "-q", "-b", "main")
	for name, to := range map[string]string{"v.xml": victim, "new.xml": filepath.Join(elsewhere, "new"), "out": elsewhere} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for _, file := range []string{"v.xml", "./policies/../v.xml", "new.xml", "out/victim", filepath.Join(dir, "v.xml")} {
		if got := runs(nil, "validate", "-o", "junit="+file); got.code != exitCannot || !strings.Contains(got.stderr, "is a symlink in a git working tree") {
			t.Errorf("%s: %+v", file, got)
		}
		if got := runs(nil, "plan", "--comment-file", file); got.code == exitOK || !strings.Contains(got.stderr, "is a symlink in a git working tree") {
			t.Errorf("the comment to %s: %+v", file, got)
		}
	}
	if data, err := os.ReadFile(victim); err != nil || string(data) != "precious" {
		t.Errorf("the file of somebody else has %q, %v", data, err)
	}
	if list, err := os.ReadDir(elsewhere); err != nil || len(list) != 1 {
		t.Errorf("there is %v, %v", list, err)
	}
	// What leads to the working tree is nobody else's.
	if err := os.Symlink(dir, filepath.Join(elsewhere, "tree")); err != nil {
		t.Fatal(err)
	}
	if got := runs(nil, "validate", "-o", "junit="+filepath.Join(elsewhere, "tree", "mine.xml")); got.code != exitContent {
		t.Errorf("%+v", got)
	}
}

// Forges want paths from the root of the repository.
func TestReportsOfAFleetInASubfolder(t *testing.T) {
	fleet := exampleWith(t, wrongVariants+"/field-misspelled")
	root := filepath.Dir(fleet)
	for _, c := range []struct {
		name, root string
		env        []string
		git        bool
	}{
		{"alone", "", nil, false},
		{"workspace", "fleet/", []string{"GITHUB_WORKSPACE=" + root}, false},
		{"workspace elsewhere", "", []string{"GITHUB_WORKSPACE=" + t.TempDir()}, false},
		{"repository", "fleet/", nil, true},
		{"repository below the workspace", "fleet/", []string{"GITHUB_WORKSPACE=" + filepath.Dir(root)}, true},
	} {
		if c.git {
			gitserver.Git(t, root, "init", "-q", "-b", "main")
		}
		got := runs(c.env, "validate", fleet, "-o", "github")
		if want := "::error file=" + c.root + "policies/gateways.yaml,line="; !strings.HasPrefix(got.stdout, want) {
			t.Errorf("%s: got %s, want %s", c.name, got.stdout, want)
		}
		got = runs(c.env, "validate", fleet, "-o", "sarif")
		if want := fmt.Sprintf("%q: %q", "uri", c.root+"policies/gateways.yaml"); !strings.Contains(got.stdout, want) {
			t.Errorf("%s: no %s in %s", c.name, want, got.stdout)
		}
	}
}
