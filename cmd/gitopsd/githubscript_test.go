package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/gitopsd/gitopsd/internal/githubtest"
	"github.com/gitopsd/gitopsd/internal/gitserver"
)

// githubCommands are those of scripts with a server that behaves as GitHub.
var githubCommands = map[string]func(*world, *testscript.TestScript, []string) error{
	"fault":        githubFault,
	"github":       startGitHub,
	"hear":         hear,
	"merge":        mergePull,
	"no-secrets":   noSecrets,
	"pull":         openPull,
	"wait-check":   waitCheck,
	"wait-comment": waitComment,
	"wait-status":  waitStatus,
	"writes":       githubWrites,
}

const (
	scriptToken = "github_pat_Zq7Xv9"
	scriptApp   = "fleet-app"
)

// startGitHub starts the API beside the git server, with an App whose key is in
// key.pem, or with a token in token. What follows are permissions that lack.
func startGitHub(w *world, ts *testscript.TestScript, args []string) error {
	if err := usage(args, 1, "github app|token [PERMISSION...]"); err != nil {
		return err
	}
	if w.github == nil {
		w.github = githubtest.New(w.t, "acme", "fleet", func(sha string) bool {
			_, err := gitserver.TryGit(w.bare(), "cat-file", "-e", sha+"^{commit}")
			return err == nil
		})
		w.github.Listen(w.t)
		ts.Setenv("GITHUB", w.github.URL)
	}
	may := githubtest.AllPermissions()
	for _, name := range args[1:] {
		delete(may, name)
	}
	name, secret := "token", []byte(scriptToken+"\n")
	if args[0] == "app" {
		name, secret = "key.pem", w.github.AddApp(w.t, 12, 34, scriptApp, may, 0)
	} else {
		w.github.AddToken(scriptToken, "fleet-writer", may)
	}
	return os.WriteFile(ts.MkAbs(name), secret, 0o600)
}

// githubFault makes the API answer everything with a status, or with "off" as
// it should again.
func githubFault(w *world, _ *testscript.TestScript, args []string) error {
	if err := usage(args, 1, "fault STATUS|off"); err != nil {
		return err
	}
	if args[0] == "off" {
		w.github.Fault(nil)
		return nil
	}
	status, err := strconv.Atoi(args[0])
	w.github.Fault(func(githubtest.Request) *githubtest.Answer { return &githubtest.Answer{Status: status} })
	return err
}

// openPull makes a commit of what was changed in fleet/ on the branch pull-N,
// which begins at main, and pushes it as pull request N.
func openPull(w *world, _ *testscript.TestScript, args []string) error {
	if err := usage(args, 2, "pull N MESSAGE [FORK]"); err != nil {
		return err
	}
	number, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	branch, clone := "pull-"+args[0], filepath.Join(w.work, "fleet")
	steps := [][]string{{"switch", "-q", "-C", branch}, {"add", "-A"}, {"commit", "-q", "-m", args[1]}}
	if _, err := gitserver.TryGit(clone, "rev-parse", "--verify", "-q", branch); err == nil {
		steps[0] = []string{"switch", "-q", "-m", branch} // it goes on
	}
	for _, step := range append(steps, []string{"push", "-q", "-f", "origin", "HEAD:refs/pull/" + args[0] + "/head"}, []string{"switch", "-q", "main"}) {
		if out, err := gitserver.TryGit(clone, step...); err != nil {
			return fmt.Errorf("git %s: %w\n%s", strings.Join(step, " "), err, out)
		}
	}
	p := githubtest.Pull{Number: number, Title: args[1], Base: "main", Branch: branch}
	if p.Head, err = w.rev(branch); err != nil {
		return err
	}
	if p.BaseSHA, err = w.rev("main"); err != nil {
		return err
	}
	if len(args) > 2 {
		p.Fork = args[2]
	}
	w.github.SetPull(p)
	return nil
}

