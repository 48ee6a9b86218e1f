package demo

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopGrace is how long a process may take to end by itself; an agent in the
// middle of its work finishes one step, which takes far less.
const stopGrace = 5 * time.Second

// processes are the daemon and the agents. Each has a process group of its
// own: an interrupt from the keyboard reaches only the demonstration, which
// then ends them in order, their hooks included.
type processes struct {
	exe, dir string
	running  []*process
	ended    chan *process // those that ended before stop was called
}

// command is how a person starts the same program from where they are.
func (p *processes) command() string {
	if found, err := exec.LookPath("gitopsd"); err == nil && sameFile(found, p.exe) {
		return "gitopsd"
	}
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, p.exe); err == nil && filepath.IsLocal(rel) {
			return "." + string(filepath.Separator) + rel
		}
	}
	return p.exe
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// process is one child.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string // file
	done chan struct{}
	err  error // valid once done is closed
}

func newProcesses(exe, dir string) *processes {
	return &processes{exe: exe, dir: dir, ended: make(chan *process, 64)}
}

// start runs gitopsd with these arguments, its output in logs/<name>.log.
func (p *processes) start(name string, args ...string) error {
	path := filepath.Join(p.dir, "logs", name+".log")
	log, err := os.Create(path)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own
	cmd := exec.Command(p.exe, args...)
	cmd.Dir = p.dir
	cmd.Stdout, cmd.Stderr = log, log
	// Nothing of the user's settings takes part: no configuration, no state
	// folder, no credentials.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	child := &process{name: name, cmd: cmd, log: path, done: make(chan struct{})}
	p.running = append(p.running, child)
	go func() {
		child.err = cmd.Wait()
		close(child.done)
		select {
		case p.ended <- child:
		default: // more than the channel holds: they are being stopped
		}
	}()
	return nil
}

// failure says how the process ended, with the end of what it printed.
func (p *process) failure() error {
	<-p.done
	err := p.err
	if err == nil {
		err = errors.New("exit status 0, though it should have gone on")
	}
	out, readErr := os.ReadFile(p.log)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	const lastLines = 12 // enough for one error with its context
	lines := strings.Split(string(bytes.TrimRight(out, "\n")), "\n")
	if len(lines) > lastLines {
		lines = lines[len(lines)-lastLines:]
	}
	return fmt.Errorf("%w; the end of %s:\n  %s", err, p.log, strings.Join(lines, "\n  "))
}

// stop asks every process to end and waits; whoever does not is killed with
// all of its group, and that is an error.
func (p *processes) stop() error {
	var wait sync.WaitGroup
	errs := make([]error, len(p.running))
	for i, child := range p.running {
		wait.Go(func() { errs[i] = child.stop() })
	}
	wait.Wait()
	p.running = nil
	return errors.Join(errs...)
}

func (p *process) stop() error {
	group := -p.cmd.Process.Pid
	select {
	case <-p.done:
	default:
		// ESRCH: it has ended in between.
		if err := syscall.Kill(group, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop %s: %w", p.name, err)
		}
	}
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	var err error
	select {
	case <-p.done:
	case <-timer.C:
		err = fmt.Errorf("%s had to be killed: it did not end within %s of being asked to; see %s", p.name, stopGrace, p.log)
	}
	// What is left of the group, for example a hook's background child.
	if killErr := syscall.Kill(group, syscall.SIGKILL); killErr != nil && !errors.Is(killErr, syscall.ESRCH) {
		err = errors.Join(err, fmt.Errorf("stop the rest of %s: %w", p.name, killErr))
	}
	<-p.done
	return err
}
