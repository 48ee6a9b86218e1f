package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/gitopsd/gitopsd/internal/githubtest"
	"github.com/gitopsd/gitopsd/internal/gitserver"
)

// Limits of the scripts. Nothing waits for a fixed time: these end a script
// that will not come out, also on a machine under load.
const (
	waitLimit = 60 * time.Second
	waitEvery = 100 * time.Millisecond
	// endLimit is what a process may take to end after it was asked to.
	endLimit = 20 * time.Second
)

// world is what one script has started.
type world struct {
	t      testing.TB
	work   string
	env    func(string) string
	server *gitserver.Server
	github *githubtest.Server // nil = the script has none

	mu     sync.Mutex
	procs  map[string]*process
	status answers
}

// process is one gitopsd in the background.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	err  error // valid after done
}

type worldKey struct{}

func setupScript(env *testscript.Env) error {
	t, ok := env.T().(testing.TB)
	if !ok {
		return errors.New("the script's test is no testing.TB")
	}
	w := &world{t: t, work: env.WorkDir, env: env.Getenv, procs: map[string]*process{}}
	env.Values[worldKey{}] = w
	home := filepath.Join(env.WorkDir, ".home")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	env.Setenv("HOME", home)
	env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
	env.Setenv("NO_COLOR", "1")
	example, err := filepath.Abs("../../examples/fleet-repo")
	if err != nil {
		return err
	}
	env.Setenv("EXAMPLE", example)
	env.Defer(w.end)
	return nil
}

func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	command := func(run func(w *world, ts *testscript.TestScript, args []string) error) func(*testscript.TestScript, bool, []string) {
		return func(ts *testscript.TestScript, neg bool, args []string) {
			w := ts.Value(worldKey{}).(*world)
			err := run(w, ts, args)
			if neg {
				if err == nil {
					ts.Fatalf("it succeeded, and should not have")
				}
				return
			}
			if err != nil {
				ts.Fatalf("%v", err)
			}
		}
	}
	all := map[string]func(*testscript.TestScript, bool, []string){
		"agent":      command(startAgents),
		"ask-sweep":  command(askForSweep),
		"code":       command(exitsWith),
		"deliver":    command(deliver),
		"edit":       command(editFile),
		"end":        command(end),
		"ended":      command(ended),
		"find":       command(find),
		"fleet":      command(newFleet),
		"git":        command(gitCommand),
		"head":       command(head),
		"manage":     command(manage),
		"manage-os":  command(manageOS),
		"mode":       command(mode),
		"nogit":      command(noGit),
		"oldest":     command(oldest),
		"push":       command(push),
		"release":    command(newRelease),
		"repository": command(repository),
		"retry":      command(retry),
		"snapshot":   command(snapshot),
		"start":      command(start),
		"started":    command(started),
		"state":      command(state),
		"target":     command(target),
		"wait-file":  command(waitFile),
		"wait-for":   command(waitFor),
		"wait-log":   command(waitLog),
		"wait-ref":   command(waitRef),
	}
	for name, run := range githubCommands {
		all[name] = command(run)
	}
	return all
}

func usage(args []string, least int, text string) error {
	if len(args) < least {
		return fmt.Errorf("usage: %s", text)
	}
	return nil
}

// exitsWith runs a program and wants exactly this exit code.
func exitsWith(_ *world, ts *testscript.TestScript, args []string) error {
	if err := usage(args, 2, "code N PROGRAM [ARG...]"); err != nil {
		return err
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		return err
	}
	if fmt.Sprint(got) != args[0] {
		return fmt.Errorf("exit code %d, want %s", got, args[0])
	}
	return nil
}

// repository makes fleet.git with a clone in fleet/, and sets REPO_URL.
func repository(w *world, ts *testscript.TestScript, args []string) error {
	if err := usage(args, 1, "repository http|local [NAME]"); err != nil {
		return err
	}
	name := "fleet"
	if len(args) > 1 {
		name = args[1]
	}
	bare := gitserver.Bare(w.t, w.work, name+".git")
	ts.Setenv("REPO_URL", bare)
	if args[0] == "http" {
		if w.server == nil {
			w.server = gitserver.New(w.t, w.work)
		}
		ts.Setenv("REPO_URL", w.server.URL+"/"+name+".git")
	}
	clone := filepath.Join(w.work, name)
	if err := os.MkdirAll(clone, 0o755); err != nil {
		return err
	}
	for _, a := range [][]string{{"init", "-q", "-b", "main"}, {"remote", "add", "origin", bare}} {
		if out, err := gitserver.TryGit(clone, a...); err != nil {
			return fmt.Errorf("git %s: %w\n%s", a[0], err, out)
		}
	}
	return nil
}

// push commits all of fleet/ and pushes it.
func push(w *world, _ *testscript.TestScript, args []string) error {
	if err := usage(args, 1, "push MESSAGE [PARAGRAPH]"); err != nil {
		return err
	}
	message := strings.Join(args, "\n\n")
	for _, a := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", message}, {"push", "-q", "origin", "HEAD:main"}} {
		if out, err := gitserver.TryGit(filepath.Join(w.work, "fleet"), a...); err != nil {
			return fmt.Errorf("git %s: %w\n%s", strings.Join(a, " "), err, out)
		}
	}
	return nil
}