// rev is a commit of fleet/.
func (w *world) rev(name string) (string, error) {
	out, err := gitserver.TryGit(filepath.Join(w.work, "fleet"), "rev-parse", "--verify", name+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return out, nil
}

// mergePull merges a pull request into main as GitHub does.
func mergePull(w *world, _ *testscript.TestScript, args []string) error {
	if err := usage(args, 1, "merge N"); err != nil {
		return err
	}
	for _, step := range [][]string{{"merge", "-q", "--no-ff", "-m", "Merge pull request #" + args[0], "pull-" + args[0]}, {"push", "-q", "origin", "HEAD:main"}} {
		if out, err := gitserver.TryGit(filepath.Join(w.work, "fleet"), step...); err != nil {
			return fmt.Errorf("git %s: %w\n%s", step[0], err, out)
		}
	}
	number, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	head, err := w.rev("pull-" + args[0])
	w.github.SetPull(githubtest.Pull{Number: number, Base: "main", Branch: "pull-" + args[0], Head: head, Closed: true})
	return err
}

// hear delivers the event of a pull request.
func hear(w *world, ts *testscript.TestScript, args []string) error {
	if err := usage(args, 4, "hear PROCESS SECRET-FILE N ACTION"); err != nil {
		return err
	}
	head, err := w.rev("pull-" + args[2])
	if err != nil {
		return err
	}
	return w.deliver(ts, "202", args[0], args[1], "pull_request", fmt.Sprintf(
		`{"action": %q, "number": %s, "pull_request": {"head": {"sha": %q, "ref": "x"}, "base": {"ref": "main"}}, "repository": {"full_name": "acme/fleet", "clone_url": %q}}`,
		args[3], args[2], head, ts.Getenv("REPO_URL")))
}

// waitStatus waits until a commit of fleet/ has a status that matches.
func waitStatus(w *world, ts *testscript.TestScript, args []string) error {
	if err := usage(args, 3, "wait-status REVISION CONTEXT REGEXP"); err != nil {
		return err
	}
	commit, err := w.rev(args[0])
	if err != nil {
		return err
	}
	pattern, err := regexp.Compile(args[2])
	if err != nil {
		return err
	}
	return w.wait(func() error {
		if got := w.github.Status(commit, args[1]); !pattern.MatchString(got) {
			return fmt.Errorf("the status %s of %s is %q", args[1], args[0], got)
		}
		return nil
	})
}

// waitComment waits until a pull request has just one comment, and it matches.
func waitComment(w *world, _ *testscript.TestScript, args []string) error {
	if err := usage(args, 2, "wait-comment N REGEXP"); err != nil {
		return err
	}
	number, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	pattern, err := regexp.Compile(args[1])
	if err != nil {
		return err
	}
	return w.wait(func() error {
		list := w.github.Comments(number)
		if len(list) != 1 || !pattern.MatchString(list[0].Body) {
			return fmt.Errorf("the comments are %+v", list)
		}
		return nil
	})
}

// waitCheck waits until a commit has a check run whose annotations, a line
// each, match.
func waitCheck(w *world, _ *testscript.TestScript, args []string) error {
	if err := usage(args, 3, "wait-check REVISION CONCLUSION REGEXP"); err != nil {
		return err
	}
	commit, err := w.rev(args[0])
	if err != nil {
		return err
	}
	pattern, err := regexp.Compile(args[2])
	if err != nil {
		return err
	}
	return w.wait(func() error {
		var text string
		for _, c := range w.github.Checks(commit) {
			text += c.Conclusion + "\n"
			for _, a := range c.Annotations {
				text += fmt.Sprintf("%s:%d: %s: %s\n", a.Path, a.StartLine, a.Level, a.Message)
			}
		}
		if !strings.HasPrefix(text, args[1]) || !pattern.MatchString(text) {
			return fmt.Errorf("the check runs are %q", text)
		}
		return nil
	})
}

var fullHash = regexp.MustCompile(`[0-9a-f]{40}`)

// githubWrites writes down what was sent to change something since the last
// time, with commits by their subjects, and what was wrong with it.
func githubWrites(w *world, ts *testscript.TestScript, args []string) error {
	if err := usage(args, 1, "writes FILE"); err != nil {
		return err
	}
	var b strings.Builder
	for _, r := range w.github.Writes() {
		line := strings.Replace(r.String(), "/repos/acme/fleet", "", 1)
		line = fullHash.ReplaceAllStringFunc(line, func(hash string) string {
			subject, err := gitserver.TryGit(w.bare(), "log", "-1", "--format=%s", hash)
			if err != nil {
				return hash
			}
			return "[" + subject + "]"
		})
		if m := regexp.MustCompile(`"context":"([^"]*)"`).FindStringSubmatch(r.Body); m != nil {
			line += " " + m[1]
		}
		fmt.Fprintln(&b, line)
	}
	for _, wrong := range w.github.Wrongs() {
		fmt.Fprintln(&b, "GitHub does not want:", wrong)
	}
	w.github.Forget()
	return os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o644)
}

// noSecrets looks for tokens and keys in all logs, comments and requests.
func noSecrets(w *world, ts *testscript.TestScript, _ []string) error {
	said := map[string]string{}
	logs, err := filepath.Glob(filepath.Join(w.work, "*.log"))
	if err != nil || len(logs) == 0 {
		return errors.Join(err, errors.New("there are no logs"))
	}
	for _, path := range logs {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		said[path] = string(data)
	}
	for n := range 20 {
		for _, c := range w.github.Comments(n) {
			said[fmt.Sprint("comment of ", n)] += c.Body
		}
	}
	for _, r := range w.github.Requests() {
		said["requests"] += r.Path + r.Body
	}
	key, err := os.ReadFile(ts.MkAbs("key.pem"))
	if err != nil {
		return err
	}
	for where, text := range said {
		for _, secret := range []string{"Zq7Xv9", "ghs_", "PRIVATE KEY", "eyJ", strings.Split(string(key), "\n")[1]} {
			if strings.Contains(text, secret) {
				return fmt.Errorf("%q is in %s", secret, where)
			}
		}
	}
	return nil
}
