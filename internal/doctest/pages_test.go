package doctest

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// pageLimit bounds one page; the longest, the tutorial, takes a few seconds.
const pageLimit = 2 * time.Minute

// root is the project's folder as seen from this package's.
const root = "../.."

// pages are all pages of the project, by their paths from its root.
func pages(t *testing.T) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if !d.IsDir() && filepath.Ext(path) == ".md" {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			list = append(list, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(list, "README.md") || !slices.Contains(list, "docs/tutorial.md") {
		t.Fatalf("the pages that must exist are not among %v", list)
	}
	return list
}

// run says whether a page's commands are run. The reference shows how
// commands are called, and the starter's page is for where it ends up.
func run(page string) bool {
	return !strings.HasPrefix(page, "docs/reference/") && !strings.HasPrefix(page, "cmd/")
}

// TestPages runs the commands of the pages in order, each page in a shell
// and a home of its own, and compares what they print.
func TestPages(t *testing.T) {
	if testing.Short() {
		t.Skip("the pages start real processes")
	}
	git := need(t, "git")
	bin := build(t)
	for _, page := range pages(t) {
		if !run(page) {
			continue
		}
		t.Run(page, func(t *testing.T) {
			blocks := parse(t, page)
			if !slices.ContainsFunc(blocks, func(b Block) bool { return b.Language == "sh" && b.Skip == "" }) {
				return
			}
			sh := newShell(t, bin+":"+filepath.Dir(git)+":/usr/local/bin:/usr/bin:/bin")
			// Pages speak of the example as it is in a clone.
			const example = "examples/fleet-repo"
			if err := os.CopyFS(filepath.Join(sh.home, example), os.DirFS(filepath.Join(root, example))); err != nil {
				t.Fatal(err)
			}
			for _, b := range blocks {
				if b.Language == "text" {
					t.Errorf("%s:%d: this text looks like an output, but belongs to no commands", page, b.Line)
				}
				if b.Language != "sh" || b.Skip != "" {
					continue
				}
				got, exit := sh.run(t, b.Text, b.Exit)
				if exit != b.Exit {
					t.Fatalf("%s:%d: ended with %d, want %d:\n%s\nprinted:\n%s", page, b.Line, exit, b.Exit, b.Text, got)
				}
				if b.Shown && !Match(b.Output, got) {
					t.Errorf("%s:%d:\n%s\nprinted:\n%s\nthe page shows:\n%s", page, b.Line, b.Text, got, b.Output)
				}
			}
		})
	}
}

func parse(t *testing.T, page string) []Block {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := Parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	return blocks
}

// need finds a program, or skips the test where skipping is allowed.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	if os.Getenv("GITOPSD_NO_SKIP") != "" {
		t.Fatalf("%s is needed here: %v", program, err)
	}
	t.Skipf("%s is not installed", program)
	return ""
}

// build makes the program and gives the folder that it is in.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "gitopsd"), "./cmd/gitopsd")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build gitopsd: %v\n%s", err, out)
	}
	return dir
}

// shell is one sh that keeps its folder and variables between blocks, as the
// terminal of a reader does.
type shell struct {
	home   string // where it starts
	stdin  io.Writer
	stdout *bufio.Reader
	blocks int
}

func newShell(t *testing.T, path string) *shell {
	t.Helper()
	home := t.TempDir()
	cmd := exec.Command("sh")
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "PATH=" + path, "LC_ALL=C.UTF-8", "TZ=UTC", "TMPDIR=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = writer, writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	timer := time.AfterFunc(pageLimit, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	t.Cleanup(func() {
		timer.Stop()
		// The group: a page may have started something in the background.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait() // it was killed; that is no result
		reader.Close()
	})
	return &shell{home: home, stdin: stdin, stdout: bufio.NewReader(reader)}
}

