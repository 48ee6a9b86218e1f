//go:build system

package pipeline

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// runner plays what a runner of GitHub does with a composite action: it fills
// in expressions, runs each step in its shell with the documented variables,
// reads the files that steps write, and takes commands from what they print.
type runner struct {
	t         *testing.T
	action    action
	path      string // of the action's checkout
	workspace string
	temp      string
	env       []string
	github    map[string]any // the context of this name
	inputs    map[string]string
	summary   string            // that is there already when a step begins
	outputs   map[string]string // steps.<id>.outputs.<name>
}

// annotation is a command that GitHub shows beside a line.
type annotation struct {
	Level, File, Line, Col, Title, Message string
}

// place is where an annotation is shown.
func (a annotation) place() string { return a.File + ":" + a.Line + ":" + a.Col }

// result is what a run of the action came to.
type result struct {
	code        int
	outputs     map[string]string // of the action
	annotations []annotation
	summary     string
	log         string // of all steps
}

// errors are the annotations of this level.
func (r result) of(level string) (list []annotation) {
	for _, a := range r.annotations {
		if a.Level == level {
			list = append(list, a)
		}
	}
	return list
}

// stepLimit ends a step that hangs; a build on a machine under load takes a
// minute or two.
const stepLimit = 5 * time.Minute

// summaryLimit is in bytes: GitHub shows nothing of a larger summary of a step.
const summaryLimit = 1 << 20

func newRunner(t *testing.T, workspace string, event map[string]any) *runner {
	t.Helper()
	need(t, "bash", "bash")
	r := &runner{t: t, workspace: workspace, temp: t.TempDir(), inputs: map[string]string{}, outputs: map[string]string{}}
	readYAML(t, "action.yml", &r.action)
	var err error
	if r.path, err = filepath.Abs(root); err != nil {
		t.Fatal(err)
	}
	for name, in := range r.action.Inputs {
		r.inputs[name] = *in.Default
	}
	r.inputs["program"] = gitopsd(t)
	name := "push"
	if event["pull_request"] != nil {
		name = "pull_request"
	}
	data, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	eventPath := filepath.Join(r.temp, "event.json")
	if err := os.WriteFile(eventPath, data, 0o600); err != nil {
		t.Fatal(err)
	}
	var generic map[string]any
	if err := json.Unmarshal(data, &generic); err != nil {
		t.Fatal(err)
	}
	r.github = map[string]any{"event": generic}
	home := t.TempDir()
	r.env = []string{
		"GITHUB_HEAD_REF=" + hostile, "GITHUB_REF=refs/pull/7/merge",
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LC_ALL=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1",
		"CI=true", "GITHUB_ACTIONS=true", "GITHUB_EVENT_NAME=" + name, "GITHUB_EVENT_PATH=" + eventPath,
		"GITHUB_WORKSPACE=" + workspace, "GITHUB_ACTION_PATH=" + r.path, "GITHUB_REPOSITORY=ops/fleet",
		"GITHUB_API_URL=http://127.0.0.1:1", "GITHUB_SERVER_URL=https://github.com", "RUNNER_TEMP=" + r.temp, "RUNNER_OS=Linux",
	}
	return r
}

// run runs the steps up to the first that fails.
func (r *runner) run() result {
	r.t.Helper()
	var res result
	for i, s := range r.action.Runs.Steps {
		files := map[string]string{}
		env := append([]string{}, r.env...)
		for _, name := range []string{"GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE"} {
			files[name] = filepath.Join(r.temp, fmt.Sprintf("%s-%d", name, i))
			before := ""
			if name == "GITHUB_STEP_SUMMARY" {
				before = r.summary
			}
			if err := os.WriteFile(files[name], []byte(before), 0o600); err != nil {
				r.t.Fatal(err)
			}
			env = append(env, name+"="+files[name])
		}
		for name, value := range s.Env {
			env = append(env, name+"="+r.fill(value))
		}
		script := filepath.Join(r.temp, fmt.Sprintf("step-%d.sh", i))
		if err := os.WriteFile(script, []byte(r.fill(s.Run)), 0o600); err != nil {
			r.t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(r.t.Context(), stepLimit)
		cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-eo", "pipefail", script)
		cmd.Dir, cmd.Env, cmd.WaitDelay = r.workspace, env, time.Second
		out, err := cmd.CombinedOutput()
		if ctx.Err() != nil {
			r.t.Fatalf("step %s did not end within %v:\n%s", s.ID, stepLimit, out)
		}
		cancel()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			r.t.Fatal(err)
		}
		res.log += string(out)
		res.annotations = append(res.annotations, r.commands(string(out), s.ID)...)
		for name, value := range r.keyValues(files["GITHUB_OUTPUT"]) {
			r.outputs["steps."+s.ID+".outputs."+name] = value
		}
		summary, err := os.ReadFile(files["GITHUB_STEP_SUMMARY"])
		if err != nil {
			r.t.Fatal(err)
		}
		if len(summary) > summaryLimit {
			r.t.Errorf("the summary of step %s has %d bytes", s.ID, len(summary))
		}
		res.summary += string(summary)
		if res.code = cmd.ProcessState.ExitCode(); res.code != 0 {
			break
		}
	}
	res.outputs = map[string]string{}
	for name, out := range r.action.Outputs {
		res.outputs[name] = r.fill(out.Value)
	}
	return res
}