// gitCommand runs git in fleet/, whatever the script's PATH has.
func gitCommand(w *world, ts *testscript.TestScript, args []string) error {
	out, err := gitserver.TryGit(filepath.Join(w.work, "fleet"), args...)
	ts.Logf("%s", out)
	return err
}

// noGit leaves nothing but gitopsd in the script's PATH.
func noGit(_ *world, ts *testscript.TestScript, _ []string) error {
	exe, err := exec.LookPath("gitopsd")
	if err != nil {
		return err
	}
	ts.Setenv("PATH", filepath.Dir(exe))
	if err := ts.Exec("git", "version"); err == nil {
		return errors.New("there still is a git program")
	}
	return nil
}

// head sets a variable to the commit of fleet/.
func head(w *world, ts *testscript.TestScript, args []string) error {
	if err := usage(args, 1, "head VARIABLE"); err != nil {
		return err
	}
	out, err := gitserver.TryGit(filepath.Join(w.work, "fleet"), "rev-parse", "HEAD")
	ts.Setenv(args[0], out)
	return err
}

// retry runs a program until a document of the status branch has some values.
func retry(w *world, ts *testscript.TestScript, args []string) error {
	i := slices.Index(args, "--")
	if i < 1 || i+2 >= len(args) {
		return errors.New("usage: retry PROGRAM [ARG...] -- DEVICE FIELD=VALUE...")
	}
	return w.wait(func() error {
		if err := ts.Exec(args[0], args[1:i]...); err != nil {
			return err
		}
		return w.check(args[i+1], args[i+2:])
	})
}

// waitLog waits until the log of a process has a line that matches.
func waitLog(w *world, ts *testscript.TestScript, args []string) error {
	if err := usage(args, 2, "wait-log NAME REGEXP"); err != nil {
		return err
	}
	pattern, err := regexp.Compile(args[1])
	if err != nil {
		return err
	}
	return w.wait(func() error {
		data, err := os.ReadFile(filepath.Join(w.work, args[0]+".log"))
		if err == nil && !pattern.Match(data) {
			err = fmt.Errorf("no line matches %s in\n%s", pattern, data)
		}
		return err
	})
}

// waitRef waits until fleet.git has a ref.
func waitRef(w *world, _ *testscript.TestScript, args []string) error {
	if err := usage(args, 1, "wait-ref REF"); err != nil {
		return err
	}
	return w.wait(func() error {
		_, err := gitserver.TryGit(w.bare(), "rev-parse", "--verify", "--quiet", args[0])
		return err
	})
}

// editFile replaces one text in a file by another.
func editFile(_ *world, ts *testscript.TestScript, args []string) error {
	if err := usage(args, 3, "edit FILE OLD NEW"); err != nil {
		return err
	}
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if n := strings.Count(string(data), args[1]); n != 1 {
		return fmt.Errorf("%s has %q %d times, want once", args[0], args[1], n)
	}
	return os.WriteFile(path, []byte(strings.Replace(string(data), args[1], args[2], 1)), 0o644)
}

// snapshot writes down every file below a folder: path, mode and content.
func snapshot(_ *world, ts *testscript.TestScript, args []string) error {
	if err := usage(args, 2, "snapshot FOLDER FILE"); err != nil {
		return err
	}
	root := ts.MkAbs(args[0])
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v", rel, info.Mode())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", data)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		return err
	}
	return os.WriteFile(ts.MkAbs(args[1]), []byte(b.String()), 0o644)
}

// mode wants a file to have these permissions, setuid and sticky bits too.
func mode(_ *world, ts *testscript.TestScript, args []string) error {
	if err := usage(args, 2, "mode FILE OCTAL"); err != nil {
		return err
	}
	var st syscall.Stat_t
	if err := syscall.Stat(ts.MkAbs(args[0]), &st); err != nil {
		return err
	}
	if got := fmt.Sprintf("%04o", st.Mode&0o7777); got != args[1] {
		return fmt.Errorf("%s has mode %s, want %s", args[0], got, args[1])
	}
	return nil
}

// waitFile waits until a file has exactly this content, or with "absent" until
// there is none.
func waitFile(w *world, ts *testscript.TestScript, args []string) error {
	if err := usage(args, 2, "wait-file FILE CONTENT, or wait-file -absent FILE"); err != nil {
		return err
	}
	if args[0] == "-absent" {
		return w.wait(func() error {
			if _, err := os.Lstat(ts.MkAbs(args[1])); err == nil {
				return fmt.Errorf("%s exists", args[1])
			}
			return nil
		})
	}
	return w.wait(func() error {
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		if err != nil {
			return err
		}
		if got := strings.TrimSuffix(string(data), "\n"); got != args[1] {
			return fmt.Errorf("%s holds %q, want %q", args[0], got, args[1])
		}
		return nil
	})
}

// wait polls until check is content or the limit has passed, and then says
// what was wrong last.
func (w *world) wait(check func() error) error {
	deadline := time.Now().Add(waitLimit)
	for {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %v: %w", waitLimit, err)
		}
		time.Sleep(waitEvery)
	}
}
