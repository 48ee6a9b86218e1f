package demo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal with a program on it.
type terminal struct {
	master *os.File
	mu     sync.Mutex
	shown  bytes.Buffer
	done   chan struct{} // nothing more is going to be shown
}

// onTerminal starts a program on a pseudo-terminal of so many columns and 40
// lines.
func onTerminal(t *testing.T, columns uint16, cmd *exec.Cmd) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatalf("unlock the pseudo-terminal: %v", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatalf("number of the pseudo-terminal: %v", err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: columns}); err != nil {
		t.Fatalf("size of the pseudo-terminal: %v", err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	term := &terminal{master: master, done: make(chan struct{})}
	go func() {
		defer close(term.done)
		// Ends with EIO when the last process on the terminal is gone.
		_, _ = io.Copy(term, master)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // in case the test ended early
		master.Close()
		<-term.done
	})
	return term
}

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shown.Write(p)
}

func (t *terminal) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shown.String()
}

// TestInterruptFromKeyboard: control-C in the middle of a rollout ends
// everything, and the table that was drawn until then fits the terminal.
func TestInterruptFromKeyboard(t *testing.T) {
	const columns = 100
	tmp := t.TempDir()
	cmd := exec.Command(build(t), "demo")
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "TERM=xterm", "LC_ALL=C.UTF-8")
	term := onTerminal(t, columns, cmd)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	const patience = 30 * time.Second
	for deadline := time.Now().Add(patience); !strings.Contains(term.String(), "Upgrading"); {
		select {
		case err := <-ended:
			t.Fatalf("it ended early: %v\n%s", err, term)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing moves within %s:\n%s", patience, term)
		}
	}
	if _, err := term.master.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Errorf("it ended with %v, want a code that says that it was interrupted", err)
		}
	case <-time.After(patience):
		t.Fatalf("it runs on after control-C:\n%s", term)
	}
	if left := processesOf(t, tmp); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "gitopsd-demo-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if !strings.Contains(term.String(), showCursor) {
		t.Error("the cursor stays hidden")
	}
	// From the echo of control-C on it is not the demonstration that writes.
	shown, _, _ := strings.Cut(plain(term.String()), "^C")
	for line := range strings.Lines(shown) {
		line = strings.TrimRight(line, "\r\n")
		if n := utf8.RuneCountInString(line); n > columns {
			t.Errorf("a line of %d columns on a terminal of %d: %q", n, columns, line)
		}
	}
}