var expression = regexp.MustCompile(`\$\{\{\s*(.*?)\s*\}\}`)

// fill puts values in place of expressions: paths into the contexts that there
// are. A path to nothing is empty, as it is there.
func (r *runner) fill(text string) string {
	return expression.ReplaceAllStringFunc(text, func(whole string) string {
		path := expression.FindStringSubmatch(whole)[1]
		if !regexp.MustCompile(`^[a-z_.-]+$`).MatchString(path) {
			r.t.Fatalf("the played runner does not know the expression %s", whole)
		}
		head, rest, _ := strings.Cut(path, ".")
		switch head {
		case "inputs":
			value, ok := r.inputs[rest]
			if !ok {
				r.t.Fatalf("there is no input %s", rest)
			}
			return value
		case "steps":
			return r.outputs[path]
		case "github":
			var at any = r.github
			for _, part := range strings.Split(rest, ".") {
				m, _ := at.(map[string]any)
				at = m[part]
			}
			if at == nil {
				return ""
			}
			return fmt.Sprint(at)
		}
		r.t.Fatalf("the played runner does not know the context of %s", whole)
		return ""
	})
}

// keyValues reads a file of name=value lines; the form with a delimiter is not
// used by the action.
func (r *runner) keyValues(path string) map[string]string {
	data, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	values := map[string]string{}
	for line := range strings.Lines(string(data)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok {
			r.t.Errorf("%s holds the line %q", path, line)
		}
		values[name] = value
	}
	return values
}

var (
	command    = regexp.MustCompile(`^\s*::([a-zA-Z-]+|[0-9a-f]{32})(?: (.*?))?::(.*)$`)
	oldCommand = regexp.MustCompile(`##\[([a-z-]+)( .*?)?\]`)
	unescape   = strings.NewReplacer("%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",", "%25", "%")
)

// commands takes the annotations from what a step printed, as the runner does:
// lines that begin with :: are commands, and so is the old form anywhere in a
// line, unless commands are stopped. Others than those that the action means to
// give are a way in for whoever wrote the fleet.
func (r *runner) commands(out, id string) (list []annotation) {
	stopped := ""
	lines := bufio.NewScanner(strings.NewReader(out))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		m := command.FindStringSubmatch(lines.Text())
		if stopped != "" {
			if m != nil && m[1] == stopped {
				stopped = ""
			}
			continue
		}
		if m == nil {
			if oldCommand.MatchString(lines.Text()) {
				r.t.Errorf("step %s printed a command of the old form: %q", id, lines.Text())
			}
			continue
		}
		switch m[1] {
		case "group", "endgroup":
		case "stop-commands":
			stopped = m[3]
		case "error", "warning", "notice":
			a := annotation{Level: m[1], Message: unescape.Replace(m[3])}
			for _, property := range strings.Split(m[2], ",") {
				name, value, _ := strings.Cut(property, "=")
				switch value = unescape.Replace(value); strings.TrimSpace(name) {
				case "file":
					a.File = value
				case "line":
					a.Line = value
				case "col":
					a.Col = value
				case "title":
					a.Title = value
				}
			}
			list = append(list, a)
		default:
			r.t.Errorf("step %s printed the command %q", id, lines.Text())
		}
	}
	if stopped != "" {
		r.t.Errorf("step %s stopped commands for good", id)
	}
	return list
}
