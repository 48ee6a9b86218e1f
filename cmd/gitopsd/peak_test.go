package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// What one document or template of at most 1 MiB may cost `gitopsd validate`,
// in MiB of the memory that the process ever had at once, program included.
const peakLimit = 200

const (
	docSize = 1 << 20 // bytes, the largest that is read
	// peakFile is where a measured process leaves its figure.
	peakFile = "GITOPSD_TEST_PEAK_FILE"
)

// measured runs its arguments as a process and writes the most memory that it
// had at once, in KiB, to the file that peakFile names. It stands between the
// tests and what they measure: the figure that Linux gives begins with that of
// the process which started it, and this one is small.
func measured() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		if err := os.WriteFile(os.Getenv(peakFile), []byte(strconv.FormatInt(usage.Maxrss, 10)), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

// peakOf runs gitopsd validate on a folder in a process of its own, and gives
// its peak in MiB, its exit code and what it printed.
func peakOf(t testing.TB, dir string) (mib int64, code int, out string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "peak")
	cmd := exec.Command("gitopsd-measured", "gitopsd", "validate", dir)
	cmd.Env = append(os.Environ(), peakFile+"="+file)
	var all bytes.Buffer
	cmd.Stdout, cmd.Stderr = &all, &all
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; it printed: %.500s", err, all.String())
	}
	kib, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10, cmd.ProcessState.ExitCode(), all.String()
}

// filled repeats a unit between a head and a tail up to the size of a document.
func filled(head, unit, tail string) string {
	return head + strings.Repeat(unit, (docSize-len(head)-len(tail))/len(unit)) + tail
}

const (
	bigDevice = "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: big}\nspec:\n"
	bigPolicy = "apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: big}\nspec:\n"
	bigFiles  = bigDevice + "  desired:\n    files:\n"
)

// worst is a text of up to 1 MiB, with a word that the answer has to hold.
type worst struct{ name, text, want string }

