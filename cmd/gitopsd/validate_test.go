package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/gitopsd/gitopsd/examples"
	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/internal/listing"
	"github.com/gitopsd/gitopsd/schema"
)

// ran is what a command left.
type ran struct {
	code           int
	stdout, stderr string
}

func runs(env []string, args ...string) ran {
	var out, err bytes.Buffer
	code := run(context.Background(), args, strings.NewReader(""), &out, &err, env)
	return ran{code, out.String(), err.String()}
}

func putFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// wrongVariants are changes of the example that somebody might make: files
// that take the place of its own.
const wrongVariants = "../../examples/testdata/wrong"

// exampleWith is the example with files of a folder in place of its own.
func exampleWith(t *testing.T, variant string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "fleet")
	if err := os.CopyFS(dir, examples.FleetRepo()); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(variant, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(variant, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		putFiles(t, dir, map[string]string{rel: string(data)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// What is wrong with the example is annotated at its line and column. With
// -update the annotations are written again.
func TestWrongVariantsOfTheExample(t *testing.T) {
	entries, err := os.ReadDir(wrongVariants)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		folder := filepath.Join(wrongVariants, e.Name())
		golden := folder + ".annotations"
		t.Run(filepath.Base(folder), func(t *testing.T) {
			dir := exampleWith(t, folder)
			got := runs([]string{"GITHUB_ACTIONS=true", "GITHUB_WORKSPACE=" + filepath.Dir(dir)}, "validate", dir)
			if *update {
				putFiles(t, ".", map[string]string{golden: got.stdout})
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got.stdout != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got.stdout, want)
			}
			code := exitContent
			if !strings.Contains(got.stdout, "::error ") {
				code = exitOK
			}
			if got.code != code || !strings.Contains(got.stdout, "::") {
				t.Errorf("exit code %d, want %d: %s", got.code, code, got.stderr)
			}
		})
	}
}

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
	before := strings.Repeat("x", listing.SummaryLimit-200) + "\n"
	putFiles(t, out, map[string]string{"nearly-full": before, "begun": "# mine\n"})
	for _, c := range []struct{ file, warns string }{
		{"nearly-full", ""}, {"begun", ""}, {"none/summary", "warning: no summary of the step: "}, {"", "warning: no summary of the step: "}, {"/dev/full", "is no file"},
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

// What a repository may hold by accident or on purpose is told of in every form,
// and does nothing there.
func TestHostileFleetIsOnlyToldOf(t *testing.T) {
	dir := starterFleet(t)
	const head = "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\n"
	putFiles(t, dir, map[string]string{
		"devices/\x1b[31mred.yaml":                       head,
		"devices/new\n::error::line.yaml":                head,
		"devices/::error::x.yaml":                        head,
		"devices/ ::add-mask::fleet.yaml":                head,
		"devices/##[error]old.yaml":                      head,
		"devices/<script>`|@octocat.yaml":                head,
		"devices/latin-\xff.yaml":                        head,
		"devices/binary.yaml":                            "\x7fELF\x02\x01\x01\x00\x00" + head,
		"devices/escapes.yaml":                           head + "metadata: {name: \"\\e[31m\\n::error::x\", labels: {role: '\u202e'}}\n",
		"devices/long.yaml":                              head + "metadata: {name: " + strings.Repeat("long", 50_000) + "}\n",
		"policies/" + strings.Repeat("n", 240) + ".yaml": head,
	})
	for _, form := range validateForms {
		got := runs(nil, "validate", dir, "-o", form)
		if got.code != exitContent || !strings.Contains(got.stdout, "binary.yaml") || !strings.Contains(got.stdout, "latin-") {
			t.Errorf("%s: exit code %d: %s", form, got.code, got.stderr)
		}
		for i, r := range got.stdout + got.stderr {
			if r != '\n' && unicode.IsControl(r) {
				t.Errorf("%s prints %q behind %q", form, r, (got.stdout + got.stderr)[max(0, i-40):i])
				break
			}
		}
		for line := range strings.Lines(got.stdout + got.stderr) {
			command := strings.HasPrefix(strings.TrimSpace(line), "::")
			if ours := form == formGitHub && (strings.HasPrefix(line, "::error file=") || strings.HasPrefix(line, "::warning file=") || strings.HasPrefix(line, "::group::and ") || line == "::endgroup::\n"); command && !ours {
				t.Errorf("%s has a command: %s", form, line)
			}
		}
	}
}

func TestExplainRule(t *testing.T) {
	for _, r := range schema.Rules() {
		got := runs(nil, "validate", "--explain", r.Name)
		if got.code != exitOK || got.stderr != "" || !strings.HasPrefix(got.stdout, r.Name+" ("+string(r.Severity)+")\n\n"+r.Summary+"\n") ||
			!strings.Contains(got.stdout, "\nWrong:") || !strings.Contains(got.stdout, "\nRight:") || !strings.HasSuffix(got.stdout, "rules.md#"+r.Name+"\n") {
			t.Errorf("%s: %+v", r.Name, got)
		}
	}
	list := runs(nil, "validate", "--explain", "list")
	if n := strings.Count(list.stdout, "\n"); list.code != exitOK || n != len(schema.Rules())+1 {
		t.Errorf("%d lines: %+v", n, list)
	}
	for name, want := range map[string]string{
		"unknown-feild": "hint: did you mean unknown-field?", "zzzzzzzzzzz": "hint: gitopsd validate --explain list names all rules",
		"\x1b[31m": `there is no rule "\\x1b[31m"`,
	} {
		if got := runs(nil, "validate", "--explain", name); got.code != exitUsage || got.stdout != "" || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v, want %s", name, got, want)
		}
	}
	if got := runs(nil, "validate", "somewhere", "--explain", "list"); got.code != exitUsage {
		t.Errorf("with a folder: %+v", got)
	}
}

// On a terminal the line is shown with a caret, whatever it holds.
func TestValidateOnATerminal(t *testing.T) {
	dir := exampleWith(t, wrongVariants+"/only-warnings")
	const columns = 60
	const evil = "\x1b[31m\u202e名"
	text := strings.ReplaceAll(onTerminal(t, columns, nil, "validate", dir), "\r\n", "\n")
	for _, want := range []string{
		"devices/berlin/gw-berlin-02.yaml: \x1b[33mwarning:\x1b[0m no policy ",
		"overlays/gateways.yaml:15:15: \x1b[33mwarning:\x1b[0m the variable\n\"apiToken\" looks like a secret; whoever can read the\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%q", want, text)
		}
	}
	if strings.Contains(text, "hunter2") {
		t.Errorf("what looks like a secret is shown:\n%s", text)
	}
	putFiles(t, dir, map[string]string{"policies/gateways.yaml": "apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: gateways, labels: {\"" + evil + "\": 名, x: \"" + strings.Repeat("y", 500) + "\"}}\nspec: {}\n"})
	terminal, other := pty(t, columns)
	read := make(chan string)
	go func() {
		var b bytes.Buffer
		_, _ = b.ReadFrom(other) // EIO at its end
		read <- b.String()
	}()
	code := run(context.Background(), []string{"validate", dir}, strings.NewReader(""), terminal, &bytes.Buffer{}, []string{"NO_COLOR=1"})
	terminal.Close()
	text = strings.ReplaceAll(<-read, "\r\n", "\n")
	if code != exitContent || !strings.Contains(text, "^") || !strings.Contains(text, `\x1b[31m\u202e`) || !strings.Contains(text, "hint: ") {
		t.Errorf("exit code %d\n%s", code, text)
	}
	for line := range strings.Lines(text) {
		n := 0
		for _, r := range strings.TrimSuffix(line, "\n") {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q reaches the terminal: %q", r, line)
			}
			if n++; r == '名' {
				n++
			}
		}
		if n > columns {
			t.Errorf("%d columns of %d: %s", n, columns, line)
		}
	}
}

