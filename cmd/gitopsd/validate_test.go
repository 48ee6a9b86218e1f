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
	for name, n := range map[string]int{"list": len(schema.Rules()), "unknown-field": 1} {
		var doc ruleList
		got := runs(nil, "validate", "--explain", name, "-o", "json")
		if err := json.Unmarshal([]byte(got.stdout), &doc); err != nil || got.code != exitOK || doc.Kind != "RuleList" || len(doc.Rules) != n {
			t.Errorf("%s as JSON: %d rules, %v, exit code %d", name, len(doc.Rules), err, got.code)
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