// worstDocuments are the worst of their kinds that were found. They are made
// when they are wanted: every process of the tests would carry a variable.
func worstDocuments() []worst {
	return []worst{
		{"values of one letter", filled(bigDevice+"  vars: {", "a,", "}"), "yaml-too-large"},
		{"empty keys", filled("", "?\n", ""), "yaml-too-large"},
		{"empty items with comments", filled("", "- #\n", ""), "yaml-too-large"},
		{"empty values with comments", filled("", "a: #\n", ""), "yaml-too-large"},
		{"items with comments", filled("a: [", "b, #x\n", "]"), "yaml-too-large"},
		{"keys of one letter", filled("", "a:\n", ""), "yaml-too-large"},
		{"an open list", filled("a: [", "a,", ""), "yaml-too-large"},
		{"pairs in a list", filled("[", "a: b,", "]"), "yaml-too-large"},
		{"maps in a list", filled(bigDevice+"  desired: [", "{a: {a: {a: {}}}},", "]"), "yaml-too-large"},
		{"items", filled("", "- a\n", ""), "yaml-too-large"},
		{"items in items", filled("", strings.Repeat("- ", 50)+"\n", ""), "yaml-"},
		// As many of them as are read.
		{"fewer values of one letter", bigDevice + "  vars: {" + strings.Repeat("a,", 249_000) + "}\n", "too-many-problems"},
		{"fewer empty keys", strings.Repeat("?\n", 166_000), "too-many-problems"},
		{"fewer empty items with comments", strings.Repeat("- #\n", 124_000), "yaml-too-large"},
		{"fewer empty values with comments", strings.Repeat("a: #\n", 124_000), "too-many-problems"},
		{"fewer keys of one letter", strings.Repeat("a:\n", 249_000), "too-many-problems"},
		{"fewer pairs in a list", "[" + strings.Repeat("a: b,", 166_000) + "]", "yaml-too-large"},
		{"fewer items of maps", strings.Repeat("- a:\n", 166_000), "yaml-too-large"},
		{"comments between keys", filled("", "a: bcdef\n\n#c\n", ""), "too-many-problems"},
		{"JSON", filled("{", `"abc": 1,`, `"b":1}`), "too-many-problems"},
		{"lists in each other", filled("", "[", ""), "yaml-"},
		{"anchors", filled("a: [", "&a abc,", "]"), "yaml-alias"},
		{"aliases", filled("a: &abc {}\nb: [", "*abc,", "*abc]"), "yaml-alias"},
		{"one key many times", filled(bigDevice+"  vars:\n", "    a: 1\n", ""), "yaml-duplicate-key"},
		{"unknown fields", bigDevice + numberedLines("  x%05x: 1\n", 49_000), "unknown-field"},
		{"wrong values", bigDevice + "  vars:\n" + numberedLines("    x%05x: 1\n", 49_000), "wrong-type"},
		{"numbers that readers differ in", bigDevice + "  vars:\n" + numberedLines("    x%05x: 01\n", 49_000), "too-many-problems"},
		{"a long text", filled(bigDevice+"  vars: {a: \"", "x", "\"}\n"), "wrong-"},
		{"escapes", filled(bigDevice+"  vars: {a: \"", `\x41`, "\"}\n"), "wrong-"},
		{"comments only", filled("", "#a\n\n", ""), "yaml-"},
		{"an expression with many values", filled(bigPolicy+"  selector: {matchExpressions: [{key: a, operator: In, values: [", "b-----------,", "]}]}\n"), "wrong-size"},
		{"many expressions", filled(bigPolicy+"  selector: {matchExpressions: [", "{key: a-long-key-of-a-label, operator: In, values: [value]},", "]}\n"), "wrong-size"},
		{"sources that are not there", bigFiles + numberedLines("      /a/%05x: {source: files/x%[1]x}\n", 24_000), "source-missing"},
		{"sources that leave the repository", bigFiles + numberedLines("      /a/%05x: {source: ../x}\n", 24_000), "source-path"},
		{"files that cannot be", bigFiles + numberedLines("      /a/../%05x: {content: a}\n", 9_900), "device-path"},
		{"templates without their value", bigFiles + numberedLines("      /a/%05x: {content: \"{{ .vars.x }}\", template: true}\n", 9_900), "template-render"},
	}
}

