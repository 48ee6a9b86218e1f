//go:build system

package pipeline

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/internal/gitserver"
)

// actionlint is the pinned one that make installs.
func actionlint(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "bin/tools/actionlint-*"))
	if err != nil || len(found) == 0 {
		return need(t, "actionlint", "none; make test-system installs it")
	}
	path, err := filepath.Abs(found[len(found)-1])
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// The workflow that init writes is one, and calls the action by inputs that it
// has: the linter looks at the action where it is a folder of the repository.
func TestSystemWorkflow(t *testing.T) {
	t.Parallel()
	lint := actionlint(t)
	for name, change := range map[string]struct{ old, now, want string }{
		"as it is":               {},
		"an input that there is": {"directory:", "strict:", ""},
		"an input that is none":  {"directory:", "folder:", `input "folder" is not defined`},
		"an event that is none":  {"merge_group:", "merge_groups:", `unknown Webhook event "merge_groups"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			gitserver.Git(t, dir, "init", "-q", dir)
			if out, err := exec.Command(gitopsd(t), "init", dir).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			file := filepath.Join(dir, ".github/workflows/fleet.yaml")
			check := func() string {
				cmd := exec.Command(lint, "-no-color", file)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				if err == nil && len(out) == 0 {
					return ""
				}
				return string(out) + "\n"
			}
			if out := check(); out != "" && change.old == "" {
				t.Errorf("the workflow as it is:\n%s", out)
			}
			write(t, filepath.Join(dir, "action/action.yml"), read(t, filepath.Join(root, "action.yml")))
			edit(t, file, "uses: gitopsd/gitopsd@main", "uses: ./action", "uses")
			if change.old != "" {
				edit(t, file, change.old, change.now, change.now)
			}
			if out := check(); change.want == "" && out != "" || !strings.Contains(out, change.want) {
				t.Errorf("want %q, got:\n%s", change.want, out)
			}
		})
	}
}

// pre-commit builds every command of a repository of hooks with go install, and
// calls the entry in the repository that is committed to.
func TestSystemPreCommit(t *testing.T) {
	t.Parallel()
	var hooks []struct {
		ID            string `yaml:"id"`
		Name          string `yaml:"name"`
		Description   string `yaml:"description"`
		Language      string `yaml:"language"`
		Entry         string `yaml:"entry"`
		PassFilenames bool   `yaml:"pass_filenames"`
		AlwaysRun     bool   `yaml:"always_run"`
	}
	readYAML(t, ".pre-commit-hooks.yaml", &hooks)
	if len(hooks) != 1 || hooks[0].Language != "golang" || hooks[0].PassFilenames || !hooks[0].AlwaysRun {
		t.Fatalf("hooks %+v", hooks)
	}
	bin := t.TempDir()
	install := exec.Command("go", "install", "./...")
	install.Dir = root
	install.Env = append(os.Environ(), "GOBIN="+bin)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("go install ./...: %v\n%s", err, out)
	}
	entry := strings.Fields(hooks[0].Entry)
	hook := func(dir string, args ...string) (int, string) {
		cmd := exec.Command(filepath.Join(bin, entry[0]), append(entry[1:], args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PRE_COMMIT=1", "GITHUB_ACTIONS=")
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	place := ""
	wrong := newPull(t, "ops", func(dir string) {
		place = edit(t, filepath.Join(dir, "policies/gateways.yaml"), "  targetVersion:", "  targetVerison:", "targetVerison")
	})
	if code, out := hook(filepath.Join(wrong.checkout(wrong.base, 1), "ops")); code != 0 {
		t.Errorf("the example: code %d\n%s", code, out)
	}
	// args: [ops] of .pre-commit-config.yaml
	if code, out := hook(wrong.checkout(wrong.head, 1), "ops"); code != 3 || !strings.Contains(out, "policies/gateways.yaml:"+place+": unknown field") {
		t.Errorf("a wrong variant: code %d\n%s", code, out)
	}
}

// The template's script, as a runner of GitLab concatenates it.
func TestSystemGitLab(t *testing.T) {
	t.Parallel()
	need(t, "bash", "bash")
	var template struct {
		Variables map[string]string `yaml:"variables"`
		Fleet     struct {
			Stage     string              `yaml:"stage"`
			Image     string              `yaml:"image"`
			Rules     []map[string]string `yaml:"rules"`
			Variables map[string]string   `yaml:"variables"`
			Script    []string            `yaml:"script"`
			Artifacts struct {
				When    string            `yaml:"when"`
				Expose  string            `yaml:"expose_as"`
				Paths   []string          `yaml:"paths"`
				Reports map[string]string `yaml:"reports"`
			} `yaml:"artifacts"`
		} `yaml:"fleet"`
	}
	readYAML(t, "ci/gitlab.yml", &template)
	run := func(dir string, env ...string) (int, string) {
		script := filepath.Join(t.TempDir(), "script.sh")
		write(t, script, strings.Join(template.Fleet.Script, "\n")+"\n")
		cmd := exec.Command("bash", "-eo", "pipefail", script)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + filepath.Dir(gitopsd(t)) + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "CI=true", "GITLAB_CI=true"}
		for _, list := range []map[string]string{template.Variables, template.Fleet.Variables} {
			for name, value := range list {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
		}
		cmd.Env = append(cmd.Env, env...)
		out, _ := cmd.CombinedOutput()
		if strings.Contains(string(out), "is no setting") {
			t.Errorf("a variable of the template looks like a setting of gitopsd:\n%s", out)
		}
		return cmd.ProcessState.ExitCode(), string(out)
	}
	place := ""
	for name, c := range map[string]struct {
		change func(string)
		code   int
		shown  string // in the JUnit report
	}{
		"valid": {upgrade(t), 0, "<testsuite"},
		"wrong": {func(dir string) {
			place = edit(t, filepath.Join(dir, "policies/gateways.yaml"), "  targetVersion:", "  targetVerison:", "targetVerison")
		}, 3, "targetVerison"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPull(t, "ops", c.change)
			dir := p.checkout(p.head, 10)
			code, out := run(dir, "FLEET_DIRECTORY=ops", "CI_MERGE_REQUEST_IID=7", "CI_COMMIT_SHA="+p.head,
				"CI_COMMIT_REF_NAME="+hostile, "CI_MERGE_REQUEST_DIFF_BASE_SHA="+gitserver.Git(t, dir, "rev-parse", p.head+"^"))
			if code != c.code || c.code == 3 && !strings.Contains(out, "policies/gateways.yaml:"+place) {
				t.Fatalf("code %d, want %d\n%s", code, c.code, out)
			}
			if report := read(t, filepath.Join(dir, template.Fleet.Artifacts.Reports["junit"])); !strings.Contains(report, c.shown) {
				t.Errorf("the report does not say %q:\n%s", c.shown, report)
			}
			if c.code == 0 {
				if preview := read(t, filepath.Join(dir, template.Fleet.Artifacts.Paths[0])); !strings.Contains(preview, "v1.1.0") {
					t.Errorf("the preview:\n%s\nlog:\n%s", preview, out)
				}
				// Without its base there is no preview, and the check stands.
				code, out = run(dir, "FLEET_DIRECTORY=ops", "CI_MERGE_REQUEST_IID=7", "CI_COMMIT_SHA="+p.head,
					"CI_MERGE_REQUEST_DIFF_BASE_SHA="+strings.Repeat("1", 40))
				if code != 0 || !strings.Contains(out, "no preview of this merge request") {
					t.Errorf("without its base: code %d\n%s", code, out)
				}
			}
			noneWritten(t, dir)
		})
	}
}
