package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// pty opens a pseudo-terminal of this width: what is written to the terminal
// comes out of the other end.
func pty(t *testing.T, columns uint16) (terminal, other *os.File) {
	t.Helper()
	other, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	if err := unix.IoctlSetPointerInt(int(other.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(other.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: columns}); err != nil {
		t.Fatal(err)
	}
	return terminal, other
}

// onTerminal runs a command with a terminal as its output.
func onTerminal(t *testing.T, columns uint16, env []string, args ...string) string {
	t.Helper()
	terminal, other := pty(t, columns)
	text := make(chan string)
	go func() {
		// The other end gives EIO when the last writer has closed.
		data, _ := io.ReadAll(other)
		text <- string(data)
	}()
	code := run(context.Background(), args, strings.NewReader(""), terminal, io.Discard, env)
	terminal.Close()
	if code != exitOK {
		t.Fatalf("%v: exit code %d", args, code)
	}
	return <-text
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestTablesFitTheTerminal(t *testing.T) {
	const columns = 60
	dir := starterFleet(t)
	text := onTerminal(t, columns, nil, "plan", dir)
	if !strings.Contains(text, "\x1b[") {
		t.Errorf("no colour on a terminal:\n%s", text)
	}
	if !regexp.MustCompile(`policy gateways is not\r\n +enabled\r\n`).MatchString(text) {
		t.Errorf("the reason is not whole in its column at %d columns:\n%s", columns, text)
	}
	for _, line := range strings.Split(escapes.ReplaceAllString(text, ""), "\r\n") {
		if n := utf8.RuneCountInString(line); n > columns {
			t.Errorf("%d columns on a terminal of %d: %q", n, columns, line)
		}
	}
	for _, env := range [][]string{{"NO_COLOR=1"}, {"TERM=dumb"}} {
		if text := onTerminal(t, columns, env, "plan", dir); strings.Contains(text, "\x1b") {
			t.Errorf("colour in spite of %v:\n%q", env, text)
		}
	}
	var piped bytes.Buffer
	run(context.Background(), []string{"plan", dir}, strings.NewReader(""), &piped, io.Discard, nil)
	if strings.Contains(piped.String(), "\x1b") || !strings.Contains(piped.String(), "policy gateways is not enabled\n") {
		t.Errorf("a pipe gets colours or wrapped lines:\n%s", piped.String())
	}
}

// What does not fit is wrapped, so that nothing is lost and columns stay.
func TestEverythingFitsTheTerminal(t *testing.T) {
	const columns = 90
	dir := starterFleet(t)
	for _, args := range [][]string{
		{"config", "show", "serve", "--state", "/" + strings.Repeat("a-long-folder/", 9)},
		{"render", "gw-example-01", dir, "--origin"},
		{"explain", "--help"},
		{"serve", "--help"},
		{"schema"},
	} {
		text := onTerminal(t, columns, []string{"HOME=/root"}, args...)
		for _, line := range strings.Split(escapes.ReplaceAllString(text, ""), "\r\n") {
			// Examples are to be copied, so they are never broken.
			if n := utf8.RuneCountInString(line); n > columns && !strings.HasPrefix(line, "  gitopsd ") {
				t.Errorf("%v: %d columns on a terminal of %d: %q", args, n, columns, line)
			}
		}
	}
}