func numberedLines(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func worstTemplates() []worst {
	return []worst{
		{"conditions", strings.Repeat("{{if .vars.a}}{{else}}x{{end}}", 3333), "valid"},
		{"conditions in each other", strings.Repeat("{{if true}}", 4900) + strings.Repeat("{{end}}", 4900), "valid"},
		{"a chain of conditions", "{{if false}}" + strings.Repeat("{{else if false}}", 9000) + "{{end}}", "valid"},
		{"parentheses", "{{" + strings.Repeat("(", 500_000) + "1" + strings.Repeat(")", 500_000) + "}}", "template-"},
		{"arguments", filled("{{eq 1", " 1", "}}"), "valid"},
		{"an and of many", filled("{{and", " 1", "}}"), "valid"},
		{"a pipe that grows", filled("{{.vars.a", "|quote", "}}"), "template-"},
		{"a pipe", filled("{{.vars.a", "|lower", "}}"), "valid"},
		{"a width", `{{printf "%999999999d" 1}}`, "template-forbidden"},
		{"a long path", filled("{{.a", ".a", "}}"), "template-"},
		{"values that grow", strings.Repeat("{{ upper .vars.b }}", 9000), "template-too-large"},
		{"more actions than are allowed", filled("", "{{if .vars.a}}{{end}}", ""), "template-too-large"},
		{"a long string", filled(`{{"`, "x", `"}}`), "valid"},
		{"a comment", filled("{{/*", "x", "*/}}"), "valid"},
	}
}

// besideWorst is the valid fleet that a worst document or template is put into.
var besideWorst = map[string]string{
	"policies/gateways.yaml":        "apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: gateways}\nspec: {enabled: true, targetVersion: v1.5.0}\n",
	"releases/gateways/v1.5.0.yaml": "apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.5.0}\nspec: {files: {/etc/motd: {content: x}}}\n",
	"devices/gw-1.yaml":             "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-1}\nspec: {vars: {a: \"" + strings.Repeat(`\"`, 100) + "\", b: " + strings.Repeat("x", 4000) + "}}\n",
}

// worstFleets gives the files of a fleet for each worst document and template.
func worstFleets(do func(w worst, files map[string]string)) {
	for _, d := range worstDocuments() {
		file := "devices/big.yaml"
		if strings.HasPrefix(d.text, bigPolicy) {
			file = "policies/big.yaml"
		}
		do(d, map[string]string{file: d.text})
	}
	for _, d := range worstTemplates() {
		d.name = "template: " + d.name
		do(d, map[string]string{
			"releases/gateways/v1.5.0.yaml": "apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.5.0}\nspec: {files: {/etc/motd: {source: files/t, template: true}}}\n",
			"files/t":                       d.text,
		})
	}
}

func writeWorst(t testing.TB, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, tree := range []map[string]string{besideWorst, files} {
		for name, text := range tree {
			if len(text) > docSize {
				t.Fatalf("%s has %d bytes", name, len(text))
			}
			writeBelow(t, dir, name, text)
		}
	}
	return dir
}

// Whatever one file of at most 1 MiB holds, validate says so within its memory.
func TestValidatePeakMemory(t *testing.T) {
	if raced() {
		t.Skip("the race detector has its own memory for each byte of the program's")
	}
	worstFleets(func(w worst, files map[string]string) {
		t.Run(w.name, func(t *testing.T) {
			mib, code, out := peakOf(t, writeWorst(t, files))
			t.Logf("%d MiB, %.200s", mib, out)
			if mib > peakLimit {
				t.Errorf("it took %d MiB", mib)
			}
			if wantCode := map[bool]int{true: exitOK, false: exitContent}[w.want == "valid"]; code != wantCode || !strings.Contains(out, w.want) {
				t.Errorf("exit code %d, want %d, and %q in:\n%.500s", code, wantCode, w.want, out)
			}
		})
	})
}

// BenchmarkValidateBeside is the reference: the fleet without the worst.
func BenchmarkValidateBeside(b *testing.B) {
	dir := writeWorst(b, nil)
	for b.Loop() {
		peakOf(b, dir)
	}
}

// BenchmarkValidateWorst is what the worst of each kind costs the whole
// process.
func BenchmarkValidateWorst(b *testing.B) {
	worstFleets(func(w worst, files map[string]string) {
		b.Run(w.name, func(b *testing.B) {
			dir := writeWorst(b, files)
			most := int64(0)
			for b.Loop() {
				mib, _, _ := peakOf(b, dir)
				most = max(most, mib)
			}
			b.ReportMetric(float64(most), "MiB-peak")
		})
	})
}

// A repository with 10,000 problems is told each of them.
func TestValidateTellsTenThousandProblems(t *testing.T) {
	dir := t.TempDir()
	const files, each = 2000, 5
	for i := range files {
		name := fmt.Sprintf("d-%04d", i)
		writeBelow(t, dir, fmt.Sprintf("devices/%d/%s.yaml", i/1000, name), "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: "+name+"}\n"+
			"spec: {one: 1, two: 2, three: 3, four: 4, vars: {a: 1}}\n")
	}
	mib, code, out := peakOf(t, dir)
	t.Logf("%d MiB", mib)
	if got := strings.Count(out, "[unknown-field]") + strings.Count(out, "[wrong-type]"); got != files*each || code != exitContent || mib > peakLimit && !raced() {
		t.Errorf("%d problems of %d, exit code %d, %d MiB; the end of it: %s", got, files*each, code, mib, out[max(0, len(out)-300):])
	}
}

// raced says whether this binary was built with the race detector.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

func writeBelow(t testing.TB, dir, name, text string) {
	t.Helper()
	full := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