// run gives what the commands print and what they end with. Where 0 is
// expected, the first command that fails ends the block and the shell with
// it, unlike in a terminal, where a reader would stop.
func (s *shell) run(t *testing.T, commands string, expected int) (output string, exit int) {
	t.Helper()
	s.blocks++
	mark := fmt.Sprintf("end of block %d: ", s.blocks)
	errexit := "+e"
	if expected == 0 {
		errexit = "-e"
	}
	// eval without an && or an if around it: those would switch errexit off.
	script := fmt.Sprintf("block=$(cat <<'END_OF_BLOCK'\n%sEND_OF_BLOCK\n)\ntrap 'code=$?; echo; echo \"%s$code\"' EXIT\nset %s\n"+
		"eval \"$block\" </dev/null\ncode=$?\nset +e\ntrap - EXIT\necho; echo \"%s$code\"\n", commands, mark, errexit, mark)
	if _, err := io.WriteString(s.stdin, script); err != nil {
		t.Fatalf("the shell is gone: %v", err)
	}
	var out strings.Builder
	for {
		line, err := s.stdout.ReadString('\n')
		if code, ok := strings.CutPrefix(line, mark); ok {
			n, err := strconv.Atoi(strings.TrimSpace(code))
			if err != nil {
				t.Fatalf("the shell said %q", line)
			}
			return out.String(), n
		}
		out.WriteString(line)
		if err != nil {
			t.Fatalf("the shell ended (after %s it is killed): %v\nprinted:\n%s", pageLimit, err, out.String())
		}
	}
}

func TestShell(t *testing.T) {
	sh := newShell(t, "/usr/bin:/bin")
	for _, c := range []struct {
		commands string
		expected int
		output   string
		exit     int
	}{
		{"mkdir a\ncd a\nx=1\n", 0, "", 0},
		{"echo $x; pwd\ncat <<'EOF'\n$(it is) 'quoted'\nEOF\n", 0, "1\n…/a\n$(it is) 'quoted'\n", 0},
		{"echo no >&2; (exit 3)\n", 3, "no\n", 3},
		{"echo $x\n", 0, "1\n", 0},
		{"echo one\nfalse\necho two\n", 0, "one\n", 1},
	} {
		got, exit := sh.run(t, c.commands, c.expected)
		if exit != c.exit || !Match(c.output, got) {
			t.Errorf("%q printed %q and ended with %d, want %q and %d", c.commands, got, exit, c.output, c.exit)
		}
	}
}

// TestDocuments holds every document that a page shows against its kind: what
// a reader copies must be accepted.
func TestDocuments(t *testing.T) {
	shown, parts := 0, 0
	for _, page := range pages(t) {
		for _, b := range parse(t, page) {
			if b.Language == "yaml" && policyPart.MatchString(b.Text) {
				b.Text = policyHead + "  " + strings.ReplaceAll(strings.TrimSuffix(b.Text, "\n"), "\n", "\n  ") + "\n"
				parts++
			}
			if b.Language != "yaml" || !strings.HasPrefix(b.Text, "apiVersion:") {
				continue
			}
			shown++
			kind := documentKind.FindStringSubmatch(b.Text)
			if kind == nil {
				t.Errorf("%s:%d: a document without a kind", page, b.Line)
				continue
			}
			document := map[string]any{
				"Policy": new(schema.Policy), "Release": new(schema.Release), "Overlay": new(schema.Overlay),
				"Device": new(schema.Device), "Fleet": new(schema.FleetDocument), "Brake": new(schema.Brake), "ServeConfig": new(schema.ServeConfig), "AgentConfig": new(schema.AgentConfig),
				"DeviceStatus": new(schema.DeviceStatus), "Assignment": new(schema.Assignment), "Report": new(schema.Report),
				"FailureMarks": new(schema.FailureMarks), "FleetStatus": new(schema.FleetStatus),
			}[kind[1]]
			if document == nil {
				t.Errorf("%s:%d: there is no kind %s", page, b.Line, kind[1])
				continue
			}
			for _, p := range schema.Decode(page, []byte(b.Text), document) {
				if p.Severity == schema.SeverityError {
					t.Errorf("%s:%d: %s: %s (%s)", page, b.Line+p.Line, p.Pointer, p.Message, p.Rule)
				}
			}
		}
	}
	if shown == 0 || parts == 0 {
		t.Errorf("the pages show %d documents, %d of them parts of policies: the test looks at the wrong place", shown, parts)
	}
}

// policyPart is a block that is a part of a policy's spec: a field of that
// which no other document begins with.
var policyPart = regexp.MustCompile(`^(targetVersion|maxInFlight|pilot|waves|windows|freezes|budgets):`)

const policyHead = "apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: gateways}\nspec:\n"

var documentKind = regexp.MustCompile(`(?m)^kind: ([A-Za-z]+)$`)

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks follows every relative link of every page.
func TestLinks(t *testing.T) {
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			to, _, _ := strings.Cut(m[1], "#")
			if to == "" || strings.Contains(to, "://") {
				continue
			}
			target := filepath.Join(root, filepath.Dir(page), filepath.FromSlash(to))
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
			}
		}
	}
}
