package hooks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/gitopsd/gitopsd/reconcile/internal/progress"
)

const (
	// maxOutput is what is kept of a program's output, in bytes: its end, as
	// much as a report carries.
	maxOutput = 8 << 10
	// termGrace is between TERM and KILL: time to remove a lock, no more.
	termGrace = time.Second
	// stopGrace is what a hook has when the agent is stopped: one that restarts
	// the agent comes to its end, and systemd's patience is far longer.
	stopGrace = 3 * time.Second
	// pipeGrace is how long output of children that stayed is waited for
	// after the program itself ended.
	pipeGrace = 200 * time.Millisecond
	// busyTries and busyPause bound the wait for a program that was written a
	// moment ago and that a process being forked still has open.
	busyTries = 5
	busyPause = 20 * time.Millisecond
	// afterLimit is what comes after a program's own time: ending all that
	// came from it, and whatever the agent does next, on a slow device.
	afterLimit = 10 * time.Minute
)

// Exit is how a program ended that did not end well.
type Exit struct {
	Program string
	Code    int    // exit code; -1 = ended by a signal
	Signal  string // its name, where one ended it
	Timeout bool   // it took longer than Limit and was ended
	Limit   time.Duration
	Output  string // the end of stdout and stderr
}

func (e *Exit) Error() string {
	switch {
	case e.Timeout:
		return fmt.Sprintf("%s took longer than %v", e.Program, e.Limit)
	case e.Signal != "":
		return fmt.Sprintf("%s was ended by signal %s", e.Program, e.Signal)
	}
	return fmt.Sprintf("%s ended with exit code %d", e.Program, e.Code)
}

// Command runs one program as hooks are run (process group, timeout, bounded
// output, no background child that keeps it hanging); out is its stdout. A
// bare name is looked up in PATH. A program that ended badly gives an [*Exit].
func Command(ctx context.Context, argv []string, dir string, env []string, timeoutSeconds int) (out string, err error) {
	return Output(ctx, argv, dir, env, timeoutSeconds, maxOutput)
}

// Output is Command for a program that is run for what it writes: the end of
// that is kept up to so many bytes.
func Output(ctx context.Context, argv []string, dir string, env []string, timeoutSeconds, most int) (out string, err error) {
	if len(argv) == 0 || argv[0] == "" {
		return "", errors.New("no program is named")
	}
	program := argv[0]
	if strings.Contains(program, "/") && !filepath.IsAbs(program) {
		program = filepath.Join(dir, program)
	}
	if program, err = lookPath(program); err != nil {
		return "", err
	}
	stdout := tail{max: most}
	err = run(ctx, append([]string{program}, argv[1:]...), dir, env, time.Duration(timeoutSeconds)*time.Second, &stdout)
	return clean(stdout.bytes()), err
}

// inherited is what programs get of the agent's own environment: enough to
// find programs and to write in a person's language, and no credentials.
var inherited = []string{"HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"}

// defaultPath is for an agent that has no PATH itself.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// markVariable is how children are found again that left the process group.
const markVariable = "GITOPSD_RUN"

func environment(own []string, mark string) []string {
	p := os.Getenv("PATH")
	if p == "" {
		p = defaultPath
	}
	env := []string{"PATH=" + p}
	for _, k := range inherited {
		if v, ok := os.LookupEnv(k); ok {
			env = append(env, k+"="+v)
		}
	}
	return append(append(env, own...), markVariable+"="+mark)
}

// run ends when the program and all that came from it have. stdout gets what
// it writes there; without one both streams share a pipe, so that their lines
// stay in order and the last one is the last that was written.
func run(ctx context.Context, argv []string, dir string, env []string, limit time.Duration, stdout *tail) error {
	progress.Within(ctx, limit+afterLimit)
	defer progress.Within(ctx, afterLimit)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	mark := fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())
	var all tail
	build := func() *exec.Cmd {
		// Without the context: what it does at the end reaches one process.
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = dir, environment(env, mark)
		cmd.Stdout, cmd.Stderr = &all, &all
		if stdout != nil {
			cmd.Stdout = &both{stdout, &all}
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.WaitDelay = pipeGrace
		return cmd
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	cmd := build()
	err := cmd.Start()
	for n := 0; n < busyTries && errors.Is(err, syscall.ETXTBSY); n++ {
		time.Sleep(busyPause)
		cmd = build()
		err = cmd.Start()
	}
	if errors.Is(err, syscall.ENOEXEC) {
		return fmt.Errorf("start %s: %w (a script begins with #! and its interpreter)", argv[0], err)
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", argv[0], err)
	}
	ended, watched := make(chan struct{}), make(chan bool)
	go func() { watched <- endLate(limited, cmd.Process.Pid, mark, ended) }()
	err = cmd.Wait()
	close(ended)
	late := <-watched
	if errors.Is(err, exec.ErrWaitDelay) && !late {
		err = nil // it ended well; a child has kept its output
	}
	if err == nil && !late {
		return nil
	}
	signalAll(cmd.Process.Pid, mark, syscall.SIGKILL)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := &Exit{Program: argv[0], Code: cmd.ProcessState.ExitCode(), Timeout: late, Limit: limit, Output: clean(all.bytes())}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Signal = ws.Signal().String()
	}
	return e
}

// lingering is a context that lasts a moment longer when its parent is
// cancelled, and not where a deadline has passed.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			grace := time.NewTimer(stopGrace)
			defer grace.Stop()
			select {
			case <-longer.Done():
			case <-grace.C:
			}
		}
		cancel()
	})
	return longer, func() { stop(); cancel() }
}

// endLate ends a program that is still there when its time is over, and all
// that came from it; it gives true when it had to.
func endLate(limited context.Context, group int, mark string, ended <-chan struct{}) bool {
	select {
	case <-ended:
		return false
	case <-limited.Done():
	}
	signalAll(group, mark, syscall.SIGTERM)
	grace := time.NewTimer(termGrace)
	defer grace.Stop()
	select {
	case <-ended:
	case <-grace.C:
	}
	signalAll(group, mark, syscall.SIGKILL)
	return true
}

// signalAll reaches the process group, and the processes that carry the mark
// in their environment: those that made a session of their own.
func signalAll(group int, mark string, sig syscall.Signal) {
	_ = syscall.Kill(-group, sig) // nobody left is what we want
	want := markVariable + "=" + mark
	procs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, p := range procs {
		env, readErr := os.ReadFile(p)
		if readErr != nil || !contains(env, want) {
			continue
		}
		if pid, convErr := strconv.Atoi(filepath.Base(filepath.Dir(p))); convErr == nil && pid != os.Getpid() {
			_ = syscall.Kill(pid, sig)
		}
	}
}

func contains(env []byte, want string) bool {
	for _, v := range strings.Split(string(env), "\x00") {
		if v == want {
			return true
		}
	}
	return false
}

// clean makes output fit for a report: text, without control characters.
func clean(b []byte) string {
	s := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(b), "\uFFFD"))
	return strings.TrimSpace(s)
}
