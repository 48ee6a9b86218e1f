package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// start runs gitopsd in the background; its output goes to NAME.log.
func start(w *world, ts *testscript.TestScript, args []string) error {
	if err := usage(args, 2, "start NAME ARG..."); err != nil {
		return err
	}
	return w.start(ts, args[0], args[1:])
}

// agentInterval is between two polls: each takes the git server two processes,
// which are most of what a script costs.
const agentInterval = "500ms"

// startAgents runs an agent below dev/NAME for each name. What follows -- is
// for all of them.
func startAgents(w *world, ts *testscript.TestScript, args []string) error {
	if err := usage(args, 1, "agent DEVICE... [-- ARG...]"); err != nil {
		return err
	}
	var more []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, more = args[:i], args[i+1:]
	}
	for _, id := range args {
		root := filepath.Join(w.work, "dev", id)
		if err := os.MkdirAll(root, 0o755); err != nil {
			return err
		}
		line := []string{"agent", "--device", id, "--root", root, "--interval", agentInterval}
		if !slices.ContainsFunc(more, func(a string) bool { return a == "--repo" || a == "--repo-from" }) {
			line = append(line, "--repo", ts.Getenv("REPO_URL"))
		}
		if err := w.start(ts, id, append(line, more...)); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) start(ts *testscript.TestScript, name string, args []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.procs[name]; old != nil {
		select {
		case <-old.done:
		default:
			return fmt.Errorf("%s is running already", name)
		}
	}
	exe, err := exec.LookPath("gitopsd")
	if err != nil {
		return err
	}
	// A log goes on where an earlier process of the name ended.
	path := filepath.Join(w.work, name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	p := &process{cmd: exec.Command(exe, args...), log: path, done: make(chan struct{})}
	p.cmd.Dir = w.work
	p.cmd.Stdout, p.cmd.Stderr = log, log
	for _, key := range []string{"PATH", "HOME", "XDG_STATE_HOME", "TMPDIR", "NO_COLOR", "WORK"} {
		p.cmd.Env = append(p.cmd.Env, key+"="+ts.Getenv(key))
	}
	if err := p.cmd.Start(); err != nil {
		return errors.Join(err, log.Close())
	}
	go func() {
		p.err = errors.Join(p.cmd.Wait(), log.Close())
		close(p.done)
	}()
	w.procs[name] = p
	return nil
}

// end ends processes: politely, which must give exit code 0, or with -kill
// as a power cut would.
func end(w *world, _ *testscript.TestScript, args []string) error {
	if err := usage(args, 1, "end [-kill] NAME..."); err != nil {
		return err
	}
	kill := args[0] == "-kill"
	if kill {
		args = args[1:]
	}
	var errs []error
	for _, name := range args {
		w.mu.Lock()
		p := w.procs[name]
		delete(w.procs, name)
		w.mu.Unlock()
		if p == nil {
			return fmt.Errorf("%s was not started", name)
		}
		signal := os.Interrupt
		if kill {
			signal = os.Kill
		}
		if err := p.end(signal); err != nil && !kill {
			errs = append(errs, fmt.Errorf("%s: %w\n%s", name, err, p.tail()))
		}
	}
	return errors.Join(errs...)
}

// end signals the process and waits for its end.
func (p *process) end(signal os.Signal) error {
	// It may have ended by itself; Wait says how.
	_ = p.cmd.Process.Signal(signal)
	select {
	case <-p.done:
		return p.err
	case <-time.After(endLimit):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("it did not end within %v", endLimit)
	}
}

// tail is the end of the process's log.
func (p *process) tail() string {
	const lines = 60
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// end ends whatever still runs, and shows the logs of a script that failed.
func (w *world) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, p := range w.procs {
		if err := p.end(os.Interrupt); err != nil {
			w.t.Errorf("%s did not end cleanly: %v", name, err)
		}
		if w.t.Failed() {
			w.t.Logf("--- log of %s\n%s", name, p.tail())
		}
	}
}
