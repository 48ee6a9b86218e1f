package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/agentsocket"
	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/schema"
)

// inTurn is a row of agents at the socket of a root: each answers one question
// with its lines and goes.
func inTurn(t *testing.T, root string, rows ...[]agentsocket.Reply) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(agentsocket.Path(root)), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", agentsocket.Path(root))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, lines := range rows {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(conn).ReadBytes('\n')
			for _, line := range lines {
				_ = json.NewEncoder(conn).Encode(line)
			}
			conn.Close()
		}
		l.Close() // whoever asks once more is told that nobody is there
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
}

// What an update of the agent comes to is waited for, through agents that end,
// hang up, are on trial and give way.
func TestRunNowWaitsOverTheHandOver(t *testing.T) {
	fetched := agentsocket.Reply{Fetched: &reconcile.Fetched{Current: "v1.0.0", Assigned: "v1.1.0"}}
	ran := func(r reconcile.Ran) []agentsocket.Reply { return []agentsocket.Reply{fetched, {Ran: &r}} }
	status := func(trial string) []agentsocket.Reply {
		return []agentsocket.Reply{{Standing: &reconcile.Standing{Trial: trial}}}
	}
	ended := []agentsocket.Reply{{Error: reconcile.ErrEnded.Error()}}
	over := ran(reconcile.Ran{Summary: "the agent goes on as v0.9.9", HandOver: true})
	for name, c := range map[string]struct {
		rows [][]agentsocket.Reply
		want reconcile.Ran
	}{
		"it is kept":             {[][]agentsocket.Reply{nil, status("v0.9.9"), status(""), ran(reconcile.Ran{Summary: "on v1.1.0"})}, reconcile.Ran{Summary: "on v1.1.0"}},
		"it fails":               {[][]agentsocket.Reply{status("v0.9.9"), nil, status(""), ran(reconcile.Ran{GaveUp: true})}, reconcile.Ran{GaveUp: true}},
		"it makes way meanwhile": {[][]agentsocket.Reply{status(""), ended, status(""), over, status(""), {fetched}, status(""), ran(reconcile.Ran{Exit: 1})}, reconcile.Ran{Exit: 1}},
	} {
		root := t.TempDir()
		inTurn(t, root, c.rows...)
		got, err := (&device{root: root}).takenOver(t.Context(), 0, true, func(*reconcile.Fetched) {})
		if err != nil || *got != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}

	root := t.TempDir()
	inTurn(t, root, status("v0.9.9"))
	if _, err := (&device{root: root}).takenOver(t.Context(), 0, true, func(*reconcile.Fetched) {}); exitCode(err) != exitContent {
		t.Errorf("where nobody answers any more: %v", err)
	}
	root = t.TempDir()
	inTurn(t, root, []agentsocket.Reply{fetched})
	if _, _, err := (&device{root: root}).runNow(t.Context(), true, func(*reconcile.Fetched) {}); !errors.Is(err, reconcile.ErrEnded) {
		t.Errorf("an agent that was killed in the middle: %v", err)
	}
}

// The update that brought another agent is told by that one, which has nothing
// left to do.
func TestUpdateOverTheHandOver(t *testing.T) {
	for _, c := range []struct {
		ran     reconcile.Ran
		version string
		want    string
	}{
		{reconcile.Ran{Idle: true, Summary: "nothing to do: on v1.1.0"}, "v1.1.0", "updated from v1.0.0 to v1.1.0"},
		{reconcile.Ran{Idle: true, Summary: "nothing to do: on v1.0.0"}, "v1.0.0", "nothing to do: on v1.0.0"},
		{reconcile.Ran{Idle: true, GaveUp: true, Summary: "v1.2.0 was failed"}, "v1.1.0", "v1.2.0 was failed"},
		{reconcile.Ran{Summary: "deferred: busy"}, "v1.1.0", "deferred: busy"},
	} {
		if tellUpdate(&c.ran, "v1.0.0", c.version); c.ran.Summary != c.want {
			t.Errorf("on %s: %q, want %q", c.version, c.ran.Summary, c.want)
		}
	}
	tellUpdate(nil, "v1.0.0", "v1.1.0") // without --wait

	// It may have been on its way when it was asked, and the agent that makes way
	// has fetched nothing for whoever did.
	root := t.TempDir()
	on := func(version string) agentsocket.Reply {
		return agentsocket.Reply{Standing: &reconcile.Standing{Report: schema.Report{Current: schema.SpecRef{Version: version}}}}
	}
	inTurn(t, root, []agentsocket.Reply{on("v1.0.0")},
		[]agentsocket.Reply{{Ran: &reconcile.Ran{Summary: "the agent goes on as v0.9.9", HandOver: true}}}, []agentsocket.Reply{on("v1.1.0")},
		[]agentsocket.Reply{{Fetched: &reconcile.Fetched{Current: "v1.1.0"}}, {Ran: &reconcile.Ran{Idle: true, Summary: "nothing to do: on v1.1.0"}}})
	if out := harmless(t, "agent", "run-now", "--wait", "-o", "json", "--root", root); !strings.Contains(out, `"summary": "updated from v1.0.0 to v1.1.0"`) {
		t.Errorf("it says %s", out)
	}
}

// Who waits sees what for, each thing once.
func TestFollow(t *testing.T) {
	at := func(p schema.Phase, reason string) []agentsocket.Reply {
		return []agentsocket.Reply{{Standing: &reconcile.Standing{Report: schema.Report{Phase: p, Reason: reason, Desired: &schema.SpecRef{Version: "v1.1.0"}}}}}
	}
	root := t.TempDir()
	inTurn(t, root, at(schema.PhaseUpdated, ""), at(schema.PhasePreparing, "pulling image 1 of 2"), at(schema.PhasePreparing, "pulling image 1 of 2"), nil, at(schema.PhaseVerifying, ""))
	out := &lineWriter{lines: make(chan string, 9)}
	stop := (&device{root: root}).follow(t.Context(), out, time.Millisecond)
	for _, want := range []string{"v1.1.0: Preparing: pulling image 1 of 2\n", "v1.1.0: Verifying\n"} {
		if got := <-out.lines; got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
	stop()
}

// lineWriter gives each line that is written.
type lineWriter struct{ lines chan string }

func (w *lineWriter) Write(p []byte) (int, error) {
	w.lines <- string(p)
	return len(p), nil
}
