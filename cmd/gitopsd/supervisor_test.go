package main

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A supervisor hears that the service is up, that its work goes on as long as
// it does, and that it ends.
func TestSupervisorHearsOfRealProgress(t *testing.T) {
	const every = 30 * time.Millisecond
	hear := supervised(t, every)
	const soon = time.Minute

	var log strings.Builder
	s := &supervisor{log: slog.New(slog.NewTextHandler(&log, nil))}
	s.working(time.Hour)
	stop := s.ready(t.Context())
	if got := hear(soon); got != "READY=1" {
		t.Errorf("first it hears %q", got)
	}
	for range 3 {
		if got := hear(soon); got != "WATCHDOG=1" {
			t.Errorf("while the work goes on it hears %q", got)
		}
	}
	s.working(0) // the work hangs from now on
	for hear(10*every) != "" {
	}
	s.working(time.Hour)
	if got := hear(soon); got != "WATCHDOG=1" {
		t.Errorf("when the work goes on again it hears %q", got)
	}
	stop(false)
	for {
		got := hear(soon)
		if got == "STOPPING=1" {
			break
		}
		if got != "WATCHDOG=1" {
			t.Fatalf("at the end it hears %q", got)
		}
	}
	s.ready(t.Context())(true) // another program goes on
	for got := hear(every); got != ""; got = hear(every) {
		if got == "STOPPING=1" {
			t.Error("it hears of an end that is none")
		}
	}
	if strings.Count(log.String(), "does not go on") != 1 {
		t.Errorf("it is told as\n%s", log.String())
	}
}

// The supervisor is told that the service is up before the work has begun; that
// is no work that hangs.
func TestSupervisorWaitsForTheWorkToBegin(t *testing.T) {
	hear := supervised(t, time.Hour)
	var log strings.Builder
	s := &supervisor{log: slog.New(slog.NewTextHandler(&log, nil))}
	stop := s.ready(t.Context())
	for _, want := range []string{"READY=1", "WATCHDOG=1"} {
		if got := hear(5 * time.Second); got != want {
			t.Errorf("it hears %q, want %q", got, want)
		}
	}
	stop(false)
	if log.Len() > 0 {
		t.Errorf("it is told as\n%s", log.String())
	}
}

// supervised plays systemd, which watches this process; hear gives what it is
// told within a time, "" = nothing.
func supervised(t *testing.T, every time.Duration) (hear func(within time.Duration) string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", strconv.FormatInt(every.Microseconds(), 10))
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	return func(within time.Duration) string {
		t.Helper()
		if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 256)
		n, err := conn.Read(buf)
		if err != nil {
			return ""
		}
		return string(buf[:n])
	}
}