// A repository of which all is wrong is told of in all forms, each within its
// limits.
func TestTenThousandProblems(t *testing.T) {
	const (
		devices  = 100
		problems = 100 * devices
	)
	dir := starterFleet(t)
	var fields strings.Builder
	for i := range problems / devices {
		fmt.Fprintf(&fields, "  wrong%03d: {}\n", i)
	}
	for i := range devices {
		putFiles(t, dir, map[string]string{fmt.Sprintf("devices/many/d-%03d.yaml", i): fmt.Sprintf(
			"apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: d-%03d, labels: {role: gateway}}\nspec:\n%s", i, &fields)})
	}
	out := t.TempDir()
	args := []string{"validate", dir, "-o", "github"}
	for _, form := range []string{"text", "junit", "sarif", "json"} {
		args = append(args, "-o", form+"="+filepath.Join(out, form))
	}
	summary := filepath.Join(out, "summary")
	got := runs([]string{"GITHUB_STEP_SUMMARY=" + summary}, args...)
	if got.code != exitContent || strings.Count(got.stdout, "::error ") != 10 || strings.Count(got.stdout, "\n") < problems {
		t.Errorf("exit code %d, %d annotations, %d lines: %s", got.code, strings.Count(got.stdout, "::error "), strings.Count(got.stdout, "\n"), got.stderr)
	}
	info, err := os.Stat(summary)
	if err != nil || info.Size() > listing.SummaryLimit || info.Size() < 1000 {
		t.Errorf("the summary: %v, %v", info, err)
	}
	data, err := os.ReadFile(filepath.Join(out, "text"))
	if err != nil || bytes.Count(data, []byte("\n")) < problems {
		t.Errorf("the text has %d lines, %v", bytes.Count(data, []byte("\n")), err)
	}
}
